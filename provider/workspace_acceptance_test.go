package provider_test

import (
	"fmt"
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

// shared is a configuration of two containers, of which one has the workspace.
func shared(t *testing.T, env *acctest.Environment, has string, size int) string {
	t.Helper()
	return env.ProviderConfig() + fmt.Sprintf(`
locals { has = %[1]q }

resource "sandbox_workspace" "repo" {
  name = provider::sandbox::repo_slug("https://git.example.org/acme/web.git")
  size = %[2]d
}

resource "sandbox_container" "a" {
  hostname            = "a"
  restart_when_needed = true
  workspace           = local.has != "a" ? null : [{ id = sandbox_workspace.repo.id, path = "/workspace" }]
  %[3]s
}

resource "sandbox_container" "b" {
  hostname            = "b"
  restart_when_needed = true
  workspace           = local.has != "b" ? null : [{ id = sandbox_workspace.repo.id, path = "/srv/code" }]
  %[3]s
}

resource "sandbox_exec" "work" {
  container_id = local.has == "a" ? sandbox_container.a.id : sandbox_container.b.id
  script       = "cd ${local.has == "a" ? "/workspace" : "/srv/code"} && hostname >> log && cat log"
  triggers     = { has = local.has }
}

data "sandbox_workspace" "repo" {
  id         = sandbox_workspace.repo.id
  depends_on = [sandbox_exec.work]
}
`, has, size, env.Network(t))
}

// TestAWorkspaceMovesInOneApply is the life of a workspace through the command line: made, attached, moved from one
// running sandbox to another in one apply, grown while it is attached, imported, and handed back before all is destroyed.
func TestAWorkspaceMovesInOneApply(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Close()
	const data, ws = "data.sandbox_workspace.repo", "sandbox_workspace.repo"
	healthy := func(size float64, log string) []statecheck.StateCheck {
		return []statecheck.StateCheck{
			statecheck.ExpectKnownValue("sandbox_exec.work", tfjsonpath.New("stdout"), knownvalue.StringExact(log)),
			statecheck.ExpectKnownValue(data, tfjsonpath.New("healthy"), knownvalue.Bool(true)),
			statecheck.ExpectKnownValue(data, tfjsonpath.New("status"), knownvalue.StringExact("attached")),
			statecheck.ExpectKnownValue(data, tfjsonpath.New("size"), knownvalue.Float64Exact(size)),
		}
	}
	actions := func(a, b, w plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
			plancheck.ExpectResourceAction("sandbox_container.a", a),
			plancheck.ExpectResourceAction("sandbox_container.b", b),
			plancheck.ExpectResourceAction(ws, w),
		}}
	}
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
				Config:            shared(t, env, "a", 1),
				ConfigPlanChecks:  actions(plancheck.ResourceActionCreate, plancheck.ResourceActionCreate, plancheck.ResourceActionCreate),
				ConfigStateChecks: healthy(1, "a\n"),
			},
			{ // the old one lets go, the new one waits for it
				Config:            shared(t, env, "b", 1),
				ConfigPlanChecks:  actions(plancheck.ResourceActionUpdate, plancheck.ResourceActionUpdate, plancheck.ResourceActionNoop),
				ConfigStateChecks: healthy(1, "a\nb\n"),
			},
			{ // where it is, while it is in use
				Config:            shared(t, env, "b", 2),
				ConfigPlanChecks:  actions(plancheck.ResourceActionNoop, plancheck.ResourceActionNoop, plancheck.ResourceActionUpdate),
				ConfigStateChecks: healthy(2, "a\nb\n"),
			},
			{
				ResourceName:      ws,
				ImportState:       true,
				ImportStateVerify: true,
			},
		},
	})
}
