package nodeguard_test

import (
	"fmt"
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

// TestGuardThroughTerraform is a guard's life beside a rule of somebody else's: create, plan nothing, change in place,
// import, lose its last rule by hand and get it back, destroy.
func TestGuardThroughTerraform(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "a node's own rules are written")
	env := acctest.New(t)
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(somebody.Close)
	foreign(t, somebody, "theirs")
	config := func(allow string) string {
		return env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_node_guard" "sandboxes" {
  node_name = "pve1"
  subnet    = "10.77.0.0/16"
  resolvers = ["10.77.0.1"]
  %s
}
`, allow)
	}
	const guarded = "sandbox_node_guard.sandboxes"
	action := func(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(guarded, a)}}
	}
	proxy := `allow = [{ ports = "3128" }]`
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		CheckDestroy: func(*terraform.State) error {
			if left := comments(t, somebody); left != "theirs" {
				return fmt.Errorf("the node's rules are %q", left)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config: config(""), ConfigPlanChecks: action(plancheck.ResourceActionCreate),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(guarded, tfjsonpath.New("id"), knownvalue.StringExact("pve1/10.77.0.0/16"))},
			},
			{Config: config(proxy), ConfigPlanChecks: action(plancheck.ResourceActionUpdate)},
			{
				ResourceName: guarded, ImportState: true, ImportStateId: "pve1/10.77.0.0/16", ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"resolvers", "allow", "dhcp"}, // what rules were rendered from isn't on the server
			},
			{ // somebody opens the node
				PreConfig: func() {
					rules, err := somebody.FirewallRules(t.Context(), pve.NodeFirewall("pve1"))
					if err != nil {
						t.Fatal(err)
					}
					for i, r := range rules {
						if strings.HasSuffix(r.Comment, "the rest of the node") {
							err = somebody.DeleteFirewallRule(t.Context(), pve.NodeFirewall("pve1"), i, "")
						}
					}
					if err != nil {
						t.Fatal(err)
					}
				},
				Config: config(proxy), ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
		},
	})
}
