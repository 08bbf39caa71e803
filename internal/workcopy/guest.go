package workcopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Guest runs commands. It is a sandbox that was logged in to.
type Guest interface {
	Exec(ctx context.Context, cmd guest.Command) (guest.Result, error)
}

// Place is where a working copy lies in a guest.
type Place struct {
	Guest Guest
	// User owns the working copy, and everything here is done as that user; empty for the user who is logged in.
	User string
	// Dir is the working folder, an absolute path.
	Dir string
	// State is an absolute path to a folder of the run, outside of Dir, that User may write: what the folder was like
	// at first is kept there.
	State string
}

func (p Place) check() error {
	for _, dir := range []string{p.Dir, p.State} {
		if !path.IsAbs(dir) || path.Clean(dir) != dir || dir == "/" {
			return fmt.Errorf("%q can't be a working folder: it must be an absolute path below /, without \"..\"", dir)
		}
	}
	if p.State == p.Dir || strings.HasPrefix(p.State, p.Dir+"/") {
		return fmt.Errorf("the run's own folder %s lies in the working folder %s", p.State, p.Dir)
	}
	return nil
}

func (p Place) base() string { return p.State + "/base" }

// Exit codes of the scripts here that mean more than "failed".
const (
	exitMissing  = 120 // "tool" on standard error
	exitOccupied = 121
	exitRefused  = 122
)

// preamble is in front of every script. `needs a b` ends it when a program isn't there; `say n text` ends it with text.
const preamble = `LC_ALL=C; export LC_ALL; umask 022
say() { echo "$2" >&2; exit "$1"; }
needs() { for t in "$@"; do command -v "$t" >/dev/null 2>&1 || say 120 "$t"; done; }
`

// call is one script to be run as a place's user.
type call struct {
	verb   string // for messages: "send the folder"
	script string
	args   []string
	env    map[string]string
	stdin  io.Reader
	stdout io.Writer // gets standard output as it comes; else up to limit of it is returned
	limit  int
	root   bool // as the user who is logged in
}

// run runs a script and turns its exit codes into errors.
func (p Place) run(ctx context.Context, c call) ([]byte, error) {
	cmd := guest.Command{Script: preamble + c.script, Args: c.args, Env: c.env, Stdin: c.stdin, Stdout: c.stdout, StdoutLimit: c.limit, StderrLimit: 16 << 10, KeepTail: true, Dir: "/"}
	if c.stdout != nil {
		cmd.StdoutLimit = -1
	}
	if !c.root {
		cmd.User = p.User
	}
	res, err := p.Guest.Exec(ctx, cmd)
	if err != nil {
		return nil, fmt.Errorf("unable to %s: %w", c.verb, err)
	}
	said := lastLines(res.Stderr)
	switch res.ExitCode {
	case 0:
		if res.StdoutTruncated && c.stdout == nil {
			return nil, fmt.Errorf("unable to %s: %w", c.verb, refused("the guest answers with more than %d bytes", c.limit))
		}
		return res.Stdout, nil
	case exitMissing:
		return nil, &MissingTool{Tool: said, For: c.verb}
	case exitOccupied:
		return nil, fmt.Errorf("unable to %s: %s: %w", c.verb, said, ErrOccupied)
	case exitRefused:
		return nil, fmt.Errorf("unable to %s: %w", c.verb, refused("%s", said))
	}
	if said == "" {
		said = fmt.Sprintf("exit code %d", res.ExitCode)
	}
	return nil, fmt.Errorf("unable to %s: %w", c.verb, &scriptError{code: res.ExitCode, said: said})
}

// scriptError is the failure of a script without a meaning of its own.
type scriptError struct {
	code int
	said string
}

func (e *scriptError) Error() string { return e.said }

func exitCode(err error) int {
	var failed *scriptError
	if errors.As(err, &failed) {
		return failed.code
	}
	return 0
}

// IsScriptFailure says that work inside the guest failed there, and would fail again: it isn't the way to the guest.
func IsScriptFailure(err error) bool {
	var failed *scriptError
	return errors.As(err, &failed)
}
