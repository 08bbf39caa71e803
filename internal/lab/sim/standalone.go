package sim

import (
	"context"
	"fmt"
	"io"
	"path"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/command"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Standalone is a simulated machine that is no guest: the lab's node, whichever engine runs the guests.
type Standalone struct {
	*machine.Machine
	programs shell.Programs
}

// NewStandalone boots a minimal Debian with further programs, or others in the place of the usual ones.
func NewStandalone(clock engine.Clock, hostname string, network machine.Network, extra shell.Programs) (*Standalone, error) {
	root := tree.New(clock.Now, 0)
	files := vfs.New(&vfs.Mount{Path: "/", Type: "ext4", Source: "/dev/mapper/pve-root", Tree: root})
	if err := build(files, releases[defaultImage]); err != nil {
		return nil, err
	}
	programs := command.All()
	for name, program := range extra {
		programs[name] = program
		if err := files.WriteFile(vfs.Root, path.Join("/usr/bin", name), []byte(shell.Magic+name+"\n"), 0o755); err != nil {
			return nil, err
		}
	}
	m := machine.Boot(machine.Options{FS: files, Clock: clock, Network: network, BootID: "standalone", Config: engine.Config{Hostname: hostname}})
	if err := mountVirtual(m); err != nil {
		m.Halt(m.Down)
		return nil, err
	}
	return &Standalone{Machine: m, programs: programs}, nil
}

// Exec runs a command line by a user's shell, to its end; the context's end kills it. The variables are added to those of a login.
func (s *Standalone) Exec(ctx context.Context, user, line string, env []string, stdinFrom io.Reader, stdout, stderr io.Writer) (int, error) {
	u, ok := s.User(user)
	if !ok {
		return 0, fmt.Errorf("there is no user %s", user)
	}
	in, stop, err := stdin(s.Down, stdinFrom)
	if err != nil {
		return 0, err
	}
	defer stop()
	run, cancel := context.WithCancelCause(s.Down)
	defer cancel(nil)
	defer context.AfterFunc(ctx, func() { cancel(machine.Killed(machine.SIGKILL)) })()
	out, errw := shell.NewStream(orDiscard(stdout)), shell.NewStream(orDiscard(stderr))
	status := s.programs.RunAs(run, s.Machine, u.Shell, shell.Program{Argv: []string{path.Base(u.Shell), "-c", line}, Env: append(shell.UserEnv(u), env...),
		Dir: u.Home, Umask: 0o022, Cred: s.Cred(u), PPID: 1, Stdin: in, Stdout: out, Stderr: errw})
	out.Cut(io.ErrClosedPipe)
	errw.Cut(io.ErrClosedPipe)
	return status, nil
}
