package server

import (
	"context"
	"time"
)

// lock takes the state lock.
func (s *Server) lock() { s.mu.Lock() }

// unlock lets go of the state lock and wakes whoever waits for a change.
func (s *Server) unlock() {
	close(s.changed)
	s.changed = make(chan struct{})
	s.mu.Unlock()
}

// unlocked runs fn without the state lock, which the caller holds. For work that blocks: engine calls, waiting.
func (s *Server) unlocked(fn func()) {
	s.unlock()
	defer s.lock()
	fn()
}

// sleep waits for d without the state lock, which the caller holds. The error is the context's.
func (s *Server) sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	var err error
	s.unlocked(func() {
		timer := time.NewTimer(d)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
			err = ctx.Err()
		}
	})
	return err
}

// waitUntil waits, without the state lock in between, until cond holds: false after the timeout or when ctx ends.
// cond runs under the lock, which is held again when waitUntil returns.
func (s *Server) waitUntil(ctx context.Context, timeout time.Duration, cond func() bool) bool {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	for !cond() {
		changed, expired := s.changed, false
		s.unlocked(func() {
			select {
			case <-changed:
			case <-timer.C:
				expired = true
			case <-ctx.Done():
				expired = true
			}
		})
		if expired {
			return cond()
		}
	}
	return true
}

// now is the lab's time: the wall clock and the jumps that the control API asked for.
func (s *Server) now() time.Time { return time.Now().Add(s.Jump()) }

// delays are the current times; the control API may change them.
func (s *Server) delays() *Delays { return s.opt.Delays }

// Jump is how far the lab's clock is ahead of the machine's.
func (s *Server) Jump() time.Duration { return time.Duration(s.jump.Load()) }
