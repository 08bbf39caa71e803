package server

import (
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// verdict is what a guest's own rules say about a connection through its interface with the hardware address mac.
func (g FirewallGuest) verdict(c engine.Connection, mac, direction string) engine.Verdict {
	key, nic, found := "", FirewallInterface{}, false
	for k, candidate := range g.Interfaces {
		if strings.EqualFold(candidate.MAC, mac) {
			key, nic, found = k, candidate, true
		}
	}
	if !found || !nic.Firewall {
		return engine.Accepted
	}
	if direction == "out" && nic.IPFilter != nil && !nic.IPFilter.Contains(c.Source.Addr()) {
		return engine.Dropped
	}
	for _, r := range g.Rules {
		if r.Direction == direction && (r.Interface == "" || r.Interface == key) && r.matches(c) {
			return verdictOf(r.Action)
		}
	}
	if direction == "in" {
		return verdictOf(g.PolicyIn)
	}
	return verdictOf(g.PolicyOut)
}

func verdictOf(action string) engine.Verdict {
	switch action {
	case "DROP":
		return engine.Dropped
	case "REJECT":
		return engine.Rejected
	}
	return engine.Accepted
}

// matches says whether the rule is about the connection.
func (r FirewallRule) matches(c engine.Connection) bool {
	if !r.Source.Contains(c.Source.Addr()) || !r.Dest.Contains(c.Dest.Addr()) {
		return false
	}
	for _, m := range r.Matches {
		if m.matches(c) {
			return true
		}
	}
	return false
}

func (m FirewallMatch) matches(c engine.Connection) bool {
	version := 6
	if c.Dest.Addr().Unmap().Is4() {
		version = 4
	}
	return (m.Protocol < 0 || m.Protocol == c.Protocol) && (m.IPVersion == 0 || m.IPVersion == version) &&
		withinPorts(m.DestPorts, c.Dest.Port()) && withinPorts(m.SourcePorts, c.Source.Port())
}

func withinPorts(ports []FirewallPorts, port uint16) bool {
	for _, p := range ports {
		if p.Low <= port && port <= p.High {
			return true
		}
	}
	return len(ports) == 0
}
