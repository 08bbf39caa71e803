package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// walled is a specification with a managed network mode.
func walled(hostname string, mode sandbox.NetworkMode, canaries ...string) sandbox.Spec {
	s := spec(hostname)
	s.Network.Mode, s.Network.Canaries = mode, canaries
	s.DNS = &sandbox.DNS{Servers: []string{"10.10.10.1"}}
	return s
}

const canaryPort = 9999

// canary starts a listener, in a container of its own, that any unfiltered guest
// can reach, and returns its address.
func (w *world) canary() string {
	w.t.Helper()
	s := w.create(w.process(), spec("canary"))
	listening, stop := context.WithCancel(context.Background())
	w.t.Cleanup(stop)
	go func() {
		_, _ = w.lab.Engine().Exec(listening, s.VMID, engine.Command{Argv: []string{"nc", "-l", "-k", "-p", fmt.Sprint(canaryPort)}, Stdin: strings.NewReader("")})
	}()
	address := netip.AddrPortFrom(s.IPv4, canaryPort).String()
	for { // until it listens
		if conn, err := w.lab.Engine().Dial(w.context(), address); err == nil {
			_ = conn.Close()
			return address
		}
		time.Sleep(time.Millisecond) // a test's own listener
	}
}

// tryAtOnce is a guest whose first program tries to reach an address from its
// first instant on, over and over, until the test ends it. It returns a function
// that stops it and says how often it got through.
func (w *world) tryAtOnce(vmid int, address string) (stop func() int) {
	host, port, _ := strings.Cut(address, ":")
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan int)
	go func() {
		through := 0
		for ctx.Err() == nil {
			code, err := w.lab.Engine().Exec(ctx, vmid, engine.Command{Argv: []string{"nc", "-z", "-w", "1", host, port}, Stdout: io.Discard, Stderr: io.Discard})
			if err == nil && code == 0 {
				through++
			}
			select {
			case <-ctx.Done():
			case <-time.After(time.Millisecond): // a test's own guest, hammering
			}
		}
		done <- through
	}()
	return func() int { cancel(); return <-done }
}

// scope is the firewall of a guest on the lab's first node.
func (w *world) scope(s sandbox.Sandbox) pve.FirewallScope { return pve.LXCFirewall(s.Node, s.VMID) }

func warned(out sandbox.Outcome, text string) bool {
	return slices.ContainsFunc(out.Warnings, func(x sandbox.Warning) bool { return strings.Contains(x.Summary+x.Detail, text) })
}

func TestLeavingTheModeOutIsFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	p := w.process()
	s := walled("default", "")
	out, err := p.Create(w.context(), s, nil)
	if err != nil {
		t.Fatal(err)
	}
	got := out.Sandbox
	if !got.Network.Firewall || got.Network.LinkDown || got.Network.Mode != sandbox.ModeNAT {
		t.Errorf("the interface is %+v", got.Network)
	}
	if got.Posture.Proof != sandbox.ProvedReadback || !warned(out, "canaries") {
		t.Errorf("without a canary the proof is %q, warnings %v", got.Posture.Proof, out.Warnings)
	}
	if !slices.Contains(got.Posture.Firewall, "enable=1") || !slices.Contains(got.Posture.Firewall, "policy_in=DROP") {
		t.Errorf("the posture doesn't show the switches: %q", got.Posture.Firewall)
	}
	if n := w.tryAtOnce(got.VMID, c); true {
		time.Sleep(20 * time.Millisecond) // some tries
		if through := n(); through != 0 {
			t.Errorf("it reached the canary %d times", through)
		}
	}
	// A refresh in a later process says the same.
	read, err := w.process().Read(w.context(), sandbox.Prior{Ref: got.Ref})
	if err != nil {
		t.Fatal(err)
	}
	if d := read.Posture.Diff(got.Posture); len(d) != 0 {
		t.Errorf("the refresh finds %v", d)
	}
}

func TestAForbiddenCanaryProvesTheWallFromInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeOff, sandbox.ModeWeb, sandbox.ModeNAT, sandbox.ModeAllowlist} {
		s := walled("probed", mode, c)
		if mode == sandbox.ModeAllowlist {
			s.Network.Allow = []egress.Allow{{To: "192.0.2.7/32", Ports: "443", Protocol: "tcp"}}
		}
		out, err := w.process().Create(w.context(), s, nil)
		if err != nil {
			t.Fatalf("%s: %v", mode, err)
		}
		if out.Sandbox.Posture.Proof != sandbox.ProvedSimulated {
			t.Errorf("%s: the proof is %q; warnings %v", mode, out.Sandbox.Posture.Proof, out.Warnings)
		}
	}
}

func TestAContainerThatIsOpenEndsDarkAndStopped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	w.never()
	p := w.process(func(_ *pve.Config, s *sandbox.Settings, o *sandbox.Options) {
		s.FirewallSettle, o.ProofPatience = 10*time.Millisecond, 300*time.Millisecond
	})
	out, err := p.Create(w.context(), walled("open", sandbox.ModeNAT, c), nil)
	if !errors.Is(err, sandbox.ErrExposed) || !strings.Contains(err.Error(), c) {
		t.Fatalf("the loop never runs, and the creation says: %v", err)
	}
	status, err := p.client.LXCStatus(w.context(), out.Sandbox.Node, out.Sandbox.VMID)
	if err != nil || status.Running() {
		t.Errorf("it runs (%v, %v)", status.Status, err)
	}
	cfg, err := p.client.LXCConfig(w.context(), out.Sandbox.Node, out.Sandbox.VMID)
	if err != nil || !cfg.Nets()[0].LinkDown() {
		t.Errorf("its link is up: %v %v", cfg.Text("net0"), err)
	}
}

// never keeps the lab's firewall service from running again.
func (w *world) never() {
	w.t.Helper()
	delays, err := w.lab.Control().Delays(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	delays.FirewallLoop = time.Hour
	if err := w.lab.Control().SetDelays(context.Background(), delays); err != nil {
		w.t.Fatal(err)
	}
}

func TestWindowStaysShutFromTheFirstInstant(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	c := w.canary()
	p := w.process()
	vmid := lab.VMIDFirst + 50
	stop := w.tryAtOnce(vmid, c)
	s := walled("early", sandbox.ModeNAT)
	s.VMID = vmid
	made := w.create(p, s)
	if n := stop(); n != 0 {
		t.Errorf("window_connections = %d after a fresh start", n)
	}
	update := func(what string, to sandbox.Spec) {
		stop := w.tryAtOnce(vmid, c)
		out, err := w.process().Update(w.context(), sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey}, s, to)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if n := stop(); n != 0 {
			t.Errorf("window_connections = %d at %s", n, what)
		}
		made, s = out.Sandbox, to
	}
	stopped := s.Clone()
	stopped.Started = false
	update("stop", stopped)
	again := stopped.Clone()
	again.Started = true
	update("start", again)
	moved := again.Clone()
	moved.NodeName = "pve2"
	update("migration", moved)
	if made.Node != "pve2" || made.Network.LinkDown {
		t.Errorf("after the migration it is on %s, link down %v", made.Node, made.Network.LinkDown)
	}
	web := moved.Clone()
	web.Network.Mode = sandbox.ModeWeb
	update("change of mode", web)
}
