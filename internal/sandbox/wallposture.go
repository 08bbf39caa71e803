package sandbox

import (
	"context"
	"crypto/sha256"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// wallLines are what a container's firewall is, as lines that can be compared:
// every switch, the interface's flag and link, and the rules in their order.
func wallLines(g egress.Guest, n NetworkState) []string {
	o := g.Options
	lines := []string{
		"enable=" + pve.Bool(o.Enable), "policy_in=" + o.PolicyIn, "policy_out=" + o.PolicyOut,
		"macfilter=" + pve.Bool(o.MACFilter), "ipfilter=" + pve.Bool(o.IPFilter),
		"dhcp=" + pve.Bool(o.DHCP), "ndp=" + pve.Bool(o.NDP), "radv=" + pve.Bool(o.RAdv),
		"net0.firewall=" + pve.Bool(n.Firewall), "net0.link_down=" + pve.Bool(n.LinkDown),
	}
	for i, r := range g.Rules {
		lines = append(lines, fmt.Sprintf("rule %d: %s", i, r))
	}
	for _, s := range g.Sets { // they are long: what counts is whether they are still the same
		members := append(prefixTexts(s.Entries), s.Foreign...)
		sum := sha256.Sum256([]byte(strings.Join(members, " ")))
		lines = append(lines, fmt.Sprintf("IP set %s: %d networks, sha256 %x", s.Name, len(members), sum[:8]))
	}
	return lines
}

// diffWall lists how a firewall deviates from what the last apply left. Where
// either wasn't looked at, nothing is known.
func diffWall(now, base []string) []PostureChange {
	if now == nil || base == nil || slices.Equal(now, base) {
		return nil
	}
	var changes []PostureChange
	add := func(format string, line string) {
		changes = append(changes, PostureChange{Part: "firewall", What: fmt.Sprintf(format, line), Repairable: true})
	}
	for _, line := range base {
		if !slices.Contains(now, line) {
			add("its firewall had %q, and no longer has", line)
		}
	}
	for _, line := range now {
		if domain, ok := strings.CutPrefix(line, movedPrefix); ok {
			changes = append(changes, PostureChange{Part: "firewall", What: "the name " + domain + ", which its firewall doesn't let out", Repairable: true})
			continue
		}
		if !slices.Contains(base, line) {
			add("its firewall has %q, and had not", line)
		}
	}
	return changes
}

func prefixTexts(list []netip.Prefix) []string {
	out := make([]string, 0, len(list))
	for _, p := range list {
		out = append(out, p.String())
	}
	return out
}

// movedPrefix begins a line of a posture about a domain whose addresses are others
// by now than those that the firewall was written with.
const movedPrefix = "moved: "

// HasMoved says whether a firewall's lines say that a domain has moved.
func HasMoved(firewall []string) bool {
	return slices.ContainsFunc(firewall, func(line string) bool { return strings.HasPrefix(line, movedPrefix) })
}

// moved looks domains up again and says which have an address that isn't pinned.
// One that can't be looked up now has not moved: what is pinned stays.
func (m *Manager) moved(ctx context.Context, pinned map[string][]netip.Addr) []string {
	var lines []string
	for _, domain := range slices.Sorted(maps.Keys(pinned)) {
		now, err := m.LookUp(ctx, []string{domain})
		if err != nil {
			m.log.WarnContext(ctx, "a domain whose addresses are pinned can't be looked up", "domain", domain, "cause", err)
			continue
		}
		for _, a := range now[domain] {
			if !slices.Contains(pinned[domain], a) {
				lines = append(lines, fmt.Sprintf("%s%s has the address %s by now", movedPrefix, domain, a))
				break
			}
		}
	}
	return lines
}

// pin gives the addresses of the domains in Allow: those that are pinned, others
// as they are looked up now.
func (m *Manager) pin(ctx context.Context, n Network) (map[string][]netip.Addr, error) {
	if n.FirewallGroup != "" {
		return nil, nil
	}
	out := map[string][]netip.Addr{}
	var ask []string
	for _, a := range n.Allow {
		if !a.Resolve {
			continue
		}
		if addresses, ok := n.Pinned[a.To]; ok {
			out[a.To] = addresses
		} else {
			ask = append(ask, a.To)
		}
	}
	found, err := m.LookUp(ctx, ask)
	maps.Copy(out, found)
	return out, err
}
