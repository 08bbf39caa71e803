package sim_test

import (
	"runtime"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
)

// TestThousandIdleGuestsCostLittle isn't parallel: it measures the whole process.
func TestThousandIdleGuestsCostLittle(t *testing.T) {
	e, err := sim.New(sim.Options{})
	must(t, err)
	defer func() { must(t, e.Close()) }()
	must(t, e.CreateRoot(t.Context(), 1, engine.RootSpec{}))
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	goroutines := runtime.NumGoroutine()
	for id := 100; id < 1100; id++ {
		must(t, e.Clone(t.Context(), engine.CloneSpec{From: 1, To: id, Linked: true}))
		must(t, e.Configure(t.Context(), id, config(id)))
		must(t, e.Start(t.Context(), id))
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := int64(after.HeapAlloc-before.HeapAlloc) / 1000
	t.Logf("%d bytes and %d goroutines for 1000 running guests", each, runtime.NumGoroutine()-goroutines)
	if each > 128<<10 {
		t.Errorf("%d bytes per idle guest", each)
	}
	if n := runtime.NumGoroutine() - goroutines; n > 10 {
		t.Errorf("%d goroutines for idle guests", n)
	}
}
