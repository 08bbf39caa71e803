package datacenterfirewall_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const firewall = "sandbox_datacenter_firewall"

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"an address that is none": {"source_address": "here"},
		"an end that is none":     {"on_destroy": "off"},
	} {
		if diags := server.Validate(t, firewall, config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
}

func start(t *testing.T) (*protocoltest.Server, *pve.Client) {
	t.Helper()
	acctest.NeedsLab(t, "the datacenter's firewall is turned off and on")
	env := acctest.New(t)
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	turn(t, c, "0")
	return protocoltest.For(t, env, nil), c
}

func turn(t *testing.T, c *pve.Client, to string) {
	t.Helper()
	if err := c.UpdateFirewallOptions(t.Context(), pve.ClusterFirewall(), pve.LXCUpdate{Set: map[string]string{"enable": to}}); err != nil {
		t.Fatal(err)
	}
}

func on(t *testing.T, c *pve.Client) bool {
	t.Helper()
	o, err := c.FirewallOptions(t.Context(), pve.ClusterFirewall())
	if err != nil {
		t.Fatal(err)
	}
	return o.Enable != nil && *o.Enable
}

func apply(t *testing.T, s *protocoltest.Server, r *protocoltest.Resource, config values, action string) {
	t.Helper()
	plan := s.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != action {
		t.Fatalf("planned %s, want %s", got, action)
	}
	protocoltest.NoErrors(t, s.Apply(t, t.Context(), plan))
	protocoltest.NoErrors(t, s.Refresh(t, r))
	if again := s.Plan(t, r, config); again.Action() != "no-op" {
		t.Fatalf("the plan after an apply is %s: %v", again.Action(), again.Get(t, ""))
	}
}

func TestTheSwitchIsTurnedOnKeptOnAndLeftOn(t *testing.T) {
	t.Parallel()
	server, client := start(t)
	r := server.NewResource(t, firewall)
	apply(t, server, r, values{}, "create")
	turn(t, client, "0") // somebody turns it off
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, values{}, "update")
	imported, diags := server.Import(t, firewall, "datacenter")
	protocoltest.NoErrors(t, diags)
	if plan := server.Plan(t, imported, values{}); plan.Action() != "no-op" {
		t.Errorf("after the import: %s: %v", plan.Action(), plan.Get(t, ""))
	}
	diags = server.Destroy(t, t.Context(), r)
	protocoltest.NoErrors(t, diags)
	if !on(t, client) || !strings.Contains(protocoltest.Text(diags), "stays on") {
		t.Errorf("on: %v; %s", on(t, client), protocoltest.Text(diags))
	}
}

func TestTheSwitchIsTurnedOffWhereThatIsAskedFor(t *testing.T) {
	t.Parallel()
	server, client := start(t)
	r := server.NewResource(t, firewall)
	apply(t, server, r, values{"on_destroy": "disable"}, "create")
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	if on(t, client) {
		t.Error("it is still on")
	}
}

func TestWhoWouldBeLockedOutIsSaidAtPlanAndRefusedAtApply(t *testing.T) {
	t.Parallel()
	server, client := start(t)
	cfg, err := client.LXCConfig(t.Context(), "pve1", lab.TemplateID)
	if err != nil {
		t.Fatal(err)
	}
	net0 := cfg.Nets()[0].With("firewall", "1").String()
	if err := client.UpdateLXC(t.Context(), "pve1", lab.TemplateID, pve.LXCUpdate{Set: map[string]string{"net0": net0}}); err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateFirewallOptions(t.Context(), pve.LXCFirewall("pve1", lab.TemplateID), pve.LXCUpdate{Set: map[string]string{"enable": "1"}}); err != nil {
		t.Fatal(err)
	}
	config := values{"source_address": "198.51.100.9"}
	r := server.NewResource(t, firewall)
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	diags := server.Apply(t, t.Context(), plan)
	for what, text := range map[string]string{"plan": protocoltest.Text(plan.Diags), "apply": protocoltest.Text(diags)} {
		for _, says := range []string{"container 9000", "198.51.100.9"} {
			if !strings.Contains(text, says) {
				t.Errorf("%s doesn't name %s: %s", what, says, text)
			}
		}
	}
	if on(t, client) || r.Exists() {
		t.Errorf("on: %v, in the state: %v", on(t, client), r.Exists())
	}
	apply(t, server, r, values{"accept_guests": []any{lab.TemplateID}}, "create")
}
