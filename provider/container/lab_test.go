package container_test

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const resourceType = "sandbox_container"

func TestSmoke(t *testing.T) {
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := server.NewResource(t, resourceType)
	plan := server.Plan(t, r, values{"hostname": "web-1"})
	protocoltest.NoErrors(t, plan.Diags)
	diags := server.Apply(t, t.Context(), plan)
	t.Log(protocoltest.Text(diags))
	t.Log(r.Get(t, ""))
	protocoltest.NoErrors(t, diags)
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan = server.Plan(t, r, values{"hostname": "web-1"})
	if plan.Action() != "no-op" {
		t.Error(plan.Action(), plan.Get(t, ""), plan.Replace)
	}
	protocoltest.NoErrors(t, server.Destroy(t, t.Context(), r))
}
