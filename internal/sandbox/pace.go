package sandbox

import (
	"sync"
	"time"
)

// paces remembers, by kind, how long tasks take that wait for each other, such as the
// clones of one template.
type paces struct {
	mu     sync.Mutex
	byKind map[string]time.Duration
}

// about is how long the next of a kind will take at least; 0 while nothing is known.
func (p *paces) about(kind string) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.byKind[kind]
}

// took learns from one that was waited for from about on, and was seen to have ended
// after some looks. One that had ended at the first may have ended long before, so that
// the next is looked at earlier; one that took many is what they take now.
func (p *paces) took(kind string, about, seen time.Duration, looks int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.byKind == nil {
		p.byKind = map[string]time.Duration{}
	}
	switch {
	case about > 0 && looks <= 1:
		p.byKind[kind] = about * 9 / 10
	case about == 0 || looks > 4:
		p.byKind[kind] = seen * 9 / 10
	}
}
