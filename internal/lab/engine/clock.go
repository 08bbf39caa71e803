package engine

import (
	"context"
	"time"
)

// Clock is the lab's time. It can be made to jump by the lab's control API, so nothing in an engine asks the
// machine's clock directly.
type Clock interface {
	Now() time.Time
	// Sleep returns nil when d has passed on this clock, or the context's error if that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

// SystemClock is the machine's clock.
type SystemClock struct{}

// Now is time.Now.
func (SystemClock) Now() time.Time { return time.Now() }

// Sleep waits for d or for the end of ctx.
func (SystemClock) Sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
