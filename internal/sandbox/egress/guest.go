package egress

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// NIC is what the switches of a guest's firewall depend on.
type NIC struct {
	// Static says that every address family which is in use has a static
	// address, so that the server can filter by it.
	Static bool
	// DHCP says that the guest asks for an address of either family.
	DHCP bool
	// IPv6 says that the guest uses IPv6 at all (SLAAC, DHCP or static).
	IPv6 bool
	// Own are, where one family's address is static and the other's isn't, the
	// addresses that the guest may send from: the static one, and all of the other
	// family.
	Own []netip.Prefix
}

// filterSet is the server's name for the addresses that the first interface may
// send from, beside those that it knows by itself.
const filterSet = "ipfilter-net0"

// sources are the sets that a guest's firewall needs to filter by address where the
// server knows only one of its addresses.
func (n NIC) sources() []Set {
	if len(n.Own) == 0 {
		return nil
	}
	var own []netip.Prefix
	for _, p := range n.Own {
		own = append(own, halves(p)...)
	}
	return []Set{{Name: filterSet, Comment: "what the sandbox may send from", Entries: canonical(own)}}
}

// Options are the switches of a guest's firewall that a managed mode sets. The
// server's other options stay as they are.
type Options struct {
	Enable              bool
	PolicyIn, PolicyOut string
	MACFilter, IPFilter bool
	DHCP, NDP, RAdv     bool
}

// Guest is the whole firewall of one guest, as a managed mode wants it. Nothing
// else may be in it: rules that a template brought along are replaced.
type Guest struct {
	Options Options
	Filter

	// exposed are the rules of its port exposures, which are no part of a mode.
	exposed []Rule
}

// guestSets is the prefix of the names of sets in a guest's own firewall.
const guestSets = "sbx"

// mostInline is how many allowed networks stand in a guest's rules themselves,
// which a refresh reads anyway; more are in IP sets, which are changed entry by
// entry.
const mostInline = 64

// RenderGuest makes the whole firewall of a guest that has its own rules.
func RenderGuest(p Policy, nic NIC) (Guest, error) {
	networks := 0
	for _, a := range p.Allow {
		networks += max(1, len(p.Resolved[a.To]))
	}
	f, err := Render(p, Naming{Scope: GuestSets, Prefix: guestSets, Inline: networks <= mostInline})
	if err != nil {
		return Guest{}, err
	}
	f.Sets = append(f.Sets, nic.sources()...)
	slices.SortFunc(f.Sets, func(a, b Set) int { return cmp.Compare(a.Name, b.Name) })
	return Guest{Options: OptionsFor(nic), Filter: f}, nil
}

// GroupGuest makes the whole firewall of a guest that refers to a security group.
// Both policies are DROP whatever the group holds, so that one that vanishes
// closes the guest.
func GroupGuest(group string, nic NIC) Guest {
	return Guest{
		Options: OptionsFor(nic),
		Filter:  Filter{Sets: nic.sources(), Rules: []Rule{{Type: Group, Action: group, Enabled: true, Comment: "the sandbox's network mode"}}},
	}
}

// OptionsFor are the switches of every managed mode. Addresses are filtered where
// they are static, for the server knows only those; a guest never announces itself
// as a router.
func OptionsFor(nic NIC) Options {
	return Options{
		Enable: true, PolicyIn: Drop, PolicyOut: Drop,
		MACFilter: true, IPFilter: nic.Static || len(nic.Own) > 0,
		DHCP: nic.DHCP, NDP: nic.IPv6, RAdv: false,
	}
}

// optionsOf are the switches that the server holds, with its defaults where it has
// no value.
func optionsOf(o pve.FirewallOptions) Options {
	return Options{
		Enable:   value(o.Enable, false),
		PolicyIn: value(o.PolicyIn, Drop), PolicyOut: value(o.PolicyOut, Accept),
		MACFilter: value(o.MACFilter, true), IPFilter: value(o.IPFilter, false),
		DHCP: value(o.DHCP, false), NDP: value(o.NDP, true), RAdv: value(o.RAdv, false),
	}
}

func value[T any](p *T, fallback T) T {
	if p == nil {
		return fallback
	}
	return *p
}

// update are the switches as they are sent: all of them, so that a default of
// another version of the server changes nothing.
func (o Options) update() map[string]string {
	return map[string]string{
		"enable": pve.Bool(o.Enable), "policy_in": o.PolicyIn, "policy_out": o.PolicyOut,
		"macfilter": pve.Bool(o.MACFilter), "ipfilter": pve.Bool(o.IPFilter),
		"dhcp": pve.Bool(o.DHCP), "ndp": pve.Bool(o.NDP), "radv": pve.Bool(o.RAdv),
	}
}

// Differences says in words what of have isn't as want has it; nothing means that
// the wall stands. Sets count only where have was read with them.
func Differences(want, have Guest) []string {
	out := optionDifferences(want.Options, have.Options)
	out = append(out, RuleDifferences(want.Rules, have.Rules)...)
	if have.Sets == nil {
		return out
	}
	return append(out, setDifferences(want.Sets, have.Sets)...)
}

func optionDifferences(want, have Options) []string {
	var out []string
	w, h := want.update(), have.update()
	for _, name := range []string{"enable", "policy_in", "policy_out", "macfilter", "ipfilter", "dhcp", "ndp", "radv"} {
		if w[name] != h[name] {
			out = append(out, fmt.Sprintf("firewall option %s is %s, not %s", name, h[name], w[name]))
		}
	}
	return out
}

// RuleDifferences says in words how two lists differ.
func RuleDifferences(want, have []Rule) []string {
	want, have = normal(want), normal(have)
	if slices.Equal(want, have) {
		return nil
	}
	var out []string
	for _, r := range without(want, have) {
		out = append(out, fmt.Sprintf("rule missing: %s", r))
	}
	for _, r := range without(have, want) {
		out = append(out, fmt.Sprintf("rule not ours: %s", r))
	}
	if len(out) == 0 {
		out = append(out, "the rules are in another order")
	}
	return out
}

// without is what a has more often than b.
func without(a, b []Rule) []Rule {
	count := map[Rule]int{}
	for _, r := range b {
		count[r]++
	}
	var out []Rule
	for _, r := range a {
		if count[r]--; count[r] < 0 {
			out = append(out, r)
		}
	}
	return out
}

func setDifferences(want, have []Set) []string {
	var out []string
	held := map[string]Set{}
	for _, s := range have {
		held[s.Name] = s
	}
	for _, w := range want {
		h, ok := held[w.Name]
		delete(held, w.Name)
		switch {
		case !ok:
			out = append(out, fmt.Sprintf("IP set %s is missing", w.Name))
		case len(h.Foreign) > 0:
			out = append(out, fmt.Sprintf("IP set %s holds %v", w.Name, h.Foreign))
		case !slices.Equal(canonical(w.Entries), canonical(h.Entries)):
			add, remove := diffSet(w, h)
			out = append(out, fmt.Sprintf("IP set %s lacks %d networks and has %d too many", w.Name, len(add), len(remove)))
		}
	}
	for _, h := range have {
		if _, stray := held[h.Name]; stray {
			out = append(out, fmt.Sprintf("IP set %s is not ours", h.Name))
		}
	}
	return out
}
