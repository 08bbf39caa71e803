package container_test

import (
	"context"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// patience bounds waiting for the lab to reach a point; nothing takes nearly as long.
const patience = 30 * time.Second

// hold keeps the nth matching request until release is called.
func hold(t *testing.T, env *acctest.Environment, method, pattern string) (held func(), release func()) {
	t.Helper()
	id, err := env.Lab.Control.Inject(t.Context(), control.Fault{Method: method, Pattern: pattern, Kind: control.Hold})
	if err != nil {
		t.Fatal(err)
	}
	return func() {
			if _, err := env.Lab.Control.WaitHeld(t.Context(), id, 1, patience); err != nil {
				t.Error(err)
			}
		}, func() {
			if err := env.Lab.Control.Release(context.WithoutCancel(t.Context()), id); err != nil {
				t.Error(err)
			}
		}
}

// stopDuring applies a plan and stops it, as SIGINT does, when a request is under way.
func stopDuring(t *testing.T, env *acctest.Environment, server *protocoltest.Server, plan *protocoltest.Plan, method, pattern string) []*tfprotov6.Diagnostic {
	t.Helper()
	held, release := hold(t, env, method, pattern)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	released := make(chan struct{})
	go func() {
		defer close(released)
		held()
		stop()
		release() // a write that was sent is waited for: the answer comes
	}()
	diags := server.Apply(t, ctx, plan)
	<-released // the lab must not be closed under it
	return diags
}

func TestACreationThatIsStoppedIsFinishedInPlace(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "stops at a chosen request")
	for name, at := range map[string]struct{ method, pattern string }{
		"while the clone runs": {"GET", `/tasks/.*vzclone.*/status$`},
		"while configuring":    {"PUT", `/lxc/\d+/config$`},
		"while starting":       {"POST", `/status/start$`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := acctest.New(t)
			server := protocoltest.For(t, env, nil)
			config := values{"hostname": "web-1", "memory": 256, "authorized_keys": []string{key}, "network": values{"ipv4": "auto"}}
			r := server.NewResource(t, resourceType)
			plan := server.Plan(t, r, config)
			diags := stopDuring(t, env, server, plan, at.method, at.pattern)
			protocoltest.NoErrors(t, diags)
			wants(t, diags, "WARNING", "Unfinished", "next apply finishes it in place")
			if !r.Exists() || r.Tainted {
				t.Fatalf("exists %t, tainted %t", r.Exists(), r.Tainted)
			}
			claim := r.Text(t, "claim")
			if got := r.Get(t, "memory"); got != 256.0 {
				t.Errorf("what was planned didn't stay: memory is %v", got)
			}
			if got := r.Get(t, "status"); got != nil {
				t.Errorf("what only the server knows isn't null: status is %v", got)
			}

			// The next run is another process.
			server = protocoltest.For(t, env, nil)
			protocoltest.NoErrors(t, server.Refresh(t, r))
			plan = server.Plan(t, r, config)
			protocoltest.NoErrors(t, plan.Diags)
			wants(t, plan.Diags, "WARNING", "is unfinished")
			if plan.Action() != "update" {
				t.Fatalf("planned %s", plan.Action())
			}
			protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
			settled(t, server, r, config)
			if r.Text(t, "claim") != claim {
				t.Error("it was replaced")
			}
			if r.Get(t, "status") != "running" || r.Get(t, "memory") != 256.0 {
				t.Errorf("status %v, memory %v", r.Get(t, "status"), r.Get(t, "memory"))
			}
			protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
		})
	}
}

func TestACreationThatIsStoppedBeforeAnythingExistsLeavesNothing(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "stops at a chosen request")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, resourceType)
	plan := server.Plan(t, r, values{"hostname": "web-1"})
	server = protocoltest.For(t, env, nil) // no shared list yet
	diags := stopDuring(t, env, server, plan, "GET", `/cluster/resources`)
	wants(t, diags, "ERROR", "Unable to create container web-1")
	if r.Exists() {
		t.Errorf("something is tracked: %v", r.Get(t, ""))
	}
}

func TestACreationThatFailsAfterTheCloneIsTaintedAndReplaced(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "fails a task")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := server.NewResource(t, resourceType)
	if err := env.Lab.Control.FailTask(t.Context(), control.TaskFault{Type: "vzstart"}); err != nil {
		t.Fatal(err)
	}
	diags := server.Apply(t, t.Context(), server.Plan(t, r, config))
	wants(t, diags, "ERROR", "Unable to create container")
	if !r.Exists() || !r.Tainted {
		t.Fatalf("exists %t, tainted %t", r.Exists(), r.Tainted)
	}
	first := r.VMID(t)
	if r.Identity == nil {
		t.Error("no identity")
	}
	if got := r.Get(t, "hostname"); got != "web-1" {
		t.Errorf("the state says %v", got)
	}

	server = protocoltest.For(t, env, nil)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, config, "replace")
	if _, err := client(t, env).LXCConfig(t.Context(), env.Node(), first); r.VMID(t) != first && !pve.Means(err, pve.NoSuchGuest) {
		t.Errorf("the first container is still there: %v", err)
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
}

func TestACreationThatRunsOutOfTimeIsTaintedAndItsTaskEndedBeforeTheDestroy(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "takes its time for a clone")
	env := acctest.New(t)
	delays, err := env.Lab.Control.Delays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	slow := delays
	slow.CloneLinked = time.Minute
	if err := env.Lab.Control.SetDelays(t.Context(), slow); err != nil {
		t.Fatal(err)
	}
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, resourceType)
	diags := server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1", "timeouts": values{"create": "500ms"}}))
	wants(t, diags, "ERROR", "Unable to create container", "timeouts")
	if !r.Exists() || !r.Tainted {
		t.Fatalf("exists %t, tainted %t", r.Exists(), r.Tainted)
	}
	server = protocoltest.For(t, env, nil)
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
	_, err = client(t, env).LXCConfig(t.Context(), env.Node(), env.VMID(0))
	if !pve.Means(err, pve.NoSuchGuest) {
		t.Errorf("it is still there: %v", err)
	}
}

func TestAnUpdateThatIsStoppedKeepsTheStateAndIsMadeByTheNextApply(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "stops at a chosen request")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	config := values{"hostname": "web-1", "memory": 256, "authorized_keys": []string{key}}
	diags := stopDuring(t, env, server, server.Plan(t, r, config), "PUT", `/lxc/\d+/config$`)
	wants(t, diags, "ERROR", "Unable to update container", "interrupted")
	if r.Tainted || r.Get(t, "authorized_keys") != nil {
		t.Errorf("tainted %t, authorized_keys %v", r.Tainted, r.Get(t, "authorized_keys"))
	}
	server = protocoltest.For(t, env, nil)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, config, "update")
}
