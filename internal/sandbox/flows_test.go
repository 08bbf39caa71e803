package sandbox_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// sh runs a script in a sandbox, behind its back.
func (w *world) sh(vmid int, script string) string {
	w.t.Helper()
	var out bytes.Buffer
	if _, err := w.lab.Engine().Exec(w.context(), vmid, engine.Command{Argv: []string{"bash", "-c", script}, Stdout: &out, Stderr: &out}); err != nil {
		w.t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func TestAModeThatForbidsWhatIsOpenEndsItAndLeavesTheRest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	c := w.canary()
	host, port, _ := strings.Cut(c, ":")
	s := walled("talks", sandbox.ModeAllowlist)
	s.Network.Allow = []egress.Allow{{To: host, Ports: port}}
	made := w.create(w.process(), s)
	talking, stop := context.WithCancel(context.Background())
	defer stop()
	hung := make(chan int, 1)
	in, out := newPipe(t)
	go func() {
		code, _ := w.lab.Engine().Exec(talking, made.VMID, engine.Command{Argv: []string{"nc", host, port}, Stdin: in})
		hung <- code
	}()
	defer func() { _ = out.Close() }()
	table := func() string { return w.sh(made.VMID, "cat /proc/net/tcp") }
	for !strings.Contains(table(), ":270F 01") { // 9999
		if t.Context().Err() != nil {
			t.Fatal("it never connects")
		}
	}
	boot := w.sh(made.VMID, "cat /proc/sys/kernel/random/boot_id")
	prior := func(s sandbox.Sandbox) sandbox.Prior {
		return sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey, Baseline: &s.Posture}
	}
	// Another allowance: what is open is still allowed, and stays.
	more := s.Clone()
	more.Network.Allow = append(more.Network.Allow, egress.Allow{To: "192.0.2.7", Ports: "443"})
	changed, err := w.process().Update(w.context(), prior(made), s, more)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(table(), ":270F 01") || w.sh(made.VMID, "cat /proc/sys/kernel/random/boot_id") != boot || warned(changed, "restarted") {
		t.Errorf("a wider allowance ended what was open; warnings %v", changed.Warnings)
	}
	// None of it: the simulated guest has no ss, so it is restarted.
	nat := more.Clone()
	nat.Network.Mode, nat.Network.Allow = sandbox.ModeNAT, nil
	changed, err = w.process().Update(w.context(), prior(changed.Sandbox), more, nat)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(table(), ":270F 01") || w.sh(made.VMID, "cat /proc/sys/kernel/random/boot_id") == boot || !warned(changed, "restarted") || !warned(changed, c) {
		t.Errorf("what is forbidden now goes on; warnings %v\n%s", changed.Warnings, table())
	}
	<-hung
	if got := changed.Sandbox; got.Network.LinkDown || got.Status != sandbox.StatusRunning {
		t.Errorf("it is %s, its interface %+v", got.Status, got.Network)
	}
}

func TestAContainerThatIsNotEnteredIsRestartedToEndWhatIsOpen(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := walled("closed", sandbox.ModeNAT)
	s.WaitFor = sandbox.WaitForNone
	made := w.create(w.process(), s)
	boot := w.sh(made.VMID, "cat /proc/sys/kernel/random/boot_id")
	off := s.Clone()
	off.Network.Mode = sandbox.ModeOff
	out, err := w.process().Update(w.context(), sandbox.Prior{Ref: made.Ref}, s, off)
	if err != nil {
		t.Fatal(err)
	}
	if w.sh(made.VMID, "cat /proc/sys/kernel/random/boot_id") == boot || !warned(out, "restarted") {
		t.Errorf("nothing was ended; warnings %v", out.Warnings)
	}
}

// newPipe is an input that stays open until the test ends.
func newPipe(t *testing.T) (*io.PipeReader, *io.PipeWriter) {
	t.Helper()
	in, out := io.Pipe()
	t.Cleanup(func() { _ = out.Close() })
	return in, out
}
