package reaper_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const resourceType = "sandbox_reaper"

// laterClock is the real time plus an offset: what a run sees that comes later.
type laterClock struct{ offset time.Duration }

func (c laterClock) Now() time.Time { return time.Now().Add(c.offset) }

func (laterClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// pass lets time go by on the server too, and returns a provider of then.
func pass(t *testing.T, env *acctest.Environment, d time.Duration) *protocoltest.Server {
	t.Helper()
	if _, err := env.Lab.Control.Jump(t.Context(), d); err != nil {
		t.Fatal(err)
	}
	return protocoltest.ForWith(t, env, nil, provider.Options{Domain: sandbox.Options{Clock: laterClock{d}}})
}

func apply(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values, action string) []*tfprotov6.Diagnostic {
	t.Helper()
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != action {
		t.Fatalf("planned %s, want %s", got, action)
	}
	diags := server.Apply(t, t.Context(), plan)
	protocoltest.NoErrors(t, diags)
	return append(plan.Diags, diags...)
}

func container(t *testing.T, server *protocoltest.Server, config values) *protocoltest.Resource {
	t.Helper()
	r := server.NewResource(t, "sandbox_container")
	t.Cleanup(func() {
		protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r))
	})
	full := values{"memory": 64, "started": false}
	for name, v := range config {
		full[name] = v
	}
	apply(t, server, r, full, "create")
	return r
}

func refresh(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource) {
	t.Helper()
	protocoltest.NoErrors(t, server.Refresh(t, r))
}

// names are the hostnames of a list of the reaper's state.
func names(t *testing.T, r *protocoltest.Resource, list string) []string {
	t.Helper()
	out := []string{}
	for _, c := range r.Get(t, list).([]any) {
		out = append(out, c.(map[string]any)["hostname"].(string))
	}
	return out
}

func wants(t *testing.T, diags []*tfprotov6.Diagnostic, texts ...string) {
	t.Helper()
	if !slices.ContainsFunc(diags, func(d *tfprotov6.Diagnostic) bool {
		text := protocoltest.Text([]*tfprotov6.Diagnostic{d})
		return !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) })
	}) {
		t.Errorf("no diagnostic holds all of %q:\n%s", texts, protocoltest.Text(diags))
	}
}

func TestAReaperShowsFirstAndDestroysWhatItHasShown(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "moves the server's clock")
	env := acctest.New(t)
	now := protocoltest.For(t, env, nil)
	over := container(t, now, values{"hostname": "over", "lease": values{"ttl": "1h"}})
	container(t, now, values{"hostname": "kept", "lease": values{"ttl": "1h", "keepalive": true}})
	container(t, now, values{"hostname": "long", "lease": values{"ttl": "100h"}})
	container(t, now, values{"hostname": "none"})

	reaper := now.NewResource(t, resourceType)
	if diags := apply(t, now, reaper, nil, "create"); len(diags) != 0 {
		t.Errorf("with nothing to do it says %s", protocoltest.Text(diags))
	}
	if reaper.Get(t, "dry_run") != true || reaper.Text(t, "id") != env.Owner || len(names(t, reaper, "candidates")) != 0 {
		t.Errorf("the state is %v", reaper.Get(t, ""))
	}

	then := pass(t, env, 2*time.Hour)
	refresh(t, then, reaper)
	if got := names(t, reaper, "candidates"); !slices.Equal(got, []string{"over"}) {
		t.Fatalf("candidates: %v", got)
	}
	if got := reaper.Get(t, "kept.0").(map[string]any); got["hostname"] != "kept" || got["kept"] != "keepalive" {
		t.Errorf("kept: %v", got)
	}
	// dry_run only says so.
	dry := then.Plan(t, reaper, nil)
	if dry.Action() != "no-op" {
		t.Errorf("a dry run plans %s", dry.Action())
	}
	wants(t, dry.Diags, "1 sandboxes could be reaped", "over on "+env.Node(), "expired since")

	wet := values{"dry_run": false}
	diags := apply(t, then, reaper, wet, "update")
	wants(t, diags, "1 sandboxes are reaped", "over")
	if len(names(t, reaper, "candidates")) != 0 || !slices.Equal(names(t, reaper, "reaped"), []string{"over"}) {
		t.Errorf("the state is %v", reaper.Get(t, ""))
	}
	refresh(t, then, reaper)
	if plan := then.Plan(t, reaper, wet); plan.Action() != "no-op" || len(plan.Diags) != 0 {
		t.Errorf("the plan after it is %s: %s", plan.Action(), protocoltest.Text(plan.Diags))
	}
	// To the state that held it, it is clean drift.
	diags = then.Refresh(t, over)
	if over.Exists() || len(diags) != 0 {
		t.Errorf("its own refresh says %s, and it exists: %v", protocoltest.Text(diags), over.Exists())
	}
	left := then.ReadData(t, "sandbox_containers", nil, "containers").([]any)
	if len(left) != 3 {
		t.Errorf("on the server are %v", left)
	}
}

// Nobody has seen what an apply would destroy that makes the reaper.
func TestTheApplyThatMakesAReaperOnlyLooks(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "moves the server's clock")
	env := acctest.New(t)
	over := container(t, protocoltest.For(t, env, nil), values{"hostname": "over", "lease": values{"ttl": "1h"}})
	then := pass(t, env, 2*time.Hour)
	reaper := then.NewResource(t, resourceType)
	wet := values{"dry_run": false}
	wants(t, apply(t, then, reaper, wet, "create"), "1 sandboxes are due", "destroys nothing")
	refresh(t, then, over)
	if !over.Exists() {
		t.Fatal("it was destroyed unseen")
	}
	refresh(t, then, reaper)
	apply(t, then, reaper, wet, "update")
	refresh(t, then, over)
	if over.Exists() {
		t.Error("the next apply didn't destroy it")
	}
}

func TestOrphansNeedTheClaimsOfAllStates(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "moves the server's clock")
	env := acctest.New(t)
	now := protocoltest.For(t, env, nil)
	held := container(t, now, values{"hostname": "held"})
	container(t, now, values{"hostname": "lost"})
	then := pass(t, env, 25*time.Hour)
	reaper := then.NewResource(t, resourceType)
	wet := values{"dry_run": false, "keep_claims": []string{held.Text(t, "claim")}, "grace": "26h"}
	apply(t, then, reaper, wet, "create")
	if got := names(t, reaper, "candidates"); len(got) != 0 {
		t.Errorf("within the grace: %v", got)
	}
	wet["grace"] = "24h"
	apply(t, then, reaper, wet, "update")
	if got := names(t, reaper, "candidates"); !slices.Equal(got, []string{"lost"}) || len(names(t, reaper, "reaped")) != 0 {
		t.Fatalf("after a shorter grace, candidates are %v", got)
	}
	apply(t, then, reaper, wet, "update")
	if got := names(t, reaper, "reaped"); !slices.Equal(got, []string{"lost"}) {
		t.Errorf("reaped %v", got)
	}
	refresh(t, then, held)
	if !held.Exists() {
		t.Error("what a state holds was destroyed")
	}
}

// One that can't be destroyed is an error; the others go, and the state says which.
func TestAReaperGoesOnAfterAFailure(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "moves the server's clock and fails a task")
	env := acctest.New(t)
	now := protocoltest.For(t, env, nil)
	for i := range 3 {
		container(t, now, values{"hostname": fmt.Sprintf("over-%d", i), "lease": values{"ttl": fmt.Sprintf("%dh", i+1)}})
	}
	then := pass(t, env, 5*time.Hour)
	reaper := then.NewResource(t, resourceType)
	wet := values{"dry_run": false, "max_destroy": 2}
	apply(t, then, reaper, wet, "create")
	if err := env.Lab.Control.FailTask(t.Context(), control.TaskFault{Type: "vzdestroy"}); err != nil {
		t.Fatal(err)
	}
	refresh(t, then, reaper)
	plan := then.Plan(t, reaper, wet)
	protocoltest.NoErrors(t, plan.Diags)
	wants(t, plan.Diags, "2 sandboxes are reaped", "1 more are due")
	diags := then.Apply(t, t.Context(), plan)
	wants(t, diags, "Unable to reap container ", "(over-0)", "SBX803")
	if got := names(t, reaper, "reaped"); !slices.Equal(got, []string{"over-1", "over-2"}) {
		t.Errorf("reaped %v", got)
	}
	if got := names(t, reaper, "candidates"); !slices.Equal(got, []string{"over-0"}) {
		t.Errorf("candidates are %v", got)
	}
	apply(t, then, reaper, wet, "update")
	if left := then.ReadData(t, "sandbox_containers", nil, "containers").([]any); len(left) != 0 {
		t.Errorf("on the server are %v", left)
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	claim := strings.Repeat("a", sandbox.ClaimLength)
	for name, config := range map[string]values{
		"no claims":                 {"keep_claims": []string{}},
		"a hostname for a claim":    {"keep_claims": []string{"web-1"}},
		"a grace that is none":      {"grace": "long"},
		"none at all":               {"max_destroy": 0},
		"a backup without a place":  {"snapshot_before_reap": true},
		"a storage without a use":   {"backup_storage": "local"},
		"a storage that can't be":   {"snapshot_before_reap": true, "backup_storage": "a b"},
		"claims that can't be ours": {"keep_claims": []string{strings.Repeat("é", sandbox.ClaimLength/2)}},
	} {
		if diags := server.Plan(t, server.NewResource(t, resourceType), config).Diags; !protocoltest.HasErrors(diags) {
			t.Errorf("%s: %s", name, protocoltest.Text(diags))
		}
	}
	for _, config := range map[string]values{
		"nothing":         nil,
		"everything":      {"dry_run": false, "keep_claims": []string{claim}, "grace": "1h", "max_destroy": 1, "snapshot_before_reap": true, "backup_storage": "local"},
		"unknown claims":  {"keep_claims": protocoltest.Unknown},
		"unknown storage": {"snapshot_before_reap": true, "backup_storage": protocoltest.Unknown},
	} {
		protocoltest.NoErrors(t, server.Plan(t, server.NewResource(t, resourceType), config).Diags)
	}
}

func TestAReaperNeedsAnOwner(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	variables := env.Variables()
	server := protocoltest.New(t, provider.NewWith(provider.Options{Version: "test", Getenv: func(name string) string {
		if name == "SANDBOX_OWNER" {
			return ""
		}
		return variables[name]
	}}), nil)
	wants(t, server.Plan(t, server.NewResource(t, resourceType), nil).Diags, "owner", "SBX101")
}
