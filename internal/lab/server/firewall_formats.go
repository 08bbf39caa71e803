package server

import (
	"fmt"
	"net/netip"
	"regexp"
	"strconv"
	"strings"
)

var (
	portRange   = regexp.MustCompile(`\A(\d+):(\d+)\z`)
	aliasForm   = regexp.MustCompile(`\A(dc/|guest/)?([A-Za-z][A-Za-z0-9_-]+)\z`)
	ipsetForm   = regexp.MustCompile(`\A\+(dc/|guest/)?([A-Za-z][A-Za-z0-9_-]+)\z`)
	dottedQuads = regexp.MustCompile(`\A\d+\.\d+\.\d+\.\d+\z`)
)

// The longest name of a set or alias, and the most ports in a list, of which a range counts for two (the limit of
// iptables' multiport match).
const (
	maxReferenceName = 64
	maxPorts         = 15
)

// checkPortSpec: 80, 80:85, https, lists of them. Of a destination also names of ICMP types, which once stood there. Empty
// unsets, here and in the formats of the other fields of a rule.
func checkPortSpec(value string, dest bool) error {
	if value == "" {
		return nil
	}
	if strings.HasSuffix(value, ",") {
		return fmt.Errorf("extraneous commas in list")
	}
	count := 0
	for _, item := range strings.Split(value, ",") {
		count++
		if m := portRange.FindStringSubmatch(item); m != nil {
			count++
			if err := checkPortRange(m[1], m[2]); err != nil {
				return err
			}
			continue
		}
		if portNumber.MatchString(item) {
			if !isPort(item) {
				return fmt.Errorf("invalid port '%s'", item)
			}
			continue
		}
		_, service := services()[item]
		if !service && (!dest || !isICMPTypeName(item)) {
			return fmt.Errorf("invalid port '%s'", item)
		}
	}
	if count > maxPorts {
		return fmt.Errorf("too many entries in port list (> %d numbers)", maxPorts)
	}
	return nil
}

func checkPortRange(low, high string) error {
	for _, port := range []string{low, high} {
		if !isPort(port) {
			return fmt.Errorf("invalid port '%s'", port)
		}
	}
	a, _ := strconv.Atoi(low)
	b, _ := strconv.Atoi(high)
	if a > b {
		return fmt.Errorf("backwards range '%s:%s' not allowed, did you mean '%s:%s'?", low, high, high, low)
	}
	return nil
}

func isPort(digits string) bool {
	_, err := strconv.ParseUint(digits, 10, 16)
	return err == nil
}

func checkDestPorts(value string) error   { return checkPortSpec(value, true) }
func checkSourcePorts(value string) error { return checkPortSpec(value, false) }

// checkAddressSpec is the form of a rule's source or dest.
func checkAddressSpec(value string) error {
	_, err := parseAddressList(value)
	return err
}

// parseAddressList checks a rule's source or dest and says which IP version it implies: 0 for a reference to a set or an
// alias, whose existence is the rule's matter.
func parseAddressList(value string) (int, error) {
	if value == "" {
		return 0, nil
	}
	if strings.HasPrefix(value, "+") && !strings.ContainsAny(value, " \t\n") {
		if len(value) > maxReferenceName+1 {
			return 0, fmt.Errorf("ipset name too long")
		}
		return 0, nil
	}
	if aliasForm.MatchString(value) {
		if len(value) > maxReferenceName {
			return 0, fmt.Errorf("alias name too long")
		}
		return 0, nil
	}
	if strings.HasSuffix(value, ",") {
		return 0, fmt.Errorf("extraneous commas in list")
	}
	version, ranges := 0, false
	items := strings.Split(value, ",")
	for _, item := range items {
		low, _, err := parseAddressRange(item)
		if err != nil {
			return 0, fmt.Errorf("invalid IP address: %w", err)
		}
		ranges = ranges || strings.Contains(item, "-")
		is := ipVersion(low)
		if version != 0 && is != version {
			return 0, fmt.Errorf("detected mixed ipv4/ipv6 address list")
		}
		version = is
	}
	if ranges && len(items) > 1 {
		return 0, fmt.Errorf("you can't use a range in a list")
	}
	return version, nil
}

// parseAddressRange reads an address, a network or a range "from-to" and returns its ends. Texts are those of the
// server's address library.
func parseAddressRange(item string) (low, high netip.Addr, err error) {
	if from, to, ok := strings.Cut(item, "-"); ok {
		if low, err = parseAddress(strings.TrimSpace(from)); err != nil {
			return low, high, err
		}
		if high, err = parseAddress(strings.TrimSpace(to)); err != nil {
			return low, high, err
		}
		if low.Is4() != high.Is4() || high.Less(low) {
			return low, high, fmt.Errorf("begin address is greater than end address %s - %s", low, high)
		}
		return low, high, nil
	}
	text, length, isNet := strings.Cut(item, "/")
	if low, err = parseAddress(text); err != nil || !isNet {
		return low, low, err
	}
	bits, convErr := strconv.Atoi(length)
	if convErr != nil || bits < 0 || bits > low.BitLen() {
		return low, low, fmt.Errorf("invalid prefix length /%s", length)
	}
	prefix := netip.PrefixFrom(low, bits)
	if prefix.Masked().Addr() != low {
		return low, low, fmt.Errorf("Invalid prefix %s/%d", binary(low), bits) //nolint:staticcheck // the server's text
	}
	return low, lastAddress(prefix), nil
}

func parseAddress(text string) (netip.Addr, error) {
	addr, err := netip.ParseAddr(text)
	if err == nil && addr.Zone() == "" && !addr.Is4In6() {
		return addr, nil
	}
	if dottedQuads.MatchString(text) {
		for _, quad := range strings.Split(text, ".") {
			if n, err := strconv.Atoi(quad); err != nil || n > 255 {
				return addr, fmt.Errorf("Invalid quad in IP address %s - %s", text, quad) //nolint:staticcheck // the server's text
			}
		}
	}
	return addr, fmt.Errorf("Cannot determine IP version for %s", text) //nolint:staticcheck // the server's text
}

// binary is an address as ones and zeros.
func binary(addr netip.Addr) string {
	var b strings.Builder
	for _, octet := range addr.AsSlice() {
		fmt.Fprintf(&b, "%08b", octet)
	}
	return b.String()
}

func lastAddress(prefix netip.Prefix) netip.Addr {
	octets := prefix.Addr().AsSlice()
	for i := range octets {
		free := min(max((i+1)*8-prefix.Bits(), 0), 8)
		octets[i] |= byte(1<<free - 1)
	}
	last, _ := netip.AddrFromSlice(octets)
	return last
}

func ipVersion(addr netip.Addr) int {
	if addr.Is4() {
		return 4
	}
	return 6
}

func checkIPOrCIDR(value string) error {
	if _, version := parseIPOrCIDR(value); version == 0 {
		return fmt.Errorf("value does not look like a valid IP address or CIDR network")
	}
	return nil
}

func checkIPOrCIDROrAlias(value string) error {
	if _, _, ok := splitAlias(value); ok {
		return nil
	}
	return checkIPOrCIDR(value)
}

// parseIPOrCIDR is an address or network as the file has it, and its IP version, 0 if it isn't one: a network of a single
// address is written as the address. Bits beyond the prefix stay.
func parseIPOrCIDR(value string) (string, int) {
	if prefix, err := netip.ParsePrefix(value); err == nil {
		if prefix.IsSingleIP() {
			value, _, _ = strings.Cut(value, "/")
		}
		return value, ipVersion(prefix.Addr())
	}
	if addr, err := netip.ParseAddr(value); err == nil && addr.Zone() == "" {
		return value, ipVersion(addr)
	}
	return value, 0
}

// cleanCIDR is parseIPOrCIDR with the bits beyond the prefix cleared.
func cleanCIDR(value string) string {
	if prefix, err := netip.ParsePrefix(value); err == nil && !prefix.IsSingleIP() {
		return prefix.Masked().String()
	}
	value, _ = parseIPOrCIDR(value)
	return value
}

// splitAlias reads an alias' name with its scope: "dc/", "guest/" or none.
func splitAlias(value string) (scope, name string, ok bool) {
	m := aliasForm.FindStringSubmatch(value)
	if m == nil {
		return "", "", false
	}
	return m[1], m[2], true
}

func isZero(digits string) bool { return digits != "" && strings.Trim(digits, "0") == "" }

// helpers that the kernel has for protocols which open further connections.
var conntrackHelpers = regexp.MustCompile(`\A(amanda|ftp|irc|netbios-ns|pptp|sane|sip|snmp|tftp)\z`)

func checkConntrackHelpers(value string) error {
	for _, name := range splitList(value) {
		if !conntrackHelpers.MatchString(name) {
			return fmt.Errorf("unknown conntrack helper '%s'", name)
		}
	}
	return nil
}
