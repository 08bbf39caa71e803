package cgroup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// A guest's folder of version 2, as plain files: what is written is what the kernel would be told.
func TestLimitsOfVersionTwoAreTheKernelsFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &Guest{lab: &Lab{v2: true}, dirs: map[string]string{"memory": dir, "pids": dir, "cpu": dir, "freezer": dir}}
	expect := func(files map[string]string) {
		t.Helper()
		for name, want := range files {
			if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != want {
				t.Errorf("%s is %q (%v), want %q", name, got, err, want)
			}
		}
	}
	if err := g.Limit(engine.Limits{Cores: 2, CPU: 0.5, MemoryBytes: 64 << 20, SwapBytes: 32 << 20}); err != nil {
		t.Fatal(err)
	}
	expect(map[string]string{"memory.max": "67108864", "memory.swap.max": "33554432", "cpu.max": "50000 100000", "pids.max": "4096"})
	if err := g.Limit(engine.Limits{}); err != nil {
		t.Fatal(err)
	}
	expect(map[string]string{"memory.max": "max", "memory.swap.max": "max", "cpu.max": "max 100000"})
	for name, content := range map[string]string{"memory.current": "1234\n", "pids.current": "7\n", "cgroup.events": "populated 1\nfrozen 1\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if g.Memory() != 1234 || g.Processes() != 7 {
		t.Errorf("it uses %d bytes and %d processes", g.Memory(), g.Processes())
	}
	thaw, frozen, err := g.Freeze(t.Context())
	if err != nil || !frozen {
		t.Fatalf("frozen %t, %v", frozen, err)
	}
	expect(map[string]string{"cgroup.freeze": "1"})
	thaw()
	expect(map[string]string{"cgroup.freeze": "0"})
}
