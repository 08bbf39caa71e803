package pve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"
)

const (
	// A task is asked for again after a tenth of the time waited so far, between
	// these two: short tasks are seen soon, long ones cost few requests.
	shortestPoll = 50 * time.Millisecond
	longestPoll  = time.Second
	// soonPoll is the pause while a task is about to end.
	soonPoll = 10 * time.Millisecond

	// failureTail is how much of a failed task's log goes into its error,
	// warningTail how much of a log is searched for warnings.
	failureTail = 20
	warningTail = 200
)

// Wait waits for a task to end, as long as ctx lets it.
//
// A task that ended with warnings succeeded; warn gets each of them, and must be
// given. One that failed is a [*TaskError] with the end of its log. When ctx
// ends first, or no poll got through for the configured time, it is a
// [*TaskError] too, with StillRunning set: the task itself goes on, and the
// error says which and where.
func (c *Client) Wait(ctx context.Context, upid UPID, warn WarnFunc) (TaskResult, error) {
	return c.WaitAbout(ctx, upid, 0, warn)
}

// WaitAbout is Wait for a task of which it is known about how long it takes: it
// isn't asked for before, and then again and again at short intervals. Where others
// wait for the task to end, that spares them half a poll each, and the server most
// of the polls. 0 is not known.
func (c *Client) WaitAbout(ctx context.Context, upid UPID, about time.Duration, warn WarnFunc) (TaskResult, error) {
	if warn == nil {
		return TaskResult{}, errors.New("pve: Wait needs a function for the task's warnings")
	}
	if _, err := upid.Parse(); err != nil {
		return TaskResult{}, err
	}
	// What the task did is not in the lists from before its end.
	defer c.writes.Add(1)
	begin := c.cfg.Clock.Now()
	waited := func() time.Duration { return c.cfg.Clock.Now().Sub(begin) }
	var failing pollFailures
	if about > 0 {
		if err := c.cfg.Clock.Sleep(ctx, about); err != nil {
			return TaskResult{}, &TaskError{UPID: upid, StillRunning: true, Err: err}
		}
	}
	for polls := 1; ; polls++ {
		status, err := c.TaskStatus(singleAttempt(ctx), upid)
		switch {
		case err == nil && !status.Running():
			result, err := c.taskEnd(ctx, upid, status.ExitStatus, waited(), warn)
			result.Polls = polls
			return result, err
		case context.Cause(ctx) != nil:
			return TaskResult{}, &TaskError{UPID: upid, StillRunning: true, Err: context.Cause(ctx)}
		case err != nil:
			if !failing.bearable(err, c.cfg) {
				return TaskResult{}, &TaskError{UPID: upid, StillRunning: true, Err: err, Meaning: MeaningOf(err)}
			}
		default:
			failing = pollFailures{}
		}
		pause := min(max(shortestPoll, waited()/10), longestPoll)
		if about > 0 && waited() < max(about*3/2, shortestPoll) {
			pause = soonPoll
		}
		if err := c.cfg.Clock.Sleep(ctx, pause); err != nil {
			return TaskResult{}, &TaskError{UPID: upid, StillRunning: true, Err: err}
		}
	}
}

// pollFailures counts polls that fail in a row.
type pollFailures struct{ since time.Time }

// bearable reports whether the wait goes on after a failed poll: the task runs
// on whatever becomes of our questions. An answer about the task or about us is
// final; no answer, or one of a server in trouble, isn't for a while.
func (f *pollFailures) bearable(err error, cfg Config) bool {
	var transport *TransportError
	var answer *Error
	switch {
	case errors.As(err, &transport):
		if !passing(transport.Err) {
			return false
		}
	case errors.As(err, &answer):
		if answer.Status != http.StatusTooManyRequests && (answer.Status < 500 || answer.Status == http.StatusNotImplemented) {
			return false
		}
	default:
		return false
	}
	now := cfg.Clock.Now()
	if f.since.IsZero() {
		f.since = now
	}
	return now.Sub(f.since) <= cfg.PollPatience
}

// taskEnd makes the result of a task that has ended.
func (c *Client) taskEnd(ctx context.Context, upid UPID, exit string, took time.Duration, warn WarnFunc) (TaskResult, error) {
	if exit == "OK" {
		return TaskResult{UPID: upid, ExitStatus: exit, Duration: took}, nil
	}
	if succeeded(exit) {
		r := TaskResult{UPID: upid, ExitStatus: exit, Duration: took}
		lines, err := c.TaskLogTail(ctx, upid, warningTail)
		r.Warnings = warningsIn(lines)
		r.LogTail = lastLines(lines, failureTail)
		if len(r.Warnings) == 0 {
			text := fmt.Sprintf("task %s ended with %s", upid, exit)
			if err != nil {
				text += fmt.Sprintf("; its log could not be read: %v", err)
			}
			r.Warnings = []string{text}
		}
		for _, w := range r.Warnings {
			warn(w)
		}
		return r, nil
	}
	exit = c.secrets.clean(orDefault(strings.TrimSpace(exit), "it ended without a status"))
	e := &TaskError{UPID: upid, ExitStatus: exit}
	if lines, err := c.TaskLogTail(ctx, upid, failureTail); err == nil {
		e.LogTail = lines
	}
	v := classify(0, exit, nil)
	if exit == jobErrors {
		v = classify(0, jobError(e.LogTail), nil)
	}
	if v.meaning == Unknown && slices.ContainsFunc(e.LogTail, noSpace) {
		v.meaning = NoSpace // said by the program that wrote, not by the server
	}
	e.Meaning, e.LockedBy = v.meaning, v.lockedBy
	return TaskResult{}, e
}

func noSpace(line string) bool { return classify(0, line, nil).meaning == NoSpace }

// jobErrors is the exit status of a backup that failed, whatever for: the reason
// is only in its log.
const jobErrors = "job errors"

// jobErrorLine is that reason.
var jobErrorLine = regexp.MustCompile(`^ERROR: Backup of (?:VM|CT) \d+ failed - (.+)$`)

func jobError(lines []string) string {
	for _, line := range lines {
		if m := jobErrorLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			return m[1]
		}
	}
	return jobErrors
}

// warningLine is a warning in a task's log; its last line, "TASK WARNINGS: n", is
// none.
var warningLine = regexp.MustCompile(`^(?i:warn(?:ing)?):\s*(.+)$`)

func warningsIn(lines []string) []string {
	var out []string
	for _, line := range lines {
		if m := warningLine.FindStringSubmatch(strings.TrimSpace(line)); m != nil {
			out = append(out, m[1])
		}
	}
	return out
}

func lastLines(lines []string, n int) []string {
	if len(lines) > n {
		return lines[len(lines)-n:]
	}
	return lines
}

type logLine struct {
	Text string `pve:"t"`
}

// logLines reads lines of a log, and how many it has in all: the one number that
// the API puts beside "data" rather than in it.
func (c *Client) logLines(ctx context.Context, path string, p params) ([]string, int, error) {
	var total int
	entries, err := getList[logLine](withTotal(ctx, &total), c, path, p)
	if err != nil {
		return nil, 0, err
	}
	lines := make([]string, 0, len(entries))
	for _, e := range entries {
		lines = append(lines, c.secrets.clean(e.Text))
	}
	return lines, max(total, len(lines)), nil
}
