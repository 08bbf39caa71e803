package nftrules

import (
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// tracked lets pass what belongs to a connection that was let pass. A kernel's bridge needn't track connections itself: the
// frames go through the IP hooks too (br_netfilter), where the state is put into their mark.
const tracked = "meta mark & " + markTracked + " != 0 accept"

func bridgeTable(model *server.FirewallModel) string {
	w := &writer{sets: newSets()}
	var marks, origin, out, in, inSilent []string
	for _, n := range nics(model) {
		id := fmt.Sprintf("%d_%s", n.guest, n.key)
		marks = append(marks, fmt.Sprintf("%q : %d", n.port, n.node))
		if !n.filtered() {
			continue
		}
		if n.is.MACFilter || n.is.IPFilter != nil {
			w.chain("origin_"+id, w.origin(n))
			origin = append(origin, fmt.Sprintf("%q : jump origin_%s", n.port, id))
		}
		w.chain("out_"+id, w.guestRules(n, "out", loudly))
		w.chain("in_"+id, w.guestRules(n, "in", loudly))
		w.chain("silent_"+id, w.guestRules(n, "in", silently))
		out = append(out, fmt.Sprintf("%q : jump out_%s", n.port, id))
		in = append(in, fmt.Sprintf("%s : jump in_%s", n.mac, id))
		inSilent = append(inSilent, fmt.Sprintf("%q : jump silent_%s", n.port, id))
	}
	toNode := []string{"ip daddr $" + NodeAddresses4 + " accept", "ip6 daddr $" + NodeAddresses6 + " accept"}
	w.base("prerouting", beforeIP, "origin", mapped("meta mark set iifname map", marks), mapped("iifname vmap", origin))
	w.base("prerouting", afterIP, "from_guest", append([]string{tracked}, append(toNode, mapped("iifname vmap", out))...)...)
	w.base("prerouting", afterIP+10, "between_guests", tracked, mapped("ether daddr vmap", in))
	w.base("forward", afterIP, "to_guest", tracked, rejected+" accept", mapped("oifname vmap", inSilent))
	w.base("output", afterIP, "node_to_guest", tracked, mapped("oifname vmap", inSilent))
	return w.table("bridge")
}

// mapped is a lookup in a map, nothing if the map is empty, which nft doesn't take.
func mapped(what string, elements []string) string {
	if len(elements) == 0 {
		return ""
	}
	return what + " { " + strings.Join(elements, ", ") + " }"
}

// base adds a chain that packets go through at a hook.
func (w *writer) base(hook string, priority int, name string, rules ...string) {
	lines := []string{fmt.Sprintf("type filter hook %s priority %d; policy accept;", hook, priority)}
	for _, r := range rules {
		if r != "" {
			lines = append(lines, r)
		}
	}
	w.chain(name, lines)
}

// origin drops what a guest sends under another's name, whatever it belongs to. Frames with a VLAN tag are dropped too:
// what is in them would be judged by nobody.
func (w *writer) origin(n nic) []string {
	rules := []string{"ether type vlan drop"}
	if n.is.MACFilter {
		rules = append(rules, "ether saddr != "+n.mac+" drop", "arp saddr ether != "+n.mac+" drop")
	}
	if n.is.IPFilter == nil {
		return rules
	}
	four, six := w.sets.expressions(n.is.IPFilter)
	if four == "" {
		rules = append(rules, "ether type { ip, arp } drop")
	} else {
		rules = append(rules, "ip saddr != "+four+" drop", "arp saddr ip != "+four+" drop")
	}
	// The address :: is a host's that has none yet.
	if six == "" {
		return append(rules, "ip6 saddr != :: drop")
	}
	return append(rules, "ip6 saddr :: return", "ip6 saddr != "+six+" drop")
}

// guestRules are a guest's for one interface and direction: what its options let pass, its rules, its policy.
func (w *writer) guestRules(n nic, direction string, end func(condition, action string) []string) []string {
	rules := []string{"ether type != { ip, ip6 } accept"}
	g := n.of
	if direction == "out" {
		if g.DHCP {
			rules = append(rules, "udp sport 68 udp dport 67 accept", "udp sport 546 udp dport 547 accept")
		}
		if !g.RAdv {
			rules = append(rules, "icmpv6 type nd-router-advert drop")
		}
		if g.NDP {
			rules = append(rules, "icmpv6 type { nd-router-solicit, nd-neighbor-solicit, nd-neighbor-advert } accept")
		}
	} else {
		if g.DHCP {
			rules = append(rules, "udp sport 67 udp dport 68 accept", "udp sport 547 udp dport 546 accept")
		}
		if g.NDP {
			rules = append(rules, "icmpv6 type { nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept")
		}
	}
	for _, r := range g.Rules {
		if r.Direction == direction && (r.Interface == "" || r.Interface == n.key) {
			rules = append(rules, w.rule(r, "", end)...)
		}
	}
	policy := g.PolicyIn
	if direction == "out" {
		policy = g.PolicyOut
	}
	return append(rules, end("", policy)...)
}
