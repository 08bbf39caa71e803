package nftrules

import (
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// The numbers of IP protocols.
const (
	protocolICMP   = 1
	protocolTCP    = 6
	protocolUDP    = 17
	protocolDCCP   = 33
	protocolICMPv6 = 58
	protocolSCTP   = 132
	protocolLite   = 136
)

// rule gives the lines of one rule: one per kind of packet and IP version that it is about. Before is put in front of each,
// end makes the line of a condition and an action.
func (w *writer) rule(r server.FirewallRule, before string, end func(condition, action string) []string) []string {
	var lines []string
	for _, m := range r.Matches {
		packet, ok := packetExpression(m)
		if !ok {
			continue
		}
		for _, where := range w.where(r, m) {
			lines = append(lines, end(strings.Join(strings.Fields(before+" "+where+" "+packet), " "), r.Action)...)
		}
	}
	return lines
}

// where gives the conditions on addresses, one for each IP version unless the rule doesn't care.
func (w *writer) where(r server.FirewallRule, m server.FirewallMatch) []string {
	if r.Source == nil && r.Dest == nil {
		switch m.IPVersion {
		case 4:
			return []string{"meta protocol ip"}
		case 6:
			return []string{"meta protocol ip6"}
		}
		return []string{""}
	}
	source4, source6 := w.sets.expressions(r.Source)
	dest4, dest6 := w.sets.expressions(r.Dest)
	var all []string
	for _, v := range []struct {
		version               int
		keyword, source, dest string
	}{{4, "ip", source4, dest4}, {6, "ip6", source6, dest6}} {
		if (m.IPVersion != 0 && m.IPVersion != v.version) || (r.Source != nil && v.source == "") || (r.Dest != nil && v.dest == "") {
			continue // no packet of this version can fit
		}
		condition := ""
		if r.Source != nil {
			condition += v.keyword + " saddr " + v.source + " "
		}
		if r.Dest != nil {
			condition += v.keyword + " daddr " + v.dest
		}
		all = append(all, condition)
	}
	return all
}

// packetExpression is the condition on protocol and ports. It reports false for what no packet is.
func packetExpression(m server.FirewallMatch) (string, bool) {
	if m.Protocol < 0 {
		return "", len(m.DestPorts) == 0 && len(m.SourcePorts) == 0
	}
	expression := fmt.Sprintf("meta l4proto %d", m.Protocol)
	switch m.Protocol {
	case protocolICMP, protocolICMPv6:
		icmp, ok := icmpExpression(m)
		return expression + icmp, ok
	case protocolTCP, protocolUDP, protocolDCCP, protocolSCTP, protocolLite:
		if len(m.SourcePorts) > 0 {
			expression += " th sport " + portList(m.SourcePorts)
		}
		if len(m.DestPorts) > 0 {
			expression += " th dport " + portList(m.DestPorts)
		}
	}
	return expression, true
}

func portList(ports []server.FirewallPorts) string {
	var spans []string
	for _, p := range mergePorts(ports) {
		if p.Low == p.High {
			spans = append(spans, fmt.Sprint(p.Low))
		} else {
			spans = append(spans, fmt.Sprintf("%d-%d", p.Low, p.High))
		}
	}
	return "{ " + strings.Join(spans, ", ") + " }"
}

// answers end a node's rule: a reject answers TCP with a reset, the rest with "port unreachable".
func answers(condition, action string) []string {
	if condition != "" {
		condition += " "
	}
	switch action {
	case "ACCEPT":
		return []string{condition + "accept"}
	case "REJECT":
		return []string{condition + "meta l4proto tcp reject with tcp reset", condition + "reject with icmpx port-unreachable"}
	}
	return []string{condition + "drop"}
}

// loudly and silently end a guest's rule.
func loudly(condition, action string) []string { return verdicts(condition, action, true) }

func silently(condition, action string) []string { return verdicts(condition, action, false) }

// verdicts end a guest's rule. A loud reject is marked for the IP hooks; where those don't follow, a reject is a drop.
func verdicts(condition, action string, loud bool) []string {
	prefix := condition
	if prefix != "" {
		prefix += " "
	}
	switch {
	case action == "ACCEPT":
		return []string{prefix + "accept"}
	case action == "REJECT" && loud:
		return []string{prefix + "meta mark set meta mark | " + markRejected + " accept"}
	}
	return []string{prefix + "drop"}
}
