package nftrules

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// inline is how many spans a rule may name itself; more become a set, which rules share.
const inline = 4

// sets are the sets of addresses of one table.
type sets struct {
	names map[string]string // by content
	order []string          // contents
}

func newSets() *sets { return &sets{names: map[string]string{}} }

// expressions are the addresses of IPv4 and IPv6 as nft writes them; empty for none of that version.
func (s *sets) expressions(a *server.FirewallAddresses) (four, six string) {
	if a == nil {
		return "", ""
	}
	return s.expression(spans(a, true), "ipv4_addr"), s.expression(spans(a, false), "ipv6_addr")
}

func (s *sets) expression(all []string, kind string) string {
	if len(all) == 0 {
		return ""
	}
	list := strings.Join(all, ", ")
	if len(all) <= inline {
		return "{ " + list + " }"
	}
	content := fmt.Sprintf("type %s; flags interval; elements = { %s }", kind, list)
	name := s.names[content]
	if name == "" {
		name = fmt.Sprintf("s%d", len(s.order)+1)
		s.names[content] = name
		s.order = append(s.order, content)
	}
	return "@" + name
}

func (s *sets) text() string {
	var b strings.Builder
	for _, content := range s.order {
		fmt.Fprintf(&b, "\tset %s { %s }\n", s.names[content], content)
	}
	return b.String()
}

// spans are the addresses of one IP version that a set holds, as spans that don't touch each other. In a set the narrowest
// entry that fits an address decides, so the bounds of all entries cut the addresses into parts that are in or out as a
// whole.
func spans(a *server.FirewallAddresses, four bool) []string {
	type part struct{ low, high netip.Addr }
	var starts []netip.Addr
	for _, s := range a.Spans {
		if s.Low.Is4() != four {
			continue
		}
		starts = append(starts, s.Low)
		if after := s.High.Next(); after.IsValid() {
			starts = append(starts, after)
		}
	}
	slices.SortFunc(starts, netip.Addr.Compare)
	starts = slices.Compact(starts)
	var parts []part
	for i, low := range starts {
		if !a.Contains(low) {
			continue
		}
		high := last(four)
		if i+1 < len(starts) {
			high = starts[i+1].Prev()
		}
		if n := len(parts); n > 0 && parts[n-1].high.Next() == low {
			parts[n-1].high = high
		} else {
			parts = append(parts, part{low, high})
		}
	}
	out := make([]string, 0, len(parts))
	for _, p := range parts {
		if p.low == p.high {
			out = append(out, p.low.String())
		} else {
			out = append(out, p.low.String()+"-"+p.high.String())
		}
	}
	return out
}

// last is the highest address of a version.
func last(four bool) netip.Addr {
	if four {
		return netip.AddrFrom4([4]byte{255, 255, 255, 255})
	}
	var all [16]byte
	for i := range all {
		all[i] = 0xff
	}
	return netip.AddrFrom16(all)
}

// mergePorts joins spans of ports that overlap, which nft refuses in one set.
func mergePorts(ports []server.FirewallPorts) []server.FirewallPorts {
	sorted := slices.SortedFunc(slices.Values(ports), func(a, b server.FirewallPorts) int { return cmp.Compare(a.Low, b.Low) })
	var out []server.FirewallPorts
	for _, p := range sorted {
		if n := len(out); n > 0 && int(p.Low) <= int(out[n-1].High)+1 {
			out[n-1].High = max(out[n-1].High, p.High)
		} else {
			out = append(out, p)
		}
	}
	return out
}
