package agentrun_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// place is a container to run in, and the provider server of one apply.
type place struct {
	*protocoltest.Server
	t         *testing.T
	env       *acctest.Environment
	container *protocoltest.Resource
	id        string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, "sandbox_container")
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "work-1"})))
	p := &place{Server: server, t: t, env: env, container: r, id: r.Text(t, "id")}
	t.Cleanup(func() {
		if r.Exists() {
			protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r))
		}
	})
	return p
}

// run applies a run of the container.
func (p *place) run(config values) *protocoltest.Resource {
	p.t.Helper()
	r := p.NewResource(p.t, "sandbox_agent_run")
	p.apply(r, config)
	return r
}

func (p *place) apply(r *protocoltest.Resource, config values) string {
	p.t.Helper()
	config["container_id"] = p.id
	diags := p.Apply(p.t, p.t.Context(), p.Plan(p.t, r, config))
	protocoltest.NoErrors(p.t, diags)
	return protocoltest.Text(diags)
}

// sh runs code in the container as root and gives its output.
func (p *place) sh(code string) string {
	p.t.Helper()
	r := p.NewResource(p.t, "sandbox_exec")
	protocoltest.NoErrors(p.t, p.Apply(p.t, p.t.Context(), p.Plan(p.t, r, values{"container_id": p.id, "script": code, "on_failure": "record", "triggers": values{"n": code}})))
	return r.Text(p.t, "stdout") + r.Text(p.t, "stderr")
}

func report(t *testing.T, r *protocoltest.Resource) agentrun.Report {
	t.Helper()
	var out agentrun.Report
	if err := json.Unmarshal([]byte(r.Text(t, "report")), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestARunIsRecorded(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	r := p.run(values{"command": "echo \"$(id -un) $WHERE $TOKEN\"; cat; exit 3", "prompt": "say it's done\n", "environment": values{"WHERE": "here"},
		"secrets_wo": values{"TOKEN": "canary-4711"}, "secrets_wo_version": 1})
	if r.Get(t, "status") != "failed" || r.Get(t, "exit_code") != 3.0 || r.Get(t, "attempts") != 1.0 || r.Get(t, "output_tail") != "agent here [redacted]\nsay it's done\n" {
		t.Errorf("status %v, exit code %v, attempts %v, output %q", r.Get(t, "status"), r.Get(t, "exit_code"), r.Get(t, "attempts"), r.Get(t, "output_tail"))
	}
	if rep := report(t, r); rep.SchemaVersion != 1 || rep.ID == "" || rep.Attempt != 1 || rep.StartedAt == nil || rep.FinishedAt == nil || rep.Timings.RoundTrips-rep.Timings.Polls > 6 {
		t.Errorf("report %+v", rep)
	}
	if text := r.State.String(); strings.Contains(text, "canary") {
		t.Error("the secret is in the state")
	}
}
