package shell

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"net"
	"os"
	"strings"

	"mvdan.cc/sh/v3/interp"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// sourced marks the path of a file that `.` reads. The interpreter looks such a path up on the lab's host before it
// asks us for the file; with a NUL in it, it can't be there.
const sourced = "/\x00"

func (s *script) handlers() []interp.RunnerOption {
	return []interp.RunnerOption{
		interp.OpenHandler(s.open),
		interp.StatHandler(s.stat),
		interp.ReadDirHandler2(s.readDir),
		interp.AccessHandler(s.access),
		interp.CallHandler(s.before),
		interp.ExecHandlers(func(interp.ExecHandlerFunc) interp.ExecHandlerFunc { return s.exec }),
	}
}

// open serves redirections and sourced files.
func (s *script) open(ctx context.Context, name string, flags int, perm os.FileMode) (io.ReadWriteCloser, error) {
	h := interp.HandlerCtx(ctx)
	c := s.call
	if file, ok := strings.CutPrefix(name, sourced); ok {
		return s.source(file)
	}
	if address, ok := strings.CutPrefix(name, "/dev/tcp/"); ok { // bash's own
		host, port, _ := strings.Cut(address, "/")
		conn, err := c.Machine.Network.Dial(c, net.JoinHostPort(host, port))
		if err != nil {
			return nil, err
		}
		return conn, nil
	}
	umask := fs.FileMode(parseUmask(h.Env.Get(varUmask).String()))
	if perm == 0o644 && flags&os.O_CREATE != 0 {
		perm = 0o666 // the interpreter has the usual umask built in
	}
	return openSpecial(c.Machine, c.Cred, Join(h.Dir, name), flags, perm&^umask, h.Stdin, h.Stdout, h.Stderr)
}

// source reads a script for `.`, rewritten like the script that reads it.
func (s *script) source(file string) (io.ReadWriteCloser, error) {
	text, err := s.call.Machine.FS.ReadFile(s.call.Cred, file)
	if err != nil {
		return nil, err
	}
	printed, err := s.rewritten(string(text))
	if err != nil {
		return nil, &fs.PathError{Op: "source", Path: file, Err: err}
	}
	return &std{bytes.NewReader([]byte(printed)), io.Discard}, nil
}

func (s *script) stat(_ context.Context, name string, follow bool) (fs.FileInfo, error) {
	c := s.call
	look := c.Machine.FS.Lstat
	if follow {
		look = c.Machine.FS.Stat
	}
	in, err := look(c.Cred, name)
	if err != nil {
		return nil, err
	}
	return in.WithSys(ownership(in, c.Cred)), nil
}

func (s *script) readDir(_ context.Context, name string) ([]fs.DirEntry, error) {
	list, err := s.call.Machine.FS.ReadDir(s.call.Cred, name)
	entries := make([]fs.DirEntry, len(list))
	for i, e := range list {
		entries[i] = e
	}
	return entries, err
}

func (s *script) access(_ context.Context, name string, mode interp.AccessMode) error {
	want := 0
	if mode&interp.AccessRead != 0 {
		want |= vfs.Read
	}
	if mode&interp.AccessWrite != 0 {
		want |= vfs.Write
	}
	if mode&interp.AccessExec != 0 {
		want |= vfs.Exec
	}
	return s.call.Machine.FS.Access(s.call.Cred, name, want)
}

// exec runs what is neither a builtin nor a function.
func (s *script) exec(ctx context.Context, argv []string) error {
	h := interp.HandlerCtx(ctx)
	replaces := argv[0] == internalExec
	if replaces {
		argv = argv[1:]
	}
	if strings.HasPrefix(argv[0], internal) {
		return exitStatus(s.internal(ctx, h, argv))
	}
	c := s.call
	p := Program{Argv: argv, Env: exportedFrom(h.Env), Dir: h.Dir, Umask: parseUmask(h.Env.Get(varUmask).String()),
		Cred: c.Cred, PPID: c.Process.PID, Replaces: replaces, Stdin: h.Stdin, Stdout: h.Stdout, Stderr: h.Stderr}
	if job := s.job(h); job != nil {
		p.PPID = job.PID
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(job.Context, func() { cancel(context.Cause(job.Context)) })()
	}
	if !strings.Contains(argv[0], "/") {
		_, err := lookPath(c.Machine.FS, c.Cred, h.Dir, Getenv(p.Env, "PATH"), argv[0])
		if errors.Is(err, errNotFound) {
			s.notFound(h.Stderr, h.Pos.Line(), argv[0])
			return interp.ExitStatus(127)
		}
	}
	return exitStatus(c.programs.Run(ctx, c.Machine, p))
}

func exitStatus(n int) error {
	if n == 0 {
		return nil
	}
	return interp.ExitStatus(uint8(n))
}

// job is the background job that a command belongs to, if any.
func (s *script) job(h interp.HandlerContext) *machine.Process {
	pid := atoi(h.Env.Get(varJob).String())
	if pid == 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.jobs[pid]
}
