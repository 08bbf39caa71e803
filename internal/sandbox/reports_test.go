package sandbox_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// What users of other tools have reported, as rules for this one.

func TestWarningsOfATaskAreASuccessWithAWarning(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	if err := w.lab.Control().FailTask(t.Context(), control.TaskFault{Type: "vzclone", Exit: "WARNINGS: 1", After: true}); err != nil {
		t.Fatal(err)
	}
	out, err := w.process().Create(w.context(), spec("warned"), nil)
	if err != nil || len(out.Warnings) == 0 {
		t.Errorf("warnings %v, error %v", out.Warnings, err)
	}
}

func TestKeysOfNet0ThatOnlyTheServerKnowsSurviveAnUpdate(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("managed"))
	config, err := p.client.LXCConfig(w.context(), s.Node, s.VMID)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{"net0": config.Text("net0") + ",host-managed=1"}}); err != nil {
		t.Fatal(err)
	}
	to := spec("managed")
	to.Network.RateLimitMBs = 5
	out, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, spec("managed"), to)
	if err != nil {
		t.Fatal(err)
	}
	if config, err = p.client.LXCConfig(w.context(), s.Node, s.VMID); err != nil {
		t.Fatal(err)
	}
	net := config.Nets()[0]
	if net.Text("host-managed") != "1" || net.Text("rate") != "5" || net.MAC() != s.Network.MACAddress || out.Sandbox.Network.RateLimitMBs != 5 {
		t.Errorf("net0 = %s", net)
	}
}

func TestDriftOfEachSettingIsSeenAndRepaired(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("drifting")
	want.Started = false
	s := w.create(p, want)
	for key, value := range map[string]string{
		"hostname": "other", "memory": "1024", "cores": "1", "tags": "x;y", "protection": "1", "onboot": "1", "startup": "order=9",
		"net0": "name=eth0,bridge=vmbr0,hwaddr=" + s.Network.MACAddress + ",ip=dhcp,type=veth",
	} {
		if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{key: value}}); err != nil {
			t.Fatal(err)
		}
		drifted, err := w.process().Read(w.context(), sandbox.Prior{Ref: s.Ref})
		if err != nil {
			t.Fatal(err)
		}
		if sameSettings(drifted, s) {
			t.Errorf("%s = %s isn't seen", key, value)
		}
		out, err := w.process().Update(w.context(), sandbox.Prior{Ref: s.Ref}, want, want)
		if err != nil {
			t.Fatalf("%s: %v", key, err)
		}
		if !sameSettings(out.Sandbox, s) {
			t.Errorf("%s: repaired to %+v, want %+v", key, out.Sandbox, s)
		}
	}
}

func sameSettings(a, b sandbox.Sandbox) bool {
	return a.Hostname == b.Hostname && a.MemoryMiB == b.MemoryMiB && *a.Cores == *b.Cores && slices.Equal(a.Tags, b.Tags) && a.OwnerTag == b.OwnerTag &&
		a.Protection == b.Protection && a.OnBoot == b.OnBoot && a.Startup.String() == b.Startup.String() && a.Network == b.Network && a.Description == b.Description
}

func TestNodeThatIsAwayIsNoProofOfAbsence(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	want := spec("remote")
	want.NodeName = w.lab.Nodes()[1]
	s := w.create(p, want)
	if err := w.lab.Control().NodeAway(w.context(), s.Node, true); err != nil {
		t.Fatal(err)
	}
	_, err := w.process(impatient).Read(w.context(), sandbox.Prior{Ref: s.Ref})
	if err == nil || errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("read: %v", err)
	}
	if _, err := w.process(impatient).Destroy(short(t, 5*time.Second), s.Ref, ""); err == nil {
		t.Error("a destroy that reached nobody was a success")
	}
	if err := w.lab.Control().NodeAway(w.context(), s.Node, false); err != nil {
		t.Fatal(err)
	}
	w.calm()
	if _, err := w.process().Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil {
		t.Errorf("after it came back: %v", err)
	}
}

func TestLockThatStaysIsNamedAndTheSandboxKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("backed-up"))
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{"lock": "backup"}}); err != nil {
		t.Fatal(err)
	}
	_, err := p.Destroy(short(t, 300*time.Millisecond), s.Ref, "")
	if !errors.Is(err, sandbox.ErrLocked) || !strings.Contains(err.Error(), "backup") || !strings.Contains(err.Error(), "pct unlock") {
		t.Errorf("destroy: %v", err)
	}
	read, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref})
	if err != nil || read.Lock != "backup" || read.Status != sandbox.StatusRunning {
		t.Errorf("read: %+v %v", read, err)
	}
}

func TestLockOfAnotherRunnersCloneIsWaitedFor(t *testing.T) {
	t.Parallel()
	delays := lab.Fast()
	delays.CloneFull = 400 * time.Millisecond
	w := newWorld(t, lab.Options{Delays: delays})
	other := w.process()
	options := cloneTo(700)
	options.Full = true
	if _, err := other.client.CloneLXC(w.context(), w.lab.Nodes()[0], lab.TemplateID, options); err != nil {
		t.Fatal(err)
	}
	w.create(w.process(), spec("patient"))
}

func TestCloneThatOutlastsItsTimeoutIsTracked(t *testing.T) {
	t.Parallel()
	delays := lab.Fast()
	delays.CloneFull = 600 * time.Millisecond
	w := newWorld(t, lab.Options{Delays: delays})
	want := spec("late")
	want.FullClone = true
	var saved state
	out, err := w.process().Create(short(t, 200*time.Millisecond), want, saved.accept)
	if !errors.Is(err, context.DeadlineExceeded) || out.Unfinished || out.Sandbox.VMID == 0 || out.Sandbox.VMID != saved.ref.VMID {
		t.Errorf("outcome %+v, %v", out.Sandbox.Ref, err)
	}
	if _, err := w.process().Destroy(w.context(), saved.ref, saved.upid); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestSandboxesWithTheTemplatesHostKeysAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{SharedHostKeys: true})
	p := w.process()
	// A template that has booted, so that it has host keys.
	base := spec("base")
	s := w.create(p, base)
	base.Started = false
	if _, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, base, base); err != nil {
		t.Fatal(err)
	}
	if err := p.client.ConvertToTemplate(w.context(), s.Node, s.VMID); err != nil {
		t.Fatal(err)
	}
	p = w.process()
	a, b := spec("twin-a"), spec("twin-b")
	a.Source.TemplateID, b.Source.TemplateID = s.VMID, s.VMID
	w.create(p, a)
	out, err := p.Create(w.context(), b, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(out.Warnings, func(x sandbox.Warning) bool {
		return strings.Contains(x.Detail, "twin-b") && strings.Contains(x.Detail, "twin-a")
	}) {
		t.Errorf("warnings %v", out.Warnings)
	}
}

func TestDestroyOfAStoppedSandboxStopsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("off")
	want.Started = false
	s := w.create(p, want)
	_, list := w.requests(func() {
		if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
			t.Error(err)
		}
	})
	for _, r := range list {
		if strings.Contains(r, "/status/") {
			t.Errorf("sent %s", r)
		}
	}
}

func TestDestroyFindsAGuestThatVanishesMeanwhile(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("vanishing"))
	// Somebody deletes it between our look and our DELETE.
	id := w.inject(control.Fault{Method: "DELETE", Pattern: "/lxc/", Kind: control.Hold})
	done := make(chan error, 1)
	go func() { done <- second(p.Destroy(w.context(), s.Ref, "")) }()
	if _, err := w.lab.Control().WaitHeld(w.context(), id, 1, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if _, err := w.process().Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.Control().Release(w.context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("already gone is a success, got %v", err)
	}
}

func TestConcurrentWriterIsNotOverwritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("contended"))
	id := w.inject(control.Fault{Method: "PUT", Pattern: "/config$", Kind: control.Hold})
	done := make(chan error, 1)
	to := spec("contended")
	to.MemoryMiB = ptr(333)
	go func() { done <- second(p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, spec("contended"), to)) }()
	if _, err := w.lab.Control().WaitHeld(w.context(), id, 1, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{"timezone": "UTC"}}); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.Control().Release(w.context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	config, err := p.client.LXCConfig(w.context(), s.Node, s.VMID)
	if err != nil || config.Text("timezone") != "UTC" || config.Text("memory") != "333" {
		t.Errorf("timezone %q, memory %q, %v", config.Text("timezone"), config.Text("memory"), err)
	}
}

func TestStoppedGuestOnANodeThatJustBootedIsPendingAutostart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	want := spec("autostart")
	want.Started, want.OnBoot = false, true
	s := w.create(p, want)
	read, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref})
	if err != nil {
		t.Fatal(err)
	}
	resources, err := p.client.ClusterResources(w.context(), "node")
	if err != nil {
		t.Fatal(err)
	}
	young := resources[0].Uptime > 0 && resources[0].Uptime < 180
	if read.PendingAutostart != young {
		t.Errorf("pending autostart %v on a node that is up for %d s", read.PendingAutostart, resources[0].Uptime)
	}
}

func TestIDsOfTheRangeThatAreUsedUpAreSaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(func(_ *pveConfig, s *sandbox.Settings, _ *sandbox.Options) {
		s.VMIDs = sandbox.VMIDRange{First: lab.VMIDFirst, Last: lab.VMIDFirst + 1}
	})
	w.create(p, spec("one"))
	w.create(p, spec("two"))
	_, err := p.Create(w.context(), spec("three"), nil)
	if !errors.Is(err, sandbox.ErrNoFreeID) || !strings.Contains(err.Error(), "vmid_range") {
		t.Errorf("%v", err)
	}
}

func TestSandboxInHAIsDestroyedAndProvedGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("available"))
	w.post("/cluster/ha/resources", url.Values{"sid": {fmt.Sprintf("ct:%d", s.VMID)}})
	w.calm()
	read, err := w.process().Read(w.context(), sandbox.Prior{Ref: s.Ref})
	if err != nil || !read.HA {
		t.Errorf("HA is not seen: %+v %v", read, err)
	}
	if _, err := w.process().Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

// post sends a call that the product never makes.
func (w *world) post(path string, form url.Values) {
	w.t.Helper()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM([]byte(w.lab.CAPEM()))
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots, MinVersion: tls.VersionTLS12}}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(w.t.Context(), http.MethodPost, w.lab.Endpoint()+"/api2/json"+path, strings.NewReader(form.Encode()))
	if err != nil {
		w.t.Fatal(err)
	}
	request.Header.Set("Authorization", "PVEAPIToken="+w.lab.Token())
	request.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	response, err := transport.RoundTrip(request)
	if err != nil {
		w.t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	if response.StatusCode != http.StatusOK {
		w.t.Fatalf("POST %s: %s", path, response.Status)
	}
}
