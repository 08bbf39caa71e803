package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// jumpingClock is the real time plus an offset that changes.
type jumpingClock struct{ by atomic.Int64 }

func (c *jumpingClock) Now() time.Time { return time.Now().Add(time.Duration(c.by.Load())) }

func (*jumpingClock) Sleep(ctx context.Context, d time.Duration) error {
	return laterClock{}.Sleep(ctx, d)
}

// killAt is a context that ends when a fault is met: whatever the process would do after that, it doesn't.
func (w *world) killAt(fault int) context.Context {
	ctx, kill := context.WithCancel(w.context())
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		// Ends with ctx too: a fault that is never met kills nobody.
		_, _ = w.lab.Control().WaitFired(ctx, fault, 1, 20*time.Second)
		kill()
	}()
	w.t.Cleanup(func() { kill(); <-watched })
	return ctx
}

// A renewal and a reaper meet: whoever writes first wins, and the other is told.
func TestARenewalAndAReaperAtTheSameMoment(t *testing.T) {
	t.Parallel()
	hour := &sandbox.Lease{TTL: time.Hour}
	again := light("box", &sandbox.Lease{TTL: time.Hour, Renew: "again"})
	scene := func(t *testing.T) (*world, option, sandbox.Sandbox, []sandbox.ReapCandidate) {
		w := newWorld(t, lab.Options{})
		s := w.create(w.process(), light("box", hour))
		now := w.pass(2 * time.Hour)
		return w, now, s, w.reapable(w.process(now), sandbox.ReapSpec{}).Candidates
	}
	during := func(w *world, now option, f control.Fault, candidates []sandbox.ReapCandidate, do func()) sandbox.ReapOutcome {
		id := w.inject(f)
		done := make(chan sandbox.ReapOutcome)
		go func() {
			out, err := w.process(now).Reap(w.context(), sandbox.ReapSpec{}, candidates)
			if err != nil {
				w.t.Error(err)
			}
			done <- out
		}()
		if _, err := w.lab.Control().WaitHeld(w.context(), id, 1, 20*time.Second); err != nil {
			w.t.Fatal(err)
		}
		do()
		if err := w.lab.Control().Release(w.context(), id); err != nil {
			w.t.Fatal(err)
		}
		return <-done
	}
	t.Run("the renewal is first", func(t *testing.T) {
		t.Parallel()
		w, now, s, candidates := scene(t)
		out := during(w, now, control.Fault{Method: "PUT", Pattern: `/lxc/\d+/config$`, Kind: control.Hold}, candidates, func() {
			if _, err := w.process(now).Update(w.context(), sandbox.Prior{Ref: s.Ref}, light("box", hour), again); err != nil {
				t.Error(err)
			}
		})
		if len(out.Reaped) != 0 || len(out.Left) != 1 || out.Left[0].Why != "its lease was renewed" {
			t.Errorf("%+v", out)
		}
		if m := w.markerOf(s.VMID); m == nil || m.Renewed != "again" || len(m.Extra) != 0 {
			t.Errorf("the marker is %v", m)
		}
	})
	t.Run("the reaper is first", func(t *testing.T) {
		t.Parallel()
		w, now, s, candidates := scene(t)
		out := during(w, now, control.Fault{Method: "DELETE", Pattern: `/lxc/\d+$`, Kind: control.Hold}, candidates, func() {
			_, err := w.process(now).Update(w.context(), sandbox.Prior{Ref: s.Ref}, light("box", hour), again)
			if !errors.Is(err, sandbox.ErrReaping) || sandbox.CodeOf(err) != "SBX431" {
				t.Errorf("the renewal said %v", err)
			}
		})
		if len(out.Reaped) != 1 || len(w.marked()) != 0 {
			t.Errorf("%+v; on the server are %v", out, w.marked())
		}
	})
	t.Run("a reaper that died", func(t *testing.T) {
		t.Parallel()
		w, now, s, candidates := scene(t)
		id := w.inject(control.Fault{Method: "DELETE", Pattern: `/lxc/\d+$`, Count: -1, Kind: control.DropBefore})
		if _, err := w.process(now, impatient).Reap(w.killAt(id), sandbox.ReapSpec{}, candidates); err == nil || !w.fired(id) {
			t.Fatalf("the scene isn't set: %v", err)
		}
		w.calm()
		// Its mark ends, and the renewal takes it out.
		if _, err := w.process(now, shift(20*time.Minute)).Update(w.context(), sandbox.Prior{Ref: s.Ref}, light("box", hour), again); err != nil {
			t.Fatal(err)
		}
		if m := w.markerOf(s.VMID); m.Renewed != "again" || len(m.Extra) != 0 {
			t.Errorf("the marker is %v", m)
		}
	})
}

// Somebody finishes a creation that was cut long ago, and the reaper comes by.
func TestACreationThatIsBeingFinishedIsNotReaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	ctx, kill := context.WithCancel(w.context())
	want := light("cut", nil)
	var ref sandbox.Ref
	if _, err := w.process().Create(ctx, want, func(r sandbox.Ref, _ string) { ref = r; kill() }); err != nil {
		t.Fatal(err)
	}
	w.settle()
	now := w.pass(2 * time.Hour)
	candidates := w.reapable(w.process(now), sandbox.ReapSpec{}).Candidates
	if len(candidates) != 1 {
		t.Fatalf("found %v", found(candidates))
	}
	// It is held when it has written its first change, and is about to seal.
	id := w.inject(control.Fault{Method: "PUT", Pattern: `/lxc/\d+/config$`, Nth: 2, Kind: control.Hold})
	done := make(chan error)
	go func() {
		_, err := w.process(now).Update(w.context(), sandbox.Prior{Ref: ref}, want, want)
		done <- err
	}()
	if _, err := w.lab.Control().WaitHeld(w.context(), id, 1, 20*time.Second); err != nil {
		t.Fatal(err)
	}
	if out := w.reap(w.process(now), sandbox.ReapSpec{}, candidates); len(out.Reaped) != 0 || len(out.Left) != 1 {
		t.Errorf("%+v", out)
	}
	if err := w.lab.Control().Release(w.context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	if m := w.markerOf(ref.VMID); m == nil || m.Phase != sandbox.PhaseReady || !m.Until.IsZero() {
		t.Errorf("the marker is %v", m)
	}
}

// A reaper that is killed at its nth request has destroyed its guest or left it whole, and the next one ends it.
func TestKillAtEachRequestOfAReaper(t *testing.T) {
	t.Parallel()
	for _, carriedOut := range []bool{false, true} {
		w := newWorld(t, lab.Options{})
		other := w.create(w.process(), light("other", nil))
		passed := time.Duration(0)
		for n := 1; ; n++ {
			if n > 30 {
				t.Fatal("still hitting requests after 30 rounds")
			}
			s := w.create(w.process(later(passed)), light("box", &sandbox.Lease{TTL: time.Hour}))
			w.pass(2 * time.Hour)
			passed += 2 * time.Hour
			candidates := w.reapable(w.process(later(passed)), sandbox.ReapSpec{}).Candidates
			kind := control.DropBefore
			if carriedOut {
				kind = control.DropAfter
			}
			id := w.inject(control.Fault{Pattern: "^/", Nth: n, Count: 1, Kind: kind})
			dead := w.killAt(w.inject(control.Fault{Pattern: "^/", Nth: n + 1, Count: -1, Kind: control.DropBefore}))
			_, err := w.process(impatient, shift(passed)).Reap(dead, sandbox.ReapSpec{}, candidates)
			hit := w.fired(id)
			w.calm()
			if !hit && err != nil {
				t.Fatal(err)
			}
			left := w.marked()
			if !slices.Contains(left, other.VMID) || len(left) > 2 || len(left) == 2 && !w.markerOf(s.VMID).Matches(testOwner, s.Claim, s.VMID) {
				t.Fatalf("request %d: on the server are %v", n, left)
			}
			p := w.process(later(passed))
			w.reap(p, sandbox.ReapSpec{}, w.reapable(p, sandbox.ReapSpec{}).Candidates)
			if left := w.marked(); !slices.Equal(left, []int{other.VMID}) {
				t.Fatalf("request %d: after the next run %v", n, left)
			}
			if !hit {
				break
			}
		}
	}
}

// A renewal that is killed at its nth request has moved the end or hasn't; the next run doesn't move it twice, and what
// the guest believes in the end is what the marker says.
func TestARenewalCutAtEachRequestRenewsOnce(t *testing.T) {
	t.Parallel()
	for _, carriedOut := range []bool{false, true} {
		w := newWorld(t, lab.Options{})
		was := leased("box", sandbox.Lease{TTL: time.Hour})
		s := w.create(w.process(), was)
		before := s.ExpiresAt
		for n := 1; ; n++ {
			if n > 30 {
				t.Fatal("still hitting requests after 30 rounds")
			}
			to := was.Clone()
			to.Lease.TTL += time.Hour
			kind := control.DropBefore
			if carriedOut {
				kind = control.DropAfter
			}
			id := w.inject(control.Fault{Pattern: "^/", Nth: n, Count: 1, Kind: kind})
			dead := w.killAt(w.inject(control.Fault{Pattern: "^/", Nth: n + 1, Count: -1, Kind: control.DropBefore}))
			_, err := w.process(impatient).Update(dead, sandbox.Prior{Ref: s.Ref}, was, to)
			hit := w.fired(id)
			w.calm()
			if !hit && err != nil {
				t.Fatal(err)
			}
			cut := w.markerOf(s.VMID)
			moved := !cut.Expires.Equal(before)
			if moved != (cut.TTL == to.Lease.TTL) || cut.TTL != to.Lease.TTL && cut.TTL != was.Lease.TTL {
				t.Fatalf("request %d: half a lease: %v", n, cut)
			}
			out, err := w.process(later(10*time.Minute)).Update(w.context(), sandbox.Prior{Ref: s.Ref}, was, to)
			if err != nil {
				t.Fatal(err)
			}
			now := w.markerOf(s.VMID)
			if moved && !now.Expires.Equal(cut.Expires) {
				t.Fatalf("request %d: renewed twice, from %v to %v", n, cut.Expires, now.Expires)
			}
			if now.TTL != to.Lease.TTL || w.inside(w.process(), s.Ref, sandbox.LeaseFile)["expires_at"] != now.Expires.Format(time.RFC3339) {
				t.Fatalf("request %d: in the end the marker is %v, the guest believes in %v", n, now, w.inside(w.process(), s.Ref, sandbox.LeaseFile))
			}
			was, before = to, out.Sandbox.ExpiresAt
			if !hit {
				break
			}
		}
	}
}
