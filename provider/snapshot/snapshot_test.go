package snapshot_test

import (
	"context"
	"strconv"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const resourceType = "sandbox_snapshot"

// box makes a stopped container.
func box(t *testing.T, server *protocoltest.Server) *protocoltest.Resource {
	t.Helper()
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "box", "started": false})))
	t.Cleanup(func() {
		if r.Exists() {
			protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r))
		}
	})
	return r
}

func client(t *testing.T, env *acctest.Environment) *pve.Client {
	t.Helper()
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

func TestANameIsCheckedAtPlanAndTheRightOneOffered(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, offered := range map[string]string{
		"pre-8.4-upgrade": "pre-8-4-upgrade", "8th": "s-8th", "current": "current-", "a b": "a-b", "x": "x-", strings.Repeat("y", 41): "yyy",
	} {
		text := protocoltest.Text(server.Validate(t, resourceType, values{"container_id": "100000", "name": name}))
		if !strings.Contains(text, "can't be a snapshot's name") || !strings.Contains(text, "snapshot_name") || !strings.Contains(text, offered) {
			t.Errorf("%q: %s", name, text)
		}
	}
	for name, config := range map[string]values{
		"no container": {"container_id": "web-1", "name": "clean"},
		"no name":      {"container_id": "100000"},
	} {
		if !protocoltest.HasErrors(server.Validate(t, resourceType, config)) {
			t.Errorf("%s was accepted", name)
		}
	}
	protocoltest.NoErrors(t, server.Validate(t, resourceType, values{"container_id": "100000", "name": "pre-8-4_upgrade"}))
}

func TestSnapshot(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id := box(t, server).Text(t, "id")
	somebody := client(t, env)

	config := values{"container_id": id, "name": "clean", "description": "as delivered\n\nby Terraform"}
	r := server.NewResource(t, resourceType)
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, config)))
	if r.Text(t, "id") != id+"/clean" || r.Get(t, "created_at") == nil || r.Get(t, "parent") != nil || r.Get(t, "description") != config["description"] {
		t.Errorf("made %v, %v, %v, %v", r.Get(t, "id"), r.Get(t, "created_at"), r.Get(t, "parent"), r.Get(t, "description"))
	}
	empty := func(t *testing.T) {
		t.Helper()
		protocoltest.NoErrors(t, server.Refresh(t, r))
		if plan := server.Plan(t, r, config); plan.Action() != "no-op" {
			t.Errorf("planned %s", plan.Action())
		}
	}
	empty(t)

	t.Run("a description changes in place, and goes", func(t *testing.T) {
		created := r.Text(t, "created_at")
		for _, text := range []any{"another\n", nil, "", "again"} {
			config["description"] = text
			plan := server.Plan(t, r, config)
			if plan.Action() != "update" && plan.Action() != "no-op" {
				t.Fatalf("%v planned %s", text, plan.Action())
			}
			protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
			empty(t)
		}
		if r.Text(t, "created_at") != created {
			t.Error("it is another snapshot")
		}
	})
	t.Run("children see their parent, and a parent that goes", func(t *testing.T) {
		child := server.NewResource(t, resourceType)
		childConfig := values{"container_id": id, "name": "child"}
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, child, childConfig)))
		if child.Get(t, "parent") != "clean" {
			t.Errorf("parent %v", child.Get(t, "parent"))
		}
		if got := server.ReadData(t, "sandbox_snapshots", values{"container_id": id}, "names"); len(got.([]any)) != 2 || got.([]any)[0] != "clean" {
			t.Errorf("listed %v", got)
		}
		if got := server.ReadData(t, "sandbox_snapshots", values{"container_id": id}, "parent"); got != "child" {
			t.Errorf("the present state comes from %v", got)
		}
		protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
		protocoltest.NoErrors(t, server.Refresh(t, child))
		if child.Get(t, "parent") != nil {
			t.Errorf("the parent that is gone: %v", child.Get(t, "parent"))
		}
		if plan := server.Plan(t, child, childConfig); plan.Action() != "no-op" {
			t.Errorf("planned %s", plan.Action())
		}
		r = server.NewResource(t, resourceType)
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, config)))
	})
	t.Run("one that somebody deletes is drift", func(t *testing.T) {
		vmid, err := strconv.Atoi(id)
		if err != nil {
			t.Fatal(err)
		}
		upid, err := somebody.DeleteSnapshot(t.Context(), env.Node(), vmid, "clean", false)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := somebody.Wait(t.Context(), upid, func(string) {}); err != nil {
			t.Fatal(err)
		}
		fresh := protocoltest.For(t, env, nil)
		protocoltest.NoErrors(t, fresh.Refresh(t, r))
		if r.Exists() {
			t.Fatal("it is still in the state")
		}
		protocoltest.NoErrors(t, fresh.Apply(t, t.Context(), fresh.Plan(t, r, config)))
	})
	t.Run("an import by id and by identity plans nothing", func(t *testing.T) {
		for _, how := range []string{id + "/clean", env.Node() + "/" + id + "/clean"} {
			imported, diags := server.Import(t, resourceType, how)
			protocoltest.NoErrors(t, diags)
			if plan := server.Plan(t, imported, config); plan.Action() != "no-op" {
				t.Errorf("%s planned %s", how, plan.Action())
			}
		}
		imported, diags := server.ImportByIdentity(t, resourceType, values{"container_id": id, "name": "clean"})
		protocoltest.NoErrors(t, diags)
		if imported.Get(t, "created_at") != r.Get(t, "created_at") {
			t.Error("it is another one")
		}
		for _, wrong := range []string{"clean", id, id + "/", "x/clean", id + "/nosuch"} {
			if _, diags := server.Import(t, resourceType, wrong); !protocoltest.HasErrors(diags) {
				t.Errorf("%q was imported", wrong)
			}
		}
	})
	t.Run("another name replaces", func(t *testing.T) {
		config["name"] = "other"
		plan := server.Plan(t, r, config)
		if plan.Action() != "replace" {
			t.Fatalf("planned %s", plan.Action())
		}
		protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
	})
	t.Run("a name that is taken is an error that says how to import it", func(t *testing.T) {
		second := server.NewResource(t, resourceType)
		text := protocoltest.Text(server.Apply(t, t.Context(), server.Plan(t, second, values{"container_id": id, "name": "child"})))
		if !strings.Contains(text, "already") || !strings.Contains(text, "import") || second.Exists() {
			t.Errorf("it said: %s", text)
		}
	})
	t.Run("somebody else's container is refused at plan", func(t *testing.T) {
		stranger := protocoltest.For(t, env, values{"owner": "stranger"})
		plan := stranger.Plan(t, stranger.NewResource(t, resourceType), values{"container_id": id, "name": "mine"})
		if text := protocoltest.Text(plan.Diags); !strings.Contains(text, "ERROR") || !strings.Contains(text, "owner") {
			t.Errorf("it said: %s", text)
		}
	})
	t.Run("what can't be snapshotted is refused at plan", func(t *testing.T) {
		plan := server.Plan(t, server.NewResource(t, resourceType), values{"container_id": "9000", "name": "mine"})
		if !protocoltest.HasErrors(plan.Diags) {
			t.Error("a template was planned")
		}
	})
}

func TestASnapshotWhoseTaskFailsIsToldAndCanBeTakenAgain(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "makes a task fail")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	id := box(t, server).Text(t, "id")
	if err := env.Lab.Control.FailTask(t.Context(), control.TaskFault{Type: "vzsnapshot", Exit: "No space left on device"}); err != nil {
		t.Fatal(err)
	}
	r := server.NewResource(t, resourceType)
	config := values{"container_id": id, "name": "clean"}
	text := protocoltest.Text(server.Apply(t, t.Context(), server.Plan(t, r, config)))
	if !strings.Contains(text, "Unable to take snapshot clean") || !strings.Contains(text, "No space left") {
		t.Errorf("it said: %s", text)
	}
	protocoltest.NoErrors(t, server.Refresh(t, r))
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, config)))
}
