package agentrun_test

import (
	"context"
	"errors"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// world is a lab with one container, whose connections can be cut.
type world struct {
	t       *testing.T
	lab     *lab.Lab
	wire    *wire
	manager *sandbox.Manager
	engine  *agentrun.Engine
	box     sandbox.Sandbox
}

func newWorld(t *testing.T) *world {
	t.Helper()
	guests, err := sim.New(sim.Options{DHCP: map[string]netip.Prefix{}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = guests.Close() })
	w := &world{t: t, wire: &wire{Engine: guests}}
	if w.lab, err = lab.Start(t.Context(), lab.Options{Engine: w.wire}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.lab.Close() })
	w.manager, w.engine = w.process(nil)
	out, err := w.manager.Create(t.Context(), sandbox.Spec{Hostname: "work", Started: true, WaitFor: sandbox.WaitForSSH,
		Network: sandbox.Network{IPv4: sandbox.AddressAuto, Mode: sandbox.ModeUnmanaged}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	w.box = out.Sandbox
	return w
}

// process is one run of the program: a manager and an engine of its own.
func (w *world) process(clock sandbox.Clock) (*sandbox.Manager, *agentrun.Engine) {
	w.t.Helper()
	client, err := pve.New(pve.Config{Endpoint: w.lab.Endpoint(), Token: w.lab.Token(), TLS: pve.TLSConfig{Fingerprint: w.lab.Fingerprint()}})
	if err != nil {
		w.t.Fatal(err)
	}
	m, err := sandbox.NewManager(client, sandbox.Settings{
		Owner: "unit", VMIDs: sandbox.VMIDRange{First: lab.VMIDFirst, Last: lab.VMIDLast},
		TemplateID: lab.TemplateID, Storage: lab.Storage, Bridge: lab.Bridge,
		Addresses:  &sandbox.AddressRange{CIDR: lab.AddressCIDR, First: lab.AddressFirst, Gateway: lab.AddressGateway},
		Management: []netip.Prefix{w.lab.Management()}, FirewallSettle: w.lab.FirewallSettle(),
		Guest: guest.Config{
			Username: lab.GuestUser, Auth: guest.Auth{PrivateKey: w.lab.PrivateKey()},
			ProxyJump: &guest.ProxyJump{Host: w.lab.SSHHost(), Port: w.lab.SSHPort(), Username: lab.SSHUser, HostKey: w.lab.SSHHostKey()},
			Timeout:   20 * time.Second, Timing: guest.Timing{PollMin: 5 * time.Millisecond, PollMax: 50 * time.Millisecond},
		},
	}, sandbox.Options{})
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = m.Close(); client.Close() })
	return m, agentrun.New(m, clock, nil)
}

func (w *world) prior() sandbox.Prior { return sandbox.Prior{Ref: w.box.Ref} }

// run starts a run and waits for its end.
func (w *world) run(spec agentrun.Spec) *agentrun.Run {
	w.t.Helper()
	r, err := w.engine.Start(w.t.Context(), w.prior(), spec, nil)
	if err != nil {
		w.t.Fatal("start:", err)
	}
	if err := w.engine.Wait(w.t.Context(), r, spec, nil); err != nil {
		w.t.Fatal("wait:", err)
	}
	return r
}

func (w *world) sh(code string) string {
	w.t.Helper()
	res, _, err := w.manager.Exec(w.t.Context(), w.prior(), sandbox.Command{Script: code})
	if err != nil {
		w.t.Fatalf("%s: %v", code, err)
	}
	return string(res.Stdout) + string(res.Stderr)
}

func spec(code string) agentrun.Spec {
	return agentrun.Spec{Name: "run", Command: agentrun.Command{Script: code, PromptStdin: true}, User: "agent", Timeout: time.Minute}
}

// wire is the way to the guests. It breaks each connection after a number of bytes, as often as it is told.
type wire struct {
	engine.Engine
	mu    sync.Mutex
	after int64 // bytes from the guest; 0 never
	cuts  int   // how often more
}

func (w *wire) cut(after int64, times int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after, w.cuts = after, times
}

// Dial connects to a guest.
func (w *wire) Dial(ctx context.Context, address string) (net.Conn, error) {
	c, err := w.Engine.Dial(ctx, address)
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil || w.after == 0 || w.cuts == 0 {
		return c, err
	}
	w.cuts--
	return &cutConn{Conn: c, left: w.after}, nil
}

type cutConn struct {
	net.Conn
	mu   sync.Mutex
	left int64
}

var errCut = errors.New("the line was cut")

// Read ends when the line is cut.
func (c *cutConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left -= int64(n); c.left < 0 {
		_ = c.Close()
		return 0, errCut
	}
	return n, err
}
