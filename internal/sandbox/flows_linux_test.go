package sandbox_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// TestAFlowThatTheNewModeForbidsIsCut opens a TCP connection that is allowed, and forbids it: the server's packet filter
// lets what is established pass, whatever its rules say by then.
func TestAFlowThatTheNewModeForbidsIsCut(t *testing.T) {
	t.Parallel()
	if err := containers(); err != nil {
		t.Skipf("needs real containers: %v", err)
	}
	w := newWorld(t, lab.Options{EngineName: lab.EngineNS})
	peer := w.create(w.process(), spec("peer"))
	w.sh(peer.VMID, "for p in 7001 7002; do nc -l -p $p -e cat </dev/null >/dev/null 2>&1 & done")
	for _, tools := range []bool{true, false} {
		t.Run(fmt.Sprintf("ss %t", tools), func(t *testing.T) {
			s := walled(fmt.Sprintf("flow-%t", tools), sandbox.ModeAllowlist)
			s.Network.Allow = []egress.Allow{{To: peer.IPv4.String(), Ports: "7001,7002"}}
			made := w.create(w.process(), s)
			port := 7001
			if !tools {
				port = 7002
				w.sh(made.VMID, "rm -f $(command -v ss)")
			}
			w.sh(made.VMID, fmt.Sprintf(`exec >/dev/null 2>&1 </dev/null; bash -c 'exec 3<>/dev/tcp/%s/%d; while echo x >&3 && read -t 20 -u 3 l; do echo tick >>/root/ticks; sleep 0.05; done' & `, peer.IPv4, port))
			ticks := func() string { return w.sh(made.VMID, "{ wc -l </root/ticks; } 2>/dev/null || echo 0") }
			flows := w.context()
			for ticks() == "0" {
				select {
				case <-flows.Done():
					t.Fatal("the flow doesn't flow")
				case <-time.After(20 * time.Millisecond): // between looks
				}
			}
			off := s.Clone()
			off.Network.Mode, off.Network.Allow = sandbox.ModeOff, nil
			began := time.Now()
			out, err := w.process().Update(w.context(), sandbox.Prior{Ref: made.Ref, SSHHostKey: made.SSH.HostKey}, s, off)
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("the change took %s, of which %s for the rules; warnings %v", time.Since(began), out.Timings.Firewall, out.Warnings)
			before := ticks()
			time.Sleep(500 * time.Millisecond) // some ticks
			if after := ticks(); after != before {
				t.Errorf("the flow goes on: %s, then %s", before, after)
			}
		})
	}
}
