package server

import (
	"fmt"
	"net/netip"
	"strings"
	"testing"
)

// describe writes rules in force, short.
func describe(rules []FirewallRule) string {
	var out []string
	for _, r := range rules {
		line := fmt.Sprintf("%s %s %s %s", r.Group, r.Interface, r.Direction, r.Action)
		for _, m := range r.Matches {
			line += fmt.Sprintf(" %d%s%v%v", m.Protocol, m.ICMPType, m.DestPorts, m.SourcePorts)
		}
		out = append(out, strings.TrimSpace(line))
	}
	return strings.Join(out, "\n")
}

func TestTheModelHasTheRulesInForceWithGroupsInTheirPlace(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", groupsPath, form{"group": "web"})
	for _, rule := range []form{ // the last is the first
		{"type": "forward", "action": "ACCEPT", "enable": "1"}, {"type": "in", "action": "ACCEPT", "macro": "Web", "enable": "1"},
		{"type": "in", "action": "DROP", "proto": "tcp", "dport": "ssh,8000:8080", "sport": "1024:65535", "enable": "1"},
	} {
		lab.ok("POST", groupsPath+"/web", rule)
	}
	lab.ok("POST", "/cluster/firewall/aliases", form{"name": "gone", "cidr": "10.0.0.1"})
	for _, rule := range []form{
		{"type": "out", "action": "REJECT", "macro": "Ping", "enable": "1"}, {"type": "group", "action": "nosuch", "enable": "1"},
		{"type": "out", "action": "ACCEPT", "dest": "gone", "enable": "1"}, {"type": "in", "action": "DROP"},
		{"type": "group", "action": "web", "iface": "net1", "enable": "1"}, {"type": "in", "action": "ACCEPT", "enable": "1"},
	} {
		lab.ok("POST", guestRules, rule)
	}
	lab.ok("DELETE", "/cluster/firewall/aliases/gone", nil)
	guest := lab.s.Firewall().Guests[9000]
	want := `in ACCEPT -1[][]
web net1 in DROP 6[{22 22} {8000 8080}][{1024 65535}]
web net1 in ACCEPT 6[{80 80}][] 6[{443 443}][]
out REJECT 1echo-request[][] 58echo-request[][]`
	if got := describe(guest.Rules); got != want {
		t.Errorf("\n%s\nwant\n%s", got, want)
	}
	if got := strings.Join(guest.Skipped, "; "); got != "rule 3: dest: no such alias 'gone'; rule 4: no such security group 'nosuch'" {
		t.Error(got)
	}
}

func TestTheModelsDefaultsAreTheServers(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	m := lab.s.Firewall()
	if dc := m.Datacenter; dc.Enable || dc.PolicyIn != "DROP" || dc.PolicyOut != "ACCEPT" || dc.PolicyForward != "ACCEPT" {
		t.Errorf("datacenter %+v", dc)
	}
	if n := m.Nodes["pve1"]; !n.Enable || !n.NDP {
		t.Errorf("node %+v", n)
	}
	g := m.Guests[9000]
	if g.Enable || g.PolicyIn != "DROP" || g.PolicyOut != "ACCEPT" || g.DHCP || !g.NDP || g.RAdv || g.Node != "pve1" {
		t.Errorf("guest %+v", g)
	}
	if nic := g.Interfaces["net0"]; nic.Firewall || !nic.MACFilter || nic.IPFilter != nil || nic.Bridge != "vmbr0" || nic.MAC != testMAC {
		t.Errorf("interface %+v", nic)
	}
	lab.ok("PUT", "/cluster/firewall/options", form{"enable": "1", "policy_in": "ACCEPT"})
	lab.ok("PUT", "firewall/options", form{"enable": "0"})
	lab.ok("PUT", "lxc/9000/firewall/options", form{"enable": "1", "policy_out": "DROP", "dhcp": "1", "macfilter": "0"})
	m = lab.s.Firewall()
	if g := m.Guests[9000]; !m.Datacenter.Enable || m.Datacenter.PolicyIn != "ACCEPT" || m.Nodes["pve1"].Enable || !g.Enable ||
		g.PolicyOut != "DROP" || !g.DHCP || g.Interfaces["net0"].MACFilter {
		t.Errorf("%+v", m)
	}
}

func TestAddressesOfARule(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	for path, entries := range map[string][]form{
		"/cluster/firewall/ipset/both": {{"cidr": "10.0.0.0/8"}, {"cidr": "10.1.0.0/16", "nomatch": "1"}, {"cidr": "10.1.2.0/24"}, {"cidr": "gate"}},
		"lxc/9000/firewall/ipset/both": {{"cidr": "192.168.0.0/16"}},
	} {
		if path[0] == '/' {
			lab.ok("POST", "/cluster/firewall/aliases", form{"name": "gate", "cidr": "2001:db8::5/32"})
		}
		set := path[:strings.LastIndex(path, "/")]
		lab.ok("POST", set, form{"name": "both"})
		for _, entry := range entries {
			lab.ok("POST", path, entry)
		}
	}
	lab.ok("POST", "/cluster/firewall/ipset", form{"name": "none"})
	for _, c := range []struct{ dest, in, out string }{
		{"", "1.1.1.1 ::1", ""},
		{"10.0.0.0/8,1.2.3.4", "10.255.255.255 1.2.3.4", "11.0.0.0 1.2.3.5 ::1"},
		{"10.0.0.5-10.0.0.9", "10.0.0.5 10.0.0.9 ::ffff:10.0.0.7", "10.0.0.4 10.0.0.10"},
		{"+dc/both", "10.2.0.1 10.1.2.3 2001:db8:ffff::1", "10.1.3.1 192.168.0.1 2001:db9::"},
		{"+both", "192.168.3.4", "10.2.0.1"}, // the guest's goes first
		{"+dc/none", "", "10.0.0.1 ::1"},
		{"GATE", "2001:db8::1", "10.0.0.1"},
	} {
		rule := form{"type": "out", "action": "ACCEPT", "enable": "1"}
		if c.dest != "" {
			rule["dest"] = c.dest
		}
		lab.ok("POST", guestRules, rule)
		dest := lab.s.Firewall().Guests[9000].Rules[0].Dest
		for want, list := range map[bool]string{true: c.in, false: c.out} {
			for _, addr := range strings.Fields(list) {
				if dest.Contains(netip.MustParseAddr(addr)) != want {
					t.Errorf("%q contains %s: want %v", c.dest, addr, want)
				}
			}
		}
	}
}

func TestAnAddressFilterHasTheSetTheLinkLocalAndByOptionTheConfigurationsAddresses(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	ct := lab.clone(280)
	lab.ok("PUT", ct+"/config", form{"net0": "name=eth0,bridge=vmbr0,firewall=1,hwaddr=BC:24:11:00:00:01,ip=10.10.10.60/24,ip6=2001:db8::60/64,link_down=1,tag=7"})
	allowed := func() string {
		nic := lab.s.Firewall().Guests[280].Interfaces["net0"]
		if !nic.Firewall || !nic.LinkDown || nic.VLAN != 7 {
			t.Errorf("%+v", nic)
		}
		if nic.IPFilter == nil {
			return "everything"
		}
		var out []string
		for _, span := range nic.IPFilter.Spans {
			out = append(out, span.Low.String())
		}
		return strings.Join(out, " ")
	}
	if got := allowed(); got != "everything" {
		t.Error(got)
	}
	lab.ok("POST", ct+"/firewall/ipset", form{"name": "ipfilter-net0"})
	lab.ok("POST", ct+"/firewall/ipset/ipfilter-net0", form{"cidr": "10.9.9.9"})
	if got := allowed(); got != "10.9.9.9 fe80::be24:11ff:fe00:1" {
		t.Error(got)
	}
	lab.ok("PUT", ct+"/firewall/options", form{"ipfilter": "1"})
	if got := allowed(); got != "10.9.9.9 fe80::be24:11ff:fe00:1 10.10.10.60 2001:db8::60" {
		t.Error(got)
	}
}

func TestTheModelTellsWritesFromLooks(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	before := lab.s.Firewall()
	lab.ok("GET", guestRules, nil)
	lab.badParameter("POST", guestRules, form{"type": "in", "action": "BOGUS"}, "action", "unknown action 'BOGUS'")
	if m := lab.s.Firewall(); m.Changes != before.Changes || !m.Guests[9000].Written.IsZero() {
		t.Error("a look counted as a write")
	}
	lab.ok("POST", guestRules, form{"type": "in", "action": "DROP"})
	m := lab.s.Firewall()
	written := m.Guests[9000].Written
	if m.Changes != before.Changes+1 || written.IsZero() || !m.Datacenter.Written.IsZero() {
		t.Error("a write didn't count, or elsewhere too")
	}
	lab.clone(281)
	if of := lab.s.Firewall().Guests[281].Written; of.Before(written) {
		t.Error("a clone's file is as old as its source's:", of)
	}
	lab.ok("DELETE", guestRules+"/0", nil)
	if of := lab.s.Firewall().Guests[9000].Written; of.Before(written) {
		t.Error("emptying the file isn't a write:", of)
	}
}
