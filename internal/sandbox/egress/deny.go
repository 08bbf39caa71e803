package egress

import (
	"net/netip"
	"slices"
	"strings"
)

// Kind is why a range is closed.
type Kind string

// Kinds of ranges.
const (
	// Private: networks of the site itself.
	Private Kind = "private"
	// LinkLocal: neighbours on the same wire.
	LinkLocal Kind = "link-local"
	// SharedSpace: carrier-grade NAT, and the addresses of tailnets.
	SharedSpace Kind = "CGNAT and tailnet"
	// Local: addresses that mean "this host" or "this network".
	Local Kind = "this host"
	// Multicast: groups, broadcast and reserved addresses.
	Multicast Kind = "multicast and reserved"
	// Embedded: IPv6 that stands for IPv4, and would lead around its rules.
	Embedded Kind = "IPv4 in IPv6"
	// Metadata: services that hand a cloud machine's credentials to whoever asks.
	Metadata Kind = "cloud metadata"
)

// Range is one closed range.
type Range struct {
	Prefix netip.Prefix
	Kind   Kind
	// Source is where it is written down.
	Source string
}

// denied is the one table of what no mode lets out, unless it is allowed by
// name. It is what the documentation shows.
var denied = []Range{
	{prefix("0.0.0.0/8"), Local, "RFC 791, RFC 6890"},
	{prefix("10.0.0.0/8"), Private, "RFC 1918"},
	{prefix("100.64.0.0/10"), SharedSpace, "RFC 6598; Tailscale's addresses"},
	{prefix("100.100.100.200/32"), Metadata, "Alibaba Cloud"},
	{prefix("127.0.0.0/8"), Local, "RFC 1122"},
	{prefix("168.63.129.16/32"), Metadata, "Azure (its wire server; a public address)"},
	{prefix("169.254.0.0/16"), LinkLocal, "RFC 3927"},
	{prefix("169.254.169.254/32"), Metadata, "AWS, Azure, Google Cloud, OpenStack and others"},
	{prefix("169.254.170.2/32"), Metadata, "AWS, credentials of ECS tasks"},
	{prefix("172.16.0.0/12"), Private, "RFC 1918"},
	{prefix("192.0.0.0/24"), Private, "RFC 6890 (IETF protocol assignments); Oracle Cloud's 192.0.0.192"},
	{prefix("192.0.0.192/32"), Metadata, "Oracle Cloud"},
	{prefix("192.168.0.0/16"), Private, "RFC 1918"},
	{prefix("198.18.0.0/15"), Private, "RFC 2544 (benchmarking; used inside sites)"},
	{prefix("224.0.0.0/4"), Multicast, "RFC 5771"},
	{prefix("240.0.0.0/4"), Multicast, "RFC 1112, broadcast: RFC 919"},

	{prefix("::/8"), Embedded, "RFC 4291 (reserved; nothing but IPv4 in IPv6 is assigned)"},
	{prefix("::/96"), Local, "RFC 4291 (unspecified, loopback, IPv4-compatible)"},
	{prefix("::ffff:0:0/96"), Embedded, "RFC 4291 (IPv4-mapped)"},
	{prefix("64:ff9b::/96"), Embedded, "RFC 6052 (NAT64)"},
	{prefix("64:ff9b:1::/48"), Embedded, "RFC 8215 (local NAT64)"},
	{prefix("2002::/16"), Embedded, "RFC 3056, RFC 7526 (6to4)"},
	{prefix("fc00::/7"), Private, "RFC 4193 (ULA); Tailscale's fd7a:115c:a1e0::/48"},
	{prefix("fd00:ec2::254/128"), Metadata, "AWS"},
	{prefix("fd20:ce::254/128"), Metadata, "Google Cloud"},
	{prefix("fe80::/10"), LinkLocal, "RFC 4291"},
	{prefix("fec0::/10"), Private, "RFC 3879 (site-local, retired)"},
	{prefix("ff00::/8"), Multicast, "RFC 4291"},
}

// managementPorts are what a Proxmox VE node listens on for its administrators.
// They are closed towards every address, since a cluster's public addresses
// needn't be known here: API, backup server, SPICE proxy.
const managementPorts = "3128,8006,8007"

// Denied returns the table of closed ranges.
func Denied() []Range { return slices.Clone(denied) }

// ManagementPorts are the TCP ports that every mode closes.
func ManagementPorts() string { return managementPorts }

func prefix(s string) netip.Prefix { return netip.MustParsePrefix(s) }

// deniedBy returns the closed ranges that hold all of p.
func deniedBy(p netip.Prefix) (Range, bool) {
	for _, r := range denied {
		if r.Prefix.Bits() <= p.Bits() && r.Prefix.Contains(p.Addr()) {
			return r, true
		}
	}
	return Range{}, false
}

// metadata are the metadata services that p reaches.
func metadata(p netip.Prefix) []netip.Prefix {
	var out []netip.Prefix
	for _, r := range denied {
		if r.Kind == Metadata && p.Overlaps(r.Prefix) {
			out = append(out, r.Prefix)
		}
	}
	return out
}

// deniedPrefixes are the table's networks.
func deniedPrefixes() []netip.Prefix {
	out := make([]netip.Prefix, 0, len(denied))
	for _, r := range denied {
		out = append(out, r.Prefix)
	}
	return out
}

// aggregate sorts networks and leaves out those that others hold.
func aggregate(list []netip.Prefix) []netip.Prefix {
	sorted := canonical(list)
	var out []netip.Prefix
	for _, p := range sorted { // a network sorts before what it holds
		if n := len(out); n > 0 && out[n-1].Bits() <= p.Bits() && out[n-1].Contains(p.Addr()) {
			continue
		}
		out = append(out, p)
	}
	return out
}

// canonical sorts networks, IPv4 first, with their host bits cleared and without
// doubles.
func canonical(list []netip.Prefix) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(list))
	for _, p := range list {
		a := p.Addr()
		if a.Is4In6() && p.Bits() > 96 { // /96 is the range of them, not an IPv4 network
			p = netip.PrefixFrom(a.Unmap(), p.Bits()-96)
		}
		out = append(out, p.Masked())
	}
	slices.SortFunc(out, func(a, b netip.Prefix) int {
		if c := a.Addr().Compare(b.Addr()); c != 0 {
			return c
		}
		return a.Bits() - b.Bits()
	})
	return slices.Compact(out)
}

// longestList is the server's limit for the addresses of one rule, in bytes.
const longestList = 512

// lists joins the networks of one IP version with commas, in as many lists as the
// server's limit needs.
func lists(networks []netip.Prefix) []string {
	var out []string
	var b strings.Builder
	for _, p := range networks {
		item := text(p)
		if b.Len() > 0 && b.Len()+1+len(item) > longestList {
			out = append(out, b.String())
			b.Reset()
		}
		if b.Len() > 0 {
			b.WriteByte(',')
		}
		b.WriteString(item)
	}
	if b.Len() > 0 {
		out = append(out, b.String())
	}
	return out
}

// byVersion splits networks into IPv4 and IPv6, each aggregated.
func byVersion(networks []netip.Prefix) [2][]netip.Prefix {
	var out [2][]netip.Prefix
	for _, p := range aggregate(networks) {
		v := 0
		if p.Addr().Is6() {
			v = 1
		}
		out[v] = append(out[v], p)
	}
	return out
}

// addressLists are networks as the values of rules: one list per IP version and
// as many more as the server's limit needs.
func addressLists(networks []netip.Prefix) []string {
	split := byVersion(networks)
	return append(lists(split[0]), lists(split[1])...)
}

// single makes networks of addresses.
func single(addresses []netip.Addr) []netip.Prefix {
	out := make([]netip.Prefix, 0, len(addresses))
	for _, a := range addresses {
		a = a.Unmap()
		out = append(out, netip.PrefixFrom(a, a.BitLen()))
	}
	return out
}
