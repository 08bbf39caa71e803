package nftrules

import (
	"fmt"
	"maps"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// managementPorts are those that Proxmox keeps open for the set "management": the API, VNC, SPICE, SSH, migration.
const managementPorts = "{ 22, 3128, 5900-5999, 8006, 60000-60050 }"

// inetTable has the rules of the nodes themselves. All nodes of a lab are one machine: the mark that a packet got at its
// port says which node it means. What the lab itself sends comes from the first.
func inetTable(model *server.FirewallModel) string {
	w := &writer{sets: newSets()}
	marks := nodeMarks(model)
	names := slices.Sorted(maps.Keys(model.Nodes))
	const known, note = "ct state established,related", " meta mark set meta mark | " + markTracked
	w.base("prerouting", -100, "state", known+note)
	w.base("postrouting", -100, "state_out", known+note)
	w.base("forward", 0, "answer_rejected", rejected+" meta l4proto tcp reject with tcp reset", rejected+" reject with icmpx port-unreachable")
	input := []string{`iifname "lo" accept`, "ct state invalid drop", known + " accept"}
	for _, name := range names {
		node := model.Nodes[name]
		if !node.Enable {
			continue
		}
		chain := fmt.Sprintf("node_%d", marks[name])
		w.chain(chain, w.nodeInput(model.Datacenter, node))
		input = append(input, fmt.Sprintf("meta mark & %s == %d jump %s", markNode, marks[name], chain))
	}
	w.base("input", 0, "to_node", input...)
	if len(names) > 0 && model.Nodes[names[0]].Enable {
		w.base("output", 0, "from_node", append([]string{`oifname "lo" accept`, known + " accept"}, w.nodeOutput(model.Datacenter, model.Nodes[names[0]])...)...)
	}
	return w.table("inet")
}

// nodeInput is what reaches a node: its rules, then the datacenter's, then what management may, then the policy.
func (w *writer) nodeInput(dc server.FirewallDatacenter, node server.FirewallNode) []string {
	rules := []string{"meta l4proto igmp accept"}
	if node.NDP {
		rules = append(rules, "icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept")
	}
	rules = append(rules, w.levelRules(node.Rules, "in", "iifname")...)
	rules = append(rules, w.levelRules(dc.Rules, "in", "iifname")...)
	rules = append(rules, "ip saddr $"+LocalNetwork4+" tcp dport "+managementPorts+" accept", "ip6 saddr $"+LocalNetwork6+" tcp dport "+managementPorts+" accept")
	if set := dc.Sets["management"]; set != nil {
		four, six := w.sets.expressions(set)
		if four != "" {
			rules = append(rules, "ip saddr "+four+" tcp dport "+managementPorts+" accept")
		}
		if six != "" {
			rules = append(rules, "ip6 saddr "+six+" tcp dport "+managementPorts+" accept")
		}
	}
	return append(rules, answers("", dc.PolicyIn)...)
}

func (w *writer) nodeOutput(dc server.FirewallDatacenter, node server.FirewallNode) []string {
	rules := []string{"meta l4proto igmp accept"}
	if node.NDP {
		rules = append(rules, "icmpv6 type { nd-router-solicit, nd-router-advert, nd-neighbor-solicit, nd-neighbor-advert } accept")
	}
	rules = append(rules, w.levelRules(node.Rules, "out", "oifname")...)
	rules = append(rules, w.levelRules(dc.Rules, "out", "oifname")...)
	return append(rules, answers("", dc.PolicyOut)...)
}

func (w *writer) levelRules(rules []server.FirewallRule, direction, interfaceKeyword string) []string {
	var lines []string
	for _, r := range rules {
		if r.Direction != direction {
			continue
		}
		before := ""
		if r.Interface != "" {
			before = fmt.Sprintf("%s %q", interfaceKeyword, r.Interface)
		}
		lines = append(lines, w.rule(r, before, answers)...)
	}
	return lines
}
