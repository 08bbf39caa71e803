package egress

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Fresh is what to hand to SyncGuest for a guest whose firewall is believed to be
// empty, such as a new clone of a template without one: it saves reading it first.
// What is there all the same shows when it is read back, and is replaced.
func Fresh() *Guest {
	return &Guest{Options: Options{PolicyIn: Drop, PolicyOut: Accept, MACFilter: true, NDP: true}}
}

// ReadGuest reads a guest's switches and rules: 2 requests. sets reads its IP sets
// too, which costs one for their list and one for each.
func ReadGuest(ctx context.Context, api API, node string, vmid int, sets bool) (Guest, error) {
	g, _, err := readGuest(ctx, api, pve.LXCFirewall(node, vmid), vmid, sets)
	return g, err
}

func readGuest(ctx context.Context, api API, scope pve.FirewallScope, vmid int, sets bool) (Guest, List, error) {
	o, err := api.FirewallOptions(ctx, scope)
	if err != nil {
		return Guest{}, List{}, err
	}
	l, err := ReadRules(ctx, api, scope)
	if err != nil {
		return Guest{}, List{}, err
	}
	g := Guest{Options: optionsOf(o)}
	g.Rules, g.exposed = SplitExposed(l.Rules, vmid)
	if sets {
		g.Sets, err = readSets(ctx, api, scope)
	}
	return g, l, err
}

// ReadNamedSets reads the IP sets of a guest's own that its rules name: one request
// for each. own adds the set of the addresses that it may send from (NIC.Own). One
// that is gone is left out.
func ReadNamedSets(ctx context.Context, api API, node string, vmid int, own bool, g *Guest) error {
	names := g.namedSets(GuestSets)
	if own {
		names = append(names, filterSet)
	}
	for _, name := range names {
		s, err := ReadSet(ctx, api, pve.LXCFirewall(node, vmid), name)
		switch {
		case pve.Means(err, pve.NoSuchObject):
		case err != nil:
			return err
		default:
			g.Sets = append(g.Sets, s)
		}
	}
	slices.SortFunc(g.Sets, func(a, b Set) int { return cmp.Compare(a.Name, b.Name) })
	return nil
}

// readSets is never nil: a guest without sets has been read too.
func readSets(ctx context.Context, api API, scope pve.FirewallScope) ([]Set, error) {
	out := []Set{}
	list, err := api.FirewallIPSets(ctx, scope)
	if err != nil {
		return nil, err
	}
	for _, entry := range list {
		s, err := ReadSet(ctx, api, scope, entry.Name)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}

// IncompleteError says that a guest's firewall isn't what was written.
type IncompleteError struct {
	VMID        int
	Differences []string
}

func (e *IncompleteError) Error() string {
	return fmt.Sprintf("the firewall of guest %d isn't what was written: %s", e.VMID, strings.Join(e.Differences, "; "))
}

// SyncGuest brings a guest's firewall to want and reads it back. have is what it
// is believed to hold, see Fresh; nil reads it first. What else is in it (rules
// and sets that a template brought along) is replaced.
//
// The switches come first, for with them both policies are DROP: from then on each
// step opens something or nothing. Sets are filled before the rules that name them
// are written, and emptied after. It returns what the server holds and whether
// anything was written: then the server's loop has to run before it counts, also
// where the error isn't nil.
func SyncGuest(ctx context.Context, api API, node string, vmid int, have *Guest, want Guest) (got Guest, written bool, err error) {
	scope := pve.LXCFirewall(node, vmid)
	var list *List
	if have == nil {
		g, l, err := readGuest(ctx, api, scope, vmid, true)
		if err != nil {
			return Guest{}, false, err
		}
		have, list = &g, &l
		if len(Differences(want, g)) == 0 {
			return g, false, nil
		}
	} else {
		list = Believed(slices.Concat(have.exposed, have.Rules), "")
		list.Digest = list.predicted()
	}
	if have.Options != want.Options {
		written = true
		if err := api.UpdateFirewallOptions(ctx, scope, pve.LXCUpdate{Set: want.Options.update()}); err != nil {
			return *have, written, err
		}
	}
	fillings := make([]*Filling, 0, len(want.Sets))
	for _, s := range want.Sets {
		f, err := Fill(ctx, api, scope, have.set(s.Name), s)
		written = written || f.written > 0
		if err != nil {
			return *have, written, err
		}
		fillings = append(fillings, f)
	}
	written = written || len(RuleDifferences(want.Rules, have.Rules)) > 0
	rules, err := SyncPart(ctx, api, scope, list, func(have []Rule) []Rule {
		_, exposed := SplitExposed(have, vmid)
		return slices.Concat(exposed, normal(want.Rules))
	})
	if err != nil {
		return *have, written, err
	}
	got.Rules, got.exposed = SplitExposed(rules.Rules, vmid)
	for _, f := range fillings {
		s, err := f.Trim(ctx)
		written = written || f.written > 0
		if err != nil {
			return got, written, err
		}
		got.Sets = append(got.Sets, s)
	}
	removed, err := removeStrays(ctx, api, scope, want.Sets)
	written = written || removed
	if err != nil {
		return got, written, err
	}
	options, err := api.FirewallOptions(ctx, scope)
	if err != nil {
		return got, written, err
	}
	got.Options = optionsOf(options)
	if differences := Differences(want, got); len(differences) > 0 {
		return got, written, &IncompleteError{VMID: vmid, Differences: differences}
	}
	return got, written, nil
}

// set is what the guest is believed to hold of a set, nil for nothing known.
func (g Guest) set(name string) *Set {
	for i := range g.Sets {
		if g.Sets[i].Name == name {
			return &g.Sets[i]
		}
	}
	return nil
}

// removeStrays removes the sets that aren't wanted. One that a template brought
// along isn't harmless: entries of "ipfilter-net0" let the guest speak with other
// addresses than its own.
func removeStrays(ctx context.Context, api API, scope pve.FirewallScope, want []Set) (removed bool, err error) {
	list, err := api.FirewallIPSets(ctx, scope)
	if err != nil {
		return false, err
	}
	wanted := map[string]bool{}
	for _, s := range want {
		wanted[s.Name] = true
	}
	for _, s := range list {
		if wanted[s.Name] {
			continue
		}
		if err := api.DeleteFirewallIPSet(ctx, scope, s.Name, true); err != nil && !pve.Means(err, pve.NoSuchObject) {
			return removed, fmt.Errorf("remove the IP set %s: %w", s.Name, err)
		}
		removed = true
	}
	return removed, nil
}
