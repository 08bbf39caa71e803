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

// CreateGroup makes a group: the group itself, its sets, and its rules from the
// last to the first, so that what drops is there before what accepts. A group or
// set that exists is never taken over. When it fails half-way the error comes with
// what is known of the group; its Name is "" where none was made.
func (m *Manager) CreateGroup(ctx context.Context, spec GroupSpec) (FirewallGroup, error) {
	if err := m.requireOwner("create"); err != nil {
		return FirewallGroup{}, err
	}
	if err := asError(m.CheckGroup(ctx, spec)); err != nil {
		return FirewallGroup{}, err
	}
	resolved, err := m.LookUp(ctx, spec.Domains())
	if err != nil {
		return FirewallGroup{}, err
	}
	filter, err := m.RenderGroup(ctx, spec, resolved)
	if err != nil {
		return FirewallGroup{}, err
	}
	m.firewall.Lock()
	defer m.firewall.Unlock()
	if err := m.makeGroup(ctx, spec.Name); err != nil {
		return FirewallGroup{}, err
	}
	g := FirewallGroup{Name: spec.Name, Resolved: resolved}
	for _, set := range filter.Sets {
		if err := m.makeSet(ctx, spec.Name, set); err != nil {
			return g, err
		}
	}
	return m.writeGroup(ctx, "create", g, filter, egress.Believed(nil, ""))
}

// makeGroup makes an empty group. When the answer gets lost, the comment tells
// whether the group that is there then is ours.
func (m *Manager) makeGroup(ctx context.Context, name string) error {
	comment := fmt.Sprintf("sandbox_firewall_group owner=%s id=%s", m.settings.Owner, m.newClaim())
	for attempt := 1; ; attempt++ {
		err := m.pve.CreateFirewallGroup(ctx, name, comment)
		switch {
		case err == nil:
			return nil
		case pve.Means(err, pve.AlreadyExists):
			return groupExists(name, fmt.Sprintf("security group %q", name), err)
		case !pve.LostAnswer(err) || attempt == 2:
			return groupError("create", name, "", err)
		}
		groups, listErr := m.pve.FirewallGroups(ctx)
		if listErr != nil {
			return groupError("create", name, "find out whether it was made", errors.Join(err, listErr))
		}
		at := slices.IndexFunc(groups, func(g pve.FirewallGroup) bool { return g.Group == name })
		switch {
		case at >= 0 && groups[at].Comment == comment:
			return nil
		case at >= 0:
			return groupExists(name, fmt.Sprintf("security group %q", name), err)
		}
	}
}

func groupExists(name, what string, err error) error {
	return &Error{
		Op: "create", What: "create security group " + name, Kind: ErrGroupExists, Err: err,
		Remedy: fmt.Sprintf("the %s may belong to somebody else, so it is not taken over. If it is yours: terraform import sandbox_firewall_group.<name> %s. If two configurations name one group, give each its own", what, name),
	}
}

func (m *Manager) makeSet(ctx context.Context, group string, set egress.Set) error {
	err := m.pve.CreateFirewallIPSet(ctx, pve.ClusterFirewall(), set.Name, set.Comment)
	switch {
	case pve.Means(err, pve.AlreadyExists):
		return groupExists(group, fmt.Sprintf("IP set %q", set.Name), err)
	case err != nil && !pve.LostAnswer(err): // a lost answer: filling it tells
		return groupError("create", group, "make its IP set "+set.Name, err)
	}
	return nil
}

// UpdateGroup changes a group in place. have is what was read of it last, with its
// digest: a change by somebody else since then is noticed, not overwritten unseen.
func (m *Manager) UpdateGroup(ctx context.Context, spec GroupSpec, have FirewallGroup) (FirewallGroup, error) {
	if err := m.requireOwner("change"); err != nil {
		return have, err
	}
	if err := asError(m.CheckGroup(ctx, spec)); err != nil {
		return have, err
	}
	resolved := have.Resolved
	if domains := spec.Domains(); len(domains) != len(resolved) || slices.ContainsFunc(domains, func(d string) bool { _, known := resolved[d]; return !known }) {
		var err error
		if resolved, err = m.LookUp(ctx, domains); err != nil {
			return have, err
		}
	}
	filter, err := m.RenderGroup(ctx, spec, resolved)
	if err != nil {
		return have, err
	}
	m.firewall.Lock()
	defer m.firewall.Unlock()
	list := egress.Believed(have.Rules, have.Digest)
	if have.Digest == "" {
		list = nil
	}
	old := have.Sets
	have.Resolved = resolved
	g, err := m.writeGroup(ctx, "change", have, filter, list)
	if err != nil {
		return g, err
	}
	for _, set := range old { // named by no rule any more
		if slices.ContainsFunc(filter.Sets, func(s egress.Set) bool { return s.Name == set.Name }) {
			continue
		}
		if err := m.removeSet(ctx, spec.Name, set.Name); err != nil {
			return g, err
		}
	}
	return g, nil
}

// writeGroup fills the sets, writes the rules, and trims the sets, so that what is
// allowed before and after is allowed throughout.
func (m *Manager) writeGroup(ctx context.Context, op string, have FirewallGroup, filter egress.Filter, list *egress.List) (FirewallGroup, error) {
	g := have
	fillings := make([]*egress.Filling, 0, len(filter.Sets))
	for _, set := range filter.Sets {
		f, err := egress.Fill(ctx, m.pve, pve.ClusterFirewall(), believedSet(op, set.Name), set)
		if err != nil {
			return g, groupError(op, g.Name, "fill its IP set "+set.Name, err)
		}
		fillings = append(fillings, f)
	}
	rules, err := egress.SyncRules(ctx, m.pve, pve.GroupFirewall(g.Name), list, filter.Rules)
	g.Rules, g.Digest = rules.Rules, rules.Digest
	if err != nil {
		return g, m.rulesError(op, "security group "+g.Name, err)
	}
	g.Sets = nil
	for _, f := range fillings {
		set, err := f.Trim(ctx)
		if err != nil {
			return g, groupError(op, g.Name, "trim an IP set", err)
		}
		g.Sets = append(g.Sets, set)
	}
	return g, nil
}

// believedSet is what a set holds as far as is known: nothing when it was just
// made. nil is read.
func believedSet(op, name string) *egress.Set {
	if op == "create" {
		return &egress.Set{Name: name}
	}
	return nil
}

// rulesError says of a conflict what it is.
func (m *Manager) rulesError(op, thing string, err error) error {
	e := &Error{Op: op, What: op + " the rules of " + thing, Err: err}
	var conflict *egress.ConflictError
	switch {
	case errors.As(err, &conflict):
		e.Kind, e.Remedy = ErrChangedOutside, "find out who else writes these rules; apply again when they have stopped"
	case pve.Means(err, pve.NoSuchObject):
		e.Kind = ErrGone
	case pve.Means(err, pve.Forbidden):
		e.Remedy = "firewall rules of the datacenter need Sys.Modify on /, of a node Sys.Modify on /nodes/<node>"
	}
	return e
}

func (m *Manager) removeSet(ctx context.Context, group, set string) error {
	err := m.pve.DeleteFirewallIPSet(ctx, pve.ClusterFirewall(), set, true)
	if err != nil && !pve.Means(err, pve.NoSuchObject) {
		return groupError("change", group, "remove its IP set "+set, err)
	}
	return nil
}

// DeleteGroup removes a group, its rules and its own sets, unless something refers
// to it: the server would leave dangling references, and the guests behind them
// with no rules but their policy.
func (m *Manager) DeleteGroup(ctx context.Context, name string) error {
	if err := m.requireOwner("delete"); err != nil {
		return err
	}
	g, err := m.ReadGroup(ctx, name)
	if errors.Is(err, ErrGone) {
		return m.removeSets(ctx, name)
	}
	if err != nil {
		return err
	}
	users, err := m.GroupUsers(ctx, name)
	if err != nil {
		return err
	}
	if len(users) > 0 {
		return groupInUse(name, users)
	}
	m.firewall.Lock()
	defer m.firewall.Unlock()
	if _, err := egress.SyncRules(ctx, m.pve, pve.GroupFirewall(name), egress.Believed(g.Rules, g.Digest), nil); err != nil && !pve.Means(err, pve.NoSuchObject) {
		return m.rulesError("delete", "security group "+name, err)
	}
	if err := m.pve.DeleteFirewallGroup(ctx, name); err != nil && !pve.Means(err, pve.NoSuchObject) {
		return groupError("delete", name, "remove it", err)
	}
	return m.removeSets(ctx, name)
}

// removeSets removes the group's sets, also those that no rule came to name.
func (m *Manager) removeSets(ctx context.Context, group string) error {
	sets, err := m.pve.FirewallIPSets(ctx, pve.ClusterFirewall())
	if err != nil {
		return groupError("delete", group, "find its IP sets", err)
	}
	for _, set := range sets {
		if !ofGroup(set.Name, group) || !strings.HasPrefix(set.Comment, m.setMark()) {
			continue
		}
		if err := m.removeSet(ctx, group, set.Name); err != nil {
			return err
		}
	}
	return nil
}

// LookUp finds the addresses of domains. A name that can't be looked up is an
// error: nothing is written then, and what was pinned before stays.
func (m *Manager) LookUp(ctx context.Context, domains []string) (map[string][]netip.Addr, error) {
	if len(domains) == 0 {
		return nil, nil
	}
	out := map[string][]netip.Addr{}
	for _, d := range domains {
		addresses, err := m.lookup(ctx, d)
		if err != nil {
			return nil, &Error{Op: "look up", What: "look up " + d, Err: err, Remedy: "the name stands in allow with resolve = \"apply\"; until it can be looked up nothing is changed"}
		}
		for i := range addresses {
			addresses[i] = addresses[i].Unmap()
		}
		slices.SortFunc(addresses, netip.Addr.Compare)
		out[d] = slices.Compact(addresses)
	}
	return out, nil
}
