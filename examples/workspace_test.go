package examples

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// journey is one example that is applied again and again with other variables.
type journey struct {
	t         *testing.T
	workspace *tfcli.Workspace
	vars      []string // of the last apply
}

func startJourney(t *testing.T, folder string) *journey {
	t.Helper()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env) // what people start from is filtered
	workspace, err := acctest.CommandLine(t).NewWorkspace(tfcli.WorkspaceOptions{
		Config: folder, Dir: t.TempDir(), ProviderDir: providerDir(t), Environment: env.Variables(),
	})
	if err != nil {
		t.Fatal(err)
	}
	j := &journey{t: t, workspace: workspace}
	t.Cleanup(func() {
		var options []tfexec.DestroyOption
		for _, v := range j.vars {
			options = append(options, tfexec.Var(v))
		}
		if err := workspace.Destroy(context.WithoutCancel(t.Context()), options...); err != nil {
			t.Errorf("destroy: %v", err)
		}
	})
	return j
}

// apply applies with variables ("name=value") and expects that nothing is left to do.
func (j *journey) apply(vars ...string) {
	j.t.Helper()
	j.vars = vars
	var apply []tfexec.ApplyOption
	var plan []tfexec.PlanOption
	for _, v := range vars {
		apply, plan = append(apply, tfexec.Var(v)), append(plan, tfexec.Var(v))
	}
	if err := j.workspace.Apply(j.t.Context(), apply...); err != nil {
		j.t.Fatalf("apply with %v: %v", vars, err)
	}
	changes, err := j.workspace.Changes(j.t.Context(), plan...)
	if err != nil {
		j.t.Fatal(err)
	}
	if len(changes.Actions()) > 0 {
		j.t.Fatalf("left to do after %v: %s", vars, changes)
	}
}

func (j *journey) output(name string, into any) {
	j.t.Helper()
	outputs, err := j.workspace.Output(j.t.Context())
	if err != nil {
		j.t.Fatal(err)
	}
	if err := json.Unmarshal(outputs[name].Value, into); err != nil {
		j.t.Fatal(err)
	}
}

func TestWorkInAWorkspacePersistsAcrossTwoSandboxes(t *testing.T) {
	t.Parallel()
	j := startJourney(t, "workspace")
	var log []string
	for _, step := range []struct {
		sandbox string
		want    []string
	}{{"monday", []string{"monday"}}, {"tuesday", []string{"monday", "tuesday"}}} {
		j.apply("sandbox=" + step.sandbox)
		if j.output("log", &log); !slices.Equal(log, step.want) {
			t.Fatalf("after %s the log is %v", step.sandbox, log)
		}
	}
}

func TestASandboxIsStoppedResumedParkedAndForked(t *testing.T) {
	t.Parallel()
	j := startJourney(t, "resume")
	type box struct{ ID, Status string }
	for _, step := range []struct {
		vars []string
		want map[string]string
	}{
		{nil, map[string]string{"agent-a": "running"}},
		{[]string{"state=stopped"}, map[string]string{"agent-a": "stopped"}},
		{[]string{"state=running"}, map[string]string{"agent-a": "running"}},
		{[]string{"state=parked"}, map[string]string{}},
		{[]string{"state=parked", "fork=try-b"}, map[string]string{"try-b": "running"}},
		{[]string{"fork=try-b"}, map[string]string{"agent-a": "running", "try-b": "running"}},
	} {
		j.apply(step.vars...)
		boxes := map[string]box{}
		j.output("sandboxes", &boxes)
		if len(boxes) != len(step.want) {
			t.Fatalf("with %v: %v", step.vars, boxes)
		}
		for name, status := range step.want {
			if boxes[name].Status != status {
				t.Errorf("with %v %s is %s, want %s", step.vars, name, boxes[name].Status, status)
			}
		}
	}
}
