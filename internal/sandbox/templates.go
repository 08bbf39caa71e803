package sandbox

import (
	"context"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// templateAge is how long a template's configuration is reused: long enough
// for the clones of one run, short enough to see a rebuilt template.
const templateAge = 10 * time.Second

// templateCache shares the configurations of templates between the creations
// of a run: ten clones of one template ask once.
type templateCache struct {
	client *pve.Client
	clock  Clock
	mu     sync.Mutex
	byID   map[int]*templateEntry
}

type templateEntry struct {
	mu   sync.Mutex
	node string
	cfg  *pve.LXCConfig
	read time.Time
}

func newTemplateCache(client *pve.Client, clock Clock) *templateCache {
	return &templateCache{client: client, clock: clock, byID: map[int]*templateEntry{}}
}

// config reads the configuration of a template. Failures are not kept.
func (t *templateCache) config(ctx context.Context, node string, id int) (*pve.LXCConfig, error) {
	t.mu.Lock()
	e := t.byID[id]
	if e == nil {
		e = &templateEntry{}
		t.byID[id] = e
	}
	t.mu.Unlock()

	e.mu.Lock() // one reader asks, the others wait for its answer
	defer e.mu.Unlock()
	if e.cfg != nil && e.node == node && t.clock.Now().Sub(e.read) < templateAge {
		return e.cfg, nil
	}
	cfg, err := t.client.LXCConfig(ctx, node, id)
	if err != nil {
		e.cfg = nil
		return nil, err
	}
	e.node, e.cfg, e.read = node, cfg, t.clock.Now()
	return cfg, nil
}

// forget makes the next reader ask anew.
func (t *templateCache) forget(id int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.byID, id)
}
