package rollback_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const (
	resourceType = "sandbox_rollback"
	key          = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ2Vv8Wl3Y4v5bq0o1o0kq3m7yGx0m1w5m7yqj1bJ7kX a"
)

// scene is a container with a snapshot "clean", changed since.
type scene struct {
	server    *protocoltest.Server
	container *protocoltest.Resource
	config    values
}

func apply(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values) {
	t.Helper()
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, config)))
}

func newScene(t *testing.T, env *acctest.Environment) *scene {
	t.Helper()
	s := &scene{server: protocoltest.For(t, env, nil), config: values{"hostname": "box", "memory": 128, "tags": []string{"first"}}}
	s.container = s.server.NewResource(t, "sandbox_container")
	apply(t, s.server, s.container, s.config)
	t.Cleanup(func() {
		protocoltest.NoErrors(t, s.server.Destroy(t, context.WithoutCancel(t.Context()), s.container))
	})
	snapshot := s.server.NewResource(t, "sandbox_snapshot")
	apply(t, s.server, snapshot, values{"container_id": s.id(t), "name": "clean"})
	s.config["memory"], s.config["tags"], s.config["authorized_keys"] = 256, []string{"second"}, []string{key}
	apply(t, s.server, s.container, s.config)
	s.sh(t, "echo mess > /root/mess")
	return s
}

func (s *scene) id(t *testing.T) string { t.Helper(); return s.container.Text(t, "id") }

func (s *scene) sh(t *testing.T, script string) string {
	t.Helper()
	r := s.server.NewResource(t, "sandbox_exec")
	apply(t, s.server, r, values{"container_id": s.id(t), "script": script})
	return strings.TrimSpace(r.Text(t, "stdout"))
}

// clean checks that the disk is the snapshot's and that a refresh of the container finds nothing to do.
func (s *scene) clean(t *testing.T) {
	t.Helper()
	protocoltest.NoErrors(t, s.server.Refresh(t, s.container))
	plan := s.server.Plan(t, s.container, s.config)
	if plan.Action() != "no-op" || len(plan.Diags) > 0 {
		t.Errorf("the container planned %s: %s", plan.Action(), protocoltest.Text(plan.Diags))
	}
	if got := s.sh(t, "ls /root/mess 2>/dev/null; grep -c ' a$' /root/.ssh/authorized_keys"); got != "1" {
		t.Errorf("inside: %q", got)
	}
}

func TestValidation(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	for name, config := range map[string]values{
		"no container":     {"container_id": "web-1", "snapshot_name": "clean"},
		"a name with dots": {"container_id": "100000", "snapshot_name": "v1.0"},
		"another power":    {"container_id": "100000", "snapshot_name": "clean", "power": "off"},
		"another wait":     {"container_id": "100000", "snapshot_name": "clean", "wait_for": "ping"},
	} {
		if !protocoltest.HasErrors(server.Validate(t, resourceType, config)) {
			t.Errorf("%s was accepted", name)
		}
	}
}

func TestARollbackHappensOnceAndLeavesNoDrift(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	s := newScene(t, env)
	config := values{"container_id": s.id(t), "snapshot_name": "clean", "triggers": values{"reset": "1"}}
	r := s.server.NewResource(t, resourceType)
	apply(t, s.server, r, config)
	s.clean(t)
	if r.Get(t, "timings.rollback").(float64) <= 0 || r.Get(t, "timings.start").(float64) <= 0 || r.Get(t, "rolled_back_at") == nil || len(r.Get(t, "discarded").([]any)) > 0 {
		t.Errorf("timings %v, discarded %v", r.Get(t, "timings"), r.Get(t, "discarded"))
	}

	s.sh(t, "echo mess > /root/mess")
	protocoltest.NoErrors(t, s.server.Refresh(t, r))
	if plan := s.server.Plan(t, r, config); plan.Action() != "no-op" {
		t.Errorf("a refresh planned %s", plan.Action())
	}
	config["power"], config["force"] = "always", true
	plan := s.server.Plan(t, r, config)
	if plan.Action() != "update" {
		t.Errorf("what matters at the next rollback planned %s", plan.Action())
	}
	protocoltest.NoErrors(t, s.server.Apply(t, t.Context(), plan))
	if got := s.sh(t, "ls /root/mess"); got != "/root/mess" {
		t.Error("it was rolled back")
	}
	config["triggers"] = values{"reset": "2"}
	if plan = s.server.Plan(t, r, config); plan.Action() != "replace" {
		t.Fatalf("a trigger planned %s", plan.Action())
	}
	protocoltest.NoErrors(t, s.server.Apply(t, t.Context(), plan))
	s.clean(t)
	protocoltest.NoErrors(t, s.server.Destroy(t, t.Context(), r))
	s.clean(t)
}

func TestWhatIsRefused(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	s := newScene(t, env)
	refused := func(config values, says string) {
		t.Helper()
		r := s.server.NewResource(t, resourceType)
		config["container_id"] = s.id(t)
		plan := s.server.Plan(t, r, config)
		diags := plan.Diags
		if !protocoltest.HasErrors(diags) {
			diags = s.server.Apply(t, t.Context(), plan)
		}
		if text := protocoltest.Text(diags); !strings.Contains(text, "ERROR") || !strings.Contains(text, says) || r.Exists() {
			t.Errorf("%v said: %s", config, text)
		}
	}
	refused(values{"snapshot_name": "nosuch"}, "clean")
	s.config["protection"] = true
	apply(t, s.server, s.container, s.config)
	refused(values{"snapshot_name": "clean"}, "protected")
	r := s.server.NewResource(t, resourceType)
	apply(t, s.server, r, values{"container_id": s.id(t), "snapshot_name": "clean", "force": true})
	s.clean(t)
	s.config["protection"] = false
	apply(t, s.server, s.container, s.config)
}

// Terraform's next run after a cut: the refresh shows it, the container's plan completes it, and the rollback, which no
// state holds, happens once more.
func TestARollbackThatIsCutOffIsCompletedByTheNextApply(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "fails at chosen requests")
	for name, at := range map[string]control.Fault{
		"when the configuration comes back": {Method: "PUT", Pattern: `/lxc/\d+/config$`, Nth: 2, Count: -1, Kind: control.Status, Status: 500, Reason: "unable to open file '/etc/pve': Input/output error"},
		"when the container starts":         {Method: "POST", Pattern: `/status/start$`, Count: -1, Kind: control.Status, Status: 500, Reason: "unable to fork worker"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			env := acctest.New(t)
			s := newScene(t, env)
			config := values{"container_id": s.id(t), "snapshot_name": "clean"}
			r := s.server.NewResource(t, resourceType)
			plan := s.server.Plan(t, r, config)
			if _, err := env.Lab.Control.Inject(t.Context(), at); err != nil {
				t.Fatal(err)
			}
			diags := s.server.Apply(t, t.Context(), plan)
			if !protocoltest.HasErrors(diags) || r.Exists() {
				t.Fatalf("it went through: %s", protocoltest.Text(diags))
			}
			if err := env.Lab.Control.Reset(t.Context()); err != nil {
				t.Fatal(err)
			}

			s.server = protocoltest.For(t, env, nil)
			protocoltest.NoErrors(t, s.server.Refresh(t, s.container))
			again := s.server.Plan(t, s.container, s.config)
			if again.Action() != "update" || !strings.Contains(protocoltest.Text(again.Diags), "unfinished") {
				t.Fatalf("the container planned %s: %s", again.Action(), protocoltest.Text(again.Diags))
			}
			protocoltest.NoErrors(t, s.server.Apply(t, t.Context(), again))
			s.clean(t)
			s.sh(t, "echo mess > /root/mess")
			apply(t, s.server, r, config)
			s.clean(t)
		})
	}
}
