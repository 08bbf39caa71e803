package egress_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// server is a lab with a client.
type server struct {
	t      *testing.T
	lab    *lab.Lab
	client *pve.Client
	node   string
}

func newServer(t *testing.T) *server {
	t.Helper()
	l, err := lab.Start(t.Context(), lab.Options{})
	if err != nil {
		t.Fatal(err)
	}
	s := &server{t: t, lab: l, node: l.Nodes()[0]}
	s.client = s.another()
	t.Cleanup(func() { _ = l.Close() })
	return s
}

// another is a client of its own: somebody else.
func (s *server) another() *pve.Client {
	s.t.Helper()
	c, err := pve.New(pve.Config{Endpoint: s.lab.Endpoint(), Token: s.lab.Token(), TLS: pve.TLSConfig{Fingerprint: s.lab.Fingerprint()}})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(c.Close)
	return c
}

func (s *server) group(name string) pve.FirewallScope {
	s.t.Helper()
	if err := s.client.CreateFirewallGroup(s.t.Context(), name, ""); err != nil {
		s.t.Fatal(err)
	}
	return pve.GroupFirewall(name)
}

func (s *server) sync(scope pve.FirewallScope, have *egress.List, want []egress.Rule) egress.List {
	s.t.Helper()
	l, err := egress.SyncRules(s.t.Context(), s.client, scope, have, want)
	if err != nil {
		s.t.Fatal(err)
	}
	return l
}

func (s *server) requests(do func()) []string {
	s.t.Helper()
	if err := s.lab.Control().ResetRequests(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	do()
	report, err := s.lab.Control().Requests(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	var out []string
	for _, r := range report.Entries {
		out = append(out, fmt.Sprintf("%s %s %d", r.Method, r.Path, r.Status))
	}
	return out
}

func (s *server) inject(f control.Fault) {
	s.t.Helper()
	if _, err := s.lab.Control().Inject(s.t.Context(), f); err != nil {
		s.t.Fatal(err)
	}
}

// meddler is an API whose user is disturbed before a call.
type meddler struct {
	*pve.Client
	// before is called with the number of each call that changes rules, from 1.
	before func(n int)
	calls  int
}

func (m *meddler) disturb() { m.calls++; m.before(m.calls) }

func (m *meddler) CreateFirewallRule(ctx context.Context, scope pve.FirewallScope, rule pve.FirewallRule, digest string) error {
	m.disturb()
	return m.Client.CreateFirewallRule(ctx, scope, rule, digest)
}

func (m *meddler) ReplaceFirewallRule(ctx context.Context, scope pve.FirewallScope, pos int, rule pve.FirewallRule, digest string) error {
	m.disturb()
	return m.Client.ReplaceFirewallRule(ctx, scope, pos, rule, digest)
}

func (m *meddler) MoveFirewallRule(ctx context.Context, scope pve.FirewallScope, from, before int, digest string) error {
	m.disturb()
	return m.Client.MoveFirewallRule(ctx, scope, from, before, digest)
}

func (m *meddler) DeleteFirewallRule(ctx context.Context, scope pve.FirewallScope, pos int, digest string) error {
	m.disturb()
	return m.Client.DeleteFirewallRule(ctx, scope, pos, digest)
}

func out(port int) egress.Rule {
	return egress.Rule{Type: egress.Out, Action: egress.Accept, Enabled: true, Proto: "tcp", DPort: fmt.Sprint(port), Comment: fmt.Sprintf("port %d", port)}
}

func outs(ports ...int) []egress.Rule {
	var rules []egress.Rule
	for _, p := range ports {
		rules = append(rules, out(p))
	}
	return rules
}

func networks(n int) []netip.Prefix {
	var list []netip.Prefix
	for i := range n {
		list = append(list, netip.PrefixFrom(netip.AddrFrom4([4]byte{11, byte(i >> 16), byte(i >> 8), byte(i)}), 32))
	}
	return list
}
