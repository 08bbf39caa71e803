package sandbox_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// A workspace goes to and fro with a fault at each request in turn. Whatever
// the run says, the volume is in exactly one place, its content is what was
// written, and the next run of the same step reaches the goal.

func TestFaultAtEachRequestOfAnAttachmentAndADetach(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			p := w.process()
			ws := w.workspace(p, "repo")
			bare := spec("box")
			bare.RestartWhenNeeded = true
			attached := with(bare, at(ws, "/workspace"))
			s := w.create(p, attached)
			w.in(p, s, "agent", "echo kept > /workspace/f")
			s = w.update(p, s, attached, bare).Sandbox

			w.loop(t, bad, func(t *testing.T, n int) {
				fired := false
				for _, step := range []struct {
					from, to sandbox.Spec
					want     sandbox.WorkspaceStatus
				}{{bare, attached, sandbox.WorkspaceAttached}, {attached, bare, sandbox.WorkspaceDetached}} {
					cut := w.process(impatient)
					w.at(bad, n, func() { _, _ = cut.Update(short(t, 3*time.Second), prior(s), step.from, step.to) })
					fired = fired || w.lastFired
					w.onlyOne()
					next := w.process()
					s = w.update(next, s, step.from, step.to).Sandbox
					if now := w.read(next, ws); now.Status != step.want {
						t.Fatalf("after the next run the workspace is %s, want %s", now.Status, step.want)
					}
					if step.want == sandbox.WorkspaceAttached {
						if got := w.in(next, s, "agent", "cat /workspace/f"); got != "kept" {
							t.Fatalf("the content is %q", got)
						}
					}
				}
				w.lastFired = fired
			})
		})
	}
}

// onlyOne counts the volumes of two GiB on the server: the workspace's.
func (w *world) onlyOne() {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	var found []string
	for _, g := range dump.Guests {
		for key, value := range g.Config {
			if (strings.HasPrefix(key, "mp") || strings.HasPrefix(key, "unused")) && value != "" {
				found = append(found, fmt.Sprintf("%d %s=%s", g.VMID, key, value))
			}
		}
	}
	if len(found) != 1 || len(dump.Strays) > 0 {
		w.t.Fatalf("the volume is in %v, strays %v", found, dump.Strays)
	}
}

func TestFaultAtEachRequestOfADestroyKeepsTheWorkspace(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			p := w.process()
			ws := w.workspace(p, "repo")
			w.loop(t, bad, func(t *testing.T, n int) {
				s := w.create(w.process(), with(spec("box"), at(ws, "/workspace")))
				cut := w.process(impatient)
				w.at(bad, n, func() { _, _ = cut.Destroy(short(t, 3*time.Second), s.Ref, "") })
				w.onlyOne()
				next := w.process()
				if _, err := next.Destroy(w.context(), s.Ref, ""); err != nil {
					t.Fatal(err)
				}
				if now := w.read(next, ws); now.Status != sandbox.WorkspaceDetached {
					t.Fatalf("the workspace is %s", now.Status)
				}
			})
		})
	}
}

func TestFaultAtEachRequestOfAWorkspacesCreationLeavesNothingUntracked(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			source := w.workspace(w.process(), "source")
			w.loop(t, bad, func(t *testing.T, n int) {
				want := sandbox.WorkspaceSpec{Name: "victim", SizeGiB: 1}
				if n%2 == 0 {
					want = sandbox.WorkspaceSpec{Name: "victim", ForkOf: source.VMID}
				}
				cut := w.process(impatient)
				var held state
				var err error
				w.at(bad, n/2+1, func() { _, _, err = cut.CreateWorkspace(short(t, 3*time.Second), want, held.accept) })
				next := w.process()
				if _, err := next.DestroyWorkspace(w.context(), held.ref, held.upid); err != nil {
					t.Fatalf("after %v: destroy: %v", err, err)
				}
				if left := w.marked(); len(left) != 1 {
					t.Fatalf("after %v: left behind %v", err, left)
				}
			})
		})
	}
}

func TestADetachIsRefusedByAHeldLockInTimeAndNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	s := w.create(p, with(spec("box"), at(ws, "/workspace")))
	w.inject(control.Fault{Kind: control.Status, Method: "POST", Pattern: "move_volume$", Status: 500, Reason: "CT is locked (backup)", Count: -1})
	_, err := p.Destroy(short(t, 400*time.Millisecond), s.Ref, "")
	if err == nil || !strings.Contains(err.Error(), "backup") {
		t.Fatalf("got %v", err)
	}
	w.calm()
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceAttached {
		t.Errorf("the workspace is %s", now.Status)
	}
}
