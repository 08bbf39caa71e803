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

// DatacenterSpec says how the datacenter's firewall is turned on.
type DatacenterSpec struct {
	// Source is the address that the nodes see us come from; invalid takes that of
	// this machine.
	Source netip.Addr
	// AcceptGuests are guests of others, by id, that may be filtered from then on.
	AcceptGuests []int
}

// DatacenterState is the datacenter's firewall as the server holds it.
type DatacenterState struct {
	Enabled             bool
	PolicyIn, PolicyOut string
	Digest              string
}

// ErrLockout says that a change was refused because somebody would lose access.
var ErrLockout = errors.New("somebody would be locked out")

// ReadDatacenter reads the datacenter's switch.
func (m *Manager) ReadDatacenter(ctx context.Context) (DatacenterState, error) {
	o, err := m.pve.FirewallOptions(ctx, pve.ClusterFirewall())
	if err != nil {
		return DatacenterState{}, datacenterError("read", err)
	}
	s := DatacenterState{PolicyIn: egress.Drop, PolicyOut: egress.Accept, Digest: o.Digest}
	if o.Enable != nil {
		s.Enabled = *o.Enable
	}
	if o.PolicyIn != nil {
		s.PolicyIn = *o.PolicyIn
	}
	if o.PolicyOut != nil {
		s.PolicyOut = *o.PolicyOut
	}
	return s, nil
}

// EnableDatacenter turns the datacenter's firewall on, when it is shown that we
// and every guest keep our access. One that is on stays as it is.
func (m *Manager) EnableDatacenter(ctx context.Context, spec DatacenterSpec) (DatacenterState, error) {
	if err := m.requireOwner("change"); err != nil {
		return DatacenterState{}, err
	}
	m.firewall.Lock()
	defer m.firewall.Unlock()
	state, err := m.ReadDatacenter(ctx)
	if err != nil || state.Enabled {
		return state, err
	}
	objections, err := m.Objections(ctx, spec, state)
	if err != nil {
		return state, err
	}
	if len(objections) > 0 {
		return state, &Error{
			Op: "enable", What: "turn the datacenter's firewall on", Kind: ErrLockout,
			Err:    fmt.Errorf("%w:\n  - %s", ErrLockout, strings.Join(objections, "\n  - ")),
			Remedy: "nothing was changed; see to each of these, or name guests of others that may be filtered in accept_guests",
		}
	}
	err = m.pve.UpdateFirewallOptions(ctx, pve.ClusterFirewall(), pve.LXCUpdate{Set: map[string]string{"enable": "1"}, Digest: state.Digest})
	if err != nil && !pve.LostAnswer(err) {
		return state, datacenterError("change", err)
	}
	return m.confirmDatacenter(ctx, true, err)
}

// DisableDatacenter turns the datacenter's firewall off, unless a guest is
// filtered by it: that one would be open from then on.
func (m *Manager) DisableDatacenter(ctx context.Context) error {
	if err := m.requireOwner("change"); err != nil {
		return err
	}
	m.firewall.Lock()
	defer m.firewall.Unlock()
	state, err := m.ReadDatacenter(ctx)
	if err != nil || !state.Enabled {
		return err
	}
	guests, err := m.walledGuests(ctx)
	if err != nil {
		return err
	}
	if len(guests) > 0 {
		var names []string
		for _, g := range guests {
			names = append(names, g.name)
		}
		return &Error{Op: "disable", What: "turn the datacenter's firewall off", Kind: ErrLockout,
			Err:    fmt.Errorf("these guests are filtered by it and would be open: %s", strings.Join(names, ", ")),
			Remedy: `nothing was changed; remove them first, or leave it on with on_destroy = "keep"`}
	}
	err = m.pve.UpdateFirewallOptions(ctx, pve.ClusterFirewall(), pve.LXCUpdate{Set: map[string]string{"enable": "0"}, Digest: state.Digest})
	if err != nil && !pve.LostAnswer(err) {
		return datacenterError("change", err)
	}
	_, err = m.confirmDatacenter(ctx, false, err)
	return err
}

// confirmDatacenter reads back: an answer that doesn't show the switch where it
// was put is no success.
func (m *Manager) confirmDatacenter(ctx context.Context, on bool, cause error) (DatacenterState, error) {
	m.surroundings.forgetFirewall()
	state, err := m.ReadDatacenter(ctx)
	if err != nil {
		return state, errors.Join(cause, err)
	}
	if state.Enabled != on {
		if cause == nil {
			cause = fmt.Errorf("the server took the change, and its switch is %v all the same", state.Enabled)
		}
		return state, datacenterError("change", cause)
	}
	return state, nil
}

// forgetFirewall makes the next look at the switch ask the server.
func (s *surroundings) forgetFirewall() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.firewallOn = false
}

func datacenterError(op string, err error) error {
	e := &Error{Op: op, What: op + " the datacenter's firewall", Err: err}
	switch {
	case pve.Means(err, pve.DigestMismatch):
		e.Kind, e.Remedy = ErrChangedOutside, "somebody else changed its options meanwhile; apply again, so that what they changed is looked at first"
	case pve.Means(err, pve.Forbidden):
		e.Remedy = "it needs Sys.Audit on / to read and Sys.Modify on / to write. An administrator turns it on with: pvesh set /cluster/firewall/options --enable 1"
	}
	return e
}

// Objections says who isn't shown to keep their access when the firewall is turned
// on: we ourselves at a node, and guests whose own firewall is on, waiting for the
// switch.
func (m *Manager) Objections(ctx context.Context, spec DatacenterSpec, state DatacenterState) ([]string, error) {
	source := spec.Source
	if !source.IsValid() {
		var err error
		if source, err = m.pve.LocalAddress(ctx); err != nil {
			return []string{fmt.Sprintf("the address that the nodes see us come from isn't known (%v): set source_address", err)}, nil
		}
	}
	rules, err := m.newRulebook(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	if !source.IsLoopback() { // what comes from a node itself (over a tunnel, say) is never filtered
		if out, err = m.nodeObjections(ctx, source, state, rules); err != nil {
			return nil, err
		}
	}
	guests, err := m.walledGuests(ctx)
	if err != nil {
		return nil, err
	}
	for _, g := range guests {
		if slices.Contains(spec.AcceptGuests, g.vmid) {
			continue
		}
		if objection := m.guestObjection(ctx, g, rules); objection != "" {
			out = append(out, objection)
		}
	}
	return out, nil
}

// nodeObjections says at which nodes we aren't shown to keep the API, and SSH where
// guests are reached over it.
func (m *Manager) nodeObjections(ctx context.Context, source netip.Addr, state DatacenterState, rules *rulebook) ([]string, error) {
	status, err := m.pve.ClusterStatus(ctx)
	if err != nil {
		return nil, datacenterError("check", err)
	}
	ports := []int{8006}
	if m.settings.Guest.ProxyJump != nil {
		ports = append(ports, 22)
	}
	var out []string
	for _, node := range status.Nodes {
		object := func(format string, args ...any) {
			out = append(out, fmt.Sprintf("node %s: ", node.Name)+fmt.Sprintf(format, args...))
		}
		options, err := m.pve.FirewallOptions(ctx, pve.NodeFirewall(node.Name))
		if err != nil {
			object("its firewall can't be read: %v", err)
			continue
		}
		if options.Enable != nil && !*options.Enable {
			continue // it isn't filtered
		}
		own, err := m.pve.FirewallRules(ctx, pve.NodeFirewall(node.Name))
		if err != nil {
			object("its rules can't be read: %v", err)
			continue
		}
		iface, local := m.nodeNetwork(ctx, node, rules)
		filter := rules.filter(append(egress.FromServer(own), rules.datacenter...))
		for _, port := range ports {
			to, _ := netip.ParseAddr(node.IP)
			ok, by := filter.Permits(egress.Connection{Direction: egress.In, From: source, To: to, Proto: "tcp", Port: port, Iface: iface}, state.PolicyIn)
			switch {
			case ok:
			case by != (egress.Rule{}):
				object("the rule %q keeps %s from TCP port %d", by, source, port)
			case !covered(local, source) && !covered(rules.management, source):
				object("no rule lets %s in to TCP port %d, and it is neither in the node's local network nor in the IP set %q. Add it: pvesh create /cluster/firewall/ipset --name %s; pvesh create /cluster/firewall/ipset/%s --cidr %s",
					source, port, managementSet, managementSet, managementSet, source)
			}
		}
	}
	return out, nil
}

// nodeNetwork is the interface that holds a node's address, and the network there,
// which the server counts as its local one unless an alias says otherwise.
func (m *Manager) nodeNetwork(ctx context.Context, node pve.ClusterNode, rules *rulebook) (iface string, local []netip.Prefix) {
	if rules.local.IsValid() {
		local = append(local, rules.local)
	}
	addr, err := netip.ParseAddr(node.IP)
	if err != nil {
		return "", local
	}
	interfaces, err := m.pve.Interfaces(ctx, node.Name)
	if err != nil {
		return "", local // then only a rule or the set shows that we keep our access
	}
	for _, i := range interfaces {
		for _, cidr := range []string{i.CIDR, i.CIDR6} {
			if n, err := netip.ParsePrefix(cidr); err == nil && n.Addr() == addr {
				if !rules.local.IsValid() {
					local = append(local, n.Masked())
				}
				return i.Name, local
			}
		}
	}
	return "", local
}
