package egress

import (
	"net/netip"
	"slices"
	"strconv"
	"strings"
)

// Connection is a new connection that a list of rules decides about.
type Connection struct {
	// Direction is In or Out, as the guest sees it.
	Direction string
	From, To  netip.Addr
	Proto     string
	Port      int
	// Iface is the interface that it passes, "" where that isn't known.
	Iface string
}

// answer is whether something matches: no, yes, or not to be told from here.
type answer int

const (
	no answer = iota
	yes
	unsure
)

func both(a, b answer) answer {
	switch {
	case a == no || b == no:
		return no
	case a == unsure || b == unsure:
		return unsure
	}
	return yes
}

// Permits says whether c is let through for certain, and by which rule; the policy
// decides where none matches, and then the rule is empty. What can't be told from
// here (an alias, a set that isn't in the filter, an unknown macro, a reference to
// a group) counts against c: such a rule lets nothing in, and drops what it may
// match.
func (f Filter) Permits(c Connection, policy string) (bool, Rule) {
	for _, r := range f.Rules {
		if !r.Enabled {
			continue
		}
		switch f.matches(r, c) {
		case yes:
			return r.Action == Accept, r
		case unsure:
			if r.Action != Accept {
				return false, r
			}
		case no:
		}
	}
	return policy == Accept, Rule{}
}

func (f Filter) matches(r Rule, c Connection) answer {
	if r.Type == Group {
		return unsure
	}
	if r.Type != c.Direction {
		return no
	}
	a := both(f.holds(r.Source, c.From), f.holds(r.Dest, c.To))
	a = both(a, matchesService(r, c))
	switch r.Iface {
	case "", c.Iface:
	default:
		if c.Iface != "" {
			return no
		}
		a = both(a, unsure)
	}
	return a
}

// macros that the evaluation knows: protocol and port.
var macros = map[string][]struct {
	proto string
	port  int
}{
	"DNS":  {{"udp", 53}, {"tcp", 53}},
	"SSH":  {{"tcp", 22}},
	"HTTP": {{"tcp", 80}}, "HTTPS": {{"tcp", 443}},
	"Ping": {{"icmp", 0}}, "DHCPfwd": {{"udp", 67}}, "DHCPv6": {{"udp", 546}}, "NTP": {{"udp", 123}},
}

func matchesService(r Rule, c Connection) answer {
	if r.Macro != "" {
		services, known := macros[r.Macro]
		if !known {
			return unsure
		}
		for _, s := range services {
			if s.proto == c.Proto && s.port == c.Port {
				return yes
			}
		}
		return no
	}
	if r.Proto != "" && r.Proto != c.Proto {
		if _, err := strconv.Atoi(r.Proto); err == nil {
			return unsure
		}
		return no
	}
	a := holdsPort(r.DPort, c.Port)
	if r.SPort != "" || r.ICMPType != "" {
		a = both(a, unsure)
	}
	return a
}

func holdsPort(list string, port int) answer {
	if list == "" {
		return yes
	}
	found := no
	for _, item := range strings.Split(list, ",") {
		low, high, isRange := strings.Cut(item, ":")
		if !isRange {
			high = low
		}
		first, err1 := strconv.Atoi(low)
		last, err2 := strconv.Atoi(high)
		switch {
		case err1 != nil || err2 != nil: // a service's name
			found = unsure
		case first <= port && port <= last:
			return yes
		}
	}
	return found
}

// holds says whether a rule's source or dest holds an address.
func (f Filter) holds(list string, a netip.Addr) answer {
	if list == "" {
		return yes
	}
	if !a.IsValid() {
		return unsure
	}
	a = a.Unmap()
	found := no
	for _, item := range strings.Split(list, ",") {
		if name, isSet := strings.CutPrefix(item, "+"); isSet {
			switch f.setHolds(name, a) {
			case yes:
				return yes
			case unsure:
				found = unsure
			case no:
			}
			continue
		}
		low, high, isRange := strings.Cut(item, "-")
		if first, err := netip.ParseAddr(low); err == nil && isRange {
			last, err := netip.ParseAddr(high)
			if err == nil && first.Compare(a) <= 0 && a.Compare(last) <= 0 && first.BitLen() == a.BitLen() {
				return yes
			}
			continue
		}
		n, err := parseNetwork(item)
		switch {
		case err != nil:
			found = unsure // an alias
		case n.Contains(a):
			return yes
		}
	}
	return found
}

func (f Filter) setHolds(name string, a netip.Addr) answer {
	_, bare, scoped := strings.Cut(name, "/")
	if !scoped {
		bare = name
	}
	for _, s := range f.Sets {
		if s.Name != bare {
			continue
		}
		for _, e := range s.Entries {
			if e.Contains(a) {
				return yes
			}
		}
		return no
	}
	return unsure
}

// DatacenterSets are the names of the datacenter's sets that the filter's rules
// name, each once.
func (f Filter) DatacenterSets() []string { return f.namedSets(DatacenterSets) }

// namedSets are the names of sets of a scope; one without a scope counts for each.
func (f Filter) namedSets(scope SetScope) []string {
	var names []string
	for _, r := range f.Rules {
		for _, list := range []string{r.Source, r.Dest} {
			for _, item := range strings.Split(list, ",") {
				name, isSet := strings.CutPrefix(item, "+")
				in, bare, scoped := strings.Cut(name, "/")
				if !scoped {
					in, bare = string(scope), name
				}
				if isSet && in == string(scope) && !slices.Contains(names, bare) {
					names = append(names, bare)
				}
			}
		}
	}
	return names
}
