package egress

import (
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

var (
	macroName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
	setName   = regexp.MustCompile(`^\+(?:(?:dc|guest)/)?[A-Za-z][A-Za-z0-9_-]+$`)
	aliasName = regexp.MustCompile(`^(?:(?:dc|guest)/)?[A-Za-z][A-Za-z0-9_-]+$`)
	portName  = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]*$`)
)

// CheckRule says what the server would refuse in a rule, or take in another sense
// than it was meant. Attributes are those of a rule in the public interface:
// direction, action, protocol, macro, from, to, ports, comment.
func CheckRule(r Rule) []Problem {
	c := &checker{}
	if r.Type != In && r.Type != Out {
		c.add("direction", fmt.Sprintf("%q is no direction", r.Type), `It is "in" or "out", as the guest sees it.`)
	}
	if !slices.Contains([]string{Accept, Drop, Reject}, r.Action) {
		c.add("action", fmt.Sprintf("%q is no action", r.Action), "It is ACCEPT, DROP or REJECT, in capitals.")
	}
	if r.Macro != "" && !macroName.MatchString(r.Macro) {
		c.add("macro", fmt.Sprintf("%q is no macro's name", r.Macro), "Macros are listed by pvesh get /cluster/firewall/macros; DNS and SSH are two.")
	}
	if r.Macro != "" && (r.Proto != "" || r.DPort != "") {
		c.add("macro", "A macro says protocol and ports itself", "Take protocol and ports out, or the macro.")
	}
	c.rulePorts(r)
	c.addresses("from", r.Source)
	c.addresses("to", r.Dest)
	if from, to := version(r.Source), version(r.Dest); from != 0 && to != 0 && from != to {
		c.add("to", "IPv4 and IPv6 in one rule", "No packet has an address of each. Make two rules of it.")
	}
	if strings.Contains(strings.TrimSpace(r.Comment), "\n") {
		c.add("comment", "It has several lines", "Proxmox VE keeps the first one only.")
	}
	return c.problems
}

func (c *checker) rulePorts(r Rule) {
	if r.DPort == "" {
		return
	}
	switch {
	case r.Proto == "":
		c.add("ports", "Ports without a protocol", `Ports need protocol = "tcp" or "udp".`)
		return
	case !hasPorts(r.Proto):
		if _, err := strconv.Atoi(r.Proto); err != nil {
			c.add("ports", fmt.Sprintf("%s has no ports", r.Proto), "Take ports out.")
			return
		}
	}
	var numbers []string
	for _, item := range strings.Split(r.DPort, ",") {
		if !portName.MatchString(strings.TrimSpace(item)) { // a service's name is the server's to know
			numbers = append(numbers, item)
		}
	}
	if len(numbers) > 0 {
		if err := CheckPorts(strings.Join(numbers, ",")); err != nil {
			c.add("ports", "Not a list of ports", err.Error()+".")
		}
	}
}

// addresses checks the value of source or dest.
func (c *checker) addresses(at, list string) {
	if list == "" {
		return
	}
	if len(list) > longestList {
		c.add(at, "The list is too long", fmt.Sprintf("Proxmox VE takes %d characters; make two rules of it, or an IP set.", longestList))
		return
	}
	seen := 0
	items := strings.Split(list, ",")
	for _, item := range items {
		item = strings.TrimSpace(item)
		switch low, high, isRange := strings.Cut(item, "-"); {
		case strings.HasPrefix(item, "+"):
			if !setName.MatchString(item) {
				c.add(at, fmt.Sprintf("%q is no IP set", item), "It is written +name, +dc/name or +guest/name.")
			} else if len(items) > 1 {
				c.add(at, "An IP set in a list", "Proxmox VE takes an IP set alone only. Make two rules of it.")
			}
		case isRange && isAddress(low) && isAddress(high):
			if len(items) > 1 {
				c.add(at, "A range in a list", "Proxmox VE takes a range alone only. Make two rules of it.")
			}
		case aliasName.MatchString(item) && !isAddress(item):
			// An alias is the server's to know.
		default:
			seen = c.network(at, item, seen)
		}
	}
}

func (c *checker) network(at, item string, seen int) int {
	n, err := parseNetwork(item)
	if err != nil {
		c.add(at, fmt.Sprintf("%q is no address or network", item), "Give CIDR form, an address, a range a-b, an IP set +name, or an alias.")
		return seen
	}
	if n != n.Masked() {
		c.add(at, fmt.Sprintf("%s has bits set behind its length", item), fmt.Sprintf("The network is %s; the address alone is %s.", n.Masked(), n.Addr()))
	}
	family := 4
	if n.Addr().Is6() {
		family = 6
	}
	if seen != 0 && seen != family {
		c.add(at, "IPv4 and IPv6 in one list", "Proxmox VE takes one of them per rule. Make two rules of it.")
	}
	return family
}

func isAddress(s string) bool {
	_, err := netip.ParseAddr(s)
	return err == nil
}

// version is the IP version of a list of addresses, 0 where it says none.
func version(list string) int { return Rule{Source: list}.version() }
