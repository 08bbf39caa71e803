package egress_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// target is something that a sandbox may try to reach: one address per IP version.
type target struct {
	name   string
	v4, v6 string
	port   int
}

// targets are those of the measurements: servers on the internet, in the LAN and
// on the router, and what is worth a sandbox's try besides.
var targets = []target{
	{"internet mail", "203.0.113.10", "2001:db8:113::10", 25},
	{"internet web", "203.0.113.10", "2001:db8:113::10", 80},
	{"internet tls", "203.0.113.10", "2001:db8:113::10", 443},
	{"internet 8080", "203.0.113.10", "2001:db8:113::10", 8080},
	{"internet dns", "203.0.113.53", "2001:db8:113::53", 53},
	{"other internet tls", "203.0.113.20", "2001:db8:114::20", 443},
	{"resolver", "192.168.50.53", "fd50::53", 53},
	{"lan web", "192.168.50.10", "fd50::10", 80},
	{"lan dns", "192.168.50.10", "fd50::10", 53},
	{"neighbour ssh", "10.77.1.2", "fd77::2", 22},
	{"router api", "10.77.0.1", "fe80::1", 8006},
	{"node's public address", "198.51.100.7", "2001:db8:51::7", 443},
	{"tailnet", "100.101.102.103", "fd7a:115c:a1e0::1", 443},
	{"metadata", "169.254.169.254", "fd00:ec2::254", 80},
}

// What each mode lets through, by target: "t" TCP, "u" UDP, over either IP
// version.
var open = map[egress.Mode]map[string]string{
	egress.Off: {},
	egress.Web: {"internet web": "t", "internet tls": "t", "other internet tls": "t", "resolver": "tu"},
	egress.NAT: {
		"internet mail": "tu", "internet web": "tu", "internet tls": "tu", "internet 8080": "tu", "internet dns": "tu", "other internet tls": "tu", "resolver": "tu",
	},
	egress.Allowlist: {"internet tls": "t", "resolver": "tu"},
}

func policy(mode egress.Mode) egress.Policy {
	p := egress.Policy{
		Mode:       mode,
		Management: []netip.Prefix{netip.MustParsePrefix("192.168.50.0/24"), netip.MustParsePrefix("fd50::/64")},
		Resolvers:  []netip.Addr{netip.MustParseAddr("192.168.50.53"), netip.MustParseAddr("fd50::53")},
		Nodes:      []netip.Addr{netip.MustParseAddr("10.77.0.1"), netip.MustParseAddr("198.51.100.7"), netip.MustParseAddr("2001:db8:51::7")},
	}
	if mode == egress.Allowlist {
		p.Allow = []egress.Allow{{To: "203.0.113.0/28", Ports: "443"}, {To: "2001:db8:113::/64", Ports: "443", Protocol: "tcp"}}
	}
	return p
}

func TestEachModeLetsThroughWhatItsTableSays(t *testing.T) {
	t.Parallel()
	var checked int
	for _, mode := range egress.Modes() {
		for _, naming := range []egress.Naming{{Scope: egress.DatacenterSets, Prefix: "agents"}, {Scope: egress.GuestSets, Prefix: "sbx"}} {
			filter, err := egress.Render(policy(mode), naming)
			if err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
			for _, x := range targets {
				for _, address := range []string{x.v4, x.v6} {
					for _, proto := range []string{"tcp", "udp"} {
						want := strings.Contains(open[mode][x.name], proto[:1])
						got := passes(t, filter, "out", "", address, proto, x.port, "DROP")
						if got != want {
							t.Errorf("%s, sets in %s: %s over %s to %s port %d: passes=%v, want %v", mode, naming.Scope, x.name, proto, address, x.port, got, want)
						}
						if ours, _ := filter.Permits(egress.Connection{Direction: "out", To: netip.MustParseAddr(address), Proto: proto, Port: x.port}, "DROP"); ours != got {
							t.Errorf("%s: %s over %s to %s: Permits says %v, the rules %v", mode, x.name, proto, address, ours, got)
						}
						checked++
					}
				}
			}
		}
	}
	if want := 4 * 2 * 14 * 2 * 2; checked != want {
		t.Errorf("%d cases were checked, want %d", checked, want)
	}
}

func TestWithoutRulesEveryTargetIsOpen(t *testing.T) {
	t.Parallel()
	for _, x := range targets {
		for _, address := range []string{x.v4, x.v6} {
			if !passes(t, egress.Filter{}, "out", "", address, "tcp", x.port, "ACCEPT") {
				t.Errorf("%s is closed by no rule: the evaluation is wrong", x.name)
			}
		}
	}
}

func TestSSHComesInFromTheManagementNetworksOnly(t *testing.T) {
	t.Parallel()
	for _, mode := range egress.Modes() {
		p := policy(mode)
		p.SSHPort = 2222
		filter, err := egress.Render(p, egress.Naming{Scope: egress.GuestSets, Prefix: "sbx"})
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []struct {
			from string
			port int
			want bool
		}{
			{"192.168.50.7", 2222, true}, {"fd50::7", 2222, true}, {"192.168.50.7", 22, false}, {"203.0.113.10", 2222, false}, {"2001:db8::1", 2222, false}, {"10.77.1.2", 2222, false},
		} {
			if got := passes(t, filter, "in", c.from, "", "tcp", c.port, "DROP"); got != c.want {
				t.Errorf("%s: from %s to port %d: passes=%v, want %v", mode, c.from, c.port, got, c.want)
			}
		}
	}
}

// Every address of the table is closed in every mode that lets anything out.
func TestNoModeLeadsIntoAClosedRange(t *testing.T) {
	t.Parallel()
	for _, mode := range egress.Modes() {
		p := policy(mode)
		if mode == egress.Allowlist {
			p.Allow = append(p.Allow, egress.Allow{To: "0.0.0.0/0"}, egress.Allow{To: "::/0"}) // a wide exception opens nothing inside
		}
		filter, err := egress.Render(p, egress.Naming{Scope: egress.DatacenterSets, Prefix: "g1"})
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range egress.Denied() {
			for _, a := range []netip.Addr{r.Prefix.Addr(), last(r.Prefix)} {
				for _, proto := range []string{"tcp", "udp"} {
					if passes(t, filter, "out", "", a.String(), proto, 443, "DROP") {
						t.Errorf("%s: %s of %s (%s) is open over %s", mode, a, r.Prefix, r.Source, proto)
					}
				}
			}
		}
		if got := passes(t, filter, "out", "", "203.0.113.99", "udp", 4000, "DROP"); got != (mode == egress.NAT || mode == egress.Allowlist) {
			t.Errorf("%s: a public address over UDP: passes=%v", mode, got)
		}
	}
}

func TestManagementPortsOfNodesAreClosedTowardsEveryAddress(t *testing.T) {
	t.Parallel()
	filter, err := egress.Render(policy(egress.NAT), egress.Naming{Scope: egress.GuestSets, Prefix: "sbx"})
	if err != nil {
		t.Fatal(err)
	}
	for _, port := range strings.Split(egress.ManagementPorts(), ",") {
		n, err := strconv.Atoi(port)
		if err != nil {
			t.Fatal(err)
		}
		if passes(t, filter, "out", "", "203.0.113.8", "tcp", n, "DROP") {
			t.Errorf("port %d is open", n)
		}
	}
}

func last(p netip.Prefix) netip.Addr {
	b := p.Masked().Addr().AsSlice()
	for bit := p.Bits(); bit < len(b)*8; bit++ {
		b[bit/8] |= 1 << (7 - bit%8)
	}
	a, _ := netip.AddrFromSlice(b)
	return a
}

// passes evaluates rules the way a packet filter does: the first that matches
// decides. It knows nothing of the package's own evaluation.
func passes(t *testing.T, f egress.Filter, direction, from, to, proto string, port int, policy string) bool {
	t.Helper()
	for _, r := range f.Rules {
		if r.Type != direction || !r.Enabled {
			continue
		}
		if r.Macro != "" && r.Macro != "DNS" {
			t.Fatalf("the test doesn't know the macro %s", r.Macro)
		}
		service := r.Proto == "" || r.Proto == proto
		if r.DPort != "" {
			service = service && inPorts(t, r.DPort, port)
		}
		if r.Macro == "DNS" {
			service = port == 53
		}
		if service && inList(t, f, r.Source, from) && inList(t, f, r.Dest, to) {
			return r.Action == "ACCEPT"
		}
	}
	return policy == "ACCEPT"
}

func inPorts(t *testing.T, list string, port int) bool {
	t.Helper()
	for _, item := range strings.Split(list, ",") {
		var low, high int
		if n, _ := fmt.Sscanf(item, "%d:%d", &low, &high); n == 1 {
			high = low
		} else if n != 2 {
			t.Fatalf("ports %q", list)
		}
		if low <= port && port <= high {
			return true
		}
	}
	return false
}

func inList(t *testing.T, f egress.Filter, list, address string) bool {
	t.Helper()
	if list == "" {
		return true
	}
	if address == "" {
		return false
	}
	a := netip.MustParseAddr(address)
	var networks []netip.Prefix
	if name, ok := strings.CutPrefix(list, "+"); ok {
		_, name, _ = strings.Cut(name, "/")
		for _, s := range f.Sets {
			if s.Name == name {
				networks = s.Entries
			}
		}
		if networks == nil {
			t.Fatalf("the rule names the set %s, which isn't there", list)
		}
	} else {
		for _, item := range strings.Split(list, ",") {
			if !strings.Contains(item, "/") {
				item += map[bool]string{true: "/32", false: "/128"}[netip.MustParseAddr(item).Is4()]
			}
			networks = append(networks, netip.MustParsePrefix(item))
		}
	}
	for _, n := range networks {
		if n.Contains(a) {
			return true
		}
	}
	return false
}
