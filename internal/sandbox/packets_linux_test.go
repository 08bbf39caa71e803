package sandbox_test

import (
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/matrix"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

var containers = sync.OnceValue(func() error { return lab.CheckEngine(lab.EngineNS) })

// TestPacketsMeetTheModes tries every target from inside real containers, one per mode: what gets out is counted where it
// arrives. A container without a mode shows that everything would answer, and that sending under another's name works
// where nothing stops it.
func TestPacketsMeetTheModes(t *testing.T) {
	t.Parallel()
	if err := containers(); err != nil {
		t.Skipf("needs real containers: %v", err)
	}
	w := newWorld(t, lab.Options{EngineName: lab.EngineNS, Outside: true})
	modes := map[sandbox.NetworkMode]sandbox.Sandbox{}
	var mu sync.Mutex
	var all sync.WaitGroup
	p := w.process()
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeOff, sandbox.ModeWeb, sandbox.ModeNAT, sandbox.ModeAllowlist, sandbox.ModeUnmanaged} {
		s := walled("packets-"+string(mode), mode)
		s.Network.IPv6 = "auto"
		s.DNS = &sandbox.DNS{Servers: []string{matrix.Resolver4, matrix.Resolver6}}
		if mode == sandbox.ModeAllowlist {
			s.Network.Allow = []egress.Allow{{To: matrix.Named4, Ports: "443"}, {To: matrix.Named6, Ports: "443"}}
		}
		all.Go(func() {
			out, err := p.Create(w.context(), s, nil)
			if err != nil {
				t.Errorf("create %s: %v", s.Hostname, err)
			}
			mu.Lock()
			defer mu.Unlock()
			modes[mode] = out.Sandbox
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	time.Sleep(w.lab.FirewallSettle())
	wrong, open := 0, 0
	try := func(mode sandbox.NetworkMode, s sandbox.Sandbox) {
		found, err := matrix.Try(w.context(), w.lab, s.VMID)
		if err != nil {
			t.Error(err)
		}
		mu.Lock()
		defer mu.Unlock()
		for _, f := range found {
			if want := f.ReachedBy(string(mode)); f.Reached != want {
				wrong++
				t.Errorf("mode %s: %s (%s %s): reached %t, want %t", mode, f.What, f.Proto, f.To, f.Reached, want)
			}
			if mode == sandbox.ModeUnmanaged && f.Reached {
				open++
			}
		}
	}
	for mode, s := range modes {
		all.Go(func() { try(mode, s) })
	}
	all.Wait()
	t.Logf("matrix_wrong = %d, control_open = %d of %d", wrong, open, len(matrix.Targets()))

	victim, nobody := modes[sandbox.ModeNAT], netip.MustParseAddr("10.77.9.9")
	for mode, passes := range map[sandbox.NetworkMode]bool{sandbox.ModeWeb: false, sandbox.ModeUnmanaged: true} {
		passed, err := matrix.Spoof(w.context(), w.lab, modes[mode].VMID, victim.IPv4, victim.Network.MACAddress, nobody)
		if err != nil {
			t.Fatal(err)
		}
		if passed > 0 != passes {
			t.Errorf("mode %s: spoof_passed = %d", mode, passed)
		}
	}
}
