package sandbox_test

import (
	"errors"
	"net"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// ownAddress is an address of this machine's at which others reach it; the test is
// skipped where there is none.
func ownAddress(t *testing.T) netip.Addr {
	t.Helper()
	all, err := net.InterfaceAddrs()
	if err != nil {
		t.Fatal(err)
	}
	for _, a := range all {
		if p, err := netip.ParsePrefix(a.String()); err == nil && p.Addr().Is4() && p.Addr().IsGlobalUnicast() {
			return p.Addr()
		}
	}
	t.Skip("this machine has no address to listen at")
	return netip.Addr{}
}

// echo answers every datagram at a UDP port of this machine; port 0 takes a free
// one.
func echo(t *testing.T, port uint16) netip.AddrPort {
	t.Helper()
	c, err := net.ListenPacket("udp", netip.AddrPortFrom(ownAddress(t), port).String())
	if err != nil {
		t.Skipf("can't listen: %v", err)
	}
	t.Cleanup(func() { _ = c.Close() })
	go func() {
		buffer := make([]byte, 2048)
		for {
			n, from, err := c.ReadFrom(buffer)
			if err != nil {
				return
			}
			_, _ = c.WriteTo(buffer[:n], from)
		}
	}()
	return netip.MustParseAddrPort(c.LocalAddr().String())
}

func TestAUDPCanaryIsAskedFromInside(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	listener := "udp://" + echo(t, 0).String()
	silent := "udp://" + netip.AddrPortFrom(ownAddress(t), 9).String()
	out, err := w.process().Create(w.context(), walled("udp", sandbox.ModeOff, listener, silent), nil)
	if err != nil {
		t.Fatal(err)
	}
	if out.Sandbox.Posture.Proof != sandbox.ProvedSimulated || !warned(out, silent) || warned(out, listener) {
		t.Errorf("the proof is %q, warnings %v", out.Sandbox.Posture.Proof, out.Warnings)
	}
	for _, bad := range []string{"icmp://192.168.1.1:1", "udp://192.168.1.1", "192.168.1.1:0", "router:53"} {
		if found := w.process().Check(walled("bad", sandbox.ModeNAT, bad)); !slices.ContainsFunc(found, func(p sandbox.Problem) bool { return p.Attribute == "network.canaries[0]" }) {
			t.Errorf("%s: %v", bad, found)
		}
	}
}

func TestAUDPCanaryThatIsReachedEndsTheContainer(t *testing.T) {
	t.Parallel()
	if err := containers(); err != nil {
		t.Skipf("needs real containers: %v", err)
	}
	w := newWorld(t, lab.Options{EngineName: lab.EngineNS, Outside: true})
	canary := "udp://" + echo(t, 123).String() // the outside answers there whatever the address
	out, err := w.process().Create(w.context(), walled("shut", sandbox.ModeOff, canary), nil)
	if err != nil || out.Sandbox.Posture.Proof != sandbox.ProvedProbed {
		t.Fatalf("with its rules the proof is %q, warnings %v, %v", out.Sandbox.Posture.Proof, out.Warnings, err)
	}
	w.never()
	p := w.process(func(_ *pve.Config, s *sandbox.Settings, o *sandbox.Options) {
		s.FirewallSettle, o.ProofPatience = 10*time.Millisecond, 300*time.Millisecond
	})
	out, err = p.Create(w.context(), walled("open", sandbox.ModeOff, canary), nil)
	if !errors.Is(err, sandbox.ErrExposed) || !strings.Contains(err.Error(), canary) {
		t.Fatalf("the loop never runs, and the creation says: %v", err)
	}
	if status, err := p.client.LXCStatus(w.context(), out.Sandbox.Node, out.Sandbox.VMID); err != nil || status.Running() {
		t.Errorf("it runs (%v, %v)", status.Status, err)
	}
}

// TestTheNodeIsTriedFromInside: what no guest's rule covers.
func TestTheNodeIsTriedFromInside(t *testing.T) {
	t.Parallel()
	if err := containers(); err != nil {
		t.Skipf("needs real containers: %v", err)
	}
	w := newWorld(t, lab.Options{EngineName: lab.EngineNS})
	out, err := w.process().Create(w.context(), walled("unguarded", sandbox.ModeNAT), nil)
	if err != nil {
		t.Fatal(err)
	}
	if !warned(out, "10.77.0.1:8006") || !warned(out, "pvesh create /nodes/pve1/firewall/rules --type in --action DROP") {
		t.Errorf("nothing says that the node is open, or how to close it: %v", out.Warnings)
	}
	p := w.process(managed(w))
	guard := sandbox.GuardSpec{NodeName: "pve1", Subnet: netip.MustParsePrefix("10.77.1.0/24")}
	if _, err := p.CreateGuard(w.context(), guard); err != nil {
		t.Fatal(err)
	}
	// The guard's rules are as late as all: they are waited for.
	if out, err = p.Create(w.context(), walled("guarded", sandbox.ModeNAT), nil); err != nil || warned(out, "8006") {
		t.Errorf("behind a guard: %v, warnings %v", err, out.Warnings)
	}
	if err := p.DeleteGuard(w.context(), "pve1", guard.Key()); err != nil {
		t.Fatal(err)
	}
	time.Sleep(w.lab.FirewallSettle())
	w.never()
	if _, err := p.CreateGuard(w.context(), guard); err != nil {
		t.Fatal(err)
	}
	p = w.process(func(_ *pve.Config, _ *sandbox.Settings, o *sandbox.Options) { o.ProofPatience = 300 * time.Millisecond })
	s := walled("behind", sandbox.ModeUnmanaged)
	s.Network.Mode = sandbox.ModeNAT
	s.Network.Allow = []egress.Allow{{To: "192.0.2.7", Ports: "443"}}
	if out, err = p.Create(w.context(), s, nil); !errors.Is(err, sandbox.ErrExposed) || !strings.Contains(err.Error(), "8006") {
		t.Errorf("behind a guard that doesn't bite: %v", err)
	}
	if status, err := p.client.LXCStatus(w.context(), out.Sandbox.Node, out.Sandbox.VMID); err != nil || status.Running() {
		t.Errorf("it runs (%v, %v)", status.Status, err)
	}
}
