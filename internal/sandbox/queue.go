package sandbox

import (
	"context"
	"sync"
)

// queues limits work per key: one clone at a time per template, a few at a
// time per storage. Waiters are served in no particular order; each wait ends
// with its context.
type queues struct {
	mu    sync.Mutex
	slots map[string]chan struct{}
}

func newQueues() *queues { return &queues{slots: map[string]chan struct{}{}} }

// enter waits until fewer than limit holders of key are left. leave must be
// called once the work is done.
func (q *queues) enter(ctx context.Context, key string, limit int) (leave func(), err error) {
	q.mu.Lock()
	slot, ok := q.slots[key]
	if !ok {
		slot = make(chan struct{}, limit)
		q.slots[key] = slot
	}
	q.mu.Unlock()
	// A context that is done already must not win a free slot by chance.
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	select {
	case slot <- struct{}{}:
		var once sync.Once
		return func() { once.Do(func() { <-slot }) }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}
