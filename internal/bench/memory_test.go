package bench

import (
	"os"
	"runtime"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
)

func TestTheMemoryOfARefreshIsThatOfTheProvidersProcess(t *testing.T) {
	t.Parallel()
	provider, err := builtProvider(t.Context())
	if provider != "" {
		t.Cleanup(func() {
			if err := os.RemoveAll(provider); err != nil {
				t.Error(err)
			}
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	s, err := newStage(t.Context(), provider, lab.Fast())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.close(); err != nil {
			t.Error(err)
		}
	})
	w, err := s.workspace()
	if err != nil {
		t.Fatal(err)
	}
	made, err := s.apply(t.Context(), w, 2)
	if err != nil || made.failed > 0 {
		t.Fatalf("%d failed: %v, %v", made.failed, err, made.failure)
	}
	peak, requests, err := s.refreshMemory(t.Context(), w, 2)
	if err != nil {
		t.Fatal(err)
	}
	if len(requests) != 2+1+len(s.target.Nodes) {
		t.Errorf("a refresh of 2 took %d requests", len(requests))
	}
	const least, most = 10 << 20, 500 << 20 // a Go program with this schema, and nothing like the lab's process
	if runtime.GOOS != "windows" && (peak < least || peak > most) {
		t.Errorf("the peak is %d MiB", peak>>20)
	}
}
