package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// rulebook is what rules refer to: the datacenter's rules, groups and sets.
type rulebook struct {
	datacenter []egress.Rule
	groups     map[string][]egress.Rule
	sets       []egress.Set
	management []netip.Prefix
	// local is the network that somebody has named as the nodes' local one.
	local netip.Prefix
}

func (m *Manager) newRulebook(ctx context.Context) (*rulebook, error) {
	b := &rulebook{groups: map[string][]egress.Rule{}}
	rules, err := m.pve.FirewallRules(ctx, pve.ClusterFirewall())
	if err != nil {
		return nil, datacenterError("check", err)
	}
	b.datacenter = egress.FromServer(rules)
	groups, err := m.pve.FirewallGroups(ctx)
	if err != nil {
		return nil, datacenterError("check", err)
	}
	for _, g := range groups {
		rules, err := m.pve.FirewallRules(ctx, pve.GroupFirewall(g.Group))
		if err != nil {
			return nil, datacenterError("check", err)
		}
		b.groups[g.Group] = egress.FromServer(rules)
	}
	sets, err := m.pve.FirewallIPSets(ctx, pve.ClusterFirewall())
	if err != nil {
		return nil, datacenterError("check", err)
	}
	for _, s := range sets {
		set, err := egress.ReadSet(ctx, m.pve, pve.ClusterFirewall(), s.Name)
		if err != nil {
			return nil, datacenterError("check", err)
		}
		if len(set.Foreign) > 0 {
			continue // exceptions and aliases: what it holds can't be told, so no rule that names it shows anything
		}
		b.sets = append(b.sets, set)
		if s.Name == managementSet {
			b.management = set.Entries
		}
	}
	aliases, err := m.pve.FirewallAliases(ctx)
	if err != nil {
		return nil, datacenterError("check", err)
	}
	for _, a := range aliases {
		if strings.EqualFold(a.Name, "local_network") {
			b.local, _ = netip.ParsePrefix(a.CIDR)
		}
	}
	return b, nil
}

// filter is a list of rules with those of groups in the places of references, and
// with the sets. A group that doesn't exist has no rules.
func (b *rulebook) filter(rules []egress.Rule) egress.Filter {
	f := egress.Filter{Sets: b.sets}
	for _, r := range rules {
		if r.Type != egress.Group {
			f.Rules = append(f.Rules, r)
			continue
		}
		if !r.Enabled {
			continue
		}
		for _, inner := range b.groups[r.Action] {
			inner.Iface = r.Iface
			f.Rules = append(f.Rules, inner)
		}
	}
	return f
}

// walled is a guest that the datacenter's switch concerns: its own firewall is on,
// at an interface and as a whole.
type walled struct {
	name    string
	vmid    int
	ours    bool
	scope   pve.FirewallScope
	options pve.FirewallOptions
	err     error // why nothing more is known
}

// walledGuests finds them: one request per guest, and one more where an interface
// has the firewall on.
func (m *Manager) walledGuests(ctx context.Context) ([]walled, error) {
	m.pve.Lists().Drop()
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, datacenterError("check", err)
	}
	var mu sync.Mutex
	var out []walled
	resources = slices.DeleteFunc(slices.Clone(resources), func(r pve.Resource) bool { return !r.IsGuest() || r.VMID == 0 })
	forEach(resources, func(r pve.Resource) {
		w, concerned := m.walledGuest(ctx, r)
		if concerned {
			mu.Lock()
			defer mu.Unlock()
			out = append(out, w)
		}
	})
	slices.SortFunc(out, func(a, b walled) int { return a.vmid - b.vmid })
	return out, nil
}

func (m *Manager) walledGuest(ctx context.Context, r pve.Resource) (walled, bool) {
	w := walled{vmid: r.VMID}
	var nets map[int]pve.Net
	if r.Type == "qemu" {
		w.name, w.scope = fmt.Sprintf("virtual machine %d (%s)", r.VMID, r.Name), pve.QEMUFirewall(r.Node, r.VMID)
		nets, w.err = m.pve.QEMUNets(ctx, r.Node, r.VMID)
	} else {
		w.name, w.scope = fmt.Sprintf("container %d (%s)", r.VMID, r.Name), pve.LXCFirewall(r.Node, r.VMID)
		var cfg *pve.LXCConfig
		if cfg, w.err = m.pve.LXCConfig(ctx, r.Node, r.VMID); w.err == nil {
			nets = cfg.Nets()
			_, marker := SplitDescription(cfg.Text("description"))
			w.ours = marker != nil && marker.Owner == m.settings.Owner && marker.VMID == r.VMID
		}
	}
	if pve.Means(w.err, pve.NoSuchGuest) {
		return w, false
	}
	if w.err != nil {
		return w, true
	}
	filtered := false
	for _, n := range nets {
		filtered = filtered || n.Firewall()
	}
	if !filtered {
		return w, false
	}
	w.options, w.err = m.pve.FirewallOptions(ctx, w.scope)
	return w, w.err != nil || w.options.Enable != nil && *w.options.Enable
}

// guestObjection says why a guest isn't shown to keep its access, "" if it is. Of
// ours the wall is what is wanted, and only SSH has to come in; a stranger's must
// lose nothing at all.
func (m *Manager) guestObjection(ctx context.Context, g walled, rules *rulebook) string {
	if g.err != nil {
		return fmt.Sprintf("%s: whether it keeps its access can't be seen: %v", g.name, g.err)
	}
	own, err := m.pve.FirewallRules(ctx, g.scope)
	if err != nil {
		return fmt.Sprintf("%s: its rules can't be read: %v", g.name, err)
	}
	filter := rules.filter(egress.FromServer(own))
	policyIn, policyOut := egress.Drop, egress.Accept
	if g.options.PolicyIn != nil {
		policyIn = *g.options.PolicyIn
	}
	if g.options.PolicyOut != nil {
		policyOut = *g.options.PolicyOut
	}
	if g.ours {
		for _, s := range m.groupManagement(ctx) {
			if ok, _ := filter.Permits(egress.Connection{Direction: egress.In, From: s.Addr(), Proto: "tcp", Port: m.sshPort()}, policyIn); !ok {
				return fmt.Sprintf("%s: SSH from %s would not come in any more", g.name, s)
			}
		}
		return ""
	}
	if policyIn != egress.Accept || policyOut != egress.Accept {
		return fmt.Sprintf("%s: its own firewall is on with policies in %s, out %s, and would begin to filter", g.name, policyIn, policyOut)
	}
	for _, r := range filter.Rules {
		if r.Enabled && r.Action != egress.Accept {
			return fmt.Sprintf("%s: its own firewall is on, and the rule %q would begin to count", g.name, r)
		}
	}
	return ""
}
