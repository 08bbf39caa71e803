package template_test

import (
	"context"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// build makes a template as a builder does: a clone with the template's marker, converted. It is destroyed when the test
// ends.
func build(t *testing.T, env *acctest.Environment, vmid int, name, tags string, phase sandbox.Phase, summary sandbox.TemplateSummary) {
	t.Helper()
	marker, err := sandbox.TemplateMarker(env.Owner, strings.Repeat("t", sandbox.ClaimLength), vmid, phase, summary)
	if err != nil {
		t.Fatal(err)
	}
	description, err := sandbox.JoinDescription("built by a test", marker)
	if err != nil {
		t.Fatal(err)
	}
	made(t, env, vmid, name, tags, description)
}

func made(t *testing.T, env *acctest.Environment, vmid int, name, tags, description string) {
	t.Helper()
	client, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	wait := func(upid pve.UPID, err error) {
		t.Helper()
		if err == nil {
			_, err = client.Wait(context.WithoutCancel(t.Context()), upid, func(string) {})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wait(client.CloneLXC(t.Context(), env.Node(), env.TemplateID, pve.CloneOptions{NewID: vmid, Hostname: name, Description: description}))
	t.Cleanup(func() {
		wait(client.DeleteLXC(context.WithoutCancel(t.Context()), env.Node(), vmid, pve.DeleteOptions{Purge: true}))
	})
	if err := client.UpdateLXC(t.Context(), env.Node(), vmid, pve.LXCUpdate{Set: map[string]string{"tags": tags}}); err != nil {
		t.Fatal(err)
	}
	if err := client.ConvertToTemplate(t.Context(), env.Node(), vmid); err != nil {
		t.Fatal(err)
	}
}

func summaryOf(build string, at time.Time) sandbox.TemplateSummary {
	return sandbox.TemplateSummary{
		BuildID: build, BuiltAt: at, OS: "debian:12", Source: "local:vztmpl/debian-12-standard_12.7-1_amd64.tar.zst", Profile: "standard", Grade: "A+", Score: 98,
		Agents: map[string]string{"codex": "0.169.0"}, Digest: strings.Repeat("ab", 32),
	}
}

func TestTheNewestTemplateIsFoundWithWhatItsMarkerSays(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	name := "agents-" + strconv.Itoa(env.VMIDs.First)
	old, current, unfinished := env.VMID(1), env.VMID(2), env.VMID(3)
	at := time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)
	build(t, env, current, name, "agents;weekly", sandbox.PhaseReady, summaryOf("20261201T080000Z", at))
	build(t, env, old, name, "agents", sandbox.PhaseReady, summaryOf("20261124T080000Z", at.Add(-7*24*time.Hour)))
	build(t, env, unfinished, name, "agents", sandbox.PhaseCreating, summaryOf("20261208T080000Z", at.Add(7*24*time.Hour)))
	server := protocoltest.For(t, env, nil)

	got, diags := server.Data(t, "sandbox_template", values{"name": name, "newest": true})
	protocoltest.NoErrors(t, diags)
	for attribute, want := range map[string]any{
		"id": float64(current), "node_name": env.Node(), "owner": env.Owner, "description": "built by a test", "build_id": "20261201T080000Z", "built_at": "2026-12-01T08:00:00Z",
		"os": "debian:12", "profile": "standard", "grade": "A+", "manifest_sha256": strings.Repeat("ab", 32), "unprivileged": true,
	} {
		if v := got.(map[string]any)[attribute]; !equal(v, want) {
			t.Errorf("%s is %v (%T), not %v", attribute, v, v, want)
		}
	}
	if agents := got.(map[string]any)["agents"].(map[string]any); agents["codex"] != "0.169.0" {
		t.Errorf("the agents are %v", agents)
	}

	_, diags = server.Data(t, "sandbox_template", values{"name": name})
	if text := protocoltest.Text(diags); !protocoltest.HasErrors(diags) || !strings.Contains(text, "2 templates match") || !strings.Contains(text, strconv.Itoa(old)) || !strings.Contains(text, "newest = true") {
		t.Errorf("several templates: %s", text)
	}
	if id := server.ReadData(t, "sandbox_template", values{"tags": []any{"Weekly", "agents"}, "owner": env.Owner}, "id"); !equal(id, float64(current)) {
		t.Errorf("by tags: %v", id)
	}
	_, diags = server.Data(t, "sandbox_template", values{"name": name, "tags": []any{"nightly"}})
	if text := protocoltest.Text(diags); !strings.Contains(text, "SBX306") || !strings.Contains(text, name) || !strings.Contains(text, "nightly") {
		t.Errorf("no template: %s", text)
	}
}

// A container that clones a template remembers the build, and its audit is by the template's profile.
func TestASandboxOfATemplateIsAuditedByItsMarker(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	vmid := env.VMID(1)
	summary := summaryOf("20261201T080000Z", time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC))
	summary.Profile = "docker"
	build(t, env, vmid, "docker-"+strconv.Itoa(vmid), "", sandbox.PhaseReady, summary)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1", "template_id": vmid})))
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	got, diags := server.Data(t, "sandbox_audit", values{"container_id": r.Text(t, "id")})
	protocoltest.NoErrors(t, diags)
	if p := got.(map[string]any)["profile"]; p != "docker" {
		t.Errorf("the profile is %v", p)
	}
	for _, f := range got.(map[string]any)["findings"].([]any) {
		if f := f.(map[string]any); f["id"] == "G17.2" && f["status"] != "failed" {
			t.Errorf("a sandbox without the manifest that its template's marker names: %v", f)
		}
	}
}

// A copy that somebody made by hand carries the marker of another template: nothing of it counts.
func TestACopyOfATemplateHasNoSummary(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	vmid := env.VMID(1)
	marker, err := sandbox.TemplateMarker("somebody", strings.Repeat("t", sandbox.ClaimLength), vmid+1, sandbox.PhaseReady, summaryOf("b1", time.Now()))
	if err != nil {
		t.Fatal(err)
	}
	name := "copy-" + strconv.Itoa(vmid)
	made(t, env, vmid, name, "", "mine\n"+marker.String())
	got, diags := protocoltest.For(t, env, nil).Data(t, "sandbox_template", values{"name": name})
	protocoltest.NoErrors(t, diags)
	for _, attribute := range []string{"owner", "build_id", "grade", "score", "agents", "built_at"} {
		if v := got.(map[string]any)[attribute]; v != nil {
			t.Errorf("%s is %v", attribute, v)
		}
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{"nothing": {}, "only newest": {"newest": true}, "no tags": {"tags": []any{}}, "an empty name": {"name": ""}} {
		if diags := server.ValidateData(t, "sandbox_template", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
}

func equal(got, want any) bool {
	if n, ok := want.(float64); ok {
		switch v := got.(type) {
		case float64:
			return v == n
		case int64:
			return float64(v) == n
		case int:
			return float64(v) == n
		}
		return false
	}
	return got == want
}
