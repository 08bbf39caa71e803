package shell

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Name is the command as it was called.
func (c *Call) Name() string { return path.Base(c.Argv[0]) }

// Path makes an argument an absolute path.
func (c *Call) Path(name string) string {
	if name == "" {
		return ""
	}
	return Join(c.Dir, name)
}

// Out writes to standard output; a reader that has gone ends the command as SIGPIPE would.
func (c *Call) Out(format string, a ...any) {
	if _, err := fmt.Fprintf(c.Stdout, format, a...); err != nil {
		c.Process.Kill(machine.SIGPIPE)
	}
}

// Fail prints "name: message" and returns 1.
func (c *Call) Fail(format string, a ...any) int {
	say(c.Stderr, c.Name()+": "+format, a...)
	return 1
}

// FailFile prints an error about a file as C programs do and returns 1.
func (c *Call) FailFile(name string, err error) int {
	return c.Fail("%s: %s", name, machine.Message(err))
}

// Usage prints what is wrong with the arguments and returns 2.
func (c *Call) Usage(format string, a ...any) int {
	c.Fail(format, a...)
	return 2
}

// Open opens a file; "-" is standard input or output. The umask is applied.
func (c *Call) Open(name string, flags int, perm fs.FileMode) (io.ReadWriteCloser, error) {
	if name == "-" {
		return &std{c.In, c.Stdout}, nil
	}
	return openSpecial(c.Machine, c.Cred, c.Path(name), flags, perm&^fs.FileMode(c.Umask), c.In, c.Stdout, c.Stderr)
}

// Copy copies until the end or until the command is killed.
func (c *Call) Copy(w io.Writer, r io.Reader) (int64, error) {
	return io.Copy(w, &guarded{c, r})
}

// Again runs another program with this one's surroundings, as its child.
func (c *Call) Again(argv []string) int {
	p := c.Program
	p.Argv, p.PPID = argv, c.Process.PID
	return c.programs.Run(c, c.Machine, p)
}

// Child runs a program as a child.
func (c *Call) Child(ctx context.Context, p Program) int {
	p.PPID = c.Process.PID
	return c.programs.Run(ctx, c.Machine, p)
}

// Sleep waits on the lab's clock; false when killed meanwhile.
func (c *Call) Sleep(d time.Duration) bool { return c.Machine.Clock.Sleep(c, d) == nil }

// LookPath finds an executable in the PATH of the call.
func (c *Call) LookPath(name string) (string, error) {
	return lookPath(c.Machine.FS, c.Cred, c.Dir, Getenv(c.Env, "PATH"), name)
}

// guarded ends a read loop when the command is killed.
type guarded struct {
	c *Call
	r io.Reader
}

func (g *guarded) Read(p []byte) (int, error) {
	if err := g.c.Err(); err != nil {
		return 0, err
	}
	return g.r.Read(p)
}

// std is standard input and output as a file that isn't closed.
type std struct {
	io.Reader
	io.Writer
}

func (*std) Close() error { return nil }

// openSpecial opens a file of the guest, or what stands behind /dev/stdin and its like.
func openSpecial(m *machine.Machine, c vfs.Cred, name string, flags int, perm fs.FileMode, in io.Reader, out, errw io.Writer) (io.ReadWriteCloser, error) {
	if strings.HasPrefix(name, "/dev/") || strings.HasPrefix(name, "/proc/self/fd/") {
		if in == nil {
			in = strings.NewReader("")
		}
		switch path.Clean(name) {
		case "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0":
			return &std{in, io.Discard}, nil
		case "/dev/stdout", "/dev/fd/1", "/proc/self/fd/1":
			return &std{strings.NewReader(""), out}, nil
		case "/dev/stderr", "/dev/fd/2", "/proc/self/fd/2":
			return &std{strings.NewReader(""), errw}, nil
		}
	}
	f, err := m.FS.Open(c, name, flags, perm)
	if err != nil {
		return nil, err
	}
	return f, nil
}

// cancellable makes reads of a pipe end when ctx does. done must be called when the reader is done: the pipe may have
// other readers after it.
func cancellable(ctx context.Context, r io.Reader) (in io.Reader, done func()) {
	f, ok := r.(*os.File)
	if r == nil || (ok && f == nil) {
		return strings.NewReader(""), func() {}
	}
	if !ok {
		return r, func() {}
	}
	var interrupted sync.WaitGroup
	interrupted.Add(1)
	stop := context.AfterFunc(ctx, func() {
		defer interrupted.Done()
		_ = f.SetReadDeadline(time.Unix(1, 0))
	})
	return f, func() {
		if !stop() {
			interrupted.Wait()
			_ = f.SetReadDeadline(time.Time{})
		}
	}
}
