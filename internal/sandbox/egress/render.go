package egress

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Render makes the rules and sets of a managed mode. It is pure: the same policy
// gives the same filter, so a plan can show it.
//
// The order is what makes it safe. What was denied by name, and the metadata
// services and nodes that an exception would touch, come before the exceptions;
// exceptions inside closed ranges before those ranges; all other exceptions after
// them, so that a wide one ("0.0.0.0/0") opens nothing inside.
func Render(p Policy, n Naming) (Filter, error) {
	if hard := hardProblems(p); len(hard) > 0 {
		return Filter{}, &PolicyError{Problems: hard}
	}
	r := &renderer{policy: p, naming: n}
	r.management()
	if p.Mode == Off {
		r.out(Rule{Action: Drop, Comment: "mode off: nothing out"})
		return r.filter(), nil
	}
	inside, outside := r.exceptions()
	r.dns()
	r.drop(r.first(inside), "denied before any exception")
	r.allow(inside)
	r.drop(slices.Concat(deniedPrefixes(), single(p.Nodes)), "private, link-local, tailnet, metadata, nodes")
	r.allow(outside)
	switch p.Mode {
	case Web:
		r.out(Rule{Action: Drop, Proto: "tcp", DPort: managementPorts, Comment: "management ports of nodes"})
		r.out(Rule{Action: Accept, Proto: "tcp", DPort: "80,443", Comment: "mode web"})
		r.out(Rule{Action: Drop, Comment: "mode web: nothing else out"})
	case NAT:
		r.out(Rule{Action: Drop, Proto: "tcp", DPort: managementPorts, Comment: "management ports of nodes"})
		r.out(Rule{Action: Accept, Comment: "mode nat: everything else out"})
	case Allowlist:
		r.out(Rule{Action: Drop, Comment: "mode allowlist: nothing else out"})
	}
	return r.filter(), nil
}

func hardProblems(p Policy) []Problem {
	hard := slices.DeleteFunc(Check(p), func(problem Problem) bool { return problem.Warning })
	for i, a := range p.Allow {
		if _, known := p.Resolved[a.To]; a.Resolve && !known {
			hard = append(hard, Problem{Attribute: "allow[" + strconv.Itoa(i) + "].to", Summary: a.To + " was not looked up", Detail: "Its addresses are needed to write the rules."})
		}
	}
	return hard
}

type renderer struct {
	policy Policy
	naming Naming
	rules  []Rule
	sets   map[string]*Set
}

func (r *renderer) filter() Filter {
	f := Filter{Rules: r.rules}
	for _, s := range r.sets {
		s.Entries = canonical(s.Entries)
		f.Sets = append(f.Sets, *s)
	}
	slices.SortFunc(f.Sets, func(a, b Set) int { return cmp.Compare(a.Name, b.Name) })
	return f
}

func (r *renderer) out(rule Rule) {
	rule.Type, rule.Enabled = Out, true
	r.rules = append(r.rules, rule)
}

func (r *renderer) management() {
	r.rules = append(r.rules, ManagementRules(r.policy.Management, r.policy.SSHPort)...)
}

// ManagementRules let SSH in from the management networks. port 0 means 22.
func ManagementRules(management []netip.Prefix, port int) []Rule {
	var out []Rule
	for _, source := range addressLists(management) {
		out = append(out, Rule{
			Type: In, Action: Accept, Enabled: true, Proto: "tcp", DPort: strconv.Itoa(cmp.Or(port, 22)), Source: source, Comment: "SSH from the management networks",
		})
	}
	return out
}

func (r *renderer) dns() {
	for _, dest := range addressLists(single(r.policy.Resolvers)) {
		r.out(Rule{Action: Accept, Macro: "DNS", Dest: dest, Comment: "DNS to the resolvers"})
	}
}

func (r *renderer) drop(networks []netip.Prefix, comment string) {
	for _, dest := range addressLists(networks) {
		r.out(Rule{Action: Drop, Dest: dest, Comment: comment})
	}
}

// exception is an allowed target: its networks, and what of them.
type exception struct {
	class
	networks []netip.Prefix
}

// class is what a rule can tell apart besides addresses.
type class struct{ protocol, ports string }

// exceptions are the policy's, those inside closed ranges apart from the others.
func (r *renderer) exceptions() (inside, outside []exception) {
	for _, a := range r.policy.Allow {
		c := class{a.Protocol, strings.ReplaceAll(a.Ports, " ", "")}
		if c.protocol == "" && c.ports != "" {
			c.protocol = "tcp"
		}
		networks := single(r.policy.Resolved[a.To])
		if !a.Resolve {
			n, err := parseNetwork(a.To)
			if err != nil {
				continue // Check has refused it
			}
			networks = []netip.Prefix{n}
		}
		for _, n := range networks {
			if _, closed := deniedBy(n); closed {
				inside = append(inside, exception{c, []netip.Prefix{n}})
			} else {
				outside = append(outside, exception{c, halves(n)})
			}
		}
	}
	return inside, outside
}

// halves splits a network of length 0 in two: the server takes no such entry in a
// set.
func halves(n netip.Prefix) []netip.Prefix {
	switch {
	case n.Bits() != 0:
		return []netip.Prefix{n}
	case n.Addr().Is4():
		return []netip.Prefix{prefix("0.0.0.0/1"), prefix("128.0.0.0/1")}
	}
	return []netip.Prefix{prefix("::/1"), prefix("8000::/1")}
}

// first are the networks that are dropped before the exceptions inside.
func (r *renderer) first(inside []exception) []netip.Prefix {
	out := slices.Clone(r.policy.Deny)
	for _, e := range inside {
		for _, n := range e.networks {
			out = append(out, metadata(n)...)
			for _, node := range single(r.policy.Nodes) {
				if n.Overlaps(node) {
					out = append(out, node)
				}
			}
		}
	}
	return out
}

// allow adds a rule and a set for each class of exceptions, in the order in which
// the classes are first named.
func (r *renderer) allow(list []exception) {
	if r.naming.Inline {
		r.allowInline(list)
		return
	}
	seen := map[string]bool{}
	for _, e := range list {
		_, closed := deniedBy(e.networks[0])
		name := r.setName(e.class, closed)
		if r.sets == nil {
			r.sets = map[string]*Set{}
		}
		if r.sets[name] == nil {
			r.sets[name] = &Set{Name: name, Comment: "allowed" + e.describe()}
		}
		r.sets[name].Entries = append(r.sets[name].Entries, e.networks...)
		if !seen[name] {
			seen[name] = true
			r.out(Rule{Action: Accept, Proto: e.protocol, DPort: e.ports, Dest: "+" + string(r.naming.Scope) + "/" + name, Comment: "allowed"})
		}
	}
}

// allowInline adds rules for each class that list its networks.
func (r *renderer) allowInline(list []exception) {
	var order []class
	networks := map[class][]netip.Prefix{}
	for _, e := range list {
		if networks[e.class] == nil {
			order = append(order, e.class)
		}
		networks[e.class] = append(networks[e.class], e.networks...)
	}
	for _, c := range order {
		for _, dest := range addressLists(networks[c]) {
			r.out(Rule{Action: Accept, Proto: c.protocol, DPort: c.ports, Dest: dest, Comment: "allowed"})
		}
	}
}

func (c class) describe() string {
	s := ""
	if c.protocol != "" {
		s += " " + c.protocol
	}
	if c.ports != "" {
		s += " " + c.ports
	}
	return s
}

// longestSuffix keeps the names of sets within the server's 64 characters, after
// a group's 18.
const longestSuffix = 24

// setName is the name of the set of a class: "agents-allow-tcp-443".
func (r *renderer) setName(c class, inside bool) string {
	kind := "allow"
	if inside {
		kind = "inside"
	}
	suffix := strings.NewReplacer(",", "_", ":", "-").Replace(strings.Join(nonEmpty(c.protocol, c.ports), "-"))
	if len(suffix) > longestSuffix {
		sum := sha256.Sum256([]byte(c.protocol + " " + c.ports))
		suffix = c.protocol + "-" + hex.EncodeToString(sum[:4])
	}
	return strings.Join(nonEmpty(r.naming.Prefix, kind, suffix), "-")
}

func nonEmpty(parts ...string) []string {
	return slices.DeleteFunc(parts, func(s string) bool { return s == "" })
}
