package pve

import (
	"context"
	"math/rand/v2"
	"time"
)

// Clock is where the layer takes time from: retries and polls wait by it.
type Clock interface {
	Now() time.Time
	// Sleep returns after d, or with ctx's error when that ends first.
	Sleep(ctx context.Context, d time.Duration) error
}

type systemClock struct{}

func (systemClock) Now() time.Time { return time.Now() }

func (systemClock) Sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// randomJitter keeps clients from moving in step.
func randomJitter() float64 { return rand.Float64() } //nolint:gosec // nothing is guarded by it
