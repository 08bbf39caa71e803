package shell

import (
	"bytes"
	"context"
	"strconv"
	"strings"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
)

func atoi(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// before sees every simple command: builtins that would look at the lab's host, or that the interpreter lacks, become
// commands of ours.
func (s *script) before(ctx context.Context, args []string) ([]string, error) {
	h := interp.HandlerCtx(ctx)
	if job := s.job(h); job != nil && !strings.HasPrefix(args[0], internal) {
		if sig := machine.KilledBy(job.Context); sig != 0 {
			return []string{"exit", strconv.Itoa(128 + sig)}, nil
		}
	}
	s.mu.Lock()
	own := s.functions[args[0]]
	s.mu.Unlock()
	if own {
		return args, nil
	}
	return s.replace(h, args), nil
}

func (s *script) replace(h interp.HandlerContext, args []string) []string {
	switch args[0] {
	case "pwd":
		return append([]string{internalPwd}, args[1:]...)
	case "type":
		return append([]string{internalType}, args[1:]...)
	case "command":
		if len(args) > 1 && (args[1] == "-v" || args[1] == "-V") {
			return append([]string{internalWhich}, args[2:]...)
		}
		if len(args) > 1 && args[1] == "-p" {
			return append([]string{"command"}, s.replace(h, args[2:])...)
		}
		if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
			return append([]string{"command"}, s.replace(h, args[1:])...)
		}
	case "builtin":
		if len(args) > 1 {
			return s.replace(h, args[1:])
		}
	case "exec":
		if len(args) > 1 && args[1] == internalInner {
			return append([]string{"exec"}, args[2:]...)
		}
		if len(args) > 1 && !strings.HasPrefix(args[1], "-") {
			return append([]string{"exec", internalExec}, args[1:]...)
		}
	case ".", "source":
		if len(args) > 1 {
			return append([]string{args[0], sourced + s.sourcePath(h, args[1])}, args[2:]...)
		}
	case "eval":
		if text, err := s.rewritten(strings.Join(args[1:], " ")); err == nil {
			return []string{"eval", text}
		}
	case "kill":
		return append([]string{internal + "kill"}, args[1:]...)
	case "ulimit", "umask":
		return append([]string{internal + args[0]}, args[1:]...)
	case "wait":
		return s.waitArgs(h, args)
	case "trap":
		s.ignoreSignals(h, args)
		return trapArgs(args)
	case "jobs", "disown", "hash", "history", "enable", "bind", "times", "fg", "bg":
		return []string{"true"}
	}
	return args
}

// sourcePath finds the file of `.`: names without a slash are looked for in PATH first, as POSIX says.
func (s *script) sourcePath(h interp.HandlerContext, name string) string {
	if !strings.Contains(name, "/") {
		for _, d := range strings.Split(h.Env.Get("PATH").String(), ":") {
			file := Join(h.Dir, d) + "/" + name
			if in, err := s.call.Machine.FS.Stat(s.call.Cred, file); err == nil && !in.IsDir() {
				return file
			}
		}
	}
	return Join(h.Dir, name)
}

// waitArgs replaces process numbers by the interpreter's names of jobs.
func (s *script) waitArgs(h interp.HandlerContext, args []string) []string {
	out := []string{"wait"}
	known := strings.Fields(h.Env.Get(varJobs).String())
	for _, a := range args[1:] {
		for _, k := range known {
			if pid, native, _ := strings.Cut(k, "="); pid == a {
				a = native
			}
		}
		out = append(out, a)
	}
	return out
}

// process is the one that a command runs in: the script's, or a background job's.
func (s *script) process(h interp.HandlerContext) *machine.Process {
	if job := s.job(h); job != nil {
		return job
	}
	return s.call.Process
}

// ignoreSignals does `trap ” SIGNAL…` and takes it back.
func (s *script) ignoreSignals(h interp.HandlerContext, args []string) {
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) < 2 {
		return
	}
	for _, name := range rest[1:] {
		number := machine.Signals[strings.TrimPrefix(strings.ToUpper(name), "SIG")]
		if number == 0 {
			number = atoi(name)
		}
		if number > 0 {
			s.process(h).Ignore(number, rest[0] == "")
		}
	}
}

// trapArgs keeps the conditions that the interpreter knows. Signals can be ignored, see ignoreSignals; code for them is
// not run: they end scripts of the lab.
func trapArgs(args []string) []string {
	out := []string{"trap"}
	rest := args[1:]
	if len(rest) > 0 && rest[0] == "--" {
		rest = rest[1:]
	}
	if len(rest) < 2 {
		return []string{"true"}
	}
	out = append(out, "--", rest[0])
	for _, cond := range rest[1:] {
		switch strings.TrimPrefix(strings.ToUpper(cond), "SIG") {
		case "EXIT", "0":
			out = append(out, "EXIT")
		case "ERR":
			out = append(out, "ERR")
		}
	}
	if len(out) == 3 {
		return []string{"true"}
	}
	out = append(out[:1], out[2:]...)
	return out
}

// rewritten parses a text, rewrites it and prints it again.
func (s *script) rewritten(text string) (string, error) {
	f, err := s.parser().Parse(strings.NewReader(text), "")
	if err != nil {
		return "", err
	}
	if err := s.prepare(f); err != nil {
		return "", err
	}
	var b bytes.Buffer
	err = syntax.NewPrinter().Print(&b, f)
	return b.String(), err
}

// internal runs the commands that rewriting puts in.
func (s *script) internal(ctx context.Context, h interp.HandlerContext, argv []string) int {
	c := s.call
	switch argv[0] {
	case internalSpawn:
		p := c.Machine.Spawn(c.Context, machine.Spawn{PPID: c.Process.PID, Cred: c.Cred, Argv: []string{s.name}, Env: c.Env})
		context.AfterFunc(p.Context, p.Exit)
		s.mu.Lock()
		s.jobs[p.PID] = p
		s.mu.Unlock()
		hold(c.Stdout, p.PID)
		hold(c.Stderr, p.PID)
		say(h.Stdout, "%d", p.PID)
		return 0
	case internalAdopt:
		pid := atoi(h.Env.Get(varJob).String())
		if h.Stdout != c.Stdout && h.Stderr != c.Stdout {
			release(c.Stdout, pid)
		}
		if h.Stdout != c.Stderr && h.Stderr != c.Stderr {
			release(c.Stderr, pid)
		}
		return 0
	case internalDone:
		pid := atoi(h.Env.Get(varJob).String())
		if p := s.job(h); p != nil {
			p.Exit()
		}
		release(c.Stdout, pid)
		release(c.Stderr, pid)
		return atoi(argv[1])
	case internalUmask:
		if len(argv) == 1 || argv[1] == "-S" {
			say(h.Stdout, "%s", h.Env.Get(varUmask))
			return 0
		}
		n, err := strconv.ParseUint(argv[1], 8, 12)
		if err != nil {
			say(h.Stderr, "%s: umask: %s: invalid mask", s.name, argv[1])
			return 2
		}
		say(h.Stdout, "%s", formatUmask(int(n)))
		return 0
	case internal + "ulimit":
		say(h.Stdout, "unlimited")
		return 0
	case internalPwd:
		return s.pwd(h, argv)
	case internalType, internalWhich:
		return s.which(h, argv)
	case internal + "kill":
		return c.programs.run(ctx, c.Machine, Program{Argv: append([]string{"kill"}, argv[1:]...), Cred: c.Cred, PPID: c.Process.PID, Stdout: h.Stdout, Stderr: h.Stderr}, c.programs["kill"])
	}
	return 127
}

func (s *script) pwd(h interp.HandlerContext, argv []string) int {
	dir := h.Dir
	if len(argv) > 1 && argv[1] == "-P" {
		real, err := s.call.Machine.FS.RealPath(s.call.Cred, dir)
		if err != nil {
			say(h.Stderr, "%s: pwd: %s", s.name, machine.Message(err))
			return 1
		}
		dir = real
	}
	say(h.Stdout, "%s", dir)
	return 0
}

// which is `command -v` and `type`.
func (s *script) which(h interp.HandlerContext, argv []string) int {
	long, status := argv[0] == internalType, 0
	for _, name := range argv[1:] {
		if strings.HasPrefix(name, "-") {
			continue
		}
		s.mu.Lock()
		function := s.functions[name]
		s.mu.Unlock()
		what, shown := "", name
		switch {
		case function:
			what = "a shell function"
		case syntax.IsKeyword(name):
			what = "a shell keyword"
		case interp.IsBuiltin(name):
			what = "a shell builtin"
		default:
			file, err := lookPath(s.call.Machine.FS, s.call.Cred, h.Dir, h.Env.Get("PATH").String(), name)
			if err == nil {
				what, shown = file, file
			}
		}
		switch {
		case what == "" && long:
			say(h.Stderr, "%s: not found", name)
			status = 127
		case what == "":
			status = 127
		case long:
			say(h.Stdout, "%s is %s", name, what)
		default:
			say(h.Stdout, "%s", shown)
		}
	}
	return status
}
