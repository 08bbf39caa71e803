package guest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"
)

// DefaultOutputLimit is how much of each output stream a Result keeps, in bytes.
const DefaultOutputLimit = 1 << 20

// Command is what to run in a guest. Either Path (with Args) or Script is set, or Line alone.
type Command struct {
	// Line is sent as it is, for a key with a forced command, which reads it from
	// SSH_ORIGINAL_COMMAND. Anybody there can see it: no secrets. Such a command
	// can't be told to stop; when ctx ends, the session is closed.
	Line string
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
	// ExitCode is the command's own; 128 + n when signal n ended it; -1 when it
	// isn't known. 126 and 127 also mean that the directory or the program
	// isn't there: see Stderr.
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
// When ctx ends first, the command and its children (its process group) get
// TERM, after KillGrace KILL, then the session is closed; the Result holds the output so far with Cancelled set, and
// the error is a *CancelledError wrapping ctx's. When the connection is lost
// after the command was sent, the error is a *LostError; it isn't sent again.
// Errors before that are those of WaitReady, but nothing is waited for.
func (p *Pool) Exec(ctx context.Context, target Target, cmd Command) (Result, error) {
	line, header, err := cmd.encode(p.cfg.Username)
	if err != nil {
		return Result{}, fmt.Errorf("unable to run a command in %s: %w", target, err)
	}
	s, c, release, err := p.session(ctx, target)
	if err != nil {
		return Result{}, err
	}
	defer release()
	r := &run{
		target: target, session: s, conn: c, grace: p.cfg.Timing.KillGrace,
		stdout: newCapture(cmd.Stdout, cmd.StdoutLimit, cmd.KeepTail),
		stderr: newCapture(cmd.Stderr, cmd.StderrLimit, cmd.KeepTail),
	}
	r.started = &startWatch{out: r.stdout}
	start := time.Now()
	res, err := r.do(ctx, line, header, cmd.Stdin)
	r.started.flush()
	res.Stdout, res.StdoutTruncated = r.stdout.result()
	res.Stderr, res.StderrTruncated = r.stderr.result()
	res.Duration = time.Since(start)
	return res, err
}

// run is one command under way.
type run struct {
	target         Target
	session        *ssh.Session
	conn           *conn
	grace          time.Duration
	stdout, stderr *capture
	started        *startWatch
}

func (r *run) do(ctx context.Context, line, header string, input io.Reader) (Result, error) {
	defer func() { _ = r.session.Close() }() // EOF when the guest closed it, as it does at the end
	r.session.Stdout, r.session.Stderr = r.started, r.stderr
	stdin, err := r.session.StdinPipe()
	if err != nil {
		return Result{}, err
	}
	ended := make(chan error, 1)
	inputFailed := make(chan error, 1)
	go func() {
		if err := r.session.Start(line); err != nil {
			ended <- &startError{err}
			return
		}
		go feed(stdin, header, input, inputFailed)
		ended <- r.session.Wait()
	}()

	select {
	case err := <-ended:
		return r.outcome(err)
	case err := <-inputFailed:
		res, stopped := r.stop(ended)
		if stopped {
			return res, fmt.Errorf("the input of the command in %s failed, so it was stopped: %w", r.target, err)
		}
		return res, &LostError{Target: r.target, Cause: fmt.Errorf("its input failed: %w", err)}
	case <-ctx.Done():
		res, stopped := r.stop(ended)
		res.Cancelled = true
		return res, &CancelledError{Target: r.target, Stopped: stopped, Cause: context.Cause(ctx)}
	}
}

// feed writes the header, then the caller's input, then the end of input. Only
// a failure of the caller's reader is told: when the command ends before its
// input does, as head does, writing fails and that is nobody's fault.
func feed(stdin io.WriteCloser, header string, input io.Reader, failed chan<- error) {
	defer func() { _ = stdin.Close() }()
	if _, err := io.WriteString(stdin, header); err != nil || input == nil {
		return
	}
	reader := &readErrors{Reader: input}
	if _, err := io.Copy(stdin, reader); err != nil && reader.err != nil {
		failed <- reader.err
	}
}

// readErrors tells a reader's failure from that of the writer it is copied to.
type readErrors struct {
	io.Reader
	err error
}

func (r *readErrors) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if err != nil && err != io.EOF {
		r.err = err
	}
	return n, err
}

// startError is the failure of the exec request itself.
type startError struct{ error }

func (e *startError) Unwrap() error { return e.error }

// outcome reads the end of a session that nobody interrupted.
func (r *run) outcome(err error) (Result, error) {
	var start *startError
	// The library's answer to a refused request has no type; a connection that
	// ends while the request is under way gives EOF.
	if errors.As(err, &start) && strings.HasPrefix(start.Error(), "ssh: command") {
		return Result{}, fmt.Errorf("sshd in %s refuses to run commands (a forced command, or a shell that isn't there)", r.target)
	}
	res, known := exitOf(err)
	if !known {
		return res, &LostError{Target: r.target, Cause: err}
	}
	return res, nil
}

// exitOf is how a command ended; not known when the connection ended first.
func exitOf(err error) (res Result, known bool) {
	var exit *ssh.ExitError
	switch {
	case err == nil:
		return Result{}, true
	case errors.As(err, &exit):
		return Result{ExitCode: exit.ExitStatus(), Signal: exit.Signal()}, true
	}
	return Result{ExitCode: -1}, false
}
