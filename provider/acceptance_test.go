package provider_test

import (
	"fmt"
	"regexp"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/compare"
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

// fleet is a configuration of three containers, a command and a file in each, and the data sources.
func fleet(t *testing.T, env *acctest.Environment, memory int, description string) string {
	return env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_container" "agent" {
  count       = 3
  hostname    = "agent-${count.index}"
  memory      = %d
  description = %q
  tags        = ["Fleet", "agent-${count.index}"]
  %s
}

resource "sandbox_exec" "hello" {
  count        = 3
  container_id = sandbox_container.agent[count.index].id
  host_key     = sandbox_container.agent[count.index].ssh.host_key
  command      = ["cat", "/etc/hostname"]
  triggers     = { claim = sandbox_container.agent[count.index].claim }
}

resource "sandbox_file" "motd" {
  count        = 3
  container_id = sandbox_container.agent[count.index].id
  path         = "/etc/motd"
  content      = "You are agent ${count.index}.\n"
}

data "sandbox_file" "motd" {
  container_id = sandbox_container.agent[0].id
  path         = sandbox_file.motd[0].path
}

data "sandbox_containers" "mine" {
  tag        = "fleet"
  depends_on = [sandbox_container.agent]
}

output "size" { value = provider::sandbox::size_mib("2G") }
`, memory, description, env.Network(t))
}

// TestFleetThroughTerraform is the main job, end to end: create, plan nothing, change in place, import, see drift and
// repair it, destroy.
func TestFleetThroughTerraform(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Close()
	all := func(action plancheck.ResourceActionType) []plancheck.PlanCheck {
		var checks []plancheck.PlanCheck
		for i := range 3 {
			checks = append(checks, plancheck.ExpectResourceAction(fmt.Sprintf("sandbox_container.agent[%d]", i), action))
		}
		return checks
	}
	same := statecheck.CompareValue(compare.ValuesSame())
	const first = "sandbox_container.agent[0]"
	claim := func() statecheck.StateCheck { return same.AddStateValue(first, tfjsonpath.New("claim")) }
	var vmid string
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		CheckDestroy: func(*terraform.State) error {
			resources, err := somebody.LXCList(t.Context(), env.Node())
			if err != nil {
				return err
			}
			for _, r := range resources {
				if r.VMID >= env.VMIDs.First && r.VMID <= env.VMIDs.Last {
					return fmt.Errorf("container %d is left behind", r.VMID)
				}
			}
			return nil
		},
		Steps: []resource.TestStep{
			{
				Config:           fleet(t, env, 128, "first"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: all(plancheck.ResourceActionCreate)},
				ConfigStateChecks: []statecheck.StateCheck{
					claim(),
					statecheck.ExpectKnownValue(first, tfjsonpath.New("status"), knownvalue.StringExact("running")),
					statecheck.ExpectKnownValue(first, tfjsonpath.New("ipv4_address"), knownvalue.NotNull()),
					statecheck.ExpectKnownValue("sandbox_exec.hello[1]", tfjsonpath.New("stdout"), knownvalue.StringExact("agent-1\n")),
					statecheck.ExpectKnownValue("data.sandbox_file.motd", tfjsonpath.New("content"), knownvalue.StringExact("You are agent 0.\n")),
					statecheck.ExpectKnownValue("data.sandbox_containers.mine", tfjsonpath.New("containers"), knownvalue.ListSizeExact(3)),
					statecheck.ExpectKnownOutputValue("size", knownvalue.Int64Exact(2048)),
				},
			},
			{ // in place, and nothing inside is run again
				Config: fleet(t, env, 256, "second"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: append(all(plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction("sandbox_exec.hello[0]", plancheck.ResourceActionNoop),
					plancheck.ExpectResourceAction("sandbox_file.motd[0]", plancheck.ResourceActionNoop),
				)},
				ConfigStateChecks: []statecheck.StateCheck{claim()},
			},
			{
				ResourceName:            first,
				ImportState:             true,
				ImportStateVerify:       true,
				ImportStateVerifyIgnore: []string{"timings", "ssh.host_key", "tags"}, // two aren't on the server; the third is in its spelling there
				ImportStateIdFunc: func(s *terraform.State) (string, error) {
					vmid = s.RootModule().Resources["sandbox_container.agent.0"].Primary.ID
					return env.Node() + "/" + vmid, nil
				},
			},
			{
				ResourceName:      "sandbox_file.motd[0]",
				ImportState:       true,
				ImportStateVerify: true,
				ImportStateIdFunc: func(*terraform.State) (string, error) { return vmid + "/etc/motd", nil },
			},
			{ // somebody has changed one of them
				PreConfig: func() {
					var id int
					if _, err := fmt.Sscan(vmid, &id); err != nil {
						t.Fatal(err)
					}
					if err := somebody.UpdateLXC(t.Context(), env.Node(), id, pve.LXCUpdate{Set: map[string]string{"memory": "512", "onboot": "1"}}); err != nil {
						t.Fatal(err)
					}
				},
				Config: fleet(t, env, 256, "second"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(first, plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction("sandbox_container.agent[1]", plancheck.ResourceActionNoop),
				}},
				ConfigStateChecks: []statecheck.StateCheck{
					claim(),
					statecheck.ExpectKnownValue(first, tfjsonpath.New("memory"), knownvalue.Int64Exact(256)),
					statecheck.ExpectKnownValue(first, tfjsonpath.New("on_boot"), knownvalue.Bool(false)),
				},
			},
		},
	})
}

func TestRefusalsThroughTerraform(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	refused := func(provider, body, want string) resource.TestStep {
		return resource.TestStep{Config: provider + "\n" + body, PlanOnly: true, ExpectError: regexp.MustCompile(want)}
	}
	one := fmt.Sprintf("resource \"sandbox_container\" \"x\" {\n  hostname = \"web-1\"\n  %s\n}", env.Network(t))
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		Steps: []resource.TestStep{
			refused(env.ProviderConfig(), `resource "sandbox_container" "x" { hostname = "web_1" }`, `(?s)web_1.*DNS`),
			refused(`provider "sandbox" {
  endpoint  = "https://127.0.0.1:1"
  api_token = "u@pve!test=00000000-0000-0000-0000-000000000000"
}`, one, `(?s)no owner.*SANDBOX_OWNER`),
			{ // values of the provider block that another resource makes: planned without the server, applied with it
				Config: env.ProviderConfig(fmt.Sprintf("max_clones = length(terraform_data.%s.id) > 0 ? 2 : 1", "first")) + `
resource "terraform_data" "first" { input = 1 }
` + one,
			},
		},
	})
}
