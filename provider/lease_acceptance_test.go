package provider_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/compare"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
)

// expireAll moves the end of every lease of the test's owner into the past, on the server: what hours do otherwise.
func expireAll(ctx context.Context, client *pve.Client, env *acctest.Environment) error {
	client.Lists().Drop()
	list, err := client.LXCList(ctx, env.Node())
	if err != nil {
		return err
	}
	for _, g := range list {
		if g.VMID < env.VMIDs.First || g.VMID > env.VMIDs.Last {
			continue
		}
		cfg, err := client.LXCConfig(ctx, env.Node(), g.VMID)
		if err != nil {
			return err
		}
		text, m := sandbox.SplitDescription(cfg.Text("description"))
		if m == nil || m.Owner != env.Owner || m.Expires.IsZero() {
			continue
		}
		m.Expires = time.Now().Add(-time.Hour)
		description, err := sandbox.JoinDescription(text, m)
		if err != nil {
			return err
		}
		if err := client.UpdateLXC(ctx, env.Node(), g.VMID, pve.LXCUpdate{Set: map[string]string{"description": description}}); err != nil {
			return err
		}
	}
	return nil
}

// TestLeasesThroughTerraform: made with an end, renewed in place, imported, replaced when it is over, and reaped.
func TestLeasesThroughTerraform(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	defer somebody.Close()
	config := func(renew, onExpiry, more string) string {
		return env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_container" "box" {
  hostname = "box"
  cores    = 1
  %s
  lease = {
    ttl       = "8h"
    renew     = %q
    on_expiry = %q
  }
}
`, env.Network(t), renew, onExpiry) + more
	}
	const reaper = `
resource "sandbox_reaper" "janitor" {
  dry_run = false
}
`
	const box, janitor = "sandbox_container.box", "sandbox_reaper.janitor"
	does := func(address string, action plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(address, action)}}
	}
	expire := func() {
		if err := expireAll(t.Context(), somebody, env); err != nil {
			t.Fatal(err)
		}
	}
	claim := statecheck.CompareValue(compare.ValuesSame())
	alive := []statecheck.StateCheck{
		statecheck.ExpectKnownValue(box, tfjsonpath.New("expired"), knownvalue.Bool(false)),
		statecheck.ExpectKnownValue(box, tfjsonpath.New("status"), knownvalue.StringExact("running")),
	}
	same := func() []statecheck.StateCheck {
		return append([]statecheck.StateCheck{claim.AddStateValue(box, tfjsonpath.New("claim"))}, alive...)
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		CheckDestroy: func(*terraform.State) error {
			list, err := somebody.LXCList(context.WithoutCancel(t.Context()), env.Node())
			for _, g := range list {
				if g.VMID >= env.VMIDs.First && g.VMID <= env.VMIDs.Last {
					return fmt.Errorf("container %d is left behind", g.VMID)
				}
			}
			return err
		},
		Steps: []resource.TestStep{
			{Config: config("first", "warn", ""), ConfigStateChecks: same()},
			{ // renewed in place, though it was over
				PreConfig: expire,
				Config:    config("second", "replace", ""), ConfigPlanChecks: does(box, plancheck.ResourceActionUpdate), ConfigStateChecks: same(),
			},
			{
				ResourceName: box, ImportState: true, ImportStateVerify: true,
				ImportStateVerifyIgnore: []string{"timings", "ssh.host_key", "lease.on_expiry"}, // the server knows none of them
			},
			{ // replaced when it is over
				PreConfig: expire,
				Config:    config("second", "replace", ""), ConfigPlanChecks: does(box, plancheck.ResourceActionReplace), ConfigStateChecks: alive,
			},
			{ // the apply that makes the reaper only looks: what it sees isn't over
				Config: config("second", "warn", reaper), ConfigPlanChecks: does(janitor, plancheck.ResourceActionCreate),
				ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(janitor, tfjsonpath.New("candidates"), knownvalue.ListSizeExact(0))},
			},
			{ // Terraform has the same state hold both here: the reaper takes the box, and the plan after it makes a new one
				PreConfig: expire,
				Config:    config("second", "warn", reaper), ConfigPlanChecks: does(janitor, plancheck.ResourceActionUpdate),
				ConfigStateChecks:  []statecheck.StateCheck{statecheck.ExpectKnownValue(janitor, tfjsonpath.New("reaped"), knownvalue.ListSizeExact(1))},
				ExpectNonEmptyPlan: true,
			},
			{Config: config("second", "warn", reaper), ConfigPlanChecks: does(box, plancheck.ResourceActionCreate), ConfigStateChecks: alive},
		},
	})
}
