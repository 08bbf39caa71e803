package sandbox_test

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Members come up dark like any sandbox, and a claim opens nothing either, whether it keeps the mode or changes it.
func TestAClaimOpensNoWindow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	filtered := poolSpec("dark", 2)
	filtered.Member.Network = walled("", sandbox.ModeNAT).Network
	filtered.Member.DNS = walled("", sandbox.ModeNAT).DNS
	pool := w.createPool(w.process(), filtered)
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeNAT, sandbox.ModeOff} {
		stops := map[int]func() int{}
		for _, m := range pool.Members {
			stops[m.VMID] = w.tryAtOnce(m.VMID, c)
		}
		want := filtered.Member
		want.Hostname, want.Started, want.WaitFor = "agent-"+string(mode), true, sandbox.WaitForSSH
		want.Network.Mode = mode
		s := w.claim(w.process(), "dark", want)
		for vmid, stop := range stops {
			if n := stop(); n != 0 {
				t.Errorf("mode %s: window_connections = %d of container %d", mode, n, vmid)
			}
		}
		if s.Network.Mode != mode || !s.Network.Firewall || s.Network.LinkDown {
			t.Errorf("claimed with %+v", s.Network)
		}
	}
}
