package sandbox_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

func TestMovedGuestIsFoundAndNodeChangeMigrates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	ctx := w.context()
	nodes := w.lab.Nodes()
	want := spec("traveller")
	want.NodeName = nodes[1]
	s := w.create(p, want)
	if s.Node != nodes[1] {
		t.Fatalf("made on %s, want %s", s.Node, nodes[1])
	}
	want.NodeName = nodes[0]
	out, err := p.Update(ctx, sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}, want, want)
	if err != nil || out.Sandbox.Node != nodes[0] || out.Sandbox.Status != sandbox.StatusRunning {
		t.Fatalf("update: %s %s %v", out.Sandbox.Node, out.Sandbox.Status, err)
	}
	// The state still says the second node.
	p = w.process()
	read, err := p.Read(ctx, sandbox.Prior{Ref: s.Ref})
	if err != nil || read.Node != nodes[0] {
		t.Errorf("read: %s %v", read.Node, err)
	}
	if _, err := p.Destroy(ctx, s.Ref, ""); err != nil {
		t.Errorf("destroy with an old node: %v", err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}

func TestPowerFollowsItsOwnAttributeOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	want := spec("quiet")
	want.Started = false
	s := w.create(p, want)
	if s.Status != sandbox.StatusStopped {
		t.Fatalf("made %s", s.Status)
	}
	changed := want
	changed.MemoryMiB = ptr(280)
	out, err := p.Update(ctx, sandbox.Prior{Ref: s.Ref}, want, changed)
	if err != nil || out.Sandbox.Status != sandbox.StatusStopped || out.Sandbox.MemoryMiB != 280 {
		t.Fatalf("an update started it: %s %v", out.Sandbox.Status, err)
	}
	changed.Started = true
	var list []string
	_, list = w.requests(func() { out, err = p.Update(ctx, sandbox.Prior{Ref: s.Ref}, changed, changed) })
	if err != nil || out.Sandbox.Status != sandbox.StatusRunning {
		t.Fatalf("start: %s %v", out.Sandbox.Status, err)
	}
	if i := slices.IndexFunc(list, func(r string) bool { return strings.HasSuffix(r, "/status/reboot") }); i >= 0 {
		t.Error("a container that was just started was rebooted")
	}
	changed.Started = false
	if out, err = p.Update(ctx, sandbox.Prior{Ref: s.Ref}, changed, changed); err != nil || out.Sandbox.Status != sandbox.StatusStopped {
		t.Fatalf("stop: %s %v", out.Sandbox.Status, err)
	}
}

func TestRestartAppliesWhatIsPendingAndIsAnotherBoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	want := spec("renamed")
	want.Nesting = ptr(true)
	s := w.create(p, want)
	prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey, WithPending: true}
	boot := bootID(t, p, prior)

	want.Nesting = ptr(false)
	out, err := p.Update(ctx, prior, want, want)
	if err != nil || len(out.Sandbox.Posture.Pending) == 0 || len(out.Warnings) == 0 {
		t.Fatalf("pending %v, warnings %v, %v", out.Sandbox.Posture.Pending, out.Warnings, err)
	}
	if again := bootID(t, p, prior); again != boot {
		t.Error("it was restarted without leave")
	}
	want.RestartWhenNeeded = true
	if _, err = p.Update(ctx, prior, want, want); err != nil {
		t.Fatal(err)
	}
	if again := bootID(t, p, prior); again == boot {
		t.Error("it wasn't restarted")
	}
	read, err := p.Read(ctx, prior)
	if err != nil || len(read.Posture.Pending) != 0 || read.Nesting {
		t.Errorf("after the restart: pending %v, nesting %v, %v", read.Posture.Pending, read.Nesting, err)
	}
}

func TestPostureDriftThatTheAPICanUndoIsUndone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ctx := w.context()
	want := spec("drifter")
	want.Started = false
	s := w.create(p, want)
	baseline := s.Posture
	if err := w.lab.Control().ChangeGuest(ctx, control.Guest{VMID: s.VMID, Set: map[string]string{"net1": "name=eth1,bridge=vmbr0,hwaddr=BC:24:11:00:00:77,type=veth"}}); err != nil {
		t.Fatal(err)
	}
	read, err := p.Read(ctx, sandbox.Prior{Ref: s.Ref})
	if err != nil || len(read.Posture.Diff(baseline)) != 1 {
		t.Fatalf("drift %v %v", read.Posture.Diff(baseline), err)
	}
	out, err := p.Update(ctx, sandbox.Prior{Ref: s.Ref, Baseline: &baseline}, want, want)
	if err != nil || len(out.Sandbox.Posture.Diff(baseline)) != 0 {
		t.Errorf("after the update %v %v", out.Sandbox.Posture.Diff(baseline), err)
	}
}

func bootID(t *testing.T, p *process, prior sandbox.Prior) string {
	t.Helper()
	result, _, err := p.Exec(t.Context(), prior, sandbox.Command{Script: "cat /proc/sys/kernel/random/boot_id"})
	if err != nil {
		t.Fatal(err)
	}
	return string(result.Stdout)
}
