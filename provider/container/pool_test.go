package container_test

import (
	"context"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestThePoolIsTheConfiguredOneElseTheProvidersElseNone(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	somebody := client(t, env)
	blue, green := env.Owner+"-blue", env.Owner+"-green"
	for _, pool := range []string{blue, green} {
		if err := somebody.CreatePool(t.Context(), pool, "made by a test"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := somebody.DeletePool(context.WithoutCancel(t.Context()), pool); err != nil {
				t.Error(err)
			}
		})
	}
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1", "pool_id": blue})
	if got := r.Get(t, "pool_id"); got != blue {
		t.Errorf("pool_id is %v", got)
	}
	apply(t, server, r, values{"hostname": "web-1", "pool_id": green}, "update")
	apply(t, server, r, values{"hostname": "web-1"}, "update")
	if got := r.Get(t, "pool_id"); got != nil {
		t.Errorf("pool_id is %v", got)
	}

	defaulted := protocoltest.For(t, env, values{"pool_id": blue})
	apply(t, defaulted, r, values{"hostname": "web-1"}, "update")
	if got := r.Get(t, "pool_id"); got != blue {
		t.Errorf("pool_id is %v", got)
	}
	if err := somebody.RemoveFromPool(t.Context(), blue, []int{r.VMID(t)}); err != nil {
		t.Fatal(err)
	}
	defaulted = protocoltest.For(t, env, values{"pool_id": blue})
	protocoltest.NoErrors(t, defaulted.Refresh(t, r))
	if got := r.Get(t, "pool_id"); got != nil {
		t.Errorf("after it was taken out pool_id is %v", got)
	}
	apply(t, defaulted, r, values{"hostname": "web-1"}, "update")
}
