package egress

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// PolicyError is a policy that can't be rendered.
type PolicyError struct{ Problems []Problem }

func (e *PolicyError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, fmt.Sprintf("%s: %s. %s", p.Attribute, p.Summary, p.Detail))
	}
	return strings.Join(lines, "\n")
}

// Check reports what in p can't be done. Render refuses what it reports without
// Warning.
func Check(p Policy) []Problem {
	c := &checker{}
	if !p.Mode.Managed() {
		c.add("mode", fmt.Sprintf("%q has no rules", p.Mode), "The managed modes are off, web, nat and allowlist.")
		return c.problems
	}
	c.management(p)
	c.resolvers(p)
	c.allow(p)
	for i, d := range p.Deny {
		if d != d.Masked() {
			c.add(fmt.Sprintf("deny[%d]", i), fmt.Sprintf("%s has bits set behind its length", d), fmt.Sprintf("The network is %s.", d.Masked()))
		}
	}
	return c.problems
}

type checker struct{ problems []Problem }

func (c *checker) add(attribute, summary, detail string) {
	c.problems = append(c.problems, Problem{Attribute: attribute, Summary: summary, Detail: detail})
}

func (c *checker) warn(attribute, summary, detail string) {
	c.problems = append(c.problems, Problem{Attribute: attribute, Summary: summary, Detail: detail, Warning: true})
}

func (c *checker) management(p Policy) {
	if len(p.Management) == 0 {
		c.add("mode", "Nobody could log in",
			"Every mode lets SSH in from the management networks only, and there is none: the address that the sandboxes see us come from isn't known. Set the provider's management_cidrs.")
	}
	for _, m := range p.Management {
		if m.Bits() == 0 {
			c.warn("mode", "Everybody may try to log in", fmt.Sprintf("The management networks hold %s: SSH of the sandboxes is open to whoever reaches them.", m))
		}
	}
}

func (c *checker) resolvers(p Policy) {
	for i, r := range p.Resolvers {
		if r.IsUnspecified() || r.IsMulticast() || r.IsLoopback() {
			c.add(fmt.Sprintf("resolvers[%d]", i), fmt.Sprintf("%s is no DNS server's address", r), "A sandbox can't reach it. Give the address of the server as the sandbox sees it.")
		}
	}
	if len(p.Resolvers) > 0 {
		if p.Mode == Off {
			c.warn("resolvers", "The mode lets no DNS out", `With mode "off" nothing leaves the sandbox, so resolvers change nothing.`)
		}
		return
	}
	if p.Mode == Web || p.Mode == Allowlist {
		c.warn("resolvers", "No name can be looked up", fmt.Sprintf("Mode %q lets DNS out to the resolvers only, and none is given.", p.Mode))
	}
}

func (c *checker) allow(p Policy) {
	if p.Mode == Off && len(p.Allow) > 0 {
		c.add("allow", "The mode lets nothing out", `With mode "off" there are no exceptions; mode "allowlist" lets out what is allowed and nothing else.`)
		return
	}
	if p.Mode == Allowlist && len(p.Allow) == 0 {
		c.warn("allow", "Nothing is allowed", `With mode "allowlist" only DNS leaves the sandbox until something is allowed.`)
	}
	for i, a := range p.Allow {
		at := fmt.Sprintf("allow[%d]", i)
		c.protocol(at, a)
		networks, ok := c.target(at+".to", a, p.Resolved)
		if !ok {
			continue
		}
		for _, n := range networks {
			c.closed(at+".to", a, n, p.Nodes)
		}
	}
}

// protocol checks protocol and ports.
func (c *checker) protocol(at string, a Allow) {
	if a.Protocol != "" && !slices.Contains(Protocols(), a.Protocol) {
		c.add(at+".protocol", fmt.Sprintf("%q is no protocol that can be allowed", a.Protocol), "It is one of "+strings.Join(Protocols(), ", ")+".")
		return
	}
	if a.Ports == "" {
		return
	}
	if a.Protocol != "" && !hasPorts(a.Protocol) {
		c.add(at+".ports", "The protocol has no ports", fmt.Sprintf("%s is allowed as a whole or not at all.", a.Protocol))
		return
	}
	if err := CheckPorts(a.Ports); err != nil {
		c.add(at+".ports", "Not a list of ports", err.Error()+".")
	}
}

// target finds what an exception names.
func (c *checker) target(at string, a Allow, resolved map[string][]netip.Addr) ([]netip.Prefix, bool) {
	n, err := parseNetwork(a.To)
	switch {
	case err == nil && a.Resolve:
		c.add(at, "There is nothing to look up", fmt.Sprintf(`%s is an address: leave resolve out.`, a.To))
	case err == nil && n != n.Masked():
		c.add(at, fmt.Sprintf("%s has bits set behind its length", a.To), fmt.Sprintf("The network is %s; the address alone is %s.", n.Masked(), n.Addr()))
	case err == nil:
		return []netip.Prefix{n}, true
	case !domainName.MatchString(a.To):
		c.add(at, fmt.Sprintf("%q is no network, address or domain", a.To), "Give CIDR form such as 203.0.113.0/24, an address, or a domain with resolve = \"apply\". Proxmox VE filters packets, so there are no wildcards.")
	case !a.Resolve:
		c.add(at, fmt.Sprintf("%s is a name", a.To), "Proxmox VE filters by addresses, not by names. With resolve = \"apply\" the name is looked up at apply, and the addresses that it has then are allowed until the next apply.")
	default:
		addresses, known := resolved[a.To]
		if !known {
			return nil, false // looked up later
		}
		if len(addresses) == 0 {
			c.add(at, fmt.Sprintf("%s has no address", a.To), "The name exists but has neither an A nor an AAAA record.")
			return nil, false
		}
		for _, addr := range single(addresses) {
			if r, closed := deniedBy(addr); closed {
				c.add(at, fmt.Sprintf("%s leads inside", a.To), fmt.Sprintf("Its address %s is in %s (%s). Whoever writes that name's records would open it; allow the address itself if it is meant.", addr.Addr(), r.Prefix, r.Kind))
				return nil, false
			}
		}
		return single(addresses), true
	}
	return nil, false
}

// closed refuses exceptions for what no exception opens.
func (c *checker) closed(at string, a Allow, n netip.Prefix, nodes []netip.Addr) {
	for _, m := range metadata(n) {
		if m.Bits() <= n.Bits() {
			c.add(at, fmt.Sprintf("%s is a metadata service", a.To), "It hands the machine's own credentials to whoever asks, so no mode opens it.")
			return
		}
	}
	for _, node := range nodes {
		if n.IsSingleIP() && n.Addr() == node.Unmap() {
			c.add(at, fmt.Sprintf("%s is an address of a node", a.To), "No mode opens the cluster's own addresses. A service that sandboxes need on the node is let in by a sandbox_node_guard's allow.")
			return
		}
	}
}

var domainName = regexp.MustCompile(`^(?i:[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?\.)+(?i:[a-z](?:[a-z0-9-]{0,61}[a-z0-9])?)\.?$`)

// Protocols are the protocols that rules of a mode may name.
func Protocols() []string {
	return []string{"tcp", "udp", "icmp", "ipv6-icmp", "sctp", "dccp", "udplite", "esp", "ah", "gre"}
}

func hasPorts(protocol string) bool {
	switch protocol {
	case "tcp", "udp", "sctp", "dccp", "udplite":
		return true
	}
	return false
}

// mostPorts is how many ports one rule may list, a range counting twice: the limit
// of the kernel's multiport match.
const mostPorts = 15

// CheckPorts says what is wrong with a list of ports such as "80,443,8000:8100".
func CheckPorts(list string) error {
	slots := 0
	for _, item := range strings.Split(list, ",") {
		item = strings.TrimSpace(item)
		low, high, isRange := strings.Cut(item, ":")
		if strings.Contains(item, "-") {
			return fmt.Errorf("%q: a range of ports is written with a colon, as in 8000:8100", item)
		}
		first, err := port(low)
		if err != nil {
			return err
		}
		slots++
		if !isRange {
			continue
		}
		last, err := port(high)
		if err != nil {
			return err
		}
		if first > last {
			return fmt.Errorf("%q runs backwards", item)
		}
		slots++
	}
	if slots > mostPorts {
		return fmt.Errorf("it has %d ports, where a range counts as two; a rule takes %d: make two entries of it", slots, mostPorts)
	}
	return nil
}

func port(s string) (int, error) {
	n, err := strconv.Atoi(s)
	if err != nil || n < 0 || n > 65535 {
		return 0, fmt.Errorf("%q is no port", s)
	}
	return n, nil
}
