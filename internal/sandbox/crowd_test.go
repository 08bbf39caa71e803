package sandbox_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// createAll makes n sandboxes per process, ten at a time as Terraform does.
func (w *world) createAll(processes []*process, n int) []sandbox.Sandbox {
	w.t.Helper()
	var (
		mu  sync.Mutex
		all []sandbox.Sandbox
		wg  sync.WaitGroup
	)
	for i, p := range processes {
		gate := make(chan struct{}, 10)
		for j := range n {
			wg.Go(func() {
				gate <- struct{}{}
				defer func() { <-gate }()
				out, err := p.Create(w.context(), spec(fmt.Sprintf("p%d-n%d", i, j)), nil)
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					w.t.Errorf("p%d-n%d: %v", i, j, err)
					return
				}
				all = append(all, out.Sandbox)
			})
		}
	}
	wg.Wait()
	return all
}

func TestFiftyClonesOfOneTemplateAllSucceed(t *testing.T) {
	t.Parallel()
	delays := lab.Fast()
	delays.CloneLinked = 50 * time.Millisecond // the proportions of 1 s in a real run
	w := newWorld(t, lab.Options{Delays: delays})
	began := time.Now()
	if all := w.createAll([]*process{w.process()}, 50); len(all) != 50 {
		t.Errorf("%d of 50", len(all))
	}
	t.Logf("50 clones in %s", time.Since(began))
}

func TestTwoRunnersAtOnceNeverShareAGuest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	all := w.createAll([]*process{w.process(), w.process()}, 12)
	ids, addresses := map[int]string{}, map[string]int{}
	for _, s := range all {
		if other, shared := ids[s.VMID]; shared {
			t.Errorf("%s and %s share container %d", other, s.Hostname, s.VMID)
		}
		if other, shared := addresses[s.IPv4.String()]; shared {
			t.Errorf("%d and %d share the address %s", other, s.VMID, s.IPv4)
		}
		ids[s.VMID], addresses[s.IPv4.String()] = s.Hostname, s.VMID
		read, err := w.process().Read(w.context(), sandbox.Prior{Ref: s.Ref})
		if err != nil || read.Hostname != s.Hostname {
			t.Errorf("%s: the server has %q under its id, %v", s.Hostname, read.Hostname, err)
		}
	}
	if got := w.marked(); len(all) != 24 || len(got) != 24 {
		t.Errorf("%d made, %d on the server", len(all), len(got))
	}
}
