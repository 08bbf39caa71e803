package server

import (
	"strconv"
	"strings"
)

// FirewallPorts are the ports from Low to High.
type FirewallPorts struct{ Low, High uint16 }

// FirewallMatch is one kind of packet that a rule is about. Several matches of a rule, from a macro, are alternatives.
type FirewallMatch struct {
	// Protocol is the number of the IP protocol (6 is TCP); -1 for every one.
	Protocol int
	// IPVersion is 4 or 6, 0 for both.
	IPVersion int
	// ICMPType is a type of ICMP's by iptables' name or its number; empty for every one.
	ICMPType string
	// DestPorts and SourcePorts: any of them. None means every port.
	DestPorts, SourcePorts []FirewallPorts
}

// ruleMatches are the kinds of packets of a rule: its own fields, or its macro's completed by them.
func ruleMatches(rule map[string]string, version int) []FirewallMatch {
	own := macroMatch{proto: rule["proto"], dport: rule["dport"], sport: rule["sport"], icmpType: rule["icmp-type"]}
	macro := findMacro(rule["macro"])
	if macro == nil {
		return []FirewallMatch{own.compiled(version)}
	}
	var out []FirewallMatch
	for _, m := range macro.forVersion(version) {
		for _, f := range []struct{ to, from *string }{
			{&m.dport, &own.dport}, {&m.sport, &own.sport}, {&m.icmpType, &own.icmpType},
		} {
			if *f.to == "" {
				*f.to = *f.from
			}
		}
		out = append(out, m.compiled(version))
	}
	return out
}

// compiled replaces names by numbers. A name of an ICMP type among the destination ports is the type.
func (m macroMatch) compiled(version int) FirewallMatch {
	out := FirewallMatch{Protocol: -1, IPVersion: version, ICMPType: m.icmpType, SourcePorts: parsePorts(m.sport)}
	if m.proto != "" {
		out.Protocol, _ = protocolNumber(m.proto)
	}
	if icmp := icmpVersion(m.proto); icmp != 0 {
		out.IPVersion = icmp
		if m.dport != "" {
			out.ICMPType = m.dport
		}
		return out
	}
	out.DestPorts = parsePorts(m.dport)
	return out
}

// parsePorts reads a list of ports that checkPortSpec has passed.
func parsePorts(list string) []FirewallPorts {
	var out []FirewallPorts
	for _, item := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' }) {
		low, high, isRange := strings.Cut(item, ":")
		if !isRange {
			high = low
		}
		out = append(out, FirewallPorts{Low: portOf(low), High: portOf(high)})
	}
	return out
}

func portOf(text string) uint16 {
	if n, ok := services()[text]; ok {
		return uint16(n)
	}
	n, _ := strconv.ParseUint(text, 10, 16) // passed by checkPortSpec
	return uint16(n)
}
