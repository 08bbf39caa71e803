package egress

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// A port exposure leads from the node into a guest, past a wall that lets nobody but the management in. Its rule stands
// among the guest's own, above the mode's, and is no part of the mode: it comes and goes with the exposure.

// exposedMark ends the comment of an exposure's rule, after the exposure's name.
const exposedMark = ": exposed on its node"

// ExposedRule lets a guest's node, as source, reach one of its ports. The name is the exposure's, "sbx-100012-8080".
func ExposedRule(name string, source netip.Addr, port int) Rule {
	return Rule{Type: In, Action: Accept, Enabled: true, Proto: "tcp", Source: source.String(), DPort: strconv.Itoa(port), Comment: name + exposedMark}.Normal()
}

// exposedFor says whether a rule is that of an exposure of this guest: exactly of the form that ExposedRule gives it.
// Whatever else calls itself one is a stranger in the guest's firewall, and so is one that a copied guest brought along.
func exposedFor(r Rule, vmid int) bool {
	source, err := netip.ParseAddr(r.Source)
	port, portErr := strconv.Atoi(r.DPort)
	return err == nil && portErr == nil && r == ExposedRule(fmt.Sprintf("sbx-%d-%d", vmid, port), source, port)
}

// SplitExposed takes the rules of a guest's exposures out of its list.
func SplitExposed(rules []Rule, vmid int) (own, exposed []Rule) {
	for _, r := range rules {
		if exposedFor(r, vmid) {
			exposed = append(exposed, r)
		} else {
			own = append(own, r)
		}
	}
	return own, exposed
}

// Expose is a guest's list with the rule of an exposure, on top, and without another of the same name.
func Expose(rules []Rule, r Rule) []Rule {
	return slices.Insert(Unexpose(rules, strings.TrimSuffix(r.Comment, exposedMark)), 0, r)
}

// Unexpose is a guest's list without the rule of an exposure.
func Unexpose(rules []Rule, name string) []Rule {
	return slices.DeleteFunc(slices.Clone(rules), func(r Rule) bool { return r.Comment == name+exposedMark })
}
