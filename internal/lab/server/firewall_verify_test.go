package server

import (
	"strings"
	"testing"
)

// Most texts are those of recorded exchanges.
func TestRulesThatAreRefused(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", groupsPath, form{"group": "sg1"})
	lab.ok("POST", "/cluster/firewall/ipset", form{"name": "dcset"})
	lab.ok("POST", "/cluster/firewall/aliases", form{"name": "v6", "cidr": "2001:db8::1"})
	sg := groupsPath + "/sg1"
	in := func(more ...string) form {
		f := form{"type": "in", "action": "ACCEPT"}
		for i := 0; i < len(more); i += 2 {
			f[more[i]] = more[i+1]
		}
		return f
	}
	for _, c := range []struct {
		path, field, want string
		rule              form
	}{
		{sg, "action", "unknown action 'BOGUS'", in("action", "BOGUS")},
		{sg, "action", "unknown action 'accept'", in("action", "accept")},
		{sg, "action", "property is missing and it is not optional", form{"type": "in"}},
		{sg, "type", "property is missing and it is not optional", form{"action": "ACCEPT"}},
		{sg, "type", "value 'IN' does not have a value in the enumeration 'in, out, forward, group'", in("type", "IN")},
		{sg, "type", "invalid rule type 'group' for rule_env 'group'", form{"type": "group", "action": "sg2"}},
		{guestRules, "type", "invalid rule type 'forward' for rule_env 'ct'", in("type", "forward")},
		{sg, "type", "parameter -i not allowed for this rule type", in("iface", "net0")},
		{guestRules, "iface", `value does not match the regex pattern 'net\d+'`, in("iface", "eth0")},
		{sg, "enable", "type check ('integer') failed - got 'true'", in("enable", "true")},
		{sg, "log", "value 'nosuch' does not have a value in the enumeration 'emerg, alert, crit, err, warning, notice, info, debug, nolog'", in("log", "nosuch")},
		{sg, "macro", "unknown macro 'NoSuch'", in("macro", "NoSuch")},
		{sg, "dport", "parameter 'dport' already define in macro (value = '22')", in("macro", "SSH", "proto", "tcp", "dport", "23")},
		{sg, "proto", "parameter 'proto' already define in macro (value = 'tcp')", in("macro", "SSH", "proto", "udp")},
		{sg, "proto", "invalid format - unknown protocol 'tcpip'\n", in("proto", "tcpip")},
		{sg, "proto", "missing property - 'dport' requires this property", in("dport", "22")},
		{sg, "proto", "missing property - 'icmp-type' requires this property", in("proto", "tcp", "icmp-type", "echo-request")},
		{sg, "icmp-type", "invalid icmp-type 'packet-too-big' for proto 'icmp'", in("proto", "icmp", "icmp-type", "packet-too-big")},
		{sg, "dport", "protocol 'gre' does not support ports", in("proto", "gre", "dport", "22")},
		{sg, "dport", "invalid format - invalid port '99999'\n", in("proto", "tcp", "dport", "99999")},
		{sg, "dport", "invalid format - invalid port '22-10'\n", in("proto", "tcp", "dport", "22-10")},
		{sg, "dport", "invalid format - invalid port 'nosuchservice'\n", in("proto", "tcp", "dport", "nosuchservice")},
		{sg, "dport", "invalid format - extraneous commas in list\n", in("proto", "tcp", "dport", "22,")},
		{sg, "dport", "invalid format - too many entries in port list (> 15 numbers)\n", in("proto", "tcp", "dport", strings.Repeat("1:2,", 7)+"3:4")},
		{sg, "dport", "invalid format - backwards range '20:10' not allowed, did you mean '10:20'?\n", in("proto", "tcp", "dport", "20:10")},
		{sg, "source", "invalid format - invalid IP address: Invalid quad in IP address 1.2.3.999 - 999\n", in("source", "1.2.3.999")},
		{sg, "source", "invalid format - invalid IP address: Invalid prefix 00001010000000000000000000000101/8\n", in("source", "10.0.0.5/8")},
		{sg, "source", "invalid format - you can't use a range in a list\n", in("source", "10.0.0.0/8,192.168.0.1-192.168.0.9")},
		{sg, "source", "invalid format - detected mixed ipv4/ipv6 address list\n", in("source", "10.0.0.1,::1")},
		{sg, "dest", "detected mixed ipv4/ipv6 addresses in rule", in("source", "10.0.0.1", "dest", "::1")},
		{sg, "dest", "detected mixed ipv4/ipv6 addresses in rule", in("source", "10.0.0.1", "dest", "v6")},
		{sg, "source", "detected mixed ipv4/ipv6 addresses in rule", in("proto", "icmp", "source", "::1")},
		{sg, "source", "no such ipset 'nosuchset'", in("source", "+nosuchset")},
		{guestRules, "dest", "no such ipset 'nosuch'", in("dest", "+dc/nosuch")},
		{guestRules, "dest", "no such ipset 'dcset'", in("dest", "+guest/dcset")},
		{sg, "source", "invalid ipset name '+x'", in("source", "+x")},
		{sg, "source", "no such alias 'nosuchalias'", in("source", "nosuchalias")},
	} {
		lab.badParameter("POST", c.path, c.rule, c.field, c.want)
	}
	lab.rulesAre(sg)
	lab.rulesAre(guestRules)
}

func TestRulesThatAreTaken(t *testing.T) {
	t.Parallel()
	lab := newCTLab(t)
	lab.ok("POST", "/cluster/firewall/ipset", form{"name": "shared"})
	lab.ok("POST", "lxc/9000/firewall/ipset", form{"name": "ipfilter-net0"})
	lab.ok("POST", "lxc/9000/firewall/aliases", form{"name": "Own", "cidr": "10.2.2.2"})
	for _, rule := range []form{
		{"macro": "ssh"}, {"macro": "Ping", "proto": ""}, {"proto": "tcp", "dport": "ssh", "sport": "1000:2000", "log": "info"},
		{"proto": "17", "dport": "53"}, {"proto": "icmpv6", "icmp-type": "neighbour-solicitation"}, {"proto": "icmp", "dport": "echo-request"},
		{"source": "10.0.0.1-10.0.0.9"}, {"source": "10.0.0.0/8,192.168.0.0/16"}, {"dest": "2001:db8::/32"},
		{"dest": "+shared"}, {"dest": "+dc/shared"}, {"dest": "+guest/ipfilter-net0"}, {"dest": "own"}, {"dest": "guest/own"},
		{"type": "group", "action": "nosuchgrp", "iface": "net0"}, {"iface": "net0"},
	} {
		full := form{"type": "in", "action": "ACCEPT"}
		for key, value := range rule {
			full[key] = value
		}
		lab.ok("POST", guestRules, full)
		if errs := lab.ok("GET", guestRules+"/0", nil).(map[string]any)["errors"]; errs != nil {
			t.Errorf("%v: %v", rule, errs)
		}
	}
}

func TestEveryMacroCompiles(t *testing.T) {
	t.Parallel()
	for _, m := range macros() {
		rule := map[string]string{"type": "in", "action": "ACCEPT", "macro": m.name}
		matches := ruleMatches(rule, 0)
		if len(matches) == 0 || findMacro(strings.ToUpper(m.name)) != m {
			t.Errorf("%s: %v", m.name, matches)
		}
		for i, match := range matches {
			text := m.matches[i]
			if match.Protocol < 0 || checkProtocol(text.proto) != nil || checkICMPType(text.icmpType) != nil ||
				(text.dport != "" && checkPortSpec(text.dport, false) != nil) || (text.sport != "" && checkPortSpec(text.sport, false) != nil) {
				t.Errorf("%s: %+v", m.name, text)
			}
		}
	}
}
