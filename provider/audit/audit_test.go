package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

type fixture struct {
	env    *acctest.Environment
	server *protocoltest.Server
	id     string
}

func sandboxed(t *testing.T, config values) *fixture {
	t.Helper()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	all := values{"hostname": "web-1"}
	for k, v := range config {
		all[k] = v
	}
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, all)))
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	return &fixture{env, server, r.Text(t, "id")}
}

func (f *fixture) audit(t *testing.T, config values) map[string]any {
	t.Helper()
	all := values{"container_id": f.id}
	for k, v := range config {
		all[k] = v
	}
	got, diags := f.server.Data(t, "sandbox_audit", all)
	protocoltest.NoErrors(t, diags)
	return got.(map[string]any)
}

func finding(t *testing.T, got map[string]any, id string) map[string]any {
	t.Helper()
	for _, f := range got["findings"].([]any) {
		if f := f.(map[string]any); f["id"] == id {
			return f
		}
	}
	t.Fatalf("no check %s", id)
	return nil
}

func TestASandboxIsAuditedOutsideAndInside(t *testing.T) {
	t.Parallel()
	f := sandboxed(t, values{"network": values{"ipv4": "auto", "mode": "nat"}})
	got := f.audit(t, nil)
	for _, id := range []string{"C1", "C2.1", "C2.2", "C8"} {
		if c := finding(t, got, id); c["status"] != "passed" || c["remedy"] != nil {
			t.Errorf("%s: %v", id, c)
		}
	}
	if len(got["findings"].([]any)) != len(audit.Checks()) || got["stage"] != "guest" || got["profile"] != "standard" || got["hostname"] != "web-1" {
		t.Errorf("%d findings, stage %v, profile %v", len(got["findings"].([]any)), got["stage"], got["profile"])
	}
	// A template that nobody hardened: what is missing is named, with what to do.
	for _, id := range []string{"G17.1"} {
		if c := finding(t, got, id); c["status"] == "passed" || c["remedy"] == nil {
			t.Errorf("%s: %v", id, c)
		}
	}
	var report struct {
		SchemaVersion int    `json:"schema_version"`
		Grade         string `json:"grade"`
	}
	if err := json.Unmarshal([]byte(got["report"].(string)), &report); err != nil || report.SchemaVersion != 1 || report.Grade != got["grade"] {
		t.Errorf("the report: %v, %v", err, report)
	}
}

func TestTheConfigurationAloneHasAScoreOfItsOwn(t *testing.T) {
	t.Parallel()
	f := sandboxed(t, values{"started": false, "wait_for": "none", "network": values{"ipv4": "auto", "mode": "nat"}, "cores": 1, "memory": 256, "swap": 0, "nesting": true})
	got := f.audit(t, values{"configuration_only": true})
	if len(got["unknown"].([]any)) > 0 || got["grade"] != "A+" || len(got["failed"].([]any)) > 0 {
		t.Errorf("%v: failed %v, unknown %v", got["grade"], got["failed"], got["unknown"])
	}
	for _, c := range got["findings"].([]any) {
		if id := c.(map[string]any)["id"].(string); !strings.HasPrefix(id, "C") {
			t.Errorf("%s is of the inside", id)
		}
	}
	// The inside of one that is stopped can't be seen, and that is no praise.
	got = f.audit(t, nil)
	if c := finding(t, got, "G2"); c["status"] != "unknown" || !strings.Contains(fmt.Sprint(c["evidence"]), "stopped") {
		t.Errorf("G2: %v", c)
	}
	if g := audit.Grade(got["grade"].(string)); g.AtLeast(audit.GradeB) {
		t.Errorf("a sandbox whose inside nobody saw has %s", g)
	}
}

// What somebody changes on the server shows at the next refresh.
func TestWhatSomebodyLoosensIsNamed(t *testing.T) {
	t.Parallel()
	f := sandboxed(t, values{"started": false, "wait_for": "none", "network": values{"ipv4": "auto", "mode": "nat"}})
	client, err := pve.New(f.env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	vmid := f.env.VMIDs.First
	if _, err := fmt.Sscan(f.id, &vmid); err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateLXC(t.Context(), f.env.Node(), vmid, pve.LXCUpdate{Set: map[string]string{"net1": "name=eth1,bridge=" + f.env.Bridge}}); err != nil {
		t.Fatal(err)
	}
	if err := client.UpdateFirewallOptions(t.Context(), pve.LXCFirewall(f.env.Node(), vmid), pve.LXCUpdate{Set: map[string]string{"policy_in": "ACCEPT"}}); err != nil {
		t.Fatal(err)
	}
	got := protocoltest.For(t, f.env, nil)
	v, diags := got.Data(t, "sandbox_audit", values{"container_id": f.id, "configuration_only": true})
	protocoltest.NoErrors(t, diags)
	for id, evidence := range map[string]string{"C6.1": "net1", "C6.2": "policy_in is ACCEPT"} {
		if c := finding(t, v.(map[string]any), id); c["status"] != "failed" || !strings.Contains(fmt.Sprint(c["evidence"]), evidence) {
			t.Errorf("%s: %v", id, c)
		}
	}
}

// A guest that isn't ours is looked at from outside, and never entered.
func TestSomebodyElsesContainerIsNotEntered(t *testing.T) {
	t.Parallel()
	f := sandboxed(t, nil)
	other := *f.env
	other.Owner = "acc-somebody-else"
	got, diags := protocoltest.For(t, &other, nil).Data(t, "sandbox_audit", values{"container_id": f.id})
	protocoltest.NoErrors(t, diags)
	if c := finding(t, got.(map[string]any), "G4"); c["status"] != "unknown" || !strings.Contains(fmt.Sprint(c["evidence"]), "not entered") {
		t.Errorf("G4: %v", c)
	}
	if c := finding(t, got.(map[string]any), "C1"); c["status"] != "passed" {
		t.Errorf("C1: %v", c)
	}
}

func TestATemplatesConfigurationIsAudited(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	got, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_audit", values{"container_id": fmt.Sprint(env.TemplateID)})
	protocoltest.NoErrors(t, diags)
	m := got.(map[string]any)
	if m["stage"] != "template" || len(m["unknown"].([]any)) > 0 {
		t.Errorf("stage %v, unknown %v", m["stage"], m["unknown"])
	}
	if c := finding(t, m, "C6.2"); c["status"] != "not_applicable" {
		t.Errorf("C6.2: %v", c)
	}
}

func TestAContainerThatIsntThereIsAnError(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	_, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_audit", values{"container_id": fmt.Sprint(env.VMID(9))})
	if !protocoltest.HasErrors(diags) || !strings.Contains(protocoltest.Text(diags), "SBX301") {
		t.Errorf("got %s", protocoltest.Text(diags))
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"no container": {}, "a name": {"container_id": "web-1"}, "a profile": {"container_id": "100000", "profile": "loose"},
		"a port": {"container_id": "100000", "allowed_ports": []any{70000}}, "an empty key": {"container_id": "100000", "allowed_keys": []any{""}},
	} {
		if diags := server.ValidateData(t, "sandbox_audit", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
	if diags := server.ValidateData(t, "sandbox_audit", values{"container_id": "100000", "profile": "docker"}); protocoltest.HasErrors(diags) {
		t.Error(protocoltest.Text(diags))
	}
	if !slices.Contains(audit.Profiles(), audit.Docker) {
		t.Error("no profile docker")
	}
}
