package container_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

const resourceType = "sandbox_container"

// with returns the values with some of them changed; nil takes one out.
func with(base values, changes values) values {
	out := values{}
	for name, v := range base {
		out[name] = v
	}
	for name, v := range changes {
		out[name] = v
	}
	return out
}

// create makes a container and fails the test when that doesn't work.
func create(t *testing.T, server *protocoltest.Server, config values) *protocoltest.Resource {
	t.Helper()
	r := server.NewResource(t, resourceType)
	t.Cleanup(func() {
		if diags := server.Destroy(t, context.WithoutCancel(t.Context()), r); protocoltest.HasErrors(diags) {
			t.Errorf("destroying it: %s", protocoltest.Text(diags))
		}
	})
	apply(t, server, r, config, "create")
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
	return append(plan.Diags, diags...)
}

// settled refreshes and expects an empty plan.
func settled(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values) {
	t.Helper()
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != "no-op" {
		t.Fatalf("the plan after an apply is %s (replace because of %v):\nstate %v\nplan  %v", got, plan.Replace, r.Get(t, ""), plan.Get(t, ""))
	}
}

// client is a client of the server that is not the provider's: somebody else.
func client(t *testing.T, env *acctest.Environment) *pve.Client {
	t.Helper()
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// outside changes the container's configuration behind the provider's back.
func outside(t *testing.T, c *pve.Client, r *protocoltest.Resource, set map[string]string, remove ...string) {
	t.Helper()
	if err := c.UpdateLXC(t.Context(), r.Text(t, "node_name"), r.VMID(t), pve.LXCUpdate{Set: set, Delete: remove}); err != nil {
		t.Fatal(err)
	}
}

func wait(t *testing.T, c *pve.Client, upid pve.UPID, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Wait(context.WithoutCancel(t.Context()), upid, func(warning string) { t.Log(warning) }); err != nil {
		t.Fatal(err)
	}
}

// wants fails the test unless one diagnostic holds all the texts.
func wants(t *testing.T, diags []*tfprotov6.Diagnostic, texts ...string) {
	t.Helper()
	if !slices.ContainsFunc(diags, func(d *tfprotov6.Diagnostic) bool {
		text := protocoltest.Text([]*tfprotov6.Diagnostic{d})
		return !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) })
	}) {
		t.Errorf("no diagnostic holds all of %q:\n%s", texts, protocoltest.Text(diags))
	}
}
