package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// bridgeCache shares a node's list of bridges between the checks of a run.
type bridgeCache struct {
	client *pve.Client
	mu     sync.Mutex
	byNode map[string][]string
}

func newBridgeCache(client *pve.Client) *bridgeCache {
	return &bridgeCache{client: client, byNode: map[string][]string{}}
}

// on lists a node's bridges. Failures are not kept.
func (b *bridgeCache) on(ctx context.Context, node string) ([]string, error) {
	b.mu.Lock() // one asks, the others wait for its answer
	defer b.mu.Unlock()
	if names, known := b.byNode[node]; known {
		return names, nil
	}
	names, err := b.client.Bridges(ctx, node)
	if err == nil {
		b.byNode[node] = names
	}
	return names, err
}

// checkBridgeExists says when the node has no such bridge. The server would
// say so after the container is made. A list that can't be had, or that is
// empty because the token may use no bridge, says nothing.
func (m *Manager) checkBridgeExists(ctx context.Context, p *problems, spec Spec, node string) {
	bridge := spec.Network.Bridge
	// The provider's own bridge is on every plan; it isn't asked for each time.
	if bridge == "" || bridge == m.settings.Bridge || node == "" {
		return
	}
	names, err := m.bridges.on(ctx, node)
	if err != nil || len(names) == 0 || slices.Contains(names, bridge) {
		return
	}
	p.add("network.bridge", fmt.Sprintf("Node %s has no bridge %q", node, bridge),
		"It has "+strings.Join(names, ", ")+", as far as the token may see (SDN.Use).")
}
