package container_test

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestContainersAreFoundByOwnerTagAndWhetherTheyAreFinished(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	blue := create(t, server, values{"hostname": "blue", "tags": []string{"blue"}})
	create(t, server, values{"hostname": "green", "tags": []string{"green"}, "started": false})
	server = protocoltest.For(t, env, nil)
	hostnames := func(config values) []string {
		t.Helper()
		var out []string
		for _, c := range server.ReadData(t, "sandbox_containers", config, "containers").([]any) {
			out = append(out, c.(map[string]any)["hostname"].(string))
		}
		return out
	}
	for name, test := range map[string]struct {
		config values
		want   int
	}{
		"all of ours":       {nil, 2},
		"by tag":            {values{"tag": "blue"}, 1},
		"by another's tag":  {values{"tag": "red"}, 0},
		"by owner":          {values{"owner": env.Owner}, 2},
		"by another owner":  {values{"owner": "stranger"}, 0},
		"finished":          {values{"unfinished": false}, 2},
		"unfinished":        {values{"unfinished": true}, 0},
		"in a missing pool": {values{"pool_id": "nowhere"}, 0},
	} {
		if got := hostnames(test.config); len(got) != test.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	first := server.ReadData(t, "sandbox_containers", values{"tag": "blue"}, "containers.0").(map[string]any)
	for name, want := range map[string]any{
		"id": blue.Get(t, "id"), "claim": blue.Get(t, "claim"), "owner": env.Owner, "kind": "container", "status": "running",
		"unfinished": false, "ipv4_address": blue.Get(t, "ipv4_address"), "template_id": float64(env.TemplateID),
	} {
		if first[name] != want {
			t.Errorf("%s is %v, want %v", name, first[name], want)
		}
	}
}

func TestAnInterruptedCreationIsListedAsUnfinished(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "fails a task")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	if err := env.Lab.Control.FailTask(t.Context(), control.TaskFault{Type: "vzstart"}); err != nil {
		t.Fatal(err)
	}
	r := server.NewResource(t, resourceType)
	server.Apply(t, t.Context(), server.Plan(t, r, values{"hostname": "web-1"}))
	server = protocoltest.For(t, env, nil)
	if got := server.ReadData(t, "sandbox_containers", values{"unfinished": true}, "containers.0.id"); got != r.Get(t, "id") {
		t.Errorf("listed %v, want %v", got, r.Get(t, "id"))
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
}
