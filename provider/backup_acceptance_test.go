package provider_test

import (
	"context"
	"fmt"
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

// savedWork is a sandbox with a file, a backup of it, and a sandbox that is made from the backup.
func savedWork(t *testing.T, env *acctest.Environment, trigger, notes string) string {
	t.Helper()
	return env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_container" "work" {
  hostname = "work"
  cores    = 1
  %[3]s
}

resource "sandbox_file" "result" {
  container_id = sandbox_container.work.id
  path         = "/root/result.txt"
  content      = "a day's work\n"
}

resource "sandbox_backup" "result" {
  container_id = sandbox_container.work.id
  storage      = %[4]q
  notes        = %[1]q
  triggers     = { result = sandbox_file.result.sha256, again = %[2]q }
}

resource "sandbox_container" "again" {
  hostname           = "again"
  restore_from       = sandbox_backup.result.volid
  on_template_change = "keep"
  %[3]s
}

data "sandbox_file" "again" {
  container_id = sandbox_container.again.id
  path         = "/root/result.txt"
}
`, notes, trigger, env.Network(t), env.Backups)
}

// TestBackupsThroughTerraform: made, renewed in place, imported, removed by hand and made again, restored, destroyed.
func TestBackupsThroughTerraform(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsPrivilege(t, env, "/vms", "VM.Backup")
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Close()
	backups := func(ctx context.Context) ([]pve.StorageVolume, error) {
		all, err := somebody.StorageContent(ctx, env.Node(), env.Backups, "backup", 0)
		var ours []pve.StorageVolume
		for _, v := range all {
			if v.VMID >= env.VMIDs.First && v.VMID <= env.VMIDs.Last {
				ours = append(ours, v)
			}
		}
		return ours, err
	}
	const backup, again = "sandbox_backup.result", "sandbox_container.again"
	kept, renewed := statecheck.CompareValue(compare.ValuesSame()), statecheck.CompareValue(compare.ValuesDiffer())
	checks := func() []statecheck.StateCheck {
		return []statecheck.StateCheck{
			kept.AddStateValue(backup, tfjsonpath.New("claim")),
			renewed.AddStateValue(backup, tfjsonpath.New("volid")),
			statecheck.ExpectKnownValue("data.sandbox_file.again", tfjsonpath.New("content"), knownvalue.StringExact("a day's work\n")),
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		CheckDestroy: func(*terraform.State) error {
			left, err := backups(context.WithoutCancel(t.Context()))
			if err != nil || len(left) != 0 {
				return fmt.Errorf("backups left behind: %v, %w", left, err)
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: savedWork(t, env, "1", "first"), ConfigStateChecks: checks()},
			{ // a new backup, and nobody is made anew for it
				Config: savedWork(t, env, "2", "first"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(backup, plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction(again, plancheck.ResourceActionNoop),
				}},
				ConfigStateChecks: checks(),
			},
			{
				Config: savedWork(t, env, "2", "second"),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(backup, tfjsonpath.New("notes"), knownvalue.StringExact("second")),
				},
			},
			{
				ResourceName:            backup,
				ImportState:             true,
				ImportStateVerify:       true,
				ImportStateVerifyIgnore: []string{"triggers"}, // only the configuration knows them
			},
			{
				ResourceName:            again,
				ImportState:             true,
				ImportStateVerify:       true,
				ImportStateVerifyIgnore: []string{"timings", "ssh.host_key", "on_template_change", "posture.proof"},
			},
			{
				PreConfig: func() {
					all, err := backups(t.Context())
					if err != nil || len(all) != 1 {
						t.Fatalf("%v, %v", all, err)
					}
					upid, err := somebody.DeleteVolume(t.Context(), env.Node(), all[0].VolID)
					if err != nil {
						t.Fatal(err)
					}
					if _, err := somebody.Wait(t.Context(), upid, func(string) {}); err != nil {
						t.Fatal(err)
					}
				},
				Config: savedWork(t, env, "2", "second"),
				ConfigPlanChecks: resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction(backup, plancheck.ResourceActionCreate),
					plancheck.ExpectResourceAction(again, plancheck.ResourceActionNoop),
				}},
			},
		},
	})
}
