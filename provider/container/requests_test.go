package container_test

import (
	"fmt"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// unmanaged and managed are the interface without and with a firewall of the provider's.
var (
	unmanaged = values{"mode": "unmanaged"}
	managed   = values{"mode": "nat"}
)

func TestARefreshOfManySharesItsLists(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "counts requests")
	for name, test := range map[string]struct {
		network   values
		perGuest  int
		onceAPlan int // whether the datacenter's firewall is on
	}{"unmanaged": {unmanaged, 1, 0}, "managed": {managed, 3, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			refreshOfMany(t, test.network, test.perGuest, test.onceAPlan)
		})
	}
}

func refreshOfMany(t *testing.T, network values, perGuest, onceAPlan int) {
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	var fleet []*protocoltest.Resource
	for i := range 5 {
		fleet = append(fleet, create(t, server, values{"hostname": fmt.Sprintf("web-%d", i), "network": network}))
	}
	server = protocoltest.For(t, env, nil)
	if err := env.Lab.Control.ResetRequests(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i, r := range fleet {
		settled(t, server, r, values{"hostname": fmt.Sprintf("web-%d", i), "network": network})
	}
	report, err := env.Lab.Control.Requests(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if most := perGuest*len(fleet) + 1 + len(env.Nodes) + onceAPlan; report.Total > most {
		for _, request := range report.Entries {
			t.Logf("%s %s", request.Method, request.Path)
		}
		t.Errorf("%d requests for a refresh and an empty plan of %d, at most %d", report.Total, len(fleet), most)
	}
}

func TestACreationNeedsFewRequests(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "counts requests")
	for name, test := range map[string]struct {
		network values
		most    int
	}{
		"unmanaged": {unmanaged, 8},
		// Four of them are asked once a run: the template, the datacenter's switch, the nodes' addresses and their resolver;
		// and two more where ports of the node answer from inside, to say which rules close them.
		"managed": {managed, 18 + 4 + 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			creation(t, test.network, test.most)
		})
	}
}

func creation(t *testing.T, network values, most int) {
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, resourceType)
	plan := server.Plan(t, r, values{"hostname": "web-1", "memory": 256, "network": network})
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
	if report.Total-polls > most {
		for _, request := range report.Entries {
			t.Logf("%s %s", request.Method, request.Path)
		}
		t.Errorf("%d requests and %d polls, at most %d", report.Total-polls, polls, most)
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
}
