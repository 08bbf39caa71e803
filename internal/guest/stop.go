package guest

import (
	"bytes"
	"fmt"
	"strconv"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// pidMark begins the line by which the wrapper names its process, first of all
// on standard output.
const pidMark = "sandbox-pid "

// longestNoise is how much is looked through for that line: a login shell's
// start-up files may print something before it.
const longestNoise = 64 << 10

// startWatch takes a command's standard output, keeps the wrapper's line and
// what start-up files printed before it to itself, and passes on the rest.
type startWatch struct {
	out *capture

	mu   sync.Mutex
	held []byte
	done bool
	pid  int // 0 until known
}

func (w *startWatch) Write(p []byte) (int, error) {
	w.mu.Lock()
	if w.done {
		w.mu.Unlock()
		return w.out.Write(p)
	}
	w.held = append(w.held, p...)
	rest, found := w.find()
	if !found && len(w.held) > longestNoise {
		rest, found = w.held, true // no wrapper of ours, it seems: it is all output
	}
	if found {
		w.done, w.held = true, nil
	}
	w.mu.Unlock()
	if len(rest) > 0 {
		_, _ = w.out.Write(rest) // never fails
	}
	return len(p), nil
}

// find looks for the whole line in what is held.
func (w *startWatch) find() (rest []byte, found bool) {
	for at := 0; ; {
		line, after, whole := bytes.Cut(w.held[at:], []byte("\n"))
		if !whole {
			return nil, false
		}
		if number, ok := bytes.CutPrefix(line, []byte(pidMark)); ok {
			if pid, err := strconv.Atoi(string(number)); err == nil && pid > 1 {
				w.pid = pid
				return bytes.Clone(after), true
			}
		}
		at += len(line) + 1
	}
}

// flush passes on what was held of a command that never came to the wrapper's
// line: why is in there.
func (w *startWatch) flush() {
	w.mu.Lock()
	held := w.held
	w.done, w.held = true, nil
	w.mu.Unlock()
	if len(held) > 0 {
		_, _ = w.out.Write(held) // never fails
	}
}

func (w *startWatch) process() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.pid
}

// signalAnswer is how long a signal request has to work before the process
// group is signalled by its number.
const signalAnswer = 200 * time.Millisecond

// stop ends the command: TERM, KILL, then the session and at last the
// connection are taken away from it. It says whether the guest confirmed.
//
// Each signal is sent twice over. By a request of the protocol first, which
// OpenSSH passes on for ordinary users but refuses for root ("session
// signalling requires privilege separation"); then by kill, over a session of
// its own, to the process group that the wrapper leads.
func (r *run) stop(ended <-chan error) (res Result, confirmed bool) {
	request := func(s ssh.Signal) func() { return func() { _ = r.session.Signal(s) } }
	steps := []struct {
		do   func()
		wait time.Duration
	}{
		{request(ssh.SIGTERM), min(signalAnswer, r.grace)},
		{func() { r.kill("TERM") }, r.grace},
		{request(ssh.SIGKILL), min(signalAnswer, r.grace)},
		{func() { r.kill("KILL") }, r.grace},
		{func() { _ = r.session.Close() }, r.grace},
		{r.conn.close, r.grace}, // no answer to any of it: the connection is dead
	}
	for _, step := range steps {
		go step.do() // not waited for: with a dead connection even writing blocks
		timer := time.NewTimer(step.wait)
		select {
		case err := <-ended:
			timer.Stop()
			return exitOf(err)
		case <-timer.C:
		}
	}
	return Result{ExitCode: -1}, false
}

// kill signals the command's process group over a session of its own, beyond
// those that are counted: sshd allows ten, we use eight.
func (r *run) kill(name string) {
	pid := r.started.process()
	if pid == 0 {
		return
	}
	s, err := r.conn.client.NewSession()
	if err != nil {
		return // the next step follows
	}
	defer func() { _ = s.Close() }() // EOF when the guest closed it first
	// The login shell leads the group; where it does not, it is signalled alone.
	_ = s.Run(fmt.Sprintf("exec sh -c 'kill -s %[1]s -- -%[2]d 2>/dev/null || kill -s %[1]s %[2]d 2>/dev/null'", name, pid))
}
