package sandbox

import (
	"fmt"
	"slices"

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
		if !slices.Contains(base, line) {
			add("its firewall has %q, and had not", line)
		}
	}
	return changes
}
