package cluster_test

import (
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

func TestClusterShowsNodesQuorumAndCapacity(t *testing.T) {
	t.Parallel()
	env := acctest.New(t, acctest.Nodes(2))
	server := protocoltest.For(t, env, nil)
	cluster := server.ReadData(t, "sandbox_cluster", nil, "").(map[string]any)
	if cluster["quorate"] != true || cluster["version"] == "" || cluster["id"] == "" {
		t.Errorf("the cluster is %v", cluster)
	}
	nodes := cluster["nodes"].(map[string]any)
	for _, name := range env.Nodes {
		node, ok := nodes[name].(map[string]any)
		if !ok {
			t.Fatalf("node %s is missing in %v", name, nodes)
		}
		if node["online"] != true || node["cpus"].(float64) < 1 || node["memory"].(float64) < 1 {
			t.Errorf("node %s is %v", name, node)
		}
		storage, ok := node["storages"].(map[string]any)[env.Storage].(map[string]any)
		if !ok || storage["active"] != true || storage["type"] == "" {
			t.Errorf("storage %s of node %s is %v", env.Storage, name, storage)
		}
	}
}

func TestANodeThatIsAwayIsShownAsOffline(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "takes a node away")
	env := acctest.New(t, acctest.Nodes(2))
	if err := env.Lab.Control.NodeAway(t.Context(), env.Nodes[1], true); err != nil {
		t.Fatal(err)
	}
	server := protocoltest.For(t, env, nil)
	if got := server.ReadData(t, "sandbox_cluster", nil, "nodes."+env.Nodes[1]+".online"); got != false {
		t.Errorf("online is %v", got)
	}
	if err := env.Lab.Control.NodeAway(t.Context(), env.Nodes[1], false); err != nil {
		t.Fatal(err)
	}
}
