package firewall_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
)

// TestGroupThroughTerraform is a group's life with a member: create, plan nothing, change in place, import, see drift and
// repair it, be kept while it is in use, destroy.
func TestGroupThroughTerraform(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	acctest.NeedsPrivilege(t, env, "/", "Sys.Modify")
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Close()
	name := (&fixture{env: env}).name("cli")
	config := func(cidrs string, member bool) string {
		text := env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_firewall_group" "agents" {
  name      = %q
  mode      = "allowlist"
  resolvers = ["9.9.9.9"]
  allow     = [{ cidrs = %s, ports = "443" }, { to = "10.20.0.7", ports = "5432" }]
}

resource "sandbox_firewall_group" "own" {
  name = %q
  rule = concat(
    provider::sandbox::egress_rules("web", ["0.0.0.0/0"], ["9.9.9.9"], [{ to = "203.0.113.25", ports = "25,587" }]),
    [{ direction = "out", action = "REJECT", log = "info", comment = "the rest" }],
  )
}
`, name, cidrs, name+"2")
		if member {
			text += fmt.Sprintf(`
resource "sandbox_container" "member" {
  hostname = "member"
  cores    = 1
  network  = { ipv4 = "auto", mode = "allowlist", firewall_group = %q }
  depends_on = [sandbox_firewall_group.agents]
}
`, name)
		}
		return text
	}
	const agents = "sandbox_firewall_group.agents"
	action := func(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(agents, a)}}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		CheckDestroy: func(*terraform.State) error {
			groups, err := somebody.FirewallGroups(t.Context())
			if err != nil {
				return err
			}
			sets, err := somebody.FirewallIPSets(t.Context(), pve.ClusterFirewall())
			if err != nil {
				return err
			}
			for _, g := range groups {
				if strings.HasPrefix(g.Group, name) {
					return fmt.Errorf("group %s is left behind", g.Group)
				}
			}
			for _, s := range sets {
				if strings.HasPrefix(s.Name, name) {
					return fmt.Errorf("IP set %s is left behind", s.Name)
				}
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config:           config(`["203.0.113.0/24", "2001:db8::/32"]`, true),
				ConfigPlanChecks: action(plancheck.ResourceActionCreate),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(agents, tfjsonpath.New("ip_sets").AtMapKey(name+"-allow-tcp-443"), knownvalue.ListSizeExact(2)),
					statecheck.ExpectKnownValue(agents, tfjsonpath.New("ip_sets").AtMapKey(name+"-inside-tcp-5432"), knownvalue.ListSizeExact(1)),
				},
			},
			{
				Config:           config(`["203.0.113.0/25", "2001:db8::/32", "198.51.100.0/24"]`, true),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			{
				ResourceName: agents, ImportState: true, ImportStateId: name, ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"mode", "allow", "resolvers"}, // what rules were rendered from isn't on the server
			},
			{ // somebody opens it
				PreConfig: func() {
					rule := pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true}
					if err := somebody.CreateFirewallRule(t.Context(), pve.GroupFirewall(name), rule, ""); err != nil {
						t.Fatal(err)
					}
				},
				Config:           config(`["203.0.113.0/25", "2001:db8::/32", "198.51.100.0/24"]`, true),
				ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			{ // the group goes, its member stays: refused, and nothing is touched
				Config: env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_container" "member" {
  hostname = "member"
  cores    = 1
  network  = { ipv4 = "auto", mode = "allowlist", firewall_group = %q }
}
`, name),
				ExpectError: regexp.MustCompile(`(?s)in use.*member`),
			},
			{Config: config(`["203.0.113.0/25", "2001:db8::/32", "198.51.100.0/24"]`, false)},
		},
	})
}
