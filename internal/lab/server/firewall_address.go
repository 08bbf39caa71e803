package server

import (
	"net/netip"
	"strings"
)

// FirewallSpan is a part of the addresses: those from Low to High, of one IP version.
type FirewallSpan struct {
	Low, High netip.Addr
	// Except takes the span out of the wider spans of its set ("nomatch").
	Except bool
}

// contains says whether an address is in the span.
func (span FirewallSpan) contains(addr netip.Addr) bool {
	return addr.Is4() == span.Low.Is4() && !addr.Less(span.Low) && !span.High.Less(addr)
}

// narrower says whether a span lies within another.
func (span FirewallSpan) narrower(than FirewallSpan) bool {
	return than.contains(span.Low) && than.contains(span.High)
}

// FirewallAddresses are the addresses that a rule's source or dest means, with sets and aliases resolved. Nil means every
// address; one without spans means none, as an empty set does.
type FirewallAddresses struct {
	// Text is what stands in the rule: "+dc/allowed", "10.0.0.0/8".
	Text  string
	Spans []FirewallSpan
}

// Contains says whether an address is meant. In a set the narrowest entry that fits decides, as in the kernel's sets.
func (a *FirewallAddresses) Contains(addr netip.Addr) bool {
	if a == nil {
		return true
	}
	addr = addr.Unmap()
	var best *FirewallSpan
	for i := range a.Spans {
		if span := &a.Spans[i]; span.contains(addr) && (best == nil || span.narrower(*best)) {
			best = span
		}
	}
	return best != nil && !best.Except
}

// addresses resolves a rule's source or dest; nil for none. The rule has passed verify.
func (l *fwLevel) addresses(value string) *FirewallAddresses {
	if value == "" {
		return nil
	}
	out := &FirewallAddresses{Text: value}
	if m := ipsetForm.FindStringSubmatch(value); m != nil {
		if set := l.findIPSet(m[1], m[2]); set != nil {
			out.Spans = l.setSpans(set)
		}
		return out
	}
	for _, item := range strings.Split(value, ",") {
		if span, ok := l.span(item); ok {
			out.Spans = append(out.Spans, span)
		}
	}
	return out
}

// setSpans are a set's entries; those of an alias that is gone are left out.
func (l *fwLevel) setSpans(set *fwIPSet) []FirewallSpan {
	var out []FirewallSpan
	for _, e := range set.Entries {
		if span, ok := l.span(e.CIDR); ok {
			span.Except = e.NoMatch
			out = append(out, span)
		}
	}
	return out
}

// span reads an address, a network, a range or an alias.
func (l *fwLevel) span(item string) (FirewallSpan, bool) {
	if scope, name, ok := splitAlias(item); ok {
		alias := l.findAlias(scope, strings.ToLower(name))
		if alias == nil {
			return FirewallSpan{}, false
		}
		item = cleanCIDR(alias.CIDR)
	}
	low, high, err := parseAddressRange(item)
	return FirewallSpan{Low: low, High: high}, err == nil
}
