package nodeguard_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const guard = "sandbox_node_guard"

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"no node":                   {"bridge": "vmbr1"},
		"neither bridge nor subnet": {"node_name": "pve1"},
		"both":                      {"node_name": "pve1", "bridge": "vmbr1", "subnet": "10.77.0.0/16"},
		"a protocol that is none":   {"node_name": "pve1", "bridge": "vmbr1", "allow": []any{values{"protocol": "http"}}},
		"a resolver twice":          {"node_name": "pve1", "bridge": "vmbr1", "resolvers": []any{"10.77.0.1", "10.77.0.1"}},
	} {
		if diags := server.Validate(t, guard, config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
}

func start(t *testing.T) (*acctest.Environment, *protocoltest.Server, *pve.Client) {
	t.Helper()
	acctest.NeedsLab(t, "a node's own rules are written")
	env := acctest.New(t)
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return env, protocoltest.For(t, env, nil), c
}

func apply(t *testing.T, s *protocoltest.Server, r *protocoltest.Resource, config values, action string) {
	t.Helper()
	plan := s.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != action {
		t.Fatalf("planned %s, want %s (replace because of %v)", got, action, plan.Replace)
	}
	protocoltest.NoErrors(t, s.Apply(t, t.Context(), plan))
	protocoltest.NoErrors(t, s.Refresh(t, r))
	again := s.Plan(t, r, config)
	protocoltest.NoErrors(t, again.Diags)
	if again.Action() != "no-op" {
		t.Fatalf("the plan after an apply is %s:\nstate %v\nplan  %v", again.Action(), r.Get(t, ""), again.Get(t, ""))
	}
}

func foreign(t *testing.T, c *pve.Client, comment string) {
	t.Helper()
	rule := pve.FirewallRule{Type: "in", Action: "ACCEPT", Enable: true, Proto: "tcp", DPort: "9100", Comment: comment}
	if err := c.CreateFirewallRule(t.Context(), pve.NodeFirewall("pve1"), rule, ""); err != nil {
		t.Fatal(err)
	}
}

func comments(t *testing.T, c *pve.Client) string {
	t.Helper()
	rules, err := c.FirewallRules(t.Context(), pve.NodeFirewall("pve1"))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, r := range rules {
		out = append(out, r.Comment)
	}
	return strings.Join(out, "\n")
}

func TestAGuardIsKeptOnTopAndIsChangedInPlace(t *testing.T) {
	t.Parallel()
	_, server, client := start(t)
	foreign(t, client, "theirs 1")
	r := server.NewResource(t, guard)
	config := values{"node_name": "pve1", "bridge": "vmbr1", "resolvers": []any{"10.77.0.1"}}
	apply(t, server, r, config, "create")
	if r.Text(t, "id") != "pve1/vmbr1" || r.Text(t, "bridge") != "vmbr1" {
		t.Errorf("%v", r.Get(t, ""))
	}
	foreign(t, client, "theirs 0")
	protocoltest.NoErrors(t, server.Refresh(t, r))
	if r.Get(t, "above") != float64(1) {
		t.Errorf("above: %v", r.Get(t, "above"))
	}
	apply(t, server, r, config, "update")
	config["allow"] = []any{values{"ports": "3128"}}
	config["dhcp"] = false
	apply(t, server, r, config, "update")
	want := "sandbox_node_guard vmbr1: DNS to the resolver\nsandbox_node_guard vmbr1: allowed\nsandbox_node_guard vmbr1: the rest of the node\ntheirs 0\ntheirs 1"
	if got := comments(t, client); got != want {
		t.Errorf("rules:\n%s", got)
	}
	imported, diags := server.Import(t, guard, "pve1/vmbr1")
	protocoltest.NoErrors(t, diags)
	if plan := server.Plan(t, imported, config); plan.Action() != "update" {
		t.Errorf("after the import: %s %v", plan.Action(), plan.Replace)
	}
	if _, diags = server.ImportByIdentity(t, guard, values{"node_name": "pve1", "guards": "vmbr1"}); protocoltest.HasErrors(diags) {
		t.Error(protocoltest.Text(diags))
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	if got := comments(t, client); got != "theirs 0\ntheirs 1" {
		t.Errorf("left:\n%s", got)
	}
}

func TestAGuardOfASubnetIsRemovedByHandAndComesBack(t *testing.T) {
	t.Parallel()
	_, server, client := start(t)
	r := server.NewResource(t, guard)
	config := values{"node_name": "pve1", "subnet": "10.99.0.0/16", "resolvers": []any{"10.99.0.1"}}
	apply(t, server, r, config, "create")
	if r.Get(t, "bridge") != nil {
		t.Errorf("bridge: %v", r.Get(t, "bridge"))
	}
	for range strings.Count(comments(t, client), "\n") + 1 {
		if err := client.DeleteFirewallRule(t.Context(), pve.NodeFirewall("pve1"), 0, ""); err != nil {
			t.Fatal(err)
		}
	}
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, config, "create")
	config["subnet"] = "10.98.0.0/16"
	apply(t, server, r, config, "replace")
	if got := comments(t, client); strings.Contains(got, "10.99") {
		t.Errorf("the old guard is left:\n%s", got)
	}
}

func TestAGuardThatWouldLockSomebodyOutIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	_, server, _ := start(t)
	for says, config := range map[string]values{
		"cut nodes off":   {"node_name": "pve1", "bridge": "vmbr0"},
		"lock us out":     {"node_name": "pve1", "subnet": "127.0.0.0/8"},
		"10.99.0.0/16":    {"node_name": "pve1", "subnet": "10.99.0.1/16"},
		"no network":      {"node_name": "pve1", "subnet": "here"},
		"open the node":   {"node_name": "pve1", "bridge": "vmbr1", "allow": []any{values{}}},
		"no IPv4 or IPv6": {"node_name": "pve1", "bridge": "vmbr1", "resolvers": []any{"dns"}},
	} {
		plan := server.Plan(t, server.NewResource(t, guard), config)
		if !protocoltest.HasErrors(plan.Diags) || !strings.Contains(protocoltest.Text(plan.Diags), says) {
			t.Errorf("want an error that says %q, got: %s", says, protocoltest.Text(plan.Diags))
		}
	}
}

func TestAWriteThatIsRefusedHalfWayIsTracked(t *testing.T) {
	t.Parallel()
	env, server, client := start(t)
	_, err := env.Lab.Control.Inject(t.Context(), control.Fault{Method: "POST", Pattern: "^/nodes/pve1/firewall/rules$", Nth: 2, Count: -1, Kind: control.Status, Status: 403, Reason: "Permission check failed (/nodes/pve1, Sys.Modify)"})
	if err != nil {
		t.Fatal(err)
	}
	r := server.NewResource(t, guard)
	plan := server.Plan(t, r, values{"node_name": "pve1", "bridge": "vmbr1"})
	protocoltest.NoErrors(t, plan.Diags)
	diags := server.Apply(t, t.Context(), plan)
	if !strings.Contains(protocoltest.Text(diags), "pvesh create /nodes/pve1/firewall/rules") || !r.Tainted {
		t.Errorf("tainted: %v; %s", r.Tainted, protocoltest.Text(diags))
	}
	if err := env.Lab.Control.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	if got := comments(t, client); got != "" {
		t.Errorf("left:\n%s", got)
	}
}
