package sandbox_test

import (
	"bytes"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

var containers = sync.OnceValue(func() error { return lab.CheckEngine(lab.EngineNS) })

// target is what a sandbox tries to reach, by both IP versions, and which modes let it.
type target struct {
	what, v4, v6 string
	port         int
	reachedBy    string // modes
}

// The resolver that is pinned, by both versions, and what the allowlist names.
const (
	resolver4, resolver6 = "9.9.9.9", "2620:fe::fe"
	named4, named6       = "151.101.2.132", "2a04:4e42::644"
)

// Every target exists and answers in the lab's outside.
var tcpTargets = []target{
	{"a public site", "93.184.215.14", "2606:2800:21f:cb07::1", 443, "web nat"},
	{"a public site, plain", "93.184.215.14", "2606:2800:21f:cb07::1", 80, "web nat"},
	{"a public service", "93.184.215.14", "2606:2800:21f:cb07::1", 8080, "nat"},
	{"public mail", "93.184.215.14", "2606:2800:21f:cb07::1", 25, "nat"},
	{"what the allowlist names", named4, named6, 443, "web nat allowlist"},
	{"another port of it", named4, named6, 8080, "nat"},
	{"a private network", "10.99.3.4", "fd50::10", 443, ""},
	{"another private network", "172.20.3.4", "fc00:1::10", 443, ""},
	{"a home network", "192.168.50.10", "fec0::10", 443, ""},
	{"a tailnet", "100.101.102.103", "fd7a:115c:a1e0::53", 443, ""},
	{"cloud metadata", "169.254.169.254", "fd00:ec2::254", 80, ""},
	{"Alibaba's metadata", "100.100.100.200", "64:ff9b::a9fe:a9fe", 80, ""},
	{"Azure's metadata", "168.63.129.16", "::ffff:0:a83f:8110", 80, ""},
	{"a benchmark network", "198.18.5.6", "2002:c0a8:3201::1", 443, ""},
}

// UDP has targets of its own: at port 123 the outside echoes, at 53 it answers questions.
var udpTargets = []target{
	{"a public clock", "93.184.215.14", "2606:2800:21f:cb07::1", 123, "nat"},
	{"the pinned resolver", resolver4, resolver6, 53, "web nat allowlist"},
	{"another resolver", "8.8.4.4", "2001:4860:4860::8844", 53, "nat"},
	{"a private clock", "192.168.50.10", "fd50::10", 123, ""},
	{"a private resolver", "10.99.3.4", "fc00:1::10", 53, ""},
	{"metadata by UDP", "169.254.169.254", "fd00:ec2::254", 123, ""},
}

// TestPacketsMeetTheModes tries every target from inside real containers, one per mode: what gets out is counted where it
// arrives. A container without a mode shows that everything would answer.
func TestPacketsMeetTheModes(t *testing.T) {
	t.Parallel()
	if err := containers(); err != nil {
		t.Skipf("needs real containers: %v", err)
	}
	w := newWorld(t, lab.Options{EngineName: lab.EngineNS, Outside: true})
	modes := map[sandbox.NetworkMode]sandbox.Sandbox{}
	for _, mode := range []sandbox.NetworkMode{sandbox.ModeOff, sandbox.ModeWeb, sandbox.ModeNAT, sandbox.ModeAllowlist, sandbox.ModeUnmanaged} {
		s := walled("packets-"+string(mode), mode)
		s.Network.IPv6 = "auto"
		s.DNS = &sandbox.DNS{Servers: []string{resolver4, resolver6}}
		if mode == sandbox.ModeAllowlist {
			s.Network.Allow = []egress.Allow{{To: named4, Ports: "443"}, {To: named6, Ports: "443"}}
		}
		modes[mode] = w.create(w.process(), s)
	}
	time.Sleep(w.lab.FirewallSettle())
	wrong, open := 0, 0
	for mode, s := range modes {
		reached := w.reached(s)
		for proto, targets := range map[string][]target{"tcp": tcpTargets, "udp": udpTargets} {
			for _, target := range targets {
				for _, address := range []string{target.v4, target.v6} {
					want := mode == sandbox.ModeUnmanaged || strings.Contains(" "+target.reachedBy+" ", " "+string(mode)+" ")
					got := reached[connection{proto, netip.AddrPortFrom(netip.MustParseAddr(address), uint16(target.port))}]
					if got != want {
						wrong++
						t.Errorf("mode %s: %s (%s %s, port %d): reached %t, want %t", mode, target.what, proto, address, target.port, got, want)
					}
					if mode == sandbox.ModeUnmanaged && got {
						open++
					}
				}
			}
		}
	}
	t.Logf("matrix_wrong = %d, control_open = %d of %d", wrong, open, 2*(len(tcpTargets)+len(udpTargets)))
}

type connection struct {
	proto string
	to    netip.AddrPort
}

// reached tries all targets from inside a sandbox, side by side, and returns those that saw it.
func (w *world) reached(s sandbox.Sandbox) map[connection]bool {
	w.t.Helper()
	var script strings.Builder
	for _, target := range tcpTargets {
		for _, address := range []string{target.v4, target.v6} {
			fmt.Fprintf(&script, "timeout 3 bash -c ': <>/dev/tcp/%s/%d' &\n", address, target.port)
		}
	}
	for _, target := range udpTargets {
		for _, address := range []string{target.v4, target.v6} {
			fmt.Fprintf(&script, "timeout 3 bash -c 'echo tick >/dev/udp/%s/%d' &\n", address, target.port)
		}
	}
	script.WriteString("wait\n")
	if _, err := w.lab.Engine().Exec(w.context(), s.VMID, engine.Command{Argv: []string{"bash", "-c", script.String()}, Stderr: &bytes.Buffer{}}); err != nil {
		w.t.Fatal(err)
	}
	time.Sleep(100 * time.Millisecond) // the last datagrams are on their way
	contacts, err := w.lab.Contacts(w.context())
	if err != nil {
		w.t.Fatal(err)
	}
	interfaces, err := w.lab.Engine().Interfaces(w.context(), s.VMID)
	if err != nil {
		w.t.Fatal(err)
	}
	own := map[netip.Addr]bool{}
	for _, i := range interfaces {
		for _, a := range i.Addresses {
			own[netip.MustParsePrefix(a).Addr()] = true
		}
	}
	seen := map[connection]bool{}
	for _, c := range contacts {
		if own[c.Source.Addr()] {
			seen[connection{map[int]string{6: "tcp", 17: "udp"}[c.Protocol], c.Dest}] = true
		}
	}
	return seen
}
