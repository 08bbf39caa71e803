package shell

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
)

// script is one run of a shell.
type script struct {
	call *Call
	name string // what errors begin with
	bash bool

	mu        sync.Mutex
	functions map[string]bool
	jobs      map[int]*machine.Process // in the background; kept when they have gone, so that a killed one is known as such
}

// shellArgs is what a shell's command line says.
type shellArgs struct {
	command   *string
	file      string
	options   []string // for set
	params    []string
	login     bool
	fromStdin bool
}

func parseShellArgs(args []string) (shellArgs, error) {
	var a shellArgs
	wantCommand := false
	for len(args) > 0 && len(args[0]) > 1 && (args[0][0] == '-' || args[0][0] == '+') {
		arg := args[0]
		args = args[1:]
		switch arg {
		case "--":
			goto operands
		case "--login", "--noprofile", "--norc", "--posix":
			a.login = a.login || arg == "--login"
			continue
		}
		for _, f := range arg[1:] {
			switch f {
			case 'c':
				wantCommand = true
			case 's':
				a.fromStdin = true
			case 'l':
				a.login = true
			case 'i':
			case 'o':
				if len(args) == 0 {
					return a, fmt.Errorf("-o: option requires an argument")
				}
				a.options = append(a.options, arg[:1]+"o", args[0])
				args = args[1:]
			case 'e', 'u', 'x', 'f', 'n', 'a':
				a.options = append(a.options, arg[:1]+string(f))
			default:
				return a, fmt.Errorf("Illegal option -%c", f) //nolint:staticcheck // the shell's own words
			}
		}
	}
operands:
	switch {
	case wantCommand:
		if len(args) == 0 {
			return a, fmt.Errorf("-c requires an argument")
		}
		a.command, a.params = &args[0], args[1:]
	case len(args) > 0 && !a.fromStdin:
		a.file, a.params = args[0], args
	default:
		a.fromStdin, a.params = true, append([]string{""}, args...)
	}
	return a, nil
}

// runShell is the command sh, and bash.
func runShell(c *Call) int {
	s := &script{call: c, name: path.Base(strings.TrimPrefix(c.Argv[0], "-")), functions: map[string]bool{}, jobs: map[int]*machine.Process{}}
	s.bash = s.name == "bash"
	a, err := parseShellArgs(c.Argv[1:])
	if err != nil {
		say(c.Stderr, "%s: 0: %v", s.name, err)
		return 2
	}
	a.login = a.login || strings.HasPrefix(c.Argv[0], "-")
	umask := formatUmask(c.Umask)
	env := newEnviron(c.Machine, c.Process, c.Env, umask)
	r, err := interp.New(append(s.handlers(),
		interp.Dir("/"), interp.Env(env), interp.Params(append(append([]string{}, a.options...), append([]string{"--"}, rest(a.params)...)...)...),
		interp.StdIO(nil, c.Stdout, c.Stderr))...)
	if err != nil {
		say(c.Stderr, "%s: 0: %v", s.name, err)
		return 2
	}
	if c.Stdin != nil {
		if err := interp.StdIO(c.Stdin, c.Stdout, c.Stderr)(r); err != nil {
			say(c.Stderr, "%s: %v", s.name, err)
			return 2
		}
	}
	r.Reset()
	env.ready.Store(true)
	r.Dir = cleanDir(c)
	if r.Vars == nil {
		return 2
	}
	return s.execute(r, a)
}

func rest(params []string) []string {
	if len(params) == 0 {
		return nil
	}
	return params[1:]
}

// cleanDir is the working directory as $PWD has it.
func cleanDir(c *Call) string { return path.Clean(c.Dir) }

func (s *script) execute(r *interp.Runner, a shellArgs) int {
	c := s.call
	ctx := c.Context
	prologue := "PWD='" + strings.ReplaceAll(r.Dir, "'", `'\''`) + "'"
	if a.login {
		prologue += "\n[ -r /etc/profile ] && . /etc/profile\n[ -r ~/.profile ] && . ~/.profile\n:"
	}
	if s.whole(ctx, r, prologue, "profile"); r.Exited() || ctx.Err() != nil {
		return 1
	}
	switch {
	case a.command != nil:
		return s.whole(ctx, r, *a.command, "")
	case a.file != "":
		text, err := c.Machine.FS.ReadFile(c.Cred, c.Path(a.file))
		if err != nil {
			say(c.Stderr, "%s: 0: cannot open %s: %s", s.name, a.file, machine.Message(err))
			return 127
		}
		return s.whole(ctx, r, string(text), a.file)
	}
	return s.stream(ctx, r)
}

func (s *script) parser() *syntax.Parser { return syntax.NewParser(syntax.Variant(syntax.LangBash)) }

// prepare rewrites a parsed piece and remembers its functions.
func (s *script) prepare(n syntax.Node) error {
	names, err := rewrite(n)
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range names {
		s.functions[f] = true
	}
	return err
}

// whole runs a text that is there from the start.
func (s *script) whole(ctx context.Context, r *interp.Runner, text, name string) int {
	f, err := s.parser().Parse(strings.NewReader(text), name)
	if err == nil {
		err = s.prepare(f)
	}
	if err != nil {
		return s.syntaxError(err)
	}
	if name == "profile" { // only the last text may run the exit trap
		status := 0
		for _, st := range f.Stmts {
			if status = statusOf(r.Run(ctx, st)); r.Exited() {
				break
			}
		}
		return status
	}
	return statusOf(r.Run(ctx, f))
}

// stream runs statements from standard input as they come in.
func (s *script) stream(ctx context.Context, r *interp.Runner) int {
	status := 0
	for st, err := range s.parser().StmtsSeq(s.call.In) {
		if ctx.Err() != nil {
			return 1
		}
		if err == nil {
			err = s.prepare(st)
		}
		if err != nil {
			return s.syntaxError(err)
		}
		if status = statusOf(r.Run(ctx, st)); r.Exited() {
			return status
		}
	}
	return s.whole(ctx, r, fmt.Sprintf("exit %d", status), "")
}

func (s *script) syntaxError(err error) int {
	var pe syntax.ParseError
	line := uint(1)
	if errors.As(err, &pe) {
		line = pe.Pos.Line()
		err = errors.New("Syntax error: " + pe.Text)
	}
	say(s.call.Stderr, "%s: %d: %v", s.name, line, err)
	return 2
}

func statusOf(err error) int {
	var es interp.ExitStatus
	switch {
	case err == nil:
		return 0
	case errors.As(err, &es):
		return int(es)
	}
	return 1
}

// notFound is what a shell says of a command that isn't there.
func (s *script) notFound(w io.Writer, line uint, name string) {
	if s.bash {
		say(w, "bash: line %d: %s: command not found", line, name)
		return
	}
	say(w, "%s: %d: %s: not found", s.name, line, name)
}
