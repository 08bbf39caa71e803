package server

import (
	"fmt"
	"net/netip"
	"strconv"
)

// FirewallRule is a rule in force.
type FirewallRule struct {
	// Direction is "in", "out" or "forward", as the guest or node sees it.
	Direction string
	// Action is ACCEPT, DROP (silently) or REJECT (with an answer).
	Action string
	// Group is the security group that the rule is from; empty for one of the level itself.
	Group string
	// Interface is the only one that it is about: net0 of a guest, a node's by its name. Empty for all.
	Interface string
	// Source and Dest are nil for every address.
	Source, Dest *FirewallAddresses
	// Matches are the packets that it is about: any of them.
	Matches []FirewallMatch
	// Log is the level at which a packet that fits is noted; empty or "nolog" for not at all.
	Log string
	// Comment is the rule's own.
	Comment string
	// Pos is its position in its list, the level's or the group's.
	Pos int
}

// compiledRules are a level's rules in force, groups' in the place of the rule that refers to them. What the server ignores
// when it compiles (a dangling reference, a rule that names what is gone) is told beside.
func (l *fwLevel) compiledRules() (rules []FirewallRule, skipped []string) {
	for pos, r := range *l.rules {
		o := r.Options
		check := l.verify(o)
		switch {
		case o["enable"] == "0":
		case check.first != "":
			skipped = append(skipped, fmt.Sprintf("rule %d: %s: %s", pos, check.first, check.errs[check.first]))
		case o["type"] == "group":
			group := l.s.st.Firewall.Groups[o["action"]]
			if group == nil {
				skipped = append(skipped, fmt.Sprintf("rule %d: no such security group '%s'", pos, o["action"]))
				continue
			}
			of, groupSkipped := l.groupRules(o["action"], group, o["iface"])
			rules = append(rules, of...)
			skipped = append(skipped, groupSkipped...)
		default:
			rules = append(rules, l.compiledRule(pos, o, check.version))
		}
	}
	return rules, skipped
}

// groupRules are a security group's, for one interface if the reference says so. A group sees the datacenter's sets and
// aliases only; rules about forwarding aren't a guest's.
func (l *fwLevel) groupRules(name string, group *fwRuleSet, iface string) (rules []FirewallRule, skipped []string) {
	inGroup := &fwLevel{s: l.s, env: "group", rules: &group.Rules}
	all, skippedInGroup := inGroup.compiledRules()
	for _, r := range all {
		if r.Direction == "forward" && l.env == "ct" {
			continue
		}
		r.Group, r.Interface = name, iface
		rules = append(rules, r)
	}
	for _, text := range skippedInGroup {
		skipped = append(skipped, fmt.Sprintf("group %s: %s", name, text))
	}
	return rules, skipped
}

func (l *fwLevel) compiledRule(pos int, o map[string]string, version int) FirewallRule {
	return FirewallRule{
		Direction: o["type"], Action: o["action"], Interface: o["iface"], Source: l.addresses(o["source"]), Dest: l.addresses(o["dest"]),
		Matches: ruleMatches(o, version), Log: o["log"], Comment: o["comment"], Pos: pos,
	}
}

// interfaceModel is a guest's interface. An address filter is on by the guest's option, or for one interface by the set
// ipfilter-netN; the addresses of the configuration are in it only by the option.
func (l *fwLevel) interfaceModel(key, value string) FirewallInterface {
	net := parseNet(value)
	vlan, _ := strconv.Atoi(net["tag"])
	out := FirewallInterface{
		Firewall: net["firewall"] == "1", LinkDown: net["link_down"] == "1", Bridge: net["bridge"], MAC: net["hwaddr"],
		VLAN: vlan, MACFilter: l.on("macfilter", true),
	}
	set := l.ipsets["ipfilter-"+key]
	byOption := l.on("ipfilter", false)
	if set == nil && !byOption {
		return out
	}
	out.IPFilter = &FirewallAddresses{Text: "+ipfilter-" + key}
	if set != nil {
		out.IPFilter.Spans = l.setSpans(set)
	}
	if own, ok := linkLocal(net["hwaddr"]); ok {
		out.IPFilter.Spans = append(out.IPFilter.Spans, FirewallSpan{Low: own, High: own})
	}
	if byOption {
		for _, text := range []string{net["ip"], net["ip6"]} {
			if prefix, err := netip.ParsePrefix(text); err == nil {
				out.IPFilter.Spans = append(out.IPFilter.Spans, FirewallSpan{Low: prefix.Addr(), High: prefix.Addr()})
			}
		}
	}
	return out
}

// linkLocal is the IPv6 address that an interface makes of its hardware address (RFC 4291, appendix A).
func linkLocal(mac string) (netip.Addr, bool) {
	var m [6]byte
	if _, err := fmt.Sscanf(mac, "%02X:%02X:%02X:%02X:%02X:%02X", &m[0], &m[1], &m[2], &m[3], &m[4], &m[5]); err != nil {
		return netip.Addr{}, false
	}
	return netip.AddrFrom16([16]byte{0xfe, 0x80, 8: m[0] ^ 2, m[1], m[2], 0xff, 0xfe, m[3], m[4], m[5]}), true
}
