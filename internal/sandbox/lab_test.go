package sandbox_test

import (
	"context"
	"net/netip"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

const testOwner = "unit"

// world is one lab and what a test does with it.
type world struct {
	t   *testing.T
	lab *lab.Lab
	// lastFired says whether the fault of the last call of at was met.
	lastFired bool
}

func newWorld(t *testing.T, options lab.Options) *world {
	t.Helper()
	l, err := lab.Start(t.Context(), options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(); err != nil {
			t.Errorf("close the lab: %v", err)
		}
	})
	return &world{t: t, lab: l}
}

// laterClock is the real time plus an offset: what a process sees that starts
// later.
type laterClock struct{ offset time.Duration }

func (c laterClock) Now() time.Time { return time.Now().Add(c.offset) }

func (laterClock) Sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-time.After(d):
		return nil
	}
}

// process is one run of the program: a client and a manager of its own.
type process struct {
	*sandbox.Manager
	client *pve.Client
}

type option func(*pve.Config, *sandbox.Settings, *sandbox.Options)

// impatient gives up soon on a server that is gone.
func impatient(c *pve.Config, s *sandbox.Settings, _ *sandbox.Options) {
	c.RetryFor, c.PollPatience, c.RequestTimeout = 30*time.Millisecond, 50*time.Millisecond, 2*time.Second
	s.Guest.Timeout = 2 * time.Second
}

// later lets the process see a later time.
func later(d time.Duration) option {
	return func(_ *pve.Config, _ *sandbox.Settings, o *sandbox.Options) { o.Clock = laterClock{d} }
}

func (w *world) process(options ...option) *process {
	w.t.Helper()
	config := pve.Config{
		Endpoint: w.lab.Endpoint(), Token: w.lab.Token(), TLS: pve.TLSConfig{Fingerprint: w.lab.Fingerprint()},
	}
	settings := sandbox.Settings{
		Owner: testOwner, VMIDs: sandbox.VMIDRange{First: lab.VMIDFirst, Last: lab.VMIDLast},
		TemplateID: lab.TemplateID, Storage: lab.Storage, Bridge: lab.Bridge,
		Addresses:  &sandbox.AddressRange{CIDR: lab.AddressCIDR, First: lab.AddressFirst, Gateway: lab.AddressGateway},
		Management: []netip.Prefix{w.lab.Management()}, FirewallSettle: w.lab.FirewallSettle(),
		Guest: guest.Config{
			Username: lab.GuestUser, Auth: guest.Auth{PrivateKey: w.lab.PrivateKey()},
			ProxyJump: &guest.ProxyJump{Host: w.lab.SSHHost(), Port: w.lab.SSHPort(), Username: lab.SSHUser, HostKey: w.lab.SSHHostKey()},
			Timeout:   20 * time.Second,
			Timing:    guest.Timing{PollMin: 5 * time.Millisecond, PollMax: 50 * time.Millisecond},
		},
	}
	var o sandbox.Options
	for _, apply := range options {
		apply(&config, &settings, &o)
	}
	client, err := pve.New(config)
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := sandbox.NewManager(client, settings, o)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.Close(); client.Close() })
	return &process{Manager: m, client: client}
}

func (w *world) context() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), 60*time.Second)
	w.t.Cleanup(cancel)
	return ctx
}

// state is what Terraform would hold of one sandbox.
type state struct {
	mu   sync.Mutex
	ref  sandbox.Ref
	upid string
}

func (s *state) accept(ref sandbox.Ref, upid string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ref, s.upid = ref, upid
}

func spec(hostname string) sandbox.Spec {
	return sandbox.Spec{
		Hostname: hostname, Started: true, Tags: []string{"ci"}, Description: "made by a test", MemoryMiB: ptr(256), Cores: ptr(2),
		// What these tests are about isn't the firewall; wall_test.go is.
		Network: sandbox.Network{IPv4: sandbox.AddressAuto, Mode: sandbox.ModeUnmanaged}, WaitFor: sandbox.WaitForSSH,
	}
}

func ptr[T any](v T) *T { return &v }

func (w *world) create(p *process, s sandbox.Spec) sandbox.Sandbox {
	w.t.Helper()
	out, err := p.Create(w.context(), s, nil)
	if err != nil {
		w.t.Fatalf("create %s: %v", s.Hostname, err)
	}
	if out.Unfinished {
		w.t.Fatalf("create %s: unfinished", s.Hostname)
	}
	return out.Sandbox
}

// marked are the ids of the guests on the server with our marker, or that are
// being made in our range.
func (w *world) marked() []int {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var ids []int
	for _, g := range dump.Guests {
		inRange := g.VMID >= lab.VMIDFirst && g.VMID <= lab.VMIDLast
		if strings.Contains(g.Config["description"], "owner="+testOwner+" ") || inRange {
			ids = append(ids, g.VMID)
		}
	}
	if len(dump.Strays) > 0 {
		w.t.Errorf("volumes without a container: %v", dump.Strays)
	}
	return ids
}

// settle waits until no task runs on the server any more.
func (w *world) settle() {
	w.t.Helper()
	deadline := time.Now().Add(20 * time.Second)
	for {
		dump, err := w.lab.Control().Dump(context.Background())
		if err != nil {
			w.t.Fatal(err)
		}
		if len(dump.RunningTasks) == 0 {
			return
		}
		if time.Now().After(deadline) {
			w.t.Fatalf("tasks still run: %v", dump.RunningTasks)
		}
		time.Sleep(5 * time.Millisecond) // a test watching a server; the code under test never does this
	}
}

func (w *world) calm() {
	w.t.Helper()
	if err := w.lab.Control().Reset(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	w.settle()
	if err := w.lab.Control().RefreshStatus(context.Background()); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) inject(f control.Fault) int {
	w.t.Helper()
	id, err := w.lab.Control().Inject(context.Background(), f)
	if err != nil {
		w.t.Fatal(err)
	}
	return id
}

func (w *world) fired(id int) bool {
	w.t.Helper()
	all, err := w.lab.Control().Faults(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, f := range all {
		if f.ID == id {
			return f.Fired > 0
		}
	}
	return false
}

var pollOfATask = regexp.MustCompile(`/tasks/[^/]+/(status|log)`)

// requests counts what do asks of the server, without the polls of tasks and
// addresses.
func (w *world) requests(do func()) (count int, list []string) {
	w.t.Helper()
	c := w.lab.Control()
	if err := c.ResetRequests(context.Background()); err != nil {
		w.t.Fatal(err)
	}
	do()
	report, err := c.Requests(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range report.Entries {
		if pollOfATask.MatchString(r.Path) {
			continue
		}
		list = append(list, r.Method+" "+r.Path)
	}
	return len(list), list
}

type pveConfig = pve.Config

func cloneTo(vmid int) pve.CloneOptions { return pve.CloneOptions{NewID: vmid} }
