package container_test

import (
	"fmt"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestARefreshOfManySharesItsLists(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "counts requests")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	var fleet []*protocoltest.Resource
	for i := range 5 {
		fleet = append(fleet, create(t, server, values{"hostname": fmt.Sprintf("web-%d", i)}))
	}
	server = protocoltest.For(t, env, nil)
	if err := env.Lab.Control.ResetRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, r := range fleet {
		settled(t, server, r, values{"hostname": fmt.Sprintf("web-%d", i)})
	}
	report, err := env.Lab.Control.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if most := len(fleet) + 1 + len(env.Nodes); report.Total > most {
		for _, request := range report.Entries {
			t.Logf("%s %s", request.Method, request.Path)
		}
		t.Errorf("%d requests for a refresh and an empty plan of %d, at most %d", report.Total, len(fleet), most)
	}
}

func TestACreationNeedsFewRequests(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "counts requests")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, resourceType)
	plan := server.Plan(t, r, values{"hostname": "web-1", "memory": 256})
	protocoltest.NoErrors(t, plan.Diags)
	if err := env.Lab.Control.ResetRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	server = protocoltest.For(t, env, nil) // planned and applied are two processes
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
	report, err := env.Lab.Control.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	polls := 0
	for _, request := range report.Entries {
		if request.Template == "/nodes/{node}/tasks/{upid}/status" {
			polls++
		}
	}
	if report.Total-polls > 8 {
		for _, request := range report.Entries {
			t.Logf("%s %s", request.Method, request.Path)
		}
		t.Errorf("%d requests and %d polls, at most 8", report.Total-polls, polls)
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
}
