package nftrules_test

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/nftrules"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// lines are the rules of a chain.
func lines(t *testing.T, ruleset, chain string) []string {
	t.Helper()
	_, rest, found := strings.Cut(ruleset, "\tchain "+chain+" {\n")
	if !found {
		t.Fatalf("no chain %s in\n%s", chain, ruleset)
	}
	body, _, _ := strings.Cut(rest, "\t}\n")
	var all []string
	for line := range strings.Lines(body) {
		all = append(all, strings.TrimSpace(line))
	}
	return all
}

func span(low, high string) server.FirewallSpan {
	return server.FirewallSpan{Low: netip.MustParseAddr(low), High: netip.MustParseAddr(high)}
}

func tcp(ports ...uint16) []server.FirewallMatch {
	m := server.FirewallMatch{Protocol: 6}
	for _, p := range ports {
		m.DestPorts = append(m.DestPorts, server.FirewallPorts{Low: p, High: p})
	}
	return []server.FirewallMatch{m}
}

// model is one guest with an interface, on one node, with everything switched on.
func model(change func(*server.FirewallGuest)) *server.FirewallModel {
	g := server.FirewallGuest{
		Node: "pve1", Enable: true, PolicyIn: "DROP", PolicyOut: "ACCEPT", NDP: true,
		Interfaces: map[string]server.FirewallInterface{"net0": {Firewall: true, MAC: "BC:24:11:00:00:01", Bridge: "vmbr0"}},
	}
	change(&g)
	return &server.FirewallModel{
		Datacenter: server.FirewallDatacenter{Enable: true, PolicyIn: "DROP", PolicyOut: "ACCEPT"},
		Nodes:      map[string]server.FirewallNode{"pve1": {Enable: true}},
		Guests:     map[int]server.FirewallGuest{100: g},
	}
}

func expect(t *testing.T, got []string, want ...string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("got\n  %s\nwant\n  %s", strings.Join(got, "\n  "), strings.Join(want, "\n  "))
	}
}

func TestNothingIsFilteredWithoutTheDatacentersSwitch(t *testing.T) {
	t.Parallel()
	m := model(func(*server.FirewallGuest) {})
	m.Datacenter.Enable = false
	for _, text := range []string{nftrules.Ruleset(nil), nftrules.Ruleset(m)} {
		if strings.Contains(text, "chain") || !strings.Contains(text, "delete table bridge") || !strings.Contains(text, "delete table inet") {
			t.Errorf("%s", text)
		}
	}
}

func TestRulesKeepTheirOrderAndEndWithThePolicy(t *testing.T) {
	t.Parallel()
	text := nftrules.Ruleset(model(func(g *server.FirewallGuest) {
		g.PolicyOut = "REJECT"
		g.Rules = []server.FirewallRule{
			{Direction: "out", Action: "ACCEPT", Matches: tcp(443, 80), Dest: &server.FirewallAddresses{Spans: []server.FirewallSpan{span("10.0.0.0", "10.0.0.255")}}},
			{Direction: "in", Action: "ACCEPT", Matches: tcp(22)},
			{Direction: "out", Action: "DROP", Interface: "net1", Matches: tcp(1)},
			{Direction: "out", Action: "REJECT", Interface: "net0", Matches: []server.FirewallMatch{{Protocol: 17}, {Protocol: 1, ICMPType: "echo-request"}}},
			{Direction: "out", Action: "DROP", Matches: []server.FirewallMatch{{Protocol: 1, ICMPType: "nonsense"}}}, // fits no packet
		}
	}))
	expect(t, lines(t, text, "out_100_net0"),
		"ether type != { ip, ip6 } accept",
		"icmpv6 type nd-router-advert drop",
		"icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept",
		"ip daddr { 10.0.0.0-10.0.0.255 } meta l4proto 6 th dport { 80, 443 } accept",
		"meta l4proto 17 meta mark set meta mark | 0x40000000 accept",
		"meta l4proto 1 icmp type 8 meta mark set meta mark | 0x40000000 accept",
		"meta mark set meta mark | 0x40000000 accept")
	expect(t, lines(t, text, "silent_100_net0"),
		"ether type != { ip, ip6 } accept",
		"icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept",
		"meta l4proto 6 th dport { 22 } accept",
		"drop")
}

func TestARuleIsOnlyAboutTheIPVersionsOfItsAddresses(t *testing.T) {
	t.Parallel()
	four := &server.FirewallAddresses{Spans: []server.FirewallSpan{span("192.0.2.1", "192.0.2.1")}}
	both := &server.FirewallAddresses{Spans: []server.FirewallSpan{span("192.0.2.1", "192.0.2.1"), span("2001:db8::", "2001:db8::ffff")}}
	none := &server.FirewallAddresses{}
	for _, c := range []struct {
		source, dest *server.FirewallAddresses
		version      int
		want         []string
	}{
		{nil, four, 0, []string{"ip daddr { 192.0.2.1 }"}},
		{nil, four, 6, nil},
		{both, nil, 0, []string{"ip saddr { 192.0.2.1 }", "ip6 saddr { 2001:db8::-2001:db8::ffff }"}},
		{both, four, 0, []string{"ip saddr { 192.0.2.1 } ip daddr { 192.0.2.1 }"}},
		{nil, none, 0, nil}, // an empty set is nobody, not everybody
		{nil, nil, 4, []string{"meta protocol ip"}},
	} {
		text := nftrules.Ruleset(model(func(g *server.FirewallGuest) {
			g.NDP, g.RAdv = false, true
			g.Rules = []server.FirewallRule{{Direction: "out", Action: "DROP", Source: c.source, Dest: c.dest, Matches: []server.FirewallMatch{{Protocol: -1, IPVersion: c.version}}}}
		}))
		var want []string
		for _, w := range c.want {
			want = append(want, w+" drop")
		}
		got := lines(t, text, "out_100_net0")
		expect(t, got[1:len(got)-1], want...)
	}
}

func TestInASetTheNarrowestEntryDecides(t *testing.T) {
	t.Parallel()
	hole := span("10.1.0.0", "10.1.255.255")
	hole.Except = true
	text := nftrules.Ruleset(model(func(g *server.FirewallGuest) {
		g.Rules = []server.FirewallRule{{Direction: "out", Action: "DROP", Matches: tcp(), Dest: &server.FirewallAddresses{Spans: []server.FirewallSpan{
			span("10.0.0.0", "10.255.255.255"), hole, span("10.1.2.0", "10.1.2.255"), span("11.0.0.0", "11.255.255.255"),
		}}}}
	}))
	if want := "ip daddr { 10.0.0.0-10.0.255.255, 10.1.2.0-10.1.2.255, 10.2.0.0-11.255.255.255 } meta l4proto 6 drop"; !strings.Contains(text, want) {
		t.Errorf("no %q in\n%s", want, text)
	}
}

func TestALongListIsASetThatRulesShare(t *testing.T) {
	t.Parallel()
	many := &server.FirewallAddresses{}
	for _, a := range []string{"192.0.2.1", "192.0.2.3", "192.0.2.5", "192.0.2.7", "192.0.2.9"} {
		many.Spans = append(many.Spans, span(a, a))
	}
	text := nftrules.Ruleset(model(func(g *server.FirewallGuest) {
		g.Rules = []server.FirewallRule{
			{Direction: "out", Action: "ACCEPT", Matches: tcp(80), Dest: many}, {Direction: "in", Action: "ACCEPT", Matches: tcp(80), Source: many},
		}
	}))
	if n := strings.Count(text, "192.0.2.9"); n != 1 || strings.Count(text, "@s1") != 3 {
		t.Errorf("the list is %d times in\n%s", n, text)
	}
}

func TestWhatASwitchLeavesOutIsNotFiltered(t *testing.T) {
	t.Parallel()
	for what, change := range map[string]func(*server.FirewallGuest){
		"the guest's switch": func(g *server.FirewallGuest) { g.Enable = false },
		"the interface's switch": func(g *server.FirewallGuest) {
			g.Interfaces["net0"] = server.FirewallInterface{MAC: "BC:24:11:00:00:01"}
		},
	} {
		if text := nftrules.Ruleset(model(change)); strings.Contains(text, "out_100") || !strings.Contains(text, `"vbc2411000001" : 1`) {
			t.Errorf("%s: %s", what, text)
		}
	}
}

func TestOriginsAreChecked(t *testing.T) {
	t.Parallel()
	text := nftrules.Ruleset(model(func(g *server.FirewallGuest) {
		g.Interfaces["net0"] = server.FirewallInterface{
			Firewall: true, MAC: "BC:24:11:00:00:01", MACFilter: true, IPFilter: &server.FirewallAddresses{Spans: []server.FirewallSpan{span("10.77.1.5", "10.77.1.5")}},
		}
	}))
	expect(t, lines(t, text, "origin_100_net0"),
		"ether type vlan drop",
		"ether saddr != bc:24:11:00:00:01 drop", "arp saddr ether != bc:24:11:00:00:01 drop",
		"ip saddr != { 10.77.1.5 } drop", "arp saddr ip != { 10.77.1.5 } drop",
		"ip6 saddr != :: drop")
}

func TestANodesRulesComeBeforeTheDatacentersAndManagement(t *testing.T) {
	t.Parallel()
	m := model(func(*server.FirewallGuest) {})
	m.Nodes["pve1"] = server.FirewallNode{Enable: true, FirewallFile: server.FirewallFile{Rules: []server.FirewallRule{
		{Direction: "in", Action: "REJECT", Interface: "vmbr0", Matches: tcp(8006)},
	}}}
	m.Datacenter.Rules = []server.FirewallRule{{Direction: "in", Action: "ACCEPT", Matches: tcp(9100)}}
	m.Datacenter.Sets = map[string]*server.FirewallAddresses{"management": {Spans: []server.FirewallSpan{span("192.0.2.0", "192.0.2.255")}}}
	const ports = "tcp dport { 22, 3128, 5900-5999, 8006, 60000-60050 } accept"
	expect(t, lines(t, nftrules.Ruleset(m), "node_1"),
		"meta l4proto igmp accept",
		`iifname "vmbr0" meta l4proto 6 th dport { 8006 } meta l4proto tcp reject with tcp reset`,
		`iifname "vmbr0" meta l4proto 6 th dport { 8006 } reject with icmpx port-unreachable`,
		"meta l4proto 6 th dport { 9100 } accept",
		"ip saddr $local4 "+ports, "ip6 saddr $local6 "+ports, "ip saddr { 192.0.2.0-192.0.2.255 } "+ports,
		"drop")
}
