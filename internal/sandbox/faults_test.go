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

// The loops below do one thing again and again, with a fault at the first
// request, then at the second, and so on until no request is left to hit. Each
// time they ask what is on the server, and whether the next run converges.

// badness is one way in which a request, and perhaps all after it, goes wrong.
type badness struct {
	name  string
	fault control.Fault
}

func badnesses() []badness {
	return []badness{
		{"596 once", control.Fault{Kind: control.Status, Status: 596, Reason: "Connection refused", Count: 1}},
		{"596 once, carried out", control.Fault{Kind: control.StatusAfter, Status: 596, Reason: "Broken pipe", Count: 1}},
		{"dropped before", control.Fault{Kind: control.DropBefore, Count: 1}},
		{"dropped after", control.Fault{Kind: control.DropAfter, Count: 1}},
		{"server gone for good", control.Fault{Kind: control.DropBefore, Count: -1}},
		{"500 once", control.Fault{Kind: control.Status, Status: 500, Reason: "got no worker upid - start worker failed", Count: 1}},
	}
}

// loop runs round for the first, second, … request until one isn't reached.
func (w *world) loop(t *testing.T, bad badness, round func(t *testing.T, n int)) {
	t.Helper()
	for n := 1; ; n++ {
		if n > 80 {
			t.Fatal("still hitting requests after 80 rounds")
		}
		hit := false
		t.Run(fmt.Sprintf("request %d", n), func(t *testing.T) {
			round(t, n)
			hit = w.lastFired
		})
		if !hit || t.Failed() {
			return
		}
	}
}

// at injects bad at the nth request, does do, and calms the lab down again.
func (w *world) at(bad badness, n int, do func()) {
	w.t.Helper()
	f := bad.fault
	f.Pattern, f.Nth = "^/", n
	id := w.inject(f)
	do()
	w.lastFired = w.fired(id)
	w.calm()
}

func short(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func TestFaultAtEachRequestOfCreateLeavesNothingOrATrackedSandbox(t *testing.T) {
	t.Parallel()
	for _, source := range []sandbox.Source{{TemplateID: lab.TemplateID}, {TemplateFileID: lab.TemplateFile}} {
		for _, bad := range badnesses() {
			t.Run(fmt.Sprintf("%s, %s", sourceName(source), bad.name), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, lab.Options{})
				want := spec("victim")
				want.Source = source
				w.loop(t, bad, func(t *testing.T, n int) { w.createUnderFault(t, bad, n, want) })
			})
		}
	}
}

func sourceName(s sandbox.Source) string {
	if s.IsClone() {
		return "clone"
	}
	return "file"
}

func (w *world) createUnderFault(t *testing.T, bad badness, n int, want sandbox.Spec) {
	var saved state
	var out sandbox.Outcome
	var err error
	w.at(bad, n, func() { out, err = w.process(impatient).Create(short(t, 10*time.Second), want, saved.accept) })
	left := w.marked()
	switch {
	case err == nil:
		if len(left) != 1 || left[0] != out.Sandbox.VMID || out.Sandbox.Marker.Phase != sandbox.PhaseReady {
			t.Fatalf("no error, but on the server: %v; outcome %+v", left, out.Sandbox.Ref)
		}
	case len(left) > 1 || len(left) == 1 && left[0] != saved.ref.VMID:
		t.Fatalf("left behind: %v, in the state: %d (%v)", left, saved.ref.VMID, err)
	}
	// The next run: Terraform destroys what is tainted, and makes it anew.
	p := w.process()
	if err != nil && saved.ref.VMID != 0 {
		if _, err := p.Destroy(w.context(), saved.ref, saved.upid); err != nil {
			t.Fatalf("destroy of the tainted one: %v", err)
		}
	}
	if err != nil {
		out.Sandbox = w.create(p, want)
	}
	if now := w.marked(); len(now) != 1 || now[0] != out.Sandbox.VMID {
		t.Fatalf("after the next run: %v, want %d only", now, out.Sandbox.VMID)
	}
	if _, err := p.Destroy(w.context(), out.Sandbox.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if now := w.marked(); len(now) != 0 {
		t.Fatalf("after the destroy: %v", now)
	}
}

func TestFailedTaskAtEachStepOfCreateIsAnErrorThatTheNextRunRepairs(t *testing.T) {
	t.Parallel()
	for _, source := range []sandbox.Source{{TemplateID: lab.TemplateID}, {TemplateFileID: lab.TemplateFile}} {
		for _, after := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, work done %v", sourceName(source), after), func(t *testing.T) {
				t.Parallel()
				w := newWorld(t, lab.Options{})
				want := spec("victim")
				want.Source, want.DiskGiB = source, ptr(5)
				failures := 0
				for n := 1; ; n++ {
					if err := w.lab.Control().FailTask(t.Context(), control.TaskFault{Nth: n, Count: 1, Exit: "unable to do it", After: after}); err != nil {
						t.Fatal(err)
					}
					var saved state
					p := w.process()
					_, err := p.Create(w.context(), want, saved.accept)
					w.calm()
					if left := w.marked(); len(left) > 1 || len(left) == 1 && left[0] != saved.ref.VMID {
						t.Fatalf("task %d: left behind %v, in the state %d (%v)", n, left, saved.ref.VMID, err)
					}
					if _, err := p.Destroy(w.context(), saved.ref, saved.upid); err != nil {
						t.Fatal(err)
					}
					if left := w.marked(); len(left) != 0 {
						t.Fatalf("task %d: left after destroy %v", n, left)
					}
					if err == nil {
						break
					}
					failures++
				}
				if failures < 2 {
					t.Errorf("only %d tasks could fail", failures)
				}
			})
		}
	}
}

func TestLockFailureOfATaskIsTriedAgain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	for _, exit := range []string{"CT is locked (disk)", "can't lock file '/var/lock/pve-manager/pve-storage-local-btrfs' - got timeout"} {
		if err := w.lab.Control().FailTask(t.Context(), control.TaskFault{Type: "vzclone", Nth: 1, Count: 2, Exit: exit}); err != nil {
			t.Fatal(err)
		}
		w.create(w.process(), spec("patient"))
		w.calm()
	}
}

func TestFaultAtEachRequestOfUpdateConvergesInTheNextRun(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			s := w.create(w.process(), spec("changing"))
			prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}
			size := 1
			w.loop(t, bad, func(t *testing.T, n int) {
				size++
				from, to := spec("changing"), spec("changing")
				to.MemoryMiB, to.DiskGiB, to.Description, to.Tags = ptr(256+size), ptr(size), fmt.Sprint("round ", n), []string{fmt.Sprint("r", n)}
				to.Started = n%2 == 0
				if n%3 != 0 {
					to.PoolID = lab.Pool
				}
				var err error
				w.at(bad, n, func() { _, err = w.process(impatient).Update(short(t, 10*time.Second), prior, from, to) })
				if errors.Is(err, sandbox.ErrGone) || errors.Is(err, sandbox.ErrForeign) {
					t.Fatalf("taken for gone or foreign: %v", err)
				}
				p := w.process()
				if err != nil {
					if _, err = p.Update(w.context(), prior, from, to); err != nil {
						t.Fatalf("the next run: %v", err)
					}
				}
				w.calm()
				now, err := w.process().Read(w.context(), prior)
				if err != nil {
					t.Fatal(err)
				}
				if now.MemoryMiB != *to.MemoryMiB || now.DiskGiB != float64(size) || now.Description != to.Description ||
					!slices.Equal(now.Tags, to.Tags) || now.PoolID != to.PoolID || (now.Status == sandbox.StatusRunning) != to.Started ||
					now.Network.MACAddress != s.Network.MACAddress {
					t.Fatalf("did not converge: %+v", now)
				}
				if left := w.marked(); len(left) != 1 {
					t.Fatalf("on the server: %v", left)
				}
			})
		})
	}
}

func TestFaultAtEachRequestOfDestroyConvergesInTheNextRun(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			bystander := w.create(w.process(), spec("bystander"))
			w.loop(t, bad, func(t *testing.T, n int) {
				var saved state
				out, err := w.process().Create(w.context(), spec("doomed"), saved.accept)
				if err != nil {
					t.Fatal(err)
				}
				w.at(bad, n, func() { _, err = w.process(impatient).Destroy(short(t, 10*time.Second), out.Sandbox.Ref, saved.upid) })
				if err == nil && len(w.marked()) != 1 {
					t.Fatalf("said to be gone, on the server: %v", w.marked())
				}
				if _, err := w.process().Destroy(w.context(), out.Sandbox.Ref, saved.upid); err != nil {
					t.Fatalf("the next run: %v", err)
				}
				if left := w.marked(); !slices.Equal(left, []int{bystander.VMID}) {
					t.Fatalf("on the server: %v", left)
				}
			})
		})
	}
}

func TestFailedDestroyTaskIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.create(w.process(), spec("stubborn"))
	if err := w.lab.Control().FailTask(t.Context(), control.TaskFault{Type: "vzdestroy", Exit: "unable to remove volume"}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.process().Destroy(w.context(), s.Ref, ""); err == nil {
		t.Error("a failed task was reported as success")
	}
	w.calm()
	if _, err := w.process().Destroy(w.context(), s.Ref, ""); err != nil {
		t.Error(err)
	}
}

func TestDestroyTaskThatFindsItsGuestGoneIsASuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.create(w.process(), spec("raced"))
	exit := fmt.Sprintf("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", s.Node, s.VMID)
	if err := w.lab.Control().FailTask(t.Context(), control.TaskFault{Type: "vzdestroy", Exit: exit, After: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := w.process().Destroy(w.context(), s.Ref, ""); err != nil {
		t.Error(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
