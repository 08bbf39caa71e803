package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// A process that is killed at its nth request never sends another one. To the
// server that is the same as losing every request from the nth on, after or
// before the nth was carried out; nothing that the process says after that
// reaches a state.
func TestKillAtEachRequestOfCreateLeavesWhatTheNextRunTidiesUp(t *testing.T) {
	t.Parallel()
	for _, source := range []sandbox.Source{{TemplateID: lab.TemplateID}, {TemplateFileID: lab.TemplateFile}} {
		for _, carriedOut := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, last request carried out %v", sourceName(source), carriedOut), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, lab.Options{})
				want := spec("killed")
				want.Source = source
				for n := 1; ; n++ {
					if n > 80 {
						t.Fatal("still hitting requests after 80 rounds")
					}
					if !w.killedCreate(t, want, n, carriedOut) {
						return
					}
				}
			})
		}
	}
}

// killedCreate says whether there was an nth request.
func (w *world) killedCreate(t *testing.T, want sandbox.Spec, n int, carriedOut bool) bool {
	t.Helper()
	first := control.Fault{Pattern: "^/", Nth: n, Count: 1, Kind: control.DropBefore}
	if carriedOut {
		first.Kind = control.DropAfter
	}
	id := w.inject(first)
	w.inject(control.Fault{Pattern: "^/", Nth: n + 1, Count: -1, Kind: control.DropBefore})
	_, err := w.process(impatient).Create(short(t, 5*time.Second), want, nil)
	hit := w.fired(id)
	w.calm()
	if !hit {
		if err != nil {
			t.Fatal(err)
		}
		return false
	}
	leftover := w.marked()
	if len(leftover) > 1 {
		t.Fatalf("request %d: left behind %v", n, leftover)
	}
	// Before its time is over it may be somebody's work in progress.
	early := w.process()
	if unfinished := w.unfinished(early); len(leftover) == 1 && !w.ready(leftover[0]) && !slices.Equal(unfinished, leftover) {
		t.Fatalf("request %d: left %v, listed as unfinished: %v", n, leftover, unfinished)
	}
	sealed := len(leftover) == 1 && w.ready(leftover[0])

	p := w.process(later(2 * time.Hour))
	s := w.create(p, want)
	now := w.marked()
	if sealed {
		// The very last request was carried out and its answer lost: the sandbox
		// is complete, and no run ever destroys one that is.
		if !carriedOut {
			t.Fatalf("request %d: ready although its last request was not carried out", n)
		}
		if len(now) != 2 {
			t.Fatalf("request %d: a ready sandbox was destroyed: %v", n, now)
		}
		w.wipe(p)
		return true
	}
	if !slices.Equal(now, []int{s.VMID}) {
		t.Fatalf("request %d: after the next run %v, want %d only", n, now, s.VMID)
	}
	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	return true
}

func (w *world) unfinished(p *process) (ids []int) {
	w.t.Helper()
	list, err := p.ListContainers(w.context(), sandbox.Filter{Unfinished: ptr(true)})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range list {
		ids = append(ids, s.VMID)
	}
	return ids
}

func (w *world) ready(vmid int) bool {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == vmid {
			_, m := sandbox.SplitDescription(g.Config["description"])
			return m != nil && m.Phase == sandbox.PhaseReady
		}
	}
	return false
}

// wipe destroys all that is ours.
func (w *world) wipe(p *process) {
	w.t.Helper()
	list, err := p.ListContainers(w.context(), sandbox.Filter{})
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range list {
		if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
			w.t.Fatal(err)
		}
	}
}

func TestUnfinishedCreationOfAnotherRunIsLeftAloneUntilItsTimeIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	// The configuration write and all after it never arrive.
	w.inject(control.Fault{Method: "PUT", Pattern: "/config$", Count: -1, Kind: control.DropBefore})
	var dead state
	_, _ = w.process(impatient).Create(short(t, 5*time.Second), spec("shared-name"), dead.accept)
	w.calm()
	if !slices.Equal(w.marked(), []int{dead.ref.VMID}) {
		t.Fatalf("left behind: %v", w.marked())
	}
	other := w.create(w.process(), spec("other-name"))
	same := w.create(w.process(), spec("shared-name"))
	if now := w.marked(); len(now) != 3 {
		t.Fatalf("before its time is over: %v", now)
	}
	w.calm()
	another := w.create(w.process(later(2*time.Hour)), spec("shared-name"))
	want := []int{other.VMID, same.VMID, another.VMID}
	slices.Sort(want)
	now := w.marked()
	slices.Sort(now)
	if !slices.Equal(now, want) {
		t.Fatalf("after its time: %v, want %v: the ready ones and nothing else", now, want)
	}
}

func TestStopAtEachRequestOfCreateIsFinishedInPlaceByTheNextRun(t *testing.T) {
	t.Parallel()
	for _, source := range []sandbox.Source{{TemplateID: lab.TemplateID}, {TemplateFileID: lab.TemplateFile}} {
		t.Run(sourceName(source), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			want := spec("stopped")
			want.Source = source
			for n := 1; n < 80; n++ {
				if !w.stoppedCreate(t, want, n) {
					return
				}
			}
			t.Fatal("still hitting requests after 80 rounds")
		})
	}
}

func (w *world) stoppedCreate(t *testing.T, want sandbox.Spec, n int) bool {
	t.Helper()
	id := w.inject(control.Fault{Pattern: "^/", Nth: n, Count: 1, Kind: control.Hold})
	ctx, stop := context.WithCancel(w.context())
	defer stop()
	type result struct {
		out sandbox.Outcome
		err error
	}
	var saved state
	done := make(chan result, 1)
	go func() {
		out, err := w.process().Create(ctx, want, saved.accept)
		done <- result{out, err}
	}()
	held := make(chan bool, 1)
	go func() {
		_, err := w.lab.Control().WaitHeld(context.Background(), id, 1, 10*time.Second)
		held <- err == nil
	}()
	var r result
	hit := false
	select {
	case r = <-done:
	case hit = <-held:
		stop()
		if err := w.lab.Control().Release(context.Background(), id); err != nil {
			t.Fatal(err)
		}
		r = <-done
	}
	w.calm()
	left := w.marked()
	switch {
	case !hit:
		if r.err != nil || r.out.Unfinished {
			t.Fatalf("not stopped, yet %v", r.err)
		}
	case r.err != nil:
		if saved.ref.VMID != 0 || len(left) != 0 || !errors.Is(r.err, context.Canceled) {
			t.Fatalf("request %d: %v; state %d, on the server %v", n, r.err, saved.ref.VMID, left)
		}
		return true
	case !slices.Equal(left, []int{saved.ref.VMID}) || r.out.Sandbox.VMID != saved.ref.VMID:
		t.Fatalf("request %d: state %d, outcome %d, on the server %v", n, saved.ref.VMID, r.out.Sandbox.VMID, left)
	}
	p := w.process()
	if r.out.Unfinished {
		out, err := p.Update(w.context(), sandbox.Prior{Ref: saved.ref}, want, want)
		if err != nil {
			t.Fatalf("request %d: finish: %v", n, err)
		}
		s := out.Sandbox
		if s.VMID != saved.ref.VMID || s.Status != sandbox.StatusRunning || s.Marker.Phase != sandbox.PhaseReady || s.MemoryMiB != 256 || s.SSH == nil || s.SSH.HostKey == "" {
			t.Fatalf("request %d: finished as %+v", n, s)
		}
	}
	if _, err := p.Destroy(w.context(), saved.ref, saved.upid); err != nil {
		t.Fatal(err)
	}
	return hit
}

func TestDestroyOfATaintedSandboxStopsTheTaskThatStillMakesIt(t *testing.T) {
	t.Parallel()
	delays := lab.Fast()
	delays.CloneFull = 4 * time.Second
	w := newWorld(t, lab.Options{Delays: delays})
	want := spec("slow")
	want.FullClone = true
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	var saved state
	_, err := w.process().Create(ctx, want, saved.accept)
	if !errors.Is(err, context.DeadlineExceeded) || saved.upid == "" {
		t.Fatalf("%v, upid %q", err, saved.upid)
	}
	if _, err := w.process().Destroy(w.context(), saved.ref, saved.upid); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
