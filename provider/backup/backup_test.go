package backup_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const resourceType = "sandbox_backup"

func with(base values, changes values) values {
	out := values{}
	for name, v := range base {
		out[name] = v
	}
	for name, v := range changes {
		if out[name] = v; v == nil {
			delete(out, name)
		}
	}
	return out
}

// sandboxed makes a stopped container to back up.
func sandboxed(t *testing.T, server *protocoltest.Server, hostname string) *protocoltest.Resource {
	t.Helper()
	r := server.NewResource(t, "sandbox_container")
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": hostname, "started": false})))
	return r
}

// apply plans, expects the action, applies, refreshes and expects that nothing is left to do.
func apply(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values, action string) []*tfprotov6.Diagnostic {
	t.Helper()
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != action {
		t.Fatalf("planned %s, want %s (replace because of %v)", got, action, plan.Replace)
	}
	diags := server.Apply(t, t.Context(), plan)
	protocoltest.NoErrors(t, diags)
	settled(t, server, r, config)
	return diags
}

func settled(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values) {
	t.Helper()
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != "no-op" {
		t.Fatalf("the plan after an apply is %s:\nstate %v\nplan  %v", got, r.Get(t, ""), plan.Get(t, ""))
	}
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

// stored counts a container's backups.
func stored(t *testing.T, env *acctest.Environment, c *pve.Client, container *protocoltest.Resource) int {
	t.Helper()
	list, err := c.StorageContent(context.WithoutCancel(t.Context()), container.Text(t, "node_name"), env.Backups, "backup", container.VMID(t))
	if err != nil {
		t.Fatal(err)
	}
	return len(list)
}

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	good := values{"container_id": "100000", "storage": "local"}
	for name, change := range map[string]values{
		"no container": {"container_id": "web-1"},
		"no storage":   {"storage": ""},
		"a mode":       {"mode": "fast"},
		"compression":  {"compression": "0"},
		"empty notes":  {"notes": ""},
		"long notes":   {"notes": strings.Repeat("x", 701)},
		"keep none":    {"keep_last": 0},
		"a timeout":    {"timeouts": values{"create": "soon"}},
	} {
		if diags := server.Validate(t, resourceType, with(good, change)); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
	protocoltest.NoErrors(t, server.Validate(t, resourceType, good))
}

func TestABackupsLife(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsPrivilege(t, env, "/vms", "VM.Backup")
	server := protocoltest.For(t, env, nil)
	c := client(t, env)
	container := sandboxed(t, server, "web-1")
	config := values{"container_id": container.Text(t, "id"), "storage": env.Backups, "notes": "before\nthe change"}
	r := server.NewResource(t, resourceType)
	apply(t, server, r, config, "create")
	first := r.Text(t, "volid")
	if r.Text(t, "id") != first || !strings.HasPrefix(first, env.Backups+":backup/vzdump-lxc-") || r.Get(t, "size").(float64) <= 0 ||
		r.Text(t, "node_name") != container.Text(t, "node_name") || len(r.Text(t, "claim")) != 26 || !strings.HasSuffix(r.Text(t, "created_at"), "Z") {
		t.Errorf("the state is %v", r.Get(t, ""))
	}

	t.Run("notes and protection change in place", func(t *testing.T) {
		apply(t, server, r, with(config, values{"notes": "other", "protected": true}), "update")
		if r.Text(t, "volid") != first {
			t.Error("a new backup was made")
		}
		if diags := server.Destroy(t, t.Context(), r); !strings.Contains(protocoltest.Text(diags), "protected = false") || stored(t, env, c, container) != 1 {
			t.Errorf("the destroy of a protected one: %s", protocoltest.Text(diags))
		}
		apply(t, server, r, config, "update")
	})
	t.Run("a trigger makes a new one, which takes the place of the old", func(t *testing.T) {
		config = with(config, values{"triggers": values{"commit": "2"}})
		apply(t, server, r, config, "update")
		if r.Text(t, "volid") == first || stored(t, env, c, container) != 1 {
			t.Errorf("volid %s, %d stored", r.Text(t, "volid"), stored(t, env, c, container))
		}
	})
	t.Run("keep_last keeps some", func(t *testing.T) {
		config = with(config, values{"triggers": values{"commit": "3"}, "keep_last": 2, "compression": "none"})
		apply(t, server, r, config, "update")
		if stored(t, env, c, container) != 2 || !strings.HasSuffix(r.Text(t, "volid"), ".tar") {
			t.Errorf("volid %s, %d stored", r.Text(t, "volid"), stored(t, env, c, container))
		}
		config = with(config, values{"keep_last": 1})
		apply(t, server, r, config, "update")
		if stored(t, env, c, container) != 1 {
			t.Errorf("%d stored", stored(t, env, c, container))
		}
	})
	t.Run("it can be imported", func(t *testing.T) {
		volid := r.Text(t, "volid")
		for _, identity := range []values{nil, {"volid": volid}, {"volid": volid, "node_name": r.Text(t, "node_name")}} {
			var found *protocoltest.Resource
			var diags []*tfprotov6.Diagnostic
			if identity == nil {
				found, diags = server.Import(t, resourceType, volid)
			} else {
				found, diags = server.ImportByIdentity(t, resourceType, identity)
			}
			protocoltest.NoErrors(t, diags)
			settled(t, server, found, with(config, values{"triggers": nil}))
		}
		if _, diags := server.Import(t, resourceType, "100000"); !protocoltest.HasErrors(diags) {
			t.Error("an id that is none was accepted")
		}
	})
	t.Run("one that was removed by hand is made again", func(t *testing.T) {
		upid, err := c.DeleteVolume(t.Context(), r.Text(t, "node_name"), r.Text(t, "volid"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Wait(t.Context(), upid, func(string) {}); err != nil {
			t.Fatal(err)
		}
		protocoltest.NoErrors(t, server.Refresh(t, r))
		if r.Exists() {
			t.Fatal("it is still in the state")
		}
		apply(t, server, r, config, "create")
	})
	t.Run("another container's replaces it", func(t *testing.T) {
		other := sandboxed(t, server, "web-2")
		plan := server.Plan(t, r, with(config, values{"container_id": other.Text(t, "id")}))
		protocoltest.NoErrors(t, plan.Diags)
		if plan.Action() != "replace" {
			t.Errorf("planned %s", plan.Action())
		}
	})
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	if stored(t, env, c, container) != 0 {
		t.Error("it is still on the storage")
	}
}

func TestABackupIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsPrivilege(t, env, "/vms", "VM.Backup")
	server := protocoltest.For(t, env, nil)
	container := sandboxed(t, server, "web-1")
	config := values{"container_id": container.Text(t, "id"), "storage": env.Backups}
	for name, test := range map[string]struct {
		config values
		want   string
	}{
		"a storage that isn't there": {with(config, values{"storage": "nosuch"}), `has no storage "nosuch"`},
		"a variable of the server's": {with(config, values{"notes": "{{guestname}}"}), "They hold {{"},
		"a marker":                   {with(config, values{"notes": "<!-- sandbox v1 x -->"}), "ownership marker"},
	} {
		plan := server.Plan(t, server.NewResource(t, resourceType), test.config)
		if text := protocoltest.Text(plan.Diags); !strings.Contains(text, test.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
	stranger := protocoltest.For(t, env, values{"owner": "stranger"})
	r := stranger.NewResource(t, resourceType)
	diags := stranger.Apply(t, t.Context(), stranger.Plan(t, r, config))
	if text := protocoltest.Text(diags); !strings.Contains(text, "Unable to create backup of container") || !strings.Contains(text, "owner") || r.Exists() {
		t.Errorf("a container of somebody else's: %s", text)
	}
}

func TestAFailedBackupShowsTheTasksLogAndLeavesNothing(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "it fills a storage")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	container := sandboxed(t, server, "web-1")
	config := values{"container_id": container.Text(t, "id"), "storage": env.Backups}
	full := func(total int64) {
		if err := env.Lab.Control.ResizeStorage(t.Context(), control.Storage{Storage: env.Backups, Total: total}); err != nil {
			t.Fatal(err)
		}
	}
	full(1 << 20)
	r := server.NewResource(t, resourceType)
	diags := server.Apply(t, t.Context(), server.Plan(t, r, config))
	text := protocoltest.Text(diags)
	for _, want := range []string{"No space left on device", "ERROR: Backup of VM", "ree space on the storage"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is missing in: %s", want, text)
		}
	}
	if n := stored(t, env, client(t, env), container); n != 0 {
		t.Errorf("%d stored", n)
	}
	if !r.Tainted {
		t.Error("what the server had accepted isn't in the state")
	}
	full(1 << 40)
	apply(t, server, r, config, "replace")
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	if n := stored(t, env, client(t, env), container); n != 0 {
		t.Errorf("after the destroy, %d stored", n)
	}
}

func TestAFailedRenewalKeepsTheOldBackup(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "it lets a task fail")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	container := sandboxed(t, server, "web-1")
	config := values{"container_id": container.Text(t, "id"), "storage": env.Backups}
	r := server.NewResource(t, resourceType)
	apply(t, server, r, config, "create")
	volid := r.Text(t, "volid")
	if err := env.Lab.Control.FailTask(t.Context(), control.TaskFault{Type: "vzdump", Nth: 1, Count: 1, Exit: "job errors"}); err != nil {
		t.Fatal(err)
	}
	next := with(config, values{"triggers": values{"v": "2"}})
	if diags := server.Apply(t, t.Context(), server.Plan(t, r, next)); !protocoltest.HasErrors(diags) {
		t.Fatal("the failure was hidden")
	}
	if r.Text(t, "volid") != volid || r.Tainted || stored(t, env, client(t, env), container) != 1 {
		t.Errorf("volid %s, tainted %t, %d stored", r.Text(t, "volid"), r.Tainted, stored(t, env, client(t, env), container))
	}
	apply(t, server, r, next, "update")
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
}
