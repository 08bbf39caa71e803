package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func (w *world) workspace(p *process, name string) sandbox.Workspace {
	w.t.Helper()
	out, _, err := p.CreateWorkspace(w.context(), sandbox.WorkspaceSpec{Name: name, SizeGiB: 2}, nil)
	if err != nil {
		w.t.Fatalf("create workspace %s: %v", name, err)
	}
	return out
}

func with(s sandbox.Spec, list ...sandbox.Attachment) sandbox.Spec {
	s.Workspaces = list
	return s
}

func at(ws sandbox.Workspace, path string) sandbox.Attachment {
	return sandbox.Attachment{Workspace: ws.VMID, Path: path, Wait: 50 * time.Millisecond}
}

func (w *world) update(p *process, s sandbox.Sandbox, from, to sandbox.Spec) sandbox.Outcome {
	w.t.Helper()
	out, err := p.Update(w.context(), prior(s), from, to)
	if err != nil {
		w.t.Fatalf("update %d: %v", s.VMID, err)
	}
	return out
}

func prior(s sandbox.Sandbox) sandbox.Prior {
	p := sandbox.Prior{Ref: s.Ref}
	if s.SSH != nil {
		p.SSHHostKey = s.SSH.HostKey
	}
	posture := s.Posture
	posture.Pending = nil
	p.Baseline = &posture
	return p
}

// in runs a script in a sandbox and returns what it prints.
func (w *world) in(p *process, s sandbox.Sandbox, user, script string) string {
	w.t.Helper()
	result, _, err := p.Exec(w.context(), prior(s), sandbox.Command{Script: script, User: user})
	if err != nil {
		w.t.Fatalf("in %d: %v", s.VMID, err)
	}
	if result.ExitCode != 0 {
		w.t.Fatalf("in %d: %q exits with %d: %s", s.VMID, script, result.ExitCode, result.Stderr)
	}
	return strings.TrimSpace(string(result.Stdout))
}

func (w *world) read(p *process, ws sandbox.Workspace) sandbox.Workspace {
	w.t.Helper()
	now, err := p.ReadWorkspace(w.context(), ws.Ref)
	if err != nil {
		w.t.Fatal(err)
	}
	return now
}

func (w *world) configOf(p *process, s sandbox.Ref) *pve.LXCConfig {
	w.t.Helper()
	cfg, err := p.client.LXCConfig(w.context(), s.Node, s.VMID)
	if err != nil {
		w.t.Fatal(err)
	}
	return cfg
}

func TestANewWorkspaceIsAVolumeInAStoppedProtectedHolder(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	if ws.Status != sandbox.WorkspaceDetached || ws.SizeGiB != 2 || ws.Storage != lab.Storage || ws.Attached != nil {
		t.Fatalf("got %+v", ws)
	}
	cfg := w.configOf(p, ws.Ref)
	_, marker := sandbox.SplitDescription(cfg.Text("description"))
	if marker == nil || marker.Kind != sandbox.KindHolder || marker.Phase != sandbox.PhaseReady {
		t.Errorf("marker %+v", marker)
	}
	if !cfg.Protection() || cfg.Text("tags") != "sbx-unit;sbx-workspace" {
		t.Errorf("protection %v, tags %q", cfg.Protection(), cfg.Text("tags"))
	}
	list, err := p.ListContainers(w.context(), sandbox.Filter{})
	if err != nil || len(list) != 0 {
		t.Errorf("a holder counts as a sandbox: %v %v", list, err)
	}
	cluster, err := p.Cluster(w.context())
	if err != nil || cluster.Nodes[0].Containers != 0 {
		t.Errorf("a holder counts as a container: %+v %v", cluster, err)
	}
	if _, err := p.Destroy(w.context(), ws.Ref, ""); !errors.Is(err, sandbox.ErrProtected) {
		t.Errorf("a destroy as a sandbox: %v", err)
	}
	if _, _, err := p.CreateWorkspace(w.context(), sandbox.WorkspaceSpec{Name: "repo", SizeGiB: 1}, nil); err == nil || !strings.Contains(err.Error(), "import") {
		t.Errorf("a second workspace of that name: %v", err)
	}
	if _, err := p.DestroyWorkspace(w.context(), ws.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestContentSurvivesTheSandboxThatWroteIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	first := w.create(p, with(spec("first"), at(ws, "/workspace")))
	if got := w.in(p, first, "", "stat -c '%U:%G %a' /workspace"); got != "agent:agent 755" {
		t.Errorf("the mount point is %s", got)
	}
	w.in(p, first, "agent", "chmod 700 /workspace && mkdir /workspace/src && echo kept > /workspace/src/file && chmod 600 /workspace/src/file")
	now := w.read(p, ws)
	if now.Status != sandbox.WorkspaceAttached || now.Attached.VMID != first.VMID || now.Attached.Path != "/workspace" || now.SizeGiB != 2 {
		t.Errorf("while attached: %+v %+v", now, now.Attached)
	}
	if _, err := p.Destroy(w.context(), first.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceDetached {
		t.Fatalf("after the destroy: %+v", now)
	}
	second := w.create(p, with(spec("second"), at(ws, "/srv/code")))
	if got := w.in(p, second, "", "stat -c %a /srv/code"); got != "700" {
		t.Errorf("the mode that the agent chose became %s", got)
	}
	if got := w.in(p, second, "agent", "cat /srv/code/src/file && stat -c '%u:%g %a' /srv/code/src/file"); got != "kept\n1000:1000 600" {
		t.Errorf("the second sandbox reads %q", got)
	}
	if len(second.Posture.Mounts) != 0 || len(second.Workspaces) != 1 {
		t.Errorf("posture %v, workspaces %v", second.Posture.Mounts, second.Workspaces)
	}
}

func TestAWorkspaceIsMountedHotAndDetachedAtTheNextStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	bare := spec("box")
	s := w.create(p, bare)
	boot := w.in(p, s, "", "cat /proc/sys/kernel/random/boot_id")
	s = w.update(p, s, bare, with(bare, at(ws, "/workspace"))).Sandbox
	w.in(p, s, "agent", "echo hot > /workspace/f")
	if w.in(p, s, "", "cat /proc/sys/kernel/random/boot_id") != boot {
		t.Error("an attachment restarted the sandbox")
	}

	out := w.update(p, s, with(bare, at(ws, "/workspace")), bare)
	if len(out.Warnings) == 0 || !slices.Contains(out.Sandbox.Posture.Pending, "mp0") || len(out.Sandbox.Workspaces) != 0 {
		t.Errorf("a detach from a running sandbox isn't told to be pending: %v %v", out.Warnings, out.Sandbox.Posture.Pending)
	}
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceReleasing {
		t.Errorf("the workspace is %s", now.Status)
	}
	if _, err := p.DestroyWorkspace(w.context(), ws.Ref, ""); !errors.Is(err, sandbox.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprint(s.VMID)) {
		t.Errorf("a destroy while it is being released: %v", err)
	}

	restarting := bare
	restarting.RestartWhenNeeded = true
	out = w.update(p, out.Sandbox, bare, restarting)
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceDetached {
		t.Errorf("after the restart the workspace is %s", now.Status)
	}
	if out.Sandbox.Status != sandbox.StatusRunning || w.in(p, out.Sandbox, "", "cat /proc/sys/kernel/random/boot_id") == boot {
		t.Error("the sandbox was not restarted")
	}
	if _, marker := sandbox.SplitDescription(w.configOf(p, s.Ref).Text("description")); len(marker.Workspaces)+len(marker.Released) != 0 {
		t.Errorf("records left: %+v", marker)
	}
}

func TestADetachThatIsWantedBackBeforeTheStopIsReverted(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	bare := spec("box")
	attached := with(bare, at(ws, "/workspace"))
	s := w.create(p, attached)
	s = w.update(p, s, attached, bare).Sandbox
	s = w.update(p, s, bare, attached).Sandbox
	if len(s.Workspaces) != 1 || len(s.Posture.Pending) != 0 {
		t.Errorf("got %v, pending %v", s.Workspaces, s.Posture.Pending)
	}
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceAttached {
		t.Errorf("the workspace is %s", now.Status)
	}
}

func TestAWorkspaceThatASandboxLeftBehindAtAStopByHandIsFetched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	bare := spec("old")
	old := w.create(p, with(bare, at(ws, "/workspace")))
	w.in(p, old, "agent", "echo kept > /workspace/f")
	w.update(p, old, with(bare, at(ws, "/workspace")), bare)

	_, err := p.Create(w.context(), with(spec("early"), at(ws, "/workspace")), nil)
	if !errors.Is(err, sandbox.ErrHeld) || !strings.Contains(err.Error(), "restart") {
		t.Errorf("an attachment before the stop: %v", err)
	}
	upid, err := p.client.StopLXC(w.context(), old.Node, old.VMID)
	w.taskDone(p, upid, err)
	fresh := w.create(p, with(spec("new"), at(ws, "/workspace")))
	if got := w.in(p, fresh, "agent", "cat /workspace/f"); got != "kept" {
		t.Errorf("the new sandbox reads %q", got)
	}
	if cfg := w.configOf(p, old.Ref); len(cfg.Unused()) != 0 || strings.Contains(cfg.Text("description"), "off=") {
		t.Errorf("the old sandbox keeps %v, %q", cfg.Unused(), cfg.Text("description"))
	}
}

func TestOfTwoAppliesThatAttachOneWorkspaceOneWinsAndTheOtherSaysWhoHasIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	ws := w.workspace(w.process(), "repo")
	var wg sync.WaitGroup
	outs, errs := make([]sandbox.Outcome, 2), make([]error, 2)
	for i, p := range []*process{w.process(), w.process()} {
		wg.Go(func() {
			outs[i], errs[i] = p.Create(w.context(), with(spec(fmt.Sprintf("box-%d", i)), at(ws, "/workspace")), nil)
		})
	}
	wg.Wait()
	winner := slices.IndexFunc(errs, func(err error) bool { return err == nil })
	if winner < 0 || errs[1-winner] == nil {
		t.Fatalf("want one winner: %v", errs)
	}
	err := errs[1-winner]
	if !errors.Is(err, sandbox.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("container %d (box-%d)", outs[winner].Sandbox.VMID, winner)) {
		t.Errorf("the loser says: %v", err)
	}
	p := w.process()
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceAttached || now.Attached.VMID != outs[winner].Sandbox.VMID {
		t.Errorf("the workspace: %+v", now)
	}
	// The loser is tainted; its destroy takes nothing of the winner's along.
	if _, err := p.Destroy(w.context(), outs[1-winner].Sandbox.Ref, ""); err != nil {
		t.Fatal(err)
	}
	w.in(p, outs[winner].Sandbox, "agent", "echo still mine > /workspace/f")
}

func TestAnAttachmentWaitsForTheOtherSandboxToLetGo(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	bare := spec("old")
	bare.RestartWhenNeeded = true
	old := w.create(p, with(bare, at(ws, "/workspace")))
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		a := at(ws, "/workspace")
		a.Wait = 30 * time.Second
		_, err = p.Create(w.context(), with(spec("new"), a), nil)
	})
	w.update(p, old, with(bare, at(ws, "/workspace")), bare)
	wg.Wait()
	if err != nil {
		t.Fatal(err)
	}
}

func TestASandboxWhoseWorkspaceCantBeHandedBackIsNotDestroyed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	s := w.create(p, with(spec("box"), at(ws, "/workspace")))
	w.in(p, s, "agent", "echo kept > /workspace/f")
	w.removeByHand(p, ws.Ref)

	_, err := p.Destroy(w.context(), s.Ref, "")
	if !errors.Is(err, sandbox.ErrNoHolder) {
		t.Fatalf("the destroy says: %v", err)
	}
	if got := w.in(p, s, "agent", "cat /workspace/f"); got != "kept" {
		t.Errorf("after the refusal: %q", got)
	}
	if _, err := p.ReadWorkspace(w.context(), ws.Ref); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("the workspace without its holder: %v", err)
	}
	restored, _, err := p.RestoreHolder(w.context(), ws.Ref, s.VMID, sandbox.WorkspaceSpec{Name: "repo", SizeGiB: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if restored.VMID != ws.VMID || restored.Status != sandbox.WorkspaceAttached || restored.Attached.VMID != s.VMID {
		t.Errorf("restored: %+v", restored)
	}
	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	next := w.create(p, with(spec("next"), at(restored, "/workspace")))
	if got := w.in(p, next, "agent", "cat /workspace/f"); got != "kept" {
		t.Errorf("the next sandbox reads %q", got)
	}
}

// taskDone waits for a task that a test has begun by itself.
func (w *world) taskDone(p *process, upid pve.UPID, err error) {
	w.t.Helper()
	if err == nil {
		_, err = p.client.Wait(w.context(), upid, func(text string) { w.t.Error(text) })
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

// removeByHand destroys a guest as somebody at the node would.
func (w *world) removeByHand(p *process, ref sandbox.Ref) {
	w.t.Helper()
	ctx := w.context()
	if err := p.client.UpdateLXC(ctx, ref.Node, ref.VMID, pve.LXCUpdate{Delete: []string{"protection"}}); err != nil {
		w.t.Fatal(err)
	}
	upid, err := p.client.DeleteLXC(ctx, ref.Node, ref.VMID, pve.DeleteOptions{Force: true, Purge: true})
	w.taskDone(p, upid, err)
}

func TestAnAttachedWorkspaceIsNotDestroyedAndGrowsWhereItIs(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	s := w.create(p, with(spec("box"), at(ws, "/workspace")))
	if _, err := p.DestroyWorkspace(w.context(), ws.Ref, ""); !errors.Is(err, sandbox.ErrHeld) || !strings.Contains(err.Error(), fmt.Sprintf("container %d (box)", s.VMID)) {
		t.Errorf("destroy: %v", err)
	}
	grown, _, err := p.UpdateWorkspace(w.context(), ws.Ref, sandbox.WorkspaceSpec{Name: "renamed", SizeGiB: 3})
	if err != nil || grown.SizeGiB != 3 || grown.Name != "renamed" {
		t.Fatalf("grown: %+v %v", grown, err)
	}
	_, _, err = p.UpdateWorkspace(w.context(), ws.Ref, sandbox.WorkspaceSpec{Name: "renamed", SizeGiB: 1})
	var problems *sandbox.ProblemsError
	if !errors.As(err, &problems) || problems.Problems[0].Attribute != "size" {
		t.Errorf("a shrink: %v", err)
	}
}

func TestSnapshotsOfTheHolderAreNamedOrDropped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	for _, name := range []string{"monday", "tuesday"} {
		upid, err := p.client.CreateSnapshot(w.context(), ws.Node, ws.VMID, name, "")
		w.taskDone(p, upid, err)
	}
	bare := spec("box")
	s := w.create(p, bare)
	_, err := p.Update(w.context(), prior(s), bare, with(bare, at(ws, "/workspace")))
	if !errors.Is(err, sandbox.ErrHasSnapshots) || !strings.Contains(err.Error(), "monday, tuesday") {
		t.Fatalf("got %v", err)
	}
	if now := w.read(p, ws); now.Status != sandbox.WorkspaceDetached {
		t.Errorf("after the refusal: %+v", now)
	}
	a := at(ws, "/workspace")
	a.DropSnapshots = true
	s = w.update(p, s, bare, with(bare, a)).Sandbox
	if len(s.Workspaces) != 1 {
		t.Errorf("got %v", s.Workspaces)
	}
}

func TestAForkIsACopyThatGoesItsOwnWay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	bare := spec("box")
	bare.RestartWhenNeeded = true
	s := w.create(p, with(bare, at(ws, "/workspace")))
	w.in(p, s, "agent", "echo original > /workspace/f")
	_, _, err := p.CreateWorkspace(w.context(), sandbox.WorkspaceSpec{Name: "early", ForkOf: ws.VMID}, nil)
	if !errors.Is(err, sandbox.ErrHeld) {
		t.Errorf("a fork of an attached workspace: %v", err)
	}
	s = w.update(p, s, with(bare, at(ws, "/workspace")), bare).Sandbox
	fork, _, err := p.CreateWorkspace(w.context(), sandbox.WorkspaceSpec{Name: "fork", SizeGiB: 4, ForkOf: ws.VMID}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if fork.ForkOf != ws.VMID || fork.SizeGiB != 4 || fork.Status != sandbox.WorkspaceDetached {
		t.Errorf("the fork: %+v", fork)
	}
	both := with(bare, at(ws, "/a"), at(fork, "/b"))
	s = w.update(p, s, bare, both).Sandbox
	w.in(p, s, "agent", "echo changed > /b/f")
	if got := w.in(p, s, "agent", "cat /a/f /b/f"); got != "original\nchanged" {
		t.Errorf("got %q", got)
	}
	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	for _, each := range []sandbox.Workspace{ws, fork} {
		if _, err := p.DestroyWorkspace(w.context(), each.Ref, ""); err != nil {
			t.Error(err)
		}
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestAPathIsChangedInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	bare := spec("box")
	bare.RestartWhenNeeded = true
	s := w.create(p, with(bare, at(ws, "/old")))
	w.in(p, s, "agent", "echo kept > /old/f")
	s = w.update(p, s, with(bare, at(ws, "/old")), with(bare, at(ws, "/new"))).Sandbox
	if got := w.in(p, s, "agent", "cat /new/f"); got != "kept" || s.Workspaces[0].Path != "/new" {
		t.Errorf("got %q at %v", got, s.Workspaces)
	}
}

func TestAWorkspaceOnAnotherNodeIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	nodes := w.lab.Nodes()
	ws, _, err := p.CreateWorkspace(w.context(), sandbox.WorkspaceSpec{Name: "repo", SizeGiB: 1, NodeName: nodes[1]}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if ws.Node != nodes[1] {
		t.Fatalf("the workspace is on %s", ws.Node)
	}
	problems, err := p.CheckServer(w.context(), with(spec("box"), at(ws, "/workspace")), nil)
	if err != nil || len(problems) != 1 || problems[0].Attribute != "workspace[0].id" || !strings.Contains(problems[0].Detail, nodes[1]) {
		t.Fatalf("got %v %v", problems, err)
	}
	there := with(spec("box"), at(ws, "/workspace"))
	there.NodeName = nodes[1]
	if problems, err := p.CheckServer(w.context(), there, nil); err != nil || slices.ContainsFunc(problems, func(p sandbox.Problem) bool { return !p.Warning }) {
		t.Fatalf("got %v %v", problems, err)
	}
	s := w.create(p, there)
	away := there
	away.NodeName = nodes[0]
	problems, err = p.CheckServer(context.Background(), away, &s)
	if err != nil || len(problems) == 0 || problems[0].Attribute != "workspace[0].id" {
		t.Errorf("a migration away from the workspace: %v %v", problems, err)
	}
}

func TestInspectionNamesWhatIsWrongAndTheRemedy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	inspect := func(ws sandbox.Workspace) string {
		t.Helper()
		_, findings, err := p.InspectWorkspace(w.context(), ws.VMID)
		if err != nil {
			t.Fatal(err)
		}
		var lines []string
		for _, f := range findings {
			if f.Remedy == "" {
				t.Errorf("no remedy for %q", f.Summary)
			}
			lines = append(lines, f.Check+": "+f.Summary)
		}
		return strings.Join(lines, "\n")
	}
	ws := w.workspace(p, "repo")
	s := w.create(p, with(spec("box"), at(ws, "/workspace")))
	if got := inspect(ws); got != "" {
		t.Errorf("a healthy one: %s", got)
	}

	// Moved to another slot by hand.
	off := s
	stopped := with(spec("box"), at(ws, "/workspace"))
	stopped.Started = false
	off = w.update(p, off, with(spec("box"), at(ws, "/workspace")), stopped).Sandbox
	mount := w.configOf(p, s.Ref).Text("mp0")
	set := func(ref sandbox.Ref, u pve.LXCUpdate) {
		t.Helper()
		if err := p.client.UpdateLXC(w.context(), ref.Node, ref.VMID, u); err != nil {
			t.Fatal(err)
		}
	}
	set(off.Ref, pve.LXCUpdate{Delete: []string{"mp0"}})
	set(off.Ref, pve.LXCUpdate{Set: map[string]string{"mp4": mount}})
	if got := inspect(ws); !strings.Contains(got, "slot: The slot has drifted") || !strings.Contains(got, "mp4") {
		t.Errorf("a drifted slot: %s", got)
	}
	if _, err := p.Destroy(w.context(), off.Ref, ""); !errors.Is(err, sandbox.ErrHeld) {
		t.Errorf("a destroy with the volume in another slot: %v", err)
	}

	// A volume of its own in the holder, too: attached twice.
	set(off.Ref, pve.LXCUpdate{Delete: []string{"mp4"}})
	set(off.Ref, pve.LXCUpdate{Set: map[string]string{"mp0": mount}})
	if got := inspect(ws); got != "" {
		t.Errorf("put back: %s", got)
	}
	set(ws.Ref, pve.LXCUpdate{Delete: []string{"protection"}})
	set(ws.Ref, pve.LXCUpdate{Set: map[string]string{"mp0": lab.Storage + ":1,mp=/x"}})
	if got := inspect(ws); !strings.Contains(got, "attached twice") || !strings.Contains(got, "protected") {
		t.Errorf("attached twice: %s", got)
	}
	if _, err := p.Destroy(w.context(), off.Ref, ""); err == nil {
		t.Error("a destroy with two volumes for one workspace went through")
	}

	// A stranger, and then nobody.
	set(ws.Ref, pve.LXCUpdate{Delete: []string{"mp0"}})
	set(ws.Ref, pve.LXCUpdate{Delete: []string{"unused0"}})
	set(off.Ref, pve.LXCUpdate{Set: map[string]string{"description": "mine now"}})
	if got := inspect(ws); !strings.Contains(got, "with a stranger") {
		t.Errorf("a stranger: %s", got)
	}
	w.removeByHand(p, off.Ref)
	if got := inspect(ws); !strings.Contains(got, "volume: The volume is missing") {
		t.Errorf("nobody: %s", got)
	}
	if _, err := p.Create(w.context(), with(spec("late"), at(ws, "/workspace")), nil); !errors.Is(err, sandbox.ErrNoVolume) {
		t.Errorf("an attachment without a volume: %v", err)
	}
}

func TestAttachmentsAreCheckedBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	for _, c := range []struct {
		want string
		list []sandbox.Attachment
	}{
		{"workspace[0].path", []sandbox.Attachment{{Workspace: 1, Path: "relative"}}},
		{"workspace[0].path", []sandbox.Attachment{{Workspace: 1, Path: "/"}}},
		{"workspace[0].path", []sandbox.Attachment{{Workspace: 1, Path: "/a/../b"}}},
		{"workspace[0].path", []sandbox.Attachment{{Workspace: 1, Path: "/etc"}}},
		{"workspace[0].path", []sandbox.Attachment{{Workspace: 1, Path: "/a,ro=1"}}},
		{"workspace[1].id", []sandbox.Attachment{{Workspace: 1, Path: "/a"}, {Workspace: 1, Path: "/b"}}},
		{"workspace[1].path", []sandbox.Attachment{{Workspace: 1, Path: "/a"}, {Workspace: 2, Path: "/a/b"}}},
		{"", []sandbox.Attachment{{Workspace: 1, Path: "/a"}, {Workspace: 2, Path: "/ab"}}},
	} {
		got := ""
		if problems := p.Check(with(spec("box"), c.list...)); len(problems) > 0 {
			got = problems[0].Attribute
		}
		if got != c.want {
			t.Errorf("%v: %q, want %q", c.list, got, c.want)
		}
	}
}
