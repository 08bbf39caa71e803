package nftrules

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// icmpTypes are iptables' names for ICMP's types and codes, "3/1" (RFC 792, RFC 1812).
var icmpTypes = map[string]string{
	"echo-reply": "0", "pong": "0", "destination-unreachable": "3", "network-unreachable": "3/0", "host-unreachable": "3/1",
	"protocol-unreachable": "3/2", "port-unreachable": "3/3", "fragmentation-needed": "3/4", "source-route-failed": "3/5",
	"network-unknown": "3/6", "host-unknown": "3/7", "network-prohibited": "3/9", "host-prohibited": "3/10",
	"TOS-network-unreachable": "3/11", "TOS-host-unreachable": "3/12", "communication-prohibited": "3/13",
	"host-precedence-violation": "3/14", "precedence-cutoff": "3/15", "source-quench": "4", "redirect": "5", "network-redirect": "5/0",
	"host-redirect": "5/1", "TOS-network-redirect": "5/2", "TOS-host-redirect": "5/3", "echo-request": "8", "ping": "8",
	"router-advertisement": "9", "router-solicitation": "10", "time-exceeded": "11", "ttl-exceeded": "11",
	"ttl-zero-during-transit": "11/0", "ttl-zero-during-reassembly": "11/1", "parameter-problem": "12", "ip-header-bad": "12/0",
	"required-option-missing": "12/1", "timestamp-request": "13", "timestamp-reply": "14", "address-mask-request": "17",
	"address-mask-reply": "18",
}

// icmp6Types are ip6tables' names (RFC 4443, RFC 4861).
var icmp6Types = map[string]string{
	"destination-unreachable": "1", "no-route": "1/0", "communication-prohibited": "1/1", "beyond-scope": "1/2", "address-unreachable": "1/3",
	"port-unreachable": "1/4", "failed-policy": "1/5", "reject-route": "1/6", "packet-too-big": "2", "time-exceeded": "3",
	"ttl-exceeded": "3", "ttl-zero-during-transit": "3/0", "ttl-zero-during-reassembly": "3/1", "parameter-problem": "4",
	"bad-header": "4/0", "unknown-header-type": "4/1", "unknown-option": "4/2", "echo-request": "128", "ping": "128", "echo-reply": "129",
	"pong": "129", "router-solicitation": "133", "router-advertisement": "134", "neighbour-solicitation": "135",
	"neighbor-solicitation": "135", "neighbour-advertisement": "136", "neighbor-advertisement": "136", "redirect": "137",
}

// icmpExpression is the condition on ICMP's type. It reports false for a name that ICMP of this version doesn't know.
func icmpExpression(m server.FirewallMatch) (string, bool) {
	if m.ICMPType == "" || m.ICMPType == "any" {
		return "", true
	}
	names, keyword := icmpTypes, "icmp"
	if m.Protocol == protocolICMPv6 {
		names, keyword = icmp6Types, "icmpv6"
	}
	numbers, known := names[m.ICMPType]
	if !known {
		numbers = m.ICMPType
	}
	kind, code, hasCode := strings.Cut(numbers, "/")
	expression := ""
	for _, part := range []struct{ name, value string }{{"type", kind}, {"code", code}} {
		if part.name == "code" && !hasCode {
			continue
		}
		n, err := strconv.ParseUint(part.value, 10, 8)
		if err != nil {
			return "", false
		}
		expression += fmt.Sprintf(" %s %s %d", keyword, part.name, n)
	}
	return expression, true
}
