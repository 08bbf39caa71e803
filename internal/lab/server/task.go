package server

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
)

// delay is a length of time, as of Delays.
type delay = time.Duration

// errInterrupted is what a task's waits return once DELETE …/tasks/UPID has stopped it.
var errInterrupted = errors.New("interrupted by signal")

// errNoStatus ends a task without a last line in its log: its process was interrupted by another task.
var errNoStatus = errors.New("unexpected status")

// task is a worker on a node. Its function runs holding the state lock.
type task struct {
	UPID   string   `json:"upid"`
	Node   string   `json:"node"`
	Type   string   `json:"type"`
	ID     string   `json:"id"`
	User   string   `json:"user"` // auth id, with the token
	PID    int64    `json:"pid"`
	PStart int64    `json:"pstart"`
	Start  int64    `json:"start"`         // unix seconds
	End    int64    `json:"end,omitempty"` // unix seconds
	Exit   string   `json:"exit,omitempty"`
	Lines  []string `json:"lines"`

	s        *Server
	ctx      context.Context
	cancel   context.CancelFunc
	running  bool
	done     chan struct{}
	warnings int
	fault    *taskFault
}

// startTask starts a worker of a type ("vzclone") about an id ("9000", may be empty) on the call's node, as the caller,
// and returns its UPID at once. fn runs in the background under the state lock; nil is "TASK OK" (or WARNINGS: n), an
// error "TASK ERROR: text".
func (c *call) startTask(typ, id string, fn func(t *task) error) (string, error) { //nolint:unparam // so that handlers can return it
	return c.s.startTask(c.node.Name, typ, id, c.authID, fn), nil
}

// startTask starts a worker on a node as a user or token.
func (s *Server) startTask(node, typ, id, authID string, fn func(t *task) error) string {
	now := s.now()
	s.st.PID += 3
	u := upid{
		node: node, typ: typ, id: id, user: authID, pid: int64(s.st.PID), start: now.Unix(),
		pstart: int64(now.Sub(s.st.Boot) / (10 * time.Millisecond)),
	}
	ctx, cancel := context.WithCancel(s.ctx)
	t := &task{
		UPID: u.String(), Node: node, Type: typ, ID: id, User: authID, PID: u.pid, PStart: u.pstart, Start: u.start,
		s: s, ctx: ctx, cancel: cancel, running: true, done: make(chan struct{}), fault: s.faults.nextTask(typ),
	}
	s.st.Tasks = append(s.st.Tasks, t)
	s.workers.Add(1)
	go func() {
		defer s.workers.Done()
		defer cancel()
		s.lock()
		defer s.unlock()
		t.finish(t.run(fn))
	}()
	return t.UPID
}

// run calls the function, unless the control API wants this task to fail.
func (t *task) run(fn func(t *task) error) error {
	if t.fault != nil && t.fault.before {
		// The function runs as if it was stopped at once, so that it takes back what its request had begun (locks).
		t.cancel()
		_ = fn(t)
		return errors.New(t.fault.text)
	}
	err := fn(t)
	if err == nil && t.fault != nil {
		return errors.New(t.fault.text)
	}
	return err
}

// finish writes the last line and the exit status.
func (t *task) finish(err error) {
	switch {
	case errors.Is(err, errNoStatus):
		t.Exit = err.Error()
	case err != nil:
		t.Exit = strings.TrimRight(err.Error(), "\n")
		t.Lines = append(t.Lines, "TASK ERROR: "+t.Exit)
	case t.warnings > 0:
		t.Exit = fmt.Sprintf("WARNINGS: %d", t.warnings)
		t.Lines = append(t.Lines, "TASK WARNINGS: "+fmt.Sprint(t.warnings))
	default:
		t.Exit = "OK"
		t.Lines = append(t.Lines, "TASK OK")
	}
	t.running = false
	t.End = t.s.now().Unix()
	close(t.done)
	t.s.dirty()
}

// logf adds a line to the task's log; a text of several lines adds several.
func (t *task) logf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	t.Lines = append(t.Lines, strings.Split(strings.TrimRight(text, "\n"), "\n")...)
}

// warnf adds a warning: the task ends with "WARNINGS: n".
func (t *task) warnf(format string, args ...any) {
	t.warnings++
	t.logf("WARN: "+format, args...)
}

// sleep waits without the state lock. It returns errInterrupted when the task is stopped meanwhile.
func (t *task) sleep(d delay) error {
	if err := t.s.sleep(t.ctx, d); err != nil {
		return errInterrupted
	}
	return nil
}

// sleepAnyway waits without the state lock also in a task that is stopped: for clean-up.
func (t *task) sleepAnyway(d delay) { _ = t.s.sleep(t.s.ctx, d) }

// findTask finds a task by its name.
func (s *Server) findTask(name string) *task {
	for i := len(s.st.Tasks) - 1; i >= 0; i-- {
		if s.st.Tasks[i].UPID == name {
			return s.st.Tasks[i]
		}
	}
	return nil
}
