package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// Check validates a guard without any request.
func (s GuardSpec) Check() []Problem {
	var p problems
	if !validNodeName(s.NodeName) {
		p.add("node_name", fmt.Sprintf("%q is no node's name", s.NodeName), "A node's name is one DNS label.")
	}
	switch {
	case (s.Bridge == "") == !s.Subnet.IsValid():
		p.add("bridge", "One of bridge and subnet is needed", "The guard covers what comes in over a bridge, or from a network.")
		return p
	case s.Bridge != "" && !validBridge(s.Bridge):
		p.add("bridge", fmt.Sprintf("%q is no bridge's name", s.Bridge), "An interface's name has at most 15 letters, digits and -_. , e.g. vmbr1.")
	case s.Subnet.IsValid() && s.Subnet != s.Subnet.Masked():
		p.add("subnet", fmt.Sprintf("%s has bits set behind its length", s.Subnet), fmt.Sprintf("The network is %s.", s.Subnet.Masked()))
	case s.Subnet.IsValid() && s.Subnet.Bits() == 0:
		p.add("subnet", "That is everybody", "The guard would close the node to all. Give the sandboxes' network.")
	}
	for i, a := range s.Allow {
		r := egress.Rule{Type: egress.In, Action: egress.Accept, Proto: a.Protocol, DPort: a.Ports, Dest: a.To}
		if r.Proto == "" && r.DPort != "" {
			r.Proto = "tcp"
		}
		if a.Protocol == "" && a.Ports == "" {
			p.add(fmt.Sprintf("allow[%d]", i), "It would open the node", "Say which ports or which protocol are let in.")
		}
		for _, found := range egress.CheckRule(r) {
			p.add(fmt.Sprintf("allow[%d].%s", i, found.Attribute), found.Summary, found.Detail)
		}
	}
	return p
}

// CheckGuard validates a guard against what the node is: one that would lock us or
// the other nodes out is refused.
func (m *Manager) CheckGuard(ctx context.Context, spec GuardSpec) ([]Problem, error) {
	p := problems(spec.Check())
	if slices.ContainsFunc(p, func(found Problem) bool { return !found.Warning }) {
		return p, nil
	}
	interfaces, err := m.pve.Interfaces(ctx, spec.NodeName)
	if err != nil {
		return p, m.guardError("check", spec, err)
	}
	networks := spec.networks(&p, interfaces)
	m.checkGuardSources(ctx, &p, spec, networks)
	m.checkManagementSet(ctx, &p, networks)
	options, err := m.pve.FirewallOptions(ctx, pve.NodeFirewall(spec.NodeName))
	switch {
	case err != nil:
		return p, m.guardError("check", spec, err)
	case options.Enable != nil && !*options.Enable:
		p.add("node_name", fmt.Sprintf("The firewall of node %s is off", spec.NodeName),
			fmt.Sprintf("No rule of the node counts while it is off. It is on by default; somebody has turned it off. To turn it on: pvesh set /nodes/%s/firewall/options --enable 1", spec.NodeName))
	}
	if on, err := m.surroundings.datacenterFirewall(ctx); err == nil && !on {
		p.warn("node_name", "The datacenter's firewall is off", "No rule of a node counts until it is on: sandbox_datacenter_firewall turns it on.")
	}
	return p, nil
}

// networks are those that the guard shuts out: the subnet, or the addresses on the
// bridge.
func (s GuardSpec) networks(p *problems, interfaces []pve.NetworkInterface) []netip.Prefix {
	if s.Bridge == "" {
		return []netip.Prefix{s.Subnet.Masked()}
	}
	var out []netip.Prefix
	found := false
	for _, i := range interfaces {
		if i.Name != s.Bridge {
			continue
		}
		found = true
		if i.Gateway != "" || i.Gateway6 != "" {
			p.add("bridge", fmt.Sprintf("The node's default route leads over %s", s.Bridge),
				"It is the bridge of the node's own network: a guard of it would close the node to everybody there. Put sandboxes on a bridge of their own, or give their network as subnet.")
		}
		for _, cidr := range []string{i.CIDR, i.CIDR6} {
			if n, err := netip.ParsePrefix(cidr); err == nil {
				out = append(out, n.Masked())
			}
		}
	}
	if !found {
		p.warn("bridge", fmt.Sprintf("Node %s shows no bridge %s", s.NodeName, s.Bridge), "It may be hidden from this token, or be a virtual network. If the name is wrong, the guard guards nothing.")
	}
	return out
}

// checkGuardSources refuses a guard that covers the address that we come from, or
// that of a node.
func (m *Manager) checkGuardSources(ctx context.Context, p *problems, spec GuardSpec, networks []netip.Prefix) {
	at := "subnet"
	if spec.Bridge != "" {
		at = "bridge"
	}
	if source, err := m.pve.LocalAddress(ctx); err == nil && covered(networks, source) {
		p.add(at, "The guard would lock us out", fmt.Sprintf("This machine reaches the server from %s, which is among the addresses that the guard closes the node to.", source))
	}
	for _, node := range m.surroundings.nodeAddresses(ctx) {
		if covered(networks, node) {
			p.add(at, "The guard would cut nodes off", fmt.Sprintf("%s is a node's own address, and the guard closes the node to its network. Put sandboxes on a bridge and network of their own.", node))
		}
	}
}

// checkManagementSet looks whether the set that the server lets in to everything
// holds sandboxes: the guard stands before it, but nothing else does.
func (m *Manager) checkManagementSet(ctx context.Context, p *problems, networks []netip.Prefix) {
	set, err := egress.ReadSet(ctx, m.pve, pve.ClusterFirewall(), managementSet)
	if err != nil {
		return // none, or not ours to see
	}
	for _, e := range set.Entries {
		for _, n := range networks {
			if e.Overlaps(n) {
				p.warn("node_name", "The management set holds sandboxes", fmt.Sprintf("The IP set %q of the datacenter holds %s, which overlaps %s: to nodes without a guard, and as soon as this one is gone, sandboxes are administrators' machines. "+
					"Take it out, and put in only the addresses that you administer from.", managementSet, e, n))
			}
		}
	}
}

// managementSet is the IP set whose members the server lets in to its management
// ports, beside its own local network.
const managementSet = "management"
