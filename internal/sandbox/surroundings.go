package sandbox

import (
	"context"
	"net/netip"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// surroundings are facts about the cluster that every wall is built with. They
// are asked for once a run.
type surroundings struct {
	client *pve.Client

	mu         sync.Mutex
	nodes      []netip.Addr
	nodesKnown bool
	dns        map[string][]string
	firewallOn bool
	// expected says that this run is to turn the datacenter's firewall on.
	expected bool
}

func newSurroundings(client *pve.Client) *surroundings {
	return &surroundings{client: client, dns: map[string][]string{}}
}

// nodeAddresses are the cluster nodes' own addresses. Where the token may not
// see them (it needs Sys.Audit on /), private ones are closed all the same.
func (s *surroundings) nodeAddresses(ctx context.Context) []netip.Addr {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.nodesKnown {
		return s.nodes
	}
	status, err := s.client.ClusterStatus(ctx)
	if err != nil {
		s.nodesKnown = pve.Means(err, pve.Forbidden)
		return nil
	}
	s.nodesKnown = true
	for _, n := range status.Nodes {
		if addr, err := netip.ParseAddr(n.IP); err == nil && !addr.IsLoopback() {
			s.nodes = append(s.nodes, addr.Unmap())
		}
	}
	return s.nodes
}

// resolvers are the DNS servers of a node, which a container without any of its
// own is given. None where they can't be seen.
func (s *surroundings) resolvers(ctx context.Context, node string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if servers, known := s.dns[node]; known {
		return servers
	}
	dns, err := s.client.NodeDNS(ctx, node)
	if err != nil && !pve.Means(err, pve.Forbidden) {
		return nil
	}
	s.dns[node] = dns.Servers()
	return s.dns[node]
}

// datacenterFirewall says whether the datacenter's firewall is on, without which
// no rule of a guest counts. Only that it is on is remembered.
func (s *surroundings) datacenterFirewall(ctx context.Context) (bool, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.firewallOn {
		return true, nil
	}
	options, err := s.client.FirewallOptions(ctx, pve.ClusterFirewall())
	if err != nil {
		return false, err
	}
	s.firewallOn = options.Enable != nil && *options.Enable
	return s.firewallOn, nil
}

// ExpectDatacenterFirewall notes that this run plans to turn the datacenter's
// firewall on. A check at plan then warns of a switch that is still off, instead of
// refusing what comes after it; a creation refuses it all the same.
func (m *Manager) ExpectDatacenterFirewall() {
	m.surroundings.mu.Lock()
	defer m.surroundings.mu.Unlock()
	m.surroundings.expected = true
}

func (s *surroundings) firewallExpected() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.expected
}
