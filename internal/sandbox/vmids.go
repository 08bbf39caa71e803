package sandbox

import (
	"fmt"
	"sync"
)

// idPool hands out ids of one range to the creations of one process. An id is
// given out at most once in the pool's life: one that was freed in this run
// would make a running destroy wait for ever for the new guest to go, and one
// whose creation failed may still be made by a request that got lost.
//
// It knows nothing of other processes. The server does: it refuses an id that
// is taken, and then the next one is tried.
type idPool struct {
	mu      sync.Mutex
	vmids   VMIDRange
	used    map[int]bool // given out, or seen taken, or freed in this run
	blocked map[int]bool // never a candidate: template ids
}

func newIDPool(vmids VMIDRange) *idPool {
	return &idPool{vmids: vmids, used: map[int]bool{}, blocked: map[int]bool{}}
}

// block takes ids out for good.
func (p *idPool) block(ids ...int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, id := range ids {
		p.blocked[id] = true
	}
}

// spend marks an id that was seen taken, or freed.
func (p *idPool) spend(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used[id] = true
}

// next gives out the lowest id of the range that nobody has. taken are the
// ids of the server's list.
func (p *idPool) next(taken map[int]bool) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for id := p.vmids.First; id <= p.vmids.Last; id++ {
		if !taken[id] && !p.used[id] && !p.blocked[id] {
			p.used[id] = true
			return id, nil
		}
	}
	return 0, fmt.Errorf("%w: all of %d to %d are taken or were used in this run", ErrNoFreeID, p.vmids.First, p.vmids.Last)
}
