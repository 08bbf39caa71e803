package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// GuardSpec is what is wanted of a node's own input rules towards sandboxes: no
// rule of a guest covers traffic to the node that it runs on.
type GuardSpec struct {
	NodeName string
	// Bridge or Subnet says who the sandboxes are: what comes in over that bridge,
	// or from that network.
	Bridge string
	Subnet netip.Prefix
	// DHCP lets requests to a DHCP server on the node in.
	DHCP bool
	// Resolvers are the node's addresses that DNS is let in to.
	Resolvers []netip.Addr
	// Allow is what else is let in; To is one of the node's addresses, or "".
	Allow []egress.Allow
}

// Guard is a node's guard as the server holds it.
type Guard struct {
	NodeName string
	// Key is the bridge or the network: it stands in the comments of the guard's
	// rules, by which they are known.
	Key    string
	Bridge string
	// Rules are the guard's own, in their order.
	Rules []egress.Rule
	// Above counts the rules of others that stand above one of the guard's: what
	// they accept, the guard doesn't stop.
	Above int
}

// ErrGuardExists says that the node has rules of such a guard already.
var ErrGuardExists = errors.New("the node has a guard of that bridge or network already")

// guardMark begins the comment of every rule of a guard.
const guardMark = "sandbox_node_guard "

// Key is what a guard's rules are known by.
func (s GuardSpec) Key() string {
	if s.Bridge != "" {
		return s.Bridge
	}
	return s.Subnet.Masked().String()
}

func (s GuardSpec) comment(what string) string { return guardMark + s.Key() + ": " + what }

// Render makes the rules of a guard, in their order.
func (s GuardSpec) Render() []egress.Rule {
	var out []egress.Rule
	add := func(r egress.Rule, what string) {
		r.Type, r.Enabled, r.Comment = egress.In, true, s.comment(what)
		if s.Bridge != "" {
			r.Iface = s.Bridge
		} else if r.Source == "" {
			r.Source = s.Subnet.Masked().String()
		}
		out = append(out, r)
	}
	if s.DHCP {
		for _, r := range s.dhcp() {
			add(r, "DHCP")
		}
	}
	for _, dest := range egress.AddressLists(s.Resolvers) {
		if s.sameFamily(dest) {
			add(egress.Rule{Action: egress.Accept, Macro: "DNS", Dest: dest}, "DNS to the resolver")
		}
	}
	for _, a := range s.Allow {
		protocol := a.Protocol
		if protocol == "" && a.Ports != "" {
			protocol = "tcp"
		}
		add(egress.Rule{Action: egress.Accept, Proto: protocol, DPort: a.Ports, Dest: a.To}, "allowed")
	}
	add(egress.Rule{Action: egress.Drop}, "the rest of the node")
	for i := range out {
		out[i] = out[i].Normal()
	}
	return out
}

// dhcp are the requests of clients: from no address yet, or to renew a lease.
func (s GuardSpec) dhcp() []egress.Rule {
	switch {
	case s.Bridge != "":
		return []egress.Rule{{Action: egress.Accept, Proto: "udp", DPort: "67,547"}}
	case s.Subnet.Addr().Is4():
		return []egress.Rule{{Action: egress.Accept, Proto: "udp", SPort: "68", DPort: "67", Source: "0.0.0.0," + s.Subnet.Masked().String()}}
	}
	return []egress.Rule{{Action: egress.Accept, Proto: "udp", SPort: "546", DPort: "547", Source: "fe80::/10," + s.Subnet.Masked().String()}}
}

// sameFamily says whether a list of addresses can stand in one rule with the
// subnet.
func (s GuardSpec) sameFamily(list string) bool {
	return s.Bridge != "" || strings.Contains(list, ":") == s.Subnet.Addr().Is6()
}

// Commands are what an administrator runs on the node to make the guard by hand,
// in their order: each insert goes on top.
func (s GuardSpec) Commands() []string {
	rules := s.Render()
	slices.Reverse(rules)
	var out []string
	for _, r := range rules {
		out = append(out, r.Command("/nodes/"+s.NodeName+"/firewall/rules"))
	}
	return out
}

// ofGuard says whether a rule is that of the guard with this key.
func ofGuard(r egress.Rule, key string) bool {
	return strings.HasPrefix(r.Comment, guardMark+key+": ")
}

// guardIn is the guard as it is among a node's rules.
func guardIn(node, key string, rules []egress.Rule) Guard {
	g := Guard{NodeName: node, Key: key}
	if _, err := netip.ParsePrefix(key); err != nil {
		g.Bridge = key
	}
	foreign := 0
	for _, r := range rules {
		switch {
		case ofGuard(r, key):
			g.Rules, g.Above = append(g.Rules, r), foreign
		case !strings.HasPrefix(r.Comment, guardMark): // another guard's are about other traffic
			foreign++
		}
	}
	return g
}

// placed is a node's list with the guard's rules as wanted: where they stand, if
// nothing but guards is above them, else on top. All others stay as they are.
func placed(have []egress.Rule, key string, want []egress.Rule) []egress.Rule {
	var others []egress.Rule
	at, guards, first := 0, 0, true
	for _, r := range have {
		if ofGuard(r, key) {
			if first && guards == len(others) {
				at = len(others)
			}
			first = false
			continue
		}
		if guards == len(others) && strings.HasPrefix(r.Comment, guardMark) {
			guards++
		}
		others = append(others, r)
	}
	return slices.Insert(others, at, want...)
}

// ReadGuard reads a node's guard: one request. A node without any rule of it is an
// error of the kind ErrGone.
func (m *Manager) ReadGuard(ctx context.Context, node, key string) (Guard, error) {
	list, err := egress.ReadRules(ctx, m.pve, pve.NodeFirewall(node))
	if err != nil {
		return Guard{}, m.guardError("read", GuardSpec{NodeName: node}, err)
	}
	g := guardIn(node, key, list.Rules)
	if len(g.Rules) == 0 {
		return g, &Error{Op: "read", What: fmt.Sprintf("read the guard of %s on node %s", key, node), Kind: ErrGone}
	}
	return g, nil
}

// CreateGuard writes a guard on top of a node's rules. Rules of such a guard that
// are there already are never taken over.
func (m *Manager) CreateGuard(ctx context.Context, spec GuardSpec) (Guard, error) {
	if err := m.requireOwner("create"); err != nil {
		return Guard{}, err
	}
	g, err := m.ReadGuard(ctx, spec.NodeName, spec.Key())
	switch {
	case err == nil:
		return Guard{}, &Error{Op: "create", What: fmt.Sprintf("guard %s on node %s", spec.Key(), spec.NodeName), Kind: ErrGuardExists, Err: fmt.Errorf("%d rules are there: %s", len(g.Rules), g.Rules[0]),
			Remedy: fmt.Sprintf("if they are yours: terraform import sandbox_node_guard.<name> %s/%s", spec.NodeName, spec.Key())}
	case !errors.Is(err, ErrGone):
		return Guard{}, err
	}
	return m.writeGuard(ctx, "create", spec, nil)
}

// UpdateGuard brings a guard to spec, and back to the top.
func (m *Manager) UpdateGuard(ctx context.Context, spec GuardSpec) (Guard, error) {
	if err := m.requireOwner("change"); err != nil {
		return Guard{}, err
	}
	return m.writeGuard(ctx, "change", spec, nil)
}

func (m *Manager) writeGuard(ctx context.Context, op string, spec GuardSpec, have *egress.List) (Guard, error) {
	if problems, err := m.CheckGuard(ctx, spec); err != nil {
		return Guard{}, err
	} else if err := asError(problems); err != nil {
		return Guard{}, err
	}
	list, err := egress.SyncPart(ctx, m.pve, pve.NodeFirewall(spec.NodeName), have, func(rules []egress.Rule) []egress.Rule {
		return placed(rules, spec.Key(), spec.Render())
	})
	g := guardIn(spec.NodeName, spec.Key(), list.Rules)
	if err != nil {
		return g, m.guardError(op, spec, err)
	}
	return g, nil
}

// DeleteGuard removes the guard's rules, and no other.
func (m *Manager) DeleteGuard(ctx context.Context, node, key string) error {
	if err := m.requireOwner("delete"); err != nil {
		return err
	}
	_, err := egress.SyncPart(ctx, m.pve, pve.NodeFirewall(node), nil, func(rules []egress.Rule) []egress.Rule {
		return placed(rules, key, nil)
	})
	if err != nil {
		return m.guardError("delete", GuardSpec{NodeName: node}, err)
	}
	return nil
}

func (m *Manager) guardError(op string, spec GuardSpec, err error) error {
	e, ok := m.rulesError(op, "node "+spec.NodeName, err).(*Error) //nolint:errorlint // made just now
	if !ok {
		return err
	}
	if pve.Means(err, pve.Forbidden) && (spec.Bridge != "" || spec.Subnet.IsValid()) {
		e.Remedy = "the privilege Sys.Modify on /nodes/" + spec.NodeName + " is missing. An administrator makes the same guard by running, on a node as root:\n  " +
			strings.Join(spec.Commands(), "\n  ")
	}
	return e
}

// BridgeOf names the bridge of a node whose own network holds a subnet, "" where
// none is seen to.
func (m *Manager) BridgeOf(ctx context.Context, node string, subnet netip.Prefix) (string, error) {
	interfaces, err := m.pve.Interfaces(ctx, node)
	if err != nil {
		return "", m.guardError("read", GuardSpec{NodeName: node}, err)
	}
	for _, i := range interfaces {
		for _, cidr := range []string{i.CIDR, i.CIDR6} {
			n, err := netip.ParsePrefix(cidr)
			if err == nil && strings.HasSuffix(strings.ToLower(i.Type), "bridge") && n.Bits() <= subnet.Bits() && n.Contains(subnet.Addr()) {
				return i.Name, nil
			}
		}
	}
	return "", nil
}
