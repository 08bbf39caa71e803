package acctest

import (
	"context"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// sweepPools removes the Proxmox pools that carry the mark of the test's owner, when their members are gone.
func sweepPools(ctx context.Context, t testing.TB, client *pve.Client, env *Environment) {
	t.Helper()
	pools, err := client.Pools(ctx)
	if err != nil {
		t.Logf("looking for the pools that %s left: %v", env.Owner, err)
		return
	}
	for _, p := range pools {
		if !strings.Contains(p.Comment, "[sandbox_pool owner="+env.Owner+" id=") {
			continue
		}
		if !t.Failed() {
			t.Errorf("the test left pool %s behind", p.ID)
		}
		if err := client.DeletePool(ctx, p.ID); err != nil {
			t.Errorf("pool %s of %s stays: %v", p.ID, env.Owner, err)
		}
	}
}
