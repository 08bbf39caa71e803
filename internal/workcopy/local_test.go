//go:build unix

package workcopy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strings"
	"syscall"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// local is a guest that is this machine: real tar, find and git on folders of the test.
type local struct {
	t     testing.TB
	calls int
	// before is called in front of each command.
	before func(cmd guest.Command)
	path   string // PATH, when not the machine's own
	memory string // a folder in memory
}

func (l *local) Exec(ctx context.Context, cmd guest.Command) (guest.Result, error) {
	l.calls++
	if l.before != nil {
		l.before(cmd)
	}
	c := exec.CommandContext(ctx, "/bin/sh", append([]string{"-c", cmd.Script, "sh"}, cmd.Args...)...)
	c.Dir = cmd.Dir
	c.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + l.t.TempDir(), "XDG_RUNTIME_DIR=" + l.memory}
	if l.path != "" {
		c.Env[0] = "PATH=" + l.path
	}
	for name, value := range cmd.Env {
		c.Env = append(c.Env, name+"="+value)
	}
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
	var stdout, stderr bytes.Buffer
	c.Stdin, c.Stdout, c.Stderr = cmd.Stdin, &stdout, &stderr
	if cmd.Stdout != nil {
		c.Stdout = lenient{cmd.Stdout}
	}
	err := c.Run()
	res := guest.Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes()}
	if cmd.StdoutLimit > 0 && len(res.Stdout) > cmd.StdoutLimit {
		res.Stdout, res.StdoutTruncated = res.Stdout[:cmd.StdoutLimit], true
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return res, &guest.CancelledError{Cause: context.Cause(ctx), Stopped: true}
	case errors.As(err, &exit):
		res.ExitCode = exit.ExitCode()
		return res, nil
	}
	return res, err
}

// lenient is a writer that fails for nobody, as a guest's.
type lenient struct{ io.Writer }

func (l lenient) Write(p []byte) (int, error) {
	_, _ = l.Writer.Write(p)
	return len(p), nil
}

// files is a folder's content: "name" with text, "name@" with a link's target, "name*" for an executable.
type files map[string]string

func put(t testing.TB, dir string, content files) {
	t.Helper()
	for name, text := range content {
		link, exe := strings.HasSuffix(name, "@"), strings.HasSuffix(name, "*")
		full := filepath.Join(dir, strings.TrimRight(name, "@*"))
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		_ = os.Remove(full)
		var err error
		switch {
		case link:
			err = os.Symlink(text, full)
		case exe:
			err = os.WriteFile(full, []byte(text), 0o755)
		default:
			err = os.WriteFile(full, []byte(text), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// content reads a folder, but for git's and our own names at its top.
func content(t testing.TB, dir string) files {
	t.Helper()
	found := files{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, name)
		if rel == ".git" || rel == Checkpoints {
			return fs.SkipDir
		}
		if d.IsDir() || rel == markFile {
			return nil
		}
		if d.Type()&fs.ModeSymlink != 0 {
			target, err := os.Readlink(name)
			found[rel+"@"] = target
			return err
		}
		if !d.Type().IsRegular() {
			return nil
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		if info.Mode()&0o100 != 0 {
			rel += "*"
		}
		text, err := os.ReadFile(name)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

func (f files) names() string {
	var names []string
	for name := range f {
		names = append(names, name)
	}
	sort.Strings(names)
	return strings.Join(names, " ")
}

func newPlace(t testing.TB) (Place, *local) {
	t.Helper()
	memory, err := os.MkdirTemp("/dev/shm", "sandbox-test-")
	if err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(memory) })
	l := &local{t: t, memory: memory}
	top := t.TempDir()
	return Place{Guest: l, Dir: top + "/work", State: top + "/state"}, l
}

// git runs the machine's git for a test, without anybody's configuration.
func git(t testing.TB, dir string, args ...string) string {
	t.Helper()
	c := exec.Command("git", args...)
	c.Dir = dir
	c.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=/dev/null", "GIT_AUTHOR_NAME=t", "GIT_AUTHOR_EMAIL=t@t", "GIT_COMMITTER_NAME=t", "GIT_COMMITTER_EMAIL=t@t")
	out, err := c.CombinedOutput()
	if err != nil {
		t.Fatalf("git %v: %v\n%s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func needsGit(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("git is not installed")
	}
}
