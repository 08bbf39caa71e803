package firewall_test

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const group = "sandbox_firewall_group"

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	rule := values{"direction": "out", "action": "ACCEPT"}
	for name, config := range map[string]values{
		"no name":                     {"mode": "nat"},
		"a name of 19 characters":     {"name": "a234567890123456789", "mode": "nat"},
		"a name of one character":     {"name": "a", "mode": "nat"},
		"a name with a dot":           {"name": "a.b", "mode": "nat"},
		"neither mode nor rule":       {"name": "g1"},
		"mode and rule":               {"name": "g1", "mode": "nat", "rule": []any{rule}},
		"a mode that is none":         {"name": "g1", "mode": "open"},
		"unmanaged":                   {"name": "g1", "mode": "unmanaged"},
		"no rules":                    {"name": "g1", "rule": []any{}},
		"an action in small letters":  {"name": "g1", "rule": []any{values{"direction": "out", "action": "accept"}}},
		"a direction that is none":    {"name": "g1", "rule": []any{values{"direction": "forward", "action": "DROP"}}},
		"allow beside rule":           {"name": "g1", "rule": []any{rule}, "allow": []any{values{"to": "1.2.3.4"}}},
		"an exception without target": {"name": "g1", "mode": "nat", "allow": []any{values{"ports": "443"}}},
		"cidrs beside to":             {"name": "g1", "mode": "nat", "allow": []any{values{"to": "1.2.3.4", "cidrs": []any{"1.2.3.4"}}}},
		"cidrs that are looked up":    {"name": "g1", "mode": "nat", "allow": []any{values{"cidrs": []any{"1.2.3.4"}, "resolve": "apply"}}},
		"a protocol that is none":     {"name": "g1", "mode": "nat", "allow": []any{values{"to": "1.2.3.4", "protocol": "http"}}},
		"resolve at some other time":  {"name": "g1", "mode": "nat", "allow": []any{values{"to": "example.com", "resolve": "always"}}},
		"a log level that is none":    {"name": "g1", "rule": []any{values{"direction": "out", "action": "DROP", "log": "loud"}}},
	} {
		if diags := server.Validate(t, group, config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
}

type fixture struct {
	t      *testing.T
	env    *acctest.Environment
	server *protocoltest.Server
	client *pve.Client
	lookup map[string][]string
}

func start(t *testing.T) *fixture {
	t.Helper()
	env := acctest.New(t)
	acctest.NeedsPrivilege(t, env, "/", "Sys.Modify") // groups are the datacenter's
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	f := &fixture{t: t, env: env, client: c, lookup: map[string][]string{}}
	f.server = protocoltest.ForWith(t, env, nil, provider.Options{Domain: sandbox.Options{Lookup: f.answer}})
	return f
}

func (f *fixture) answer(_ context.Context, domain string) ([]netip.Addr, error) {
	if len(f.lookup[domain]) == 0 {
		return nil, fmt.Errorf("lookup %s: no such host", domain)
	}
	var out []netip.Addr
	for _, a := range f.lookup[domain] {
		out = append(out, netip.MustParseAddr(a))
	}
	return out, nil
}

// name is one that no other test on the same server has.
func (f *fixture) name(s string) string {
	owner := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' {
			return r
		}
		return -1
	}, strings.ToLower(f.env.Owner))
	return fmt.Sprintf("g%s-%s", owner[max(0, len(owner)-6):], s)
}

func (f *fixture) make(config values) *protocoltest.Resource {
	f.t.Helper()
	r := f.server.NewResource(f.t, group)
	f.t.Cleanup(func() {
		if diags := f.server.Destroy(f.t, context.WithoutCancel(f.t.Context()), r); protocoltest.HasErrors(diags) {
			f.t.Errorf("destroying: %s", protocoltest.Text(diags))
		}
	})
	f.apply(r, config, "create")
	return r
}

// apply plans, expects the action, applies, and expects that nothing is left to do after a refresh.
func (f *fixture) apply(r *protocoltest.Resource, config values, action string) []*tfprotov6.Diagnostic {
	f.t.Helper()
	plan := f.server.Plan(f.t, r, config)
	protocoltest.NoErrors(f.t, plan.Diags)
	if got := plan.Action(); got != action {
		f.t.Fatalf("planned %s, want %s (replace because of %v)", got, action, plan.Replace)
	}
	diags := f.server.Apply(f.t, f.t.Context(), plan)
	protocoltest.NoErrors(f.t, diags)
	f.settled(r, config)
	return append(plan.Diags, diags...)
}

func (f *fixture) settled(r *protocoltest.Resource, config values) {
	f.t.Helper()
	protocoltest.NoErrors(f.t, f.server.Refresh(f.t, r))
	plan := f.server.Plan(f.t, r, config)
	protocoltest.NoErrors(f.t, plan.Diags)
	if plan.Action() != "no-op" {
		f.t.Fatalf("the plan after an apply is %s:\nstate %v\nplan  %v", plan.Action(), r.Get(f.t, ""), plan.Get(f.t, ""))
	}
}

// refused plans and expects an error that says something.
func (f *fixture) refused(config values, says string) {
	f.t.Helper()
	plan := f.server.Plan(f.t, f.server.NewResource(f.t, group), config)
	if !protocoltest.HasErrors(plan.Diags) || !strings.Contains(protocoltest.Text(plan.Diags), says) {
		f.t.Errorf("want an error that says %q, got: %s", says, protocoltest.Text(plan.Diags))
	}
}

func (f *fixture) rules(name string) []pve.FirewallRule {
	f.t.Helper()
	rules, err := f.client.FirewallRules(f.t.Context(), pve.GroupFirewall(name))
	if err != nil {
		f.t.Fatal(err)
	}
	return rules
}

func web(name string) values {
	return values{"name": name, "mode": "web", "resolvers": []any{"10.10.10.1"}}
}

func TestAGroupIsChangedInPlaceFromModeToModeAndToItsOwnRules(t *testing.T) {
	t.Parallel()
	f := start(t)
	name := f.name("life")
	r := f.make(web(name))
	if got := r.Get(t, "rules.0.direction"); got != "in" {
		t.Errorf("the first rule is %v", r.Get(t, "rules.0"))
	}
	for _, config := range []values{
		{"name": name, "mode": "allowlist", "resolvers": []any{"10.10.10.1", "fd00::1"}, "allow": []any{
			values{"to": "203.0.113.0/24", "ports": "443"}, values{"to": "10.9.0.0/16", "ports": "5432,8000:8100", "protocol": "tcp"}, values{"to": "0.0.0.0/0", "protocol": "icmp"}, values{"cidrs": []any{"198.51.100.0/24", "2001:db8:7::/48"}, "ports": "443"}}},
		{"name": name, "mode": "nat", "deny": []any{"198.51.100.0/24", "2001:db8:bad::/48"}},
		{"name": name, "mode": "off"},
		{"name": name, "rule": []any{
			values{"direction": "in", "action": "ACCEPT", "macro": "SSH", "comment": "us"},
			values{"direction": "out", "action": "DROP", "to": "10.0.0.0/8, 192.168.0.0/16", "log": "info", "enabled": false},
			values{"direction": "out", "action": "REJECT", "protocol": "icmp", "icmp_type": "echo-request"},
			values{"direction": "out", "action": "ACCEPT", "protocol": "tcp", "ports": "443", "source_ports": "1024:65535"}}},
	} {
		f.apply(r, config, "update")
		if got := len(f.rules(name)); got != len(list(r.Get(t, "rules"))) {
			t.Errorf("the server has %d rules, the state %v", got, r.Get(t, "rules"))
		}
	}
	sets, err := f.client.FirewallIPSets(t.Context(), pve.ClusterFirewall())
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range sets {
		if strings.HasPrefix(s.Name, name) {
			t.Errorf("the IP set %s is left of a mode that is gone", s.Name)
		}
	}
	imported, diags := f.server.Import(t, group, name)
	protocoltest.NoErrors(t, diags)
	if !slices.Equal(list(imported.Get(t, "rules")), list(r.Get(t, "rules"))) {
		t.Errorf("imported %v, want %v", imported.Get(t, "rules"), r.Get(t, "rules"))
	}
	byIdentity, diags := f.server.ImportByIdentity(t, group, values{"name": name})
	protocoltest.NoErrors(t, diags)
	if byIdentity.Text(t, "id") != name {
		t.Errorf("imported %v by identity", byIdentity.Get(t, ""))
	}
}

// list is a list's elements as text, to compare them.
func list(v any) []string {
	elements, _ := v.([]any)
	var out []string
	for _, e := range elements {
		out = append(out, fmt.Sprint(e))
	}
	return out
}

func TestAnImportedGroupIsTakenOverWithoutAWrite(t *testing.T) {
	t.Parallel()
	f := start(t)
	acctest.NeedsLab(t, "requests are counted")
	name := f.name("take")
	f.make(web(name))
	imported, diags := f.server.Import(t, group, name)
	protocoltest.NoErrors(t, diags)
	plan := f.server.Plan(t, imported, web(name))
	protocoltest.NoErrors(t, plan.Diags)
	if plan.Action() != "update" || !plan.Planned.IsFullyKnown() {
		t.Errorf("planned %s: %v", plan.Action(), plan.Get(t, ""))
	}
	writes := f.writes(func() { protocoltest.NoErrors(t, f.server.Apply(t, t.Context(), plan)) })
	if len(writes) > 0 {
		t.Errorf("written: %v", writes)
	}
	f.settled(imported, web(name))
}

func (f *fixture) writes(do func()) []string {
	f.t.Helper()
	var out []string
	for _, r := range f.requests(do) {
		if !strings.HasPrefix(r, "GET") {
			out = append(out, r)
		}
	}
	return out
}

func (f *fixture) requests(do func()) []string {
	f.t.Helper()
	if err := f.env.Lab.Control.ResetRequests(f.t.Context()); err != nil {
		f.t.Fatal(err)
	}
	do()
	report, err := f.env.Lab.Control.Requests(f.t.Context())
	if err != nil {
		f.t.Fatal(err)
	}
	var out []string
	for _, r := range report.Entries {
		out = append(out, r.Method+" "+r.Path)
	}
	return out
}

func TestEachChangeByHandIsDriftAndIsRepaired(t *testing.T) {
	t.Parallel()
	f := start(t)
	name := f.name("drift")
	config := values{"name": name, "mode": "allowlist", "resolvers": []any{"10.10.10.1"}, "allow": []any{values{"to": "203.0.113.0/24", "ports": "443"}}}
	r := f.make(config)
	ctx, scope, set := t.Context(), pve.GroupFirewall(name), name+"-allow-tcp-443"
	for what, meddle := range map[string]func() error{
		"a rule added on top": func() error {
			return f.client.CreateFirewallRule(ctx, scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true}, "")
		},
		"a rule moved":   func() error { return f.client.MoveFirewallRule(ctx, scope, 4, 0, "") },
		"a rule removed": func() error { return f.client.DeleteFirewallRule(ctx, scope, 2, "") },
		"a rule switched off": func() error {
			r := f.rules(name)[3]
			r.Enable = false
			return f.client.ReplaceFirewallRule(ctx, scope, 3, r, "")
		},
		"a rule narrowed to a source port": func() error {
			r := f.rules(name)[1]
			r.Macro, r.Proto, r.SPort = "", "udp", "53"
			return f.client.ReplaceFirewallRule(ctx, scope, 1, r, "")
		},
		"a network added to the set": func() error {
			return f.client.AddFirewallIPSetEntry(ctx, pve.ClusterFirewall(), set, pve.FirewallIPSetEntry{CIDR: "198.51.100.0/24"})
		},
		"an exception added to the set": func() error {
			return f.client.AddFirewallIPSetEntry(ctx, pve.ClusterFirewall(), set, pve.FirewallIPSetEntry{CIDR: "203.0.113.7", NoMatch: true})
		},
		"the set removed": func() error { return f.client.DeleteFirewallIPSet(ctx, pve.ClusterFirewall(), set, true) },
	} {
		if err := meddle(); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		protocoltest.NoErrors(t, f.server.Refresh(t, r))
		if plan := f.server.Plan(t, r, config); plan.Action() != "update" {
			t.Errorf("%s: planned %s", what, plan.Action())
			continue
		}
		f.apply(r, config, "update")
	}
}

func TestAGroupThatIsDeletedByHandIsMadeAgain(t *testing.T) {
	t.Parallel()
	f := start(t)
	name := f.name("gone")
	r := f.make(values{"name": name, "mode": "off"})
	for range f.rules(name) {
		if err := f.client.DeleteFirewallRule(t.Context(), pve.GroupFirewall(name), 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.client.DeleteFirewallGroup(t.Context(), name); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, f.server.Refresh(t, r))
	if r.Exists() {
		t.Fatal("it is still in the state")
	}
	f.apply(r, values{"name": name, "mode": "off"}, "create")
}

func TestTwoGroupsWithOneNameAreRefusedWithAnImportHint(t *testing.T) {
	t.Parallel()
	f := start(t)
	name := f.name("twice")
	f.make(web(name))
	second := f.server.NewResource(t, group)
	plan := f.server.Plan(t, second, web(name))
	protocoltest.NoErrors(t, plan.Diags)
	diags := f.server.Apply(t, t.Context(), plan)
	if !strings.Contains(protocoltest.Text(diags), "terraform import sandbox_firewall_group") || second.Exists() {
		t.Errorf("in the state: %v; %s", second.Exists(), protocoltest.Text(diags))
	}
}

func TestPlansThatWouldLockUsOutAreRefused(t *testing.T) {
	t.Parallel()
	f := start(t)
	f.refused(values{"name": f.name("lock"), "rule": []any{values{"direction": "out", "action": "ACCEPT"}}}, "would lock us out")
	f.refused(values{"name": f.name("lock"), "rule": []any{
		values{"direction": "in", "action": "DROP", "protocol": "tcp"}, values{"direction": "in", "action": "ACCEPT"}}}, "stands in the way")
	for config, says := range map[*values]string{
		{"allow": []any{values{"to": "169.254.169.254"}}}:                           "metadata service",
		{"allow": []any{values{"to": "10.0.0.5/8"}}}:                                "10.0.0.0/8",
		{"allow": []any{values{"to": "*.example.com"}}}:                             "no wildcards",
		{"allow": []any{values{"to": "github.com"}}}:                                `resolve = "apply"`,
		{"allow": []any{values{"to": "1.2.3.4", "ports": "8000-8100"}}}:             "8000:8100",
		{"allow": []any{values{"cidrs": []any{"1.2.3.4", "10.0.0.5/8"}}}}:           "10.0.0.0/8",
		{"deny": []any{"10.0.0.1/8"}}:                                               "10.0.0.0/8",
		{"deny": []any{"everything"}}:                                               "no network",
		{"resolvers": []any{"dns.example.com"}}:                                     "no IPv4 or IPv6 address",
		{"resolvers": []any{"127.0.0.1"}}:                                           "no DNS server",
		{"mode": "off", "allow": []any{values{"to": "1.2.3.4"}}}:                    "lets nothing out",
		{"allow": []any{values{"to": "1.2.3.4", "protocol": "icmp", "ports": "1"}}}: "no ports",
	} {
		whole := values{"name": f.name("lock"), "mode": "allowlist"}
		for k, v := range *config {
			whole[k] = v
		}
		f.refused(whole, says)
	}
}

func TestADomainThatMovesIsDriftAndNothingElseIs(t *testing.T) {
	t.Parallel()
	f := start(t)
	config := values{"name": f.name("names"), "mode": "allowlist", "resolvers": []any{"10.10.10.1"}, "allow": []any{
		values{"to": "api.example.com", "ports": "443", "resolve": "apply"}, values{"to": "203.0.113.128/25", "ports": "443"}}}
	f.lookup["api.example.com"] = []string{"203.0.113.5", "203.0.113.6", "2001:db8::5"}
	r := f.make(config)
	if pinned, _ := r.Get(t, "resolved").(map[string]any); len(list(pinned["api.example.com"])) != 3 {
		t.Errorf("pinned: %v", pinned)
	}
	f.lookup["api.example.com"] = []string{"203.0.113.6"} // one of those that are pinned
	f.settled(r, config)
	f.lookup["api.example.com"] = nil // an outage of the resolver
	diags := f.server.Refresh(t, r)
	protocoltest.NoErrors(t, diags)
	if !strings.Contains(protocoltest.Text(diags), "Unable to look up") || f.server.Plan(t, r, config).Action() != "no-op" {
		t.Errorf("an outage of the resolver: %s", protocoltest.Text(diags))
	}
	f.lookup["api.example.com"] = []string{"198.51.100.7"}
	protocoltest.NoErrors(t, f.server.Refresh(t, r))
	if got := list(r.Get(t, "moved")); !slices.Equal(got, []string{"api.example.com"}) {
		t.Errorf("moved: %v", got)
	}
	f.apply(r, config, "update")
	f.lookup["api.example.com"] = []string{"192.168.1.1"} // somebody writes an address inside into the records
	protocoltest.NoErrors(t, f.server.Refresh(t, r))
	plan := f.server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if diags := f.server.Apply(t, t.Context(), plan); !strings.Contains(protocoltest.Text(diags), "leads inside") {
		t.Errorf("an address inside was pinned: %s", protocoltest.Text(diags))
	}
}

func TestAGroupInUseStaysInTheState(t *testing.T) {
	t.Parallel()
	f := start(t)
	acctest.NeedsLab(t, "a reference is put into the template")
	name := f.name("used")
	r := f.make(values{"name": name, "mode": "off"})
	scope := pve.LXCFirewall("pve1", lab.TemplateID)
	if err := f.client.CreateFirewallRule(t.Context(), scope, pve.FirewallRule{Type: "group", Action: name, Enable: true}, ""); err != nil {
		t.Fatal(err)
	}
	diags := f.server.Destroy(t, t.Context(), r)
	if !strings.Contains(protocoltest.Text(diags), "container 9000") || !r.Exists() || len(f.rules(name)) == 0 {
		t.Errorf("in the state: %v; %s", r.Exists(), protocoltest.Text(diags))
	}
	if err := f.client.DeleteFirewallRule(t.Context(), scope, 0, ""); err != nil {
		t.Fatal(err)
	}
}

func TestAHundredRulesAreWithinTheirFigures(t *testing.T) {
	t.Parallel()
	f := start(t)
	acctest.NeedsLab(t, "requests are counted")
	config := func(port int) values {
		rules := []any{values{"direction": "in", "action": "ACCEPT", "macro": "SSH"}}
		for i := 1; i < 100; i++ {
			n := i
			if i == 50 {
				n = port
			}
			rules = append(rules, values{"direction": "out", "action": "ACCEPT", "protocol": "tcp", "ports": fmt.Sprint(n), "to": "203.0.113.0/24"})
		}
		return values{"name": f.name("many"), "rule": rules}
	}
	r := f.server.NewResource(t, group)
	first := f.requests(func() { f.applied(r, config(50)) })
	if len(first) > 103 {
		t.Errorf("the first write took %d requests", len(first))
	}
	// As terraform apply does it: refresh, plan, apply.
	second := f.requests(func() {
		protocoltest.NoErrors(t, f.server.Refresh(t, r))
		f.applied(r, config(5050))
	})
	if len(second) > 3 {
		t.Errorf("one changed rule took %d requests: %v", len(second), second)
	}
	f.settled(r, config(5050))
	protocoltest.NoErrors(t, f.server.Destroy(t, t.Context(), r))
}

func (f *fixture) applied(r *protocoltest.Resource, config values) {
	f.t.Helper()
	plan := f.server.Plan(f.t, r, config)
	protocoltest.NoErrors(f.t, plan.Diags)
	protocoltest.NoErrors(f.t, f.server.Apply(f.t, f.t.Context(), plan))
}

// A write that is refused half-way is an error, and what was made is in the state, so that nothing is left behind.
func TestAWriteThatIsRefusedHalfWayLeavesNothingUntracked(t *testing.T) {
	t.Parallel()
	f := start(t)
	acctest.NeedsLab(t, "a fault is injected")
	name := f.name("half")
	inject(t, f, control.Fault{Method: "POST", Pattern: "^/cluster/firewall/groups/" + name + "$", Nth: 2, Count: -1, Kind: control.Status, Status: 403, Reason: "Permission check failed (/, Sys.Modify)"})
	r := f.server.NewResource(t, group)
	plan := f.server.Plan(t, r, web(name))
	protocoltest.NoErrors(t, plan.Diags)
	diags := f.server.Apply(t, t.Context(), plan)
	if !protocoltest.HasErrors(diags) || !r.Exists() || !r.Tainted {
		t.Fatalf("in the state: %v, tainted: %v; %s", r.Exists(), r.Tainted, protocoltest.Text(diags))
	}
	if err := f.env.Lab.Control.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	f.apply(r, web(name), "replace")
	protocoltest.NoErrors(t, f.server.Destroy(t, t.Context(), r))
	groups, err := f.client.FirewallGroups(t.Context())
	if err != nil || slices.ContainsFunc(groups, func(g pve.FirewallGroup) bool { return g.Group == name }) {
		t.Errorf("left: %v, %v", groups, err)
	}
}

func inject(t *testing.T, f *fixture, fault control.Fault) {
	t.Helper()
	if _, err := f.env.Lab.Control.Inject(t.Context(), fault); err != nil {
		t.Fatal(err)
	}
}

// Somebody else writes between refresh and apply: what they did isn't overwritten unseen, and the result is ours.
func TestADigestThatIsOutOfDateIsNoticed(t *testing.T) {
	t.Parallel()
	f := start(t)
	name := f.name("digest")
	r := f.make(values{"name": name, "mode": "nat"})
	config := values{"name": name, "mode": "nat", "deny": []any{"198.51.100.0/24"}}
	plan := f.server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if err := f.client.MoveFirewallRule(t.Context(), pve.GroupFirewall(name), 3, 0, ""); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, f.server.Apply(t, t.Context(), plan))
	f.settled(r, config)
}
