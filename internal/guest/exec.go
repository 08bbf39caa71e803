package guest

import (
	"context"
	"io"
	"time"
)

// DefaultOutputLimit is how much of each output stream a Result keeps, in bytes.
const DefaultOutputLimit = 1 << 20

// Command is what to run in a guest. Either Path (with Args) or Script is set.
type Command struct {
	// Path is the program, looked up in the guest's PATH when it has no slash.
	Path string
	// Args are its arguments. In the guest everybody can see them: no secrets.
	Args []string
	// Script is POSIX shell code, run by the guest's sh with Args as its
	// positional parameters. It isn't visible in the guest's process list.
	Script string
	// Env is added to the environment of the login. Values go over the
	// session's standard input: in no command line, here or there.
	Env map[string]string
	// Dir is the absolute path to run in; empty means the user's home.
	Dir string
	// User to run as; empty means the user who is logged in. Another one needs root.
	User string
	// Stdin is read until its end; nil is an empty input. When the command ends
	// first, one read may still be under way.
	Stdin io.Reader
	// Stdout and Stderr get the output as it comes, all of it. A writer that
	// fails is left alone from then on; the command goes on.
	Stdout, Stderr io.Writer
	// StdoutLimit and StderrLimit are the bytes that Result keeps of each; 0
	// means DefaultOutputLimit, a negative one keeps nothing.
	StdoutLimit, StderrLimit int
	// KeepTail keeps the last bytes instead of the first when a limit is met.
	KeepTail bool
}

// Result is how a command ended.
type Result struct {
	// ExitCode is the command's own; 128 + n when signal n ended it. 126 and
	// 127 also mean that directory, user or program aren't there: see Stderr.
	ExitCode int
	// Signal is the name without SIG ("TERM") when a signal ended the command.
	Signal                           string
	Stdout, Stderr                   []byte
	StdoutTruncated, StderrTruncated bool
	// Cancelled says that the context ended first and the command was told to stop.
	Cancelled bool
	Duration  time.Duration
}

// Exec runs a command and waits for its end. A command that ran is no error,
// whatever its exit code.
//
// When ctx ends first, the command gets TERM, after KillGrace KILL, then the
// session is closed; the Result holds the output so far with Cancelled set, and
// the error is a *CancelledError wrapping ctx's. When the connection is lost
// after the command was sent, the error is a *LostError; it isn't sent again.
// Errors before that are those of WaitReady, but nothing is waited for.
func (p *Pool) Exec(ctx context.Context, target Target, cmd Command) (Result, error) { panic("todo") }
