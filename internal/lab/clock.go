package lab

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// clock is the engine's: the machine's clock with the jumps of the server's.
type clock struct {
	engine.SystemClock
	server atomic.Pointer[server.Server]
}

// Now is the lab's time.
func (c *clock) Now() time.Time {
	now := c.SystemClock.Now()
	if s := c.server.Load(); s != nil {
		now = now.Add(s.Jump())
	}
	return now
}

// Sleep waits on the machine's clock: a jump doesn't hurry what is under way.
func (c *clock) Sleep(ctx context.Context, d time.Duration) error { return c.SystemClock.Sleep(ctx, d) }
