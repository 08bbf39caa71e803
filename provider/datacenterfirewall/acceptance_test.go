package datacenterfirewall_test

import (
	"fmt"
	"regexp"
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

// TestSwitchThroughTerraform is the switch's life with a sandbox that waits for it: without it the plan is refused, with
// it one apply turns it on and makes the sandbox; then plan nothing, drift, import, destroy.
func TestSwitchThroughTerraform(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "the datacenter's firewall is turned off and on")
	env := acctest.New(t)
	somebody, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(somebody.Close)
	turn(t, somebody, "0")
	config := func(depends string) string {
		text := env.ProviderConfig() + fmt.Sprintf(`
resource "sandbox_container" "c" {
  hostname = "walled"
  network  = { ipv4 = "auto" }
  %s
}
`, depends)
		if depends != "" {
			text += `resource "sandbox_datacenter_firewall" "on" {}`
		}
		return text
	}
	const thing = "sandbox_datacenter_firewall.on"
	both := config("depends_on = [sandbox_datacenter_firewall.on]")
	action := func(a plancheck.ResourceActionType) resource.ConfigPlanChecks {
		return resource.ConfigPlanChecks{PreApply: []plancheck.PlanCheck{plancheck.ExpectResourceAction(thing, a)}}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: acctest.Factories(provider.New("test")),
		CheckDestroy: func(*terraform.State) error {
			if !on(t, somebody) {
				return fmt.Errorf("the destroy has turned it off, unasked")
			}
			return nil
		},
		Steps: []resource.TestStep{
			{Config: config(""), ExpectError: regexp.MustCompile(`(?s)firewall is off.*depends_on`)},
			{
				Config: both, ConfigPlanChecks: action(plancheck.ResourceActionCreate),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(thing, tfjsonpath.New("enabled"), knownvalue.Bool(true)),
					statecheck.ExpectKnownValue("sandbox_container.c", tfjsonpath.New("posture").AtMapKey("proof"), knownvalue.StringExact("readback")),
				},
			},
			{ // somebody turns it off
				PreConfig: func() { turn(t, somebody, "0") },
				Config:    both, ConfigPlanChecks: action(plancheck.ResourceActionUpdate),
			},
			{ResourceName: thing, ImportState: true, ImportStateId: "datacenter", ImportStateVerify: true, ImportStateVerifyIgnore: []string{"accept_guests", "source_address"}},
		},
	})
}
