//go:build unix

package lxc_test

import (
	"bytes"
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

func TestAnInterruptedBuildLeavesNothing(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, "", `
  provisioner "shell" { inline = ["echo it is under way", "sleep 600"] }
`))
	c.Must("init", "t.pkr.hcl")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := c.Command(ctx, "build", "t.pkr.hcl")
	var out watched
	out.want, out.found = "it is under way", make(chan struct{})
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-out.found:
	case <-ctx.Done():
		t.Fatalf("the provisioner never ran\n%s", out.text.String())
	}
	// As a terminal's Ctrl-C does: to Packer and to its plugins.
	if err := syscall.Kill(-cmd.Process.Pid, syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err == nil {
		t.Error("it succeeded")
	}
	if templates, strays := left(t, l); len(templates)+len(strays) != 0 {
		t.Errorf("left %v %v\n%s", templates, strays, out.text.String())
	}
}

// watched tells when a line was printed.
type watched struct {
	text  bytes.Buffer
	want  string
	found chan struct{}
	done  bool
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if !w.done && strings.Contains(w.text.String(), w.want) {
		w.done = true
		close(w.found)
	}
	return n, err
}
