package workspace_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"no name":                  {"size": 1},
		"an empty name":            {"name": "", "size": 1},
		"neither size nor source":  {"name": "w"},
		"no size to speak of":      {"name": "w", "size": 0},
		"a source that is no id":   {"name": "w", "fork_of": "repo"},
		"a timeout that isn't one": {"name": "w", "size": 1, "timeouts": values{"create": "soon"}},
	} {
		if diags := server.Validate(t, "sandbox_workspace", config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
	for name, element := range map[string]values{
		"no path":            {"id": "100000"},
		"no id":              {"path": "/w"},
		"an id that is none": {"id": "repo", "path": "/w"},
		"a wait that is none": {
			"id": "100000", "path": "/w", "wait": "long",
		},
	} {
		config := values{"hostname": "web-1", "template_id": 9000, "workspace": []any{element}}
		if diags := server.Validate(t, "sandbox_container", config); !protocoltest.HasErrors(diags) {
			t.Errorf("an attachment with %s was accepted", name)
		}
	}
}

// fixture is a server and what a test has made on it.
type fixture struct {
	t      *testing.T
	env    *acctest.Environment
	server *protocoltest.Server
	client *pve.Client
}

func start(t *testing.T) *fixture {
	t.Helper()
	env := acctest.New(t)
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return &fixture{t, env, protocoltest.For(t, env, nil), c}
}

// make makes a resource that is destroyed at the end.
func (f *fixture) make(typeName string, config values) *protocoltest.Resource {
	f.t.Helper()
	r := f.server.NewResource(f.t, typeName)
	f.t.Cleanup(func() {
		if diags := f.server.Destroy(f.t, context.WithoutCancel(f.t.Context()), r); protocoltest.HasErrors(diags) {
			f.t.Errorf("destroying %s: %s", typeName, protocoltest.Text(diags))
		}
	})
	f.apply(r, config, "create")
	return r
}

// apply plans, expects the action, applies, and expects that nothing is left to do after a refresh.
func (f *fixture) apply(r *protocoltest.Resource, config values, action string) []*tfprotov6.Diagnostic {
	f.t.Helper()
	plan := f.server.Plan(f.t, r, config)
	protocoltest.NoErrors(f.t, plan.Diags)
	if got := plan.Action(); got != action {
		f.t.Fatalf("planned %s, want %s (replace because of %v)", got, action, plan.Replace)
	}
	diags := f.server.Apply(f.t, f.t.Context(), plan)
	protocoltest.NoErrors(f.t, diags)
	f.settled(r, config)
	return diags
}

func (f *fixture) settled(r *protocoltest.Resource, config values) {
	f.t.Helper()
	protocoltest.NoErrors(f.t, f.server.Refresh(f.t, r))
	plan := f.server.Plan(f.t, r, config)
	protocoltest.NoErrors(f.t, plan.Diags)
	if plan.Action() != "no-op" {
		f.t.Fatalf("the plan after an apply is %s:\nstate %v\nplan  %v", plan.Action(), r.Get(f.t, ""), plan.Get(f.t, ""))
	}
}

// name is one that no other test on the same server has.
func (f *fixture) name(s string) string { return fmt.Sprintf("%s-%s", strings.ToLower(f.env.Owner), s) }

func box(hostname string, more values) values {
	out := values{"hostname": hostname}
	for k, v := range more {
		out[k] = v
	}
	return out
}

func attach(ws *protocoltest.Resource, t *testing.T, path string) values {
	return values{"workspace": []any{values{"id": ws.Text(t, "id"), "path": path, "wait": "1s"}}}
}

func vmid(t *testing.T, ws *protocoltest.Resource) int {
	t.Helper()
	n, err := strconv.Atoi(ws.Text(t, "id"))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func (f *fixture) config(id int, node string) *pve.LXCConfig {
	f.t.Helper()
	cfg, err := f.client.LXCConfig(f.t.Context(), node, id)
	if err != nil {
		f.t.Fatal(err)
	}
	return cfg
}

func wants(t *testing.T, diags []*tfprotov6.Diagnostic, texts ...string) {
	t.Helper()
	all := protocoltest.Text(diags)
	for _, text := range texts {
		if !strings.Contains(all, text) {
			t.Errorf("%q is not said:\n%s", text, all)
		}
	}
}

func TestAWorkspaceGoesFromSandboxToSandbox(t *testing.T) {
	t.Parallel()
	f := start(t)
	ws := f.make("sandbox_workspace", values{"name": f.name("repo"), "size": 1})
	if got := ws.Text(t, "status"); got != "detached" {
		t.Errorf("a new workspace is %s", got)
	}
	first := f.make("sandbox_container", box("first", attach(ws, t, "/workspace")))
	f.make("sandbox_exec", values{"container_id": first.Text(t, "id"), "command": []any{"sh", "-c", "su agent -c 'echo kept > /workspace/f' || { echo kept > /workspace/f; chown agent: /workspace/f; }"}})
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	if ws.Text(t, "status") != "attached" || ws.Text(t, "container_id") != first.Text(t, "id") || ws.Text(t, "path") != "/workspace" {
		t.Errorf("while attached: %v", ws.Get(t, ""))
	}
	f.settled(ws, values{"name": f.name("repo"), "size": 1})

	// A second sandbox is told who has it, at plan and at apply.
	second := f.server.NewResource(t, "sandbox_container")
	config := box("second", attach(ws, t, "/srv"))
	plan := f.server.Plan(t, second, config)
	protocoltest.NoErrors(t, plan.Diags)
	wants(t, plan.Diags, "is held by container "+first.Text(t, "id"))
	diags := f.server.Apply(t, t.Context(), plan)
	if !protocoltest.HasErrors(diags) {
		t.Fatal("two sandboxes have the same workspace")
	}
	wants(t, diags, "is held by container "+first.Text(t, "id"), "ake the workspace out of container")
	protocoltest.NoErrors(t, f.server.Destroy(t, t.Context(), second))

	// Destroyed, the first one hands it back.
	protocoltest.NoErrors(t, f.server.Destroy(t, t.Context(), first))
	third := f.make("sandbox_container", box("third", attach(ws, t, "/srv")))
	read := f.make("sandbox_exec", values{"container_id": third.Text(t, "id"), "command": []any{"sh", "-c", "cat /srv/f; stat -c %U /srv/f /srv"}})
	if got := read.Text(t, "stdout"); got != "kept\nagent\nagent\n" {
		t.Errorf("the third sandbox reads %q", got)
	}
	diags = f.server.Destroy(t, t.Context(), ws)
	wants(t, diags, "is held by container "+third.Text(t, "id"))
	if len(f.config(vmid(t, ws), ws.Text(t, "node_name")).Mounts()) != 0 || !ws.Exists() {
		t.Error("an attached workspace was destroyed")
	}
}

func TestADetachFromARunningSandboxIsPendingOrRestartsIt(t *testing.T) {
	t.Parallel()
	f := start(t)
	ws := f.make("sandbox_workspace", values{"name": f.name("repo"), "size": 1})
	r := f.make("sandbox_container", box("box", nil))
	f.apply(r, box("box", attach(ws, t, "/workspace")), "update")
	diags := f.apply(r, box("box", nil), "update")
	wants(t, diags, "detached at the next restart")
	if got := r.Get(t, "posture.pending"); !slices.Equal(list(got), []string{"mp0"}) {
		t.Errorf("pending: %v", got)
	}
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	if got := ws.Text(t, "status"); got != "releasing" {
		t.Errorf("the workspace is %s", got)
	}
	f.apply(r, box("box", values{"restart_when_needed": true}), "update")
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	if got := ws.Text(t, "status"); got != "detached" {
		t.Errorf("after the restart the workspace is %s", got)
	}
}

func list(v any) []string {
	var out []string
	items, _ := v.([]any)
	for _, item := range items {
		out = append(out, fmt.Sprint(item))
	}
	return out
}

func TestAnAttachmentThatWasTakenAwayByHandIsDrift(t *testing.T) {
	t.Parallel()
	f := start(t)
	ws := f.make("sandbox_workspace", values{"name": f.name("repo"), "size": 1})
	config := box("box", attach(ws, t, "/workspace"))
	r := f.make("sandbox_container", config)
	node := r.Text(t, "node_name")
	wait := func(upid pve.UPID, err error) {
		t.Helper()
		if err == nil {
			_, err = f.client.Wait(t.Context(), upid, func(string) {})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	wait(f.client.StopLXC(t.Context(), node, r.VMID(t)))
	wait(f.client.MoveVolume(t.Context(), node, r.VMID(t), pve.MoveVolumeOptions{Volume: "mp0", TargetVMID: vmid(t, ws), TargetVolume: "mp0"}))
	protocoltest.NoErrors(t, f.server.Refresh(t, r))
	if got := r.Get(t, "workspace"); len(got.([]any)) != 0 {
		t.Errorf("the state says %v", got)
	}
	f.apply(r, config, "update")
}

func TestAWorkspaceWhoseHolderWasDeletedGetsANewOne(t *testing.T) {
	t.Parallel()
	f := start(t)
	wsConfig := values{"name": f.name("repo"), "size": 1}
	ws := f.make("sandbox_workspace", wsConfig)
	r := f.make("sandbox_container", box("box", attach(ws, t, "/workspace")))
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	f.removeByHand(ws)

	if diags := f.server.Destroy(t, t.Context(), r); !protocoltest.HasErrors(diags) || !r.Exists() {
		t.Fatalf("a sandbox was destroyed with a workspace that has no holder: %s", protocoltest.Text(diags))
	}
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	if got := ws.Text(t, "status"); got != "holder_missing" {
		t.Fatalf("without its holder the workspace is %s", got)
	}
	id := ws.Text(t, "id")
	f.apply(ws, wsConfig, "update")
	if ws.Text(t, "status") != "attached" || ws.Text(t, "id") != id {
		t.Errorf("restored: %v", ws.Get(t, ""))
	}
	f.settled(r, box("box", attach(ws, t, "/workspace")))

	// Detached, the content goes with the holder: then it is a new one that is planned.
	protocoltest.NoErrors(t, f.server.Destroy(t, t.Context(), r))
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	f.removeByHand(ws)
	protocoltest.NoErrors(t, f.server.Refresh(t, ws))
	if ws.Exists() {
		t.Error("a workspace that is gone for good is still in the state")
	}
	f.apply(ws, wsConfig, "create")
}

func (f *fixture) removeByHand(ws *protocoltest.Resource) {
	f.t.Helper()
	node, id := ws.Text(f.t, "node_name"), vmid(f.t, ws)
	if err := f.client.UpdateLXC(f.t.Context(), node, id, pve.LXCUpdate{Delete: []string{"protection"}}); err != nil {
		f.t.Fatal(err)
	}
	upid, err := f.client.DeleteLXC(f.t.Context(), node, id, pve.DeleteOptions{Force: true, Purge: true})
	if err == nil {
		_, err = f.client.Wait(f.t.Context(), upid, func(string) {})
	}
	if err != nil {
		f.t.Fatal(err)
	}
}

func TestAWorkspaceGrowsIsRenamedForkedAndImported(t *testing.T) {
	t.Parallel()
	f := start(t)
	ws := f.make("sandbox_workspace", values{"name": f.name("repo"), "size": 1})
	grown := values{"name": f.name("renamed"), "size": 2}
	f.apply(ws, grown, "update")
	if got := f.config(vmid(t, ws), ws.Text(t, "node_name")); got.Mounts()[0].Text("size") != "2G" || got.Hostname() != f.name("renamed") {
		t.Errorf("on the server: %s, %s", got.Mounts()[0], got.Hostname())
	}
	plan := f.server.Plan(t, ws, values{"name": f.name("renamed"), "size": 1})
	if !protocoltest.HasErrors(plan.Diags) {
		t.Error("a shrink was planned")
	}
	wants(t, plan.Diags, "can't shrink")

	fork := f.make("sandbox_workspace", values{"name": f.name("fork"), "fork_of": ws.Text(t, "id")})
	if got := fork.Get(t, "size"); fmt.Sprint(got) != "2" {
		t.Errorf("the fork's size is %v", got)
	}
	f.apply(fork, values{"name": f.name("fork"), "size": 2}, "update") // the source is forgotten, the content stays
	if got := fork.Get(t, "fork_of"); got != nil {
		t.Errorf("fork_of is still %v", got)
	}
	f.apply(fork, values{"name": f.name("fork"), "fork_of": ws.Text(t, "id")}, "update")
	if plan := f.server.Plan(t, fork, values{"name": f.name("fork"), "fork_of": fork.Text(t, "id")}); plan.Action() != "replace" {
		t.Errorf("another source is a %s", plan.Action())
	}

	for _, id := range []string{ws.Text(t, "id"), f.name("renamed")} {
		imported, diags := f.server.Import(t, "sandbox_workspace", id)
		protocoltest.NoErrors(t, diags)
		f.settled(imported, grown)
	}
	imported, diags := f.server.ImportByIdentity(t, "sandbox_workspace", values{"vmid": vmid(t, ws)})
	protocoltest.NoErrors(t, diags)
	f.settled(imported, grown)
	for id, want := range map[string]string{strconv.Itoa(f.env.TemplateID): "not the one", "nobody": "no workspace"} {
		_, diags := f.server.Import(t, "sandbox_workspace", id)
		wants(t, diags, want)
	}
	_, diags = f.server.Import(t, "sandbox_container", ws.Text(t, "id"))
	wants(t, diags, "holder of a workspace")
}

func TestAttachmentsAreCheckedAtPlan(t *testing.T) {
	t.Parallel()
	f := start(t)
	ws := f.make("sandbox_workspace", values{"name": f.name("repo"), "size": 1})
	r := f.server.NewResource(t, "sandbox_container")
	for want, config := range map[string]values{
		"is the guest's own":    box("box", attach(ws, t, "/etc")),
		"is no path":            box("box", attach(ws, t, "work")),
		"There is no workspace": box("box", values{"workspace": []any{values{"id": "109998", "path": "/w"}}}),
		"named twice": box("box", values{"workspace": []any{
			values{"id": ws.Text(t, "id"), "path": "/a"}, values{"id": ws.Text(t, "id"), "path": "/b"}}}),
	} {
		plan := f.server.Plan(t, r, config)
		if !protocoltest.HasErrors(plan.Diags) {
			t.Errorf("%s: planned", want)
		}
		wants(t, plan.Diags, want)
	}
}

func TestTheDataSourceSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	f := start(t)
	ws := f.make("sandbox_workspace", values{"name": f.name("repo"), "size": 1})
	read := func(config values) (any, []*tfprotov6.Diagnostic) {
		return f.server.Data(t, "sandbox_workspace", config)
	}
	for _, config := range []values{{"id": ws.Text(t, "id")}, {"name": f.name("repo")}} {
		data, diags := read(config)
		protocoltest.NoErrors(t, diags)
		got := data.(map[string]any)
		if got["healthy"] != true || got["status"] != "detached" || got["id"] != ws.Text(t, "id") || got["name"] != f.name("repo") {
			t.Errorf("by %v: %v", config, got)
		}
	}
	if err := f.client.UpdateLXC(t.Context(), ws.Text(t, "node_name"), vmid(t, ws), pve.LXCUpdate{Delete: []string{"protection"}}); err != nil {
		t.Fatal(err)
	}
	data, diags := read(values{"name": f.name("repo")})
	protocoltest.NoErrors(t, diags)
	problems := data.(map[string]any)["problems"].([]any)
	if len(problems) != 1 || problems[0].(map[string]any)["check"] != "holder" || problems[0].(map[string]any)["remedy"] == "" {
		t.Errorf("without protection: %v", data)
	}
	if _, diags := read(values{"name": "nobody"}); !protocoltest.HasErrors(diags) {
		t.Error("a workspace that isn't there was read")
	}
	if _, diags := read(values{}); !protocoltest.HasErrors(diags) {
		t.Error("neither id nor name was accepted")
	}
}
