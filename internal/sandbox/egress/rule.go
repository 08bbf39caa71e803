package egress

import (
	"fmt"
	"net/netip"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Directions of a rule, and the kind that stands for a group's rules.
const (
	In    = "in"
	Out   = "out"
	Group = "group"
)

// Actions of a rule.
const (
	Accept = "ACCEPT"
	Drop   = "DROP"
	Reject = "REJECT"
)

// Rule is one firewall rule, in Proxmox VE's words. Two rules are the same when
// they are equal; where a rule stands in its list isn't part of it.
type Rule struct {
	// Type is In, Out or Group; for Group, Action names the security group.
	Type   string
	Action string
	// Enabled is off on the server unless it is told.
	Enabled bool
	Macro   string
	Proto   string
	// Source and Dest are addresses, networks, ranges or sets ("+dc/name"),
	// joined by commas, of one IP version.
	Source string
	Dest   string
	SPort  string
	DPort  string
	// ICMPType is the type of an icmp or ipv6-icmp rule.
	ICMPType string
	Iface    string
	Log      string
	Comment  string
}

// fromServer is a rule as the server lists it.
func fromServer(r pve.FirewallRule) Rule {
	return Rule{
		Type: r.Type, Action: r.Action, Enabled: r.Enable, Macro: r.Macro, Proto: r.Proto, Source: r.Source, Dest: r.Dest,
		SPort: r.SPort, DPort: r.DPort, ICMPType: r.ICMPType, Iface: r.Iface, Log: r.Log, Comment: r.Comment,
	}
}

// FromServer are rules as the server lists them.
func FromServer(rules []pve.FirewallRule) []Rule {
	out := make([]Rule, 0, len(rules))
	for _, r := range rules {
		out = append(out, fromServer(r))
	}
	return out
}

// toServer is a rule as it is sent.
func (r Rule) toServer() pve.FirewallRule {
	return pve.FirewallRule{
		Type: r.Type, Action: r.Action, Enable: r.Enabled, Macro: r.Macro, Proto: r.Proto, Source: r.Source, Dest: r.Dest,
		SPort: r.SPort, DPort: r.DPort, ICMPType: r.ICMPType, Iface: r.Iface, Log: r.Log, Comment: r.Comment,
	}
}

// Normal is the rule as the server hands it back: without white space in lists,
// and with a comment of one line.
func (r Rule) Normal() Rule {
	r.Source, r.Dest = normalAddresses(r.Source), normalAddresses(r.Dest)
	r.DPort, r.SPort = strings.ReplaceAll(r.DPort, " ", ""), strings.ReplaceAll(r.SPort, " ", "")
	line, _, _ := strings.Cut(r.Comment, "\n")
	r.Comment = strings.TrimSpace(line)
	if r.Type == Group { // the server keeps nothing else of a reference
		r = Rule{Type: Group, Action: r.Action, Enabled: r.Enabled, Iface: r.Iface, Comment: r.Comment}
	}
	return r
}

// normalAddresses takes the white space out of a list of addresses.
func normalAddresses(list string) string {
	var out []string
	for _, item := range strings.Split(list, ",") {
		if item = strings.TrimSpace(item); item != "" {
			out = append(out, item)
		}
	}
	return strings.Join(out, ",")
}

// String is the rule as a line of a list, for people:
// "out DROP tcp to 10.0.0.0/8 port 80,443 # private".
func (r Rule) String() string {
	var b strings.Builder
	if !r.Enabled {
		b.WriteString("(disabled) ")
	}
	b.WriteString(r.Type + " " + r.Action)
	for _, part := range []struct{ before, value string }{
		{"", r.Macro}, {"", r.Proto}, {"type ", r.ICMPType}, {"on ", r.Iface}, {"from ", r.Source}, {"from port ", r.SPort},
		{"to ", r.Dest}, {"port ", r.DPort}, {"log ", r.Log}, {"# ", r.Comment},
	} {
		if part.value != "" {
			b.WriteString(" " + part.before + part.value)
		}
	}
	return b.String()
}

// version is the IP version that a rule's addresses or protocol imply, 0 for
// both; the server counts it among a rule's fields.
func (r Rule) version() int {
	switch r.Proto {
	case "icmp", "1":
		return 4
	case "icmpv6", "ipv6-icmp", "58":
		return 6
	}
	for _, list := range []string{r.Source, r.Dest} {
		first, _, _ := strings.Cut(list, ",")
		first, _, _ = strings.Cut(first, "-")
		if p, err := parseNetwork(first); err == nil {
			if p.Addr().Is4() {
				return 4
			}
			return 6
		}
	}
	return 0
}

// parseNetwork reads an address or a network in CIDR form.
func parseNetwork(s string) (netip.Prefix, error) {
	if strings.Contains(s, "/") {
		return netip.ParsePrefix(s)
	}
	a, err := netip.ParseAddr(s)
	if err != nil {
		return netip.Prefix{}, err
	}
	if a.Zone() != "" {
		return netip.Prefix{}, fmt.Errorf("%s names a zone", s)
	}
	return netip.PrefixFrom(a, a.BitLen()), nil
}

// text writes a network as the server does: an address without its length.
func text(p netip.Prefix) string {
	if p.Addr().Is4In6() { // netip writes a dotted quad at the end, which the server needn't know
		return fmt.Sprintf("::ffff:%x:%x/%d", mapped(p, 0), mapped(p, 1), p.Bits())
	}
	if p.IsSingleIP() {
		return p.Addr().String()
	}
	return p.String()
}

// mapped is one half of the IPv4 address in an IPv4-mapped network.
func mapped(p netip.Prefix, half int) uint16 {
	b := p.Addr().As16()
	return uint16(b[12+2*half])<<8 | uint16(b[13+2*half])
}
