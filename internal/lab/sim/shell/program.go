// Package shell runs programs in a machine: commands written in Go, and scripts by mvdan.cc/sh's interpreter, whose
// every question about files, users and processes is answered by the machine. No program of the lab's host is ever
// run.
package shell

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Magic starts the files in /usr/bin that stand for commands written in Go; the command's name follows.
const Magic = "\x7fELF sim "

// Command is a program written in Go. It returns its exit status.
type Command func(c *Call) int

// Programs is the set of commands that a machine's executables may stand for. sh and bash are always there.
type Programs map[string]Command

// Program says what to run, and as whom.
type Program struct {
	Argv  []string
	Env   []string
	Dir   string
	Umask int
	Cred  vfs.Cred
	PPID  int
	// NewSession has the program lead a session of its own.
	NewSession bool
	// Replaces has it take the place of its parent, as exec does.
	Replaces bool
	Stdin    io.Reader // nil is empty; an *os.File is shared with children byte by byte, as they expect
	Stdout   io.Writer // nil discards
	Stderr   io.Writer
}

// Call is one run of a command.
type Call struct {
	context.Context
	Program
	Machine *machine.Machine
	Process *machine.Process
	In      io.Reader // standard input that ends when the command is killed

	programs Programs
}

// Run runs a program to its end and returns its exit status: 126 or 127 where it can't be run, 128 and the signal's
// number where it was killed.
func (ps Programs) Run(ctx context.Context, m *machine.Machine, p Program) int {
	p.fill()
	command, argv, code := ps.find(m, p)
	if command == nil {
		return code
	}
	p.Argv = argv
	return ps.run(ctx, m, p, command)
}

// RunAs is Run with an executable that isn't named by the first argument: login shells are called "-bash".
func (ps Programs) RunAs(ctx context.Context, m *machine.Machine, executable string, p Program) int {
	p.fill()
	argv := p.Argv
	p.Argv = append([]string{executable}, argv[1:]...)
	command, found, code := ps.find(m, p)
	if command == nil {
		return code
	}
	if len(found) == len(argv) {
		found[0] = argv[0]
	}
	p.Argv = found
	return ps.run(ctx, m, p, command)
}

func (ps Programs) run(ctx context.Context, m *machine.Machine, p Program, command Command) int {
	proc := m.Spawn(ctx, machine.Spawn{PPID: p.PPID, Cred: p.Cred, Argv: p.Argv, Env: p.Env, NewSession: p.NewSession, Replaces: p.Replaces})
	defer proc.Exit()
	p.NewSession, p.Replaces = false, false // not for what it starts in turn
	p.Cred.PID = proc.PID
	in, done := cancellable(proc.Context, p.Stdin)
	defer done()
	status := command(&Call{Context: proc.Context, Program: p, Machine: m, Process: proc, In: in, programs: ps})
	if s := machine.KilledBy(proc.Context); s != 0 {
		return 128 + s
	}
	return status & 0xff
}

func (p *Program) fill() {
	if p.Stdout == nil {
		p.Stdout = io.Discard
	}
	if p.Stderr == nil {
		p.Stderr = io.Discard
	}
	if p.Dir == "" {
		p.Dir = "/"
	}
}

// find looks an executable up as execvp does, and follows #! lines.
func (ps Programs) find(m *machine.Machine, p Program) (Command, []string, int) {
	name := p.Argv[0]
	file, err := lookPath(m.FS, p.Cred, p.Dir, Getenv(p.Env, "PATH"), name)
	if err != nil {
		say(p.Stderr, "%s: %s", name, machine.Message(err))
		if strings.Contains(err.Error(), "permission") {
			return nil, nil, 126
		}
		return nil, nil, 127
	}
	argv := p.Argv
	for range 4 {
		head, err := m.FS.ReadFile(p.Cred, file)
		if err != nil {
			say(p.Stderr, "%s: %s", name, machine.Message(err))
			return nil, nil, 126
		}
		first, _, _ := strings.Cut(string(head[:min(len(head), 256)]), "\n")
		if command, ok := strings.CutPrefix(first, Magic); ok {
			if command == "sh" || command == "bash" {
				return runShell, argv, 0
			}
			if c := ps[command]; c != nil {
				return c, argv, 0
			}
			say(p.Stderr, "%s: the lab doesn't simulate this program", name)
			return nil, nil, 126
		}
		interpreter, arg := "/bin/sh", ""
		if line, ok := strings.CutPrefix(first, "#!"); ok {
			interpreter, arg, _ = strings.Cut(strings.TrimSpace(line), " ")
		} else if strings.ContainsRune(first, 0) {
			say(p.Stderr, "%s: cannot execute binary file: Exec format error", name)
			return nil, nil, 126
		}
		next := []string{interpreter}
		if arg = strings.TrimSpace(arg); arg != "" {
			next = append(next, arg)
		}
		argv = append(append(next, file), argv[1:]...)
		if err := m.FS.Access(p.Cred, interpreter, vfs.Exec); err != nil {
			say(p.Stderr, "%s: cannot execute: required file not found", name)
			return nil, nil, 127
		}
		file = interpreter
	}
	say(p.Stderr, "%s: too many levels of interpreters", name)
	return nil, nil, 126
}

// lookPath finds an executable file: names with a slash as they are, others in PATH.
func lookPath(f *vfs.FS, c vfs.Cred, dir, search, name string) (string, error) {
	if strings.Contains(name, "/") {
		file := Join(dir, name)
		return file, executable(f, c, file)
	}
	var denied error
	for _, d := range strings.Split(search, ":") {
		if d == "" {
			d = dir
		}
		file := path.Join(Join(dir, d), name)
		err := executable(f, c, file)
		if err == nil {
			return file, nil
		}
		if strings.Contains(err.Error(), "permission") {
			denied = err
		}
	}
	if denied != nil {
		return "", denied
	}
	return "", &fs.PathError{Op: "exec", Path: name, Err: errNotFound}
}

var errNotFound = fmt.Errorf("not found")

func executable(f *vfs.FS, c vfs.Cred, file string) error {
	in, err := f.Stat(c, file)
	if err != nil {
		return err
	}
	if in.IsDir() {
		return &fs.PathError{Op: "exec", Path: file, Err: fs.ErrPermission}
	}
	return f.Access(c, file, vfs.Exec)
}

// Join makes a path absolute. It isn't cleaned: what ".." after a link means is the file system's to say.
func Join(dir, name string) string {
	if strings.HasPrefix(name, "/") {
		return name
	}
	return dir + "/" + name
}

func say(w io.Writer, format string, a ...any) { _, _ = fmt.Fprintf(w, format+"\n", a...) }
