package preflight_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestPreflightOfAnAdministratorFindsNothingMissing(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsPrivilege(t, env, "/vms", "VM.Backup") // of the roles that CONTRIBUTING.md lists, not every one has it
	got, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_preflight", nil)
	if protocoltest.HasErrors(diags) {
		t.Fatal(protocoltest.Text(diags))
	}
	p := got.(map[string]any)
	if p["ok"] != true || p["version"] == "" || p["quorate"] != true {
		t.Errorf("got %v", p)
	}
	if missing := p["missing"].([]any); len(missing) > 0 {
		t.Errorf("missing are %v", missing)
	}
	node, _ := p["nodes"].(map[string]any)[env.Nodes[0]].(map[string]any)
	if node == nil || !slices.Contains(node["bridges"].([]any), any(env.Bridge)) {
		t.Fatalf("the nodes are %v", p["nodes"])
	}
	storage, _ := node["storages"].(map[string]any)[env.Storage].(map[string]any)
	if storage == nil || storage["containers"] != true {
		t.Errorf("storage %s is %v", env.Storage, storage)
	}
}

// A token without rights is told what is missing, in warnings, and how to mend it; the plan isn't stopped by it.
func TestPreflightOfATokenWithoutRightsSaysWhatToType(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "makes a token of its own")
	env := acctest.New(t)
	env.APIToken = narrowToken(t, env)
	got, diags := protocoltest.For(t, env, protocoltest.Values{"pool_id": "labpool"}).Data(t, "sandbox_preflight", protocoltest.Values{
		"features": []any{"containers", "snapshots"}, "role_prefix": "CI",
	})
	text := protocoltest.Text(diags)
	if protocoltest.HasErrors(diags) {
		t.Fatal(text)
	}
	for _, want := range []string{"narrow@pve!tf lacks", "VM.Clone on /vms/9000 (containers: clone the template)", "pveum role add CIGuests --privs"} {
		if !strings.Contains(text, want) {
			t.Errorf("the warnings lack %q:\n%s", want, text)
		}
	}
	p := got.(map[string]any)
	if p["ok"] != false || p["quorate"] != nil || len(p["missing"].([]any)) != len(p["privileges"].([]any)) {
		t.Errorf("got %v", p)
	}
	roles := p["roles"].(map[string]any)
	guests, _ := roles["CIGuests"].([]any)
	if !slices.Contains(guests, any("VM.Snapshot")) || slices.Contains(guests, any("VM.Migrate")) || slices.Contains(guests, any("VM.Clone")) {
		t.Errorf("the role for guests is %v", guests)
	}
	if id := p["identity"].(map[string]any); id["user"] != "narrow@pve" || id["name"] != "tf" || id["root"] != false {
		t.Errorf("the identity is %v", id)
	}
}

// The same token, doing something, is sent to the preflight.
func TestAMissingPrivilegePointsToThePreflight(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "makes a token of its own")
	env := acctest.New(t)
	env.APIToken = narrowToken(t, env)
	_, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_cluster", nil)
	text := protocoltest.Text(diags)
	for _, want := range []string{"Sys.Audit", "sandbox_preflight", "Error code SBX204."} {
		if !strings.Contains(text, want) {
			t.Errorf("the error lacks %q:\n%s", want, text)
		}
	}
}

func TestUnknownFeaturesAreRefused(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	_, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_preflight", protocoltest.Values{"features": []any{"teleport"}})
	if !protocoltest.HasErrors(diags) {
		t.Error("a feature that doesn't exist was accepted")
	}
}
