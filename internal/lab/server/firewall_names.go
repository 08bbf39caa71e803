package server

import (
	_ "embed"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// The names that rules may use for numbers, as a Debian node knows them.
var (
	//go:embed firewall_services.txt
	servicesText string
	//go:embed firewall_protocols.txt
	protocolsText string
)

var (
	services  = sync.OnceValue(func() map[string]int { return parseNumbers(servicesText) })
	protocols = sync.OnceValue(func() map[string]int { return parseNumbers(protocolsText) })
)

// parseNumbers reads "ssh=22 http=80 …".
func parseNumbers(text string) map[string]int {
	out := map[string]int{}
	for _, entry := range strings.Fields(text) {
		name, number, _ := strings.Cut(entry, "=")
		n, err := strconv.Atoi(number)
		if err != nil {
			panic(fmt.Sprintf("lab: firewall: %s: %v", entry, err))
		}
		out[name] = n
	}
	return out
}

// protocolNumber is the number of a protocol's name or number.
func protocolNumber(name string) (int, bool) {
	if n, ok := protocols()[name]; ok {
		return n, true
	}
	if name == "icmpv6" { // iptables' name for ipv6-icmp
		return protocols()["ipv6-icmp"], true
	}
	n, err := strconv.ParseUint(name, 10, 8)
	if err != nil {
		return 0, false
	}
	for _, known := range protocols() {
		if known == int(n) {
			return int(n), true
		}
	}
	return 0, false
}

func checkProtocol(value string) error {
	if _, ok := protocolNumber(value); !ok && value != "" {
		return fmt.Errorf("unknown protocol '%s'", value)
	}
	return nil
}

// portProtocols are the protocols that have ports.
var portProtocols = []string{"udp", "17", "udplite", "136", "tcp", "6", "dccp", "33", "sctp", "132"}

func hasPorts(proto string) bool { return slices.Contains(portProtocols, proto) }

// icmpVersion is the IP version whose control messages a protocol is, 0 for others.
func icmpVersion(proto string) int {
	switch proto {
	case "icmp", "1":
		return 4
	case "icmpv6", "ipv6-icmp", "58":
		return 6
	}
	return 0
}

// The names of ICMP types, those of iptables.
var icmpTypes = map[int][]string{
	4: strings.Fields(`any echo-reply destination-unreachable network-unreachable host-unreachable protocol-unreachable port-unreachable
		fragmentation-needed source-route-failed network-unknown host-unknown network-prohibited host-prohibited TOS-network-unreachable
		TOS-host-unreachable communication-prohibited host-precedence-violation precedence-cutoff source-quench redirect network-redirect
		host-redirect TOS-network-redirect TOS-host-redirect echo-request router-advertisement router-solicitation time-exceeded
		ttl-zero-during-transit ttl-zero-during-reassembly parameter-problem ip-header-bad required-option-missing timestamp-request
		timestamp-reply address-mask-request address-mask-reply`),
	6: strings.Fields(`destination-unreachable no-route communication-prohibited beyond-scope address-unreachable port-unreachable
		failed-policy reject-route packet-too-big time-exceeded ttl-zero-during-transit ttl-zero-during-reassembly parameter-problem bad-header
		unknown-header-type unknown-option echo-request echo-reply router-solicitation router-advertisement neighbor-solicitation
		neighbour-solicitation neighbor-advertisement neighbour-advertisement redirect`),
}

func isICMPTypeName(name string) bool {
	return slices.Contains(icmpTypes[4], name) || slices.Contains(icmpTypes[6], name)
}

var icmpTypeNumber = regexp.MustCompile(`\A\d{1,3}\z`)

func checkICMPType(value string) error {
	if value != "" && !isICMPTypeName(value) && !icmpTypeNumber.MatchString(value) {
		return fmt.Errorf("invalid icmp-type value '%s'", value)
	}
	return nil
}
