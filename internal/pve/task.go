package pve

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// TaskStatus is the state of a task now.
type TaskStatus struct {
	UPID UPID   `pve:"upid"`
	Node string `pve:"node"`
	Type string `pve:"type"`
	ID   string `pve:"id"`
	User string `pve:"user"`
	// State is "running" or "stopped".
	State string `pve:"status,must"`
	// ExitStatus is set once it stopped: "OK", "WARNINGS: n" or an error's text.
	ExitStatus string `pve:"exitstatus"`
	// StartTime is in seconds since the epoch, of the server's clock.
	StartTime int64 `pve:"starttime"`
	Extra     Extra
}

// Running reports whether the task has not ended.
func (s TaskStatus) Running() bool { return s.State == "running" }

// Succeeded reports whether the task ended well, with or without warnings.
func (s TaskStatus) Succeeded() bool { return !s.Running() && succeeded(s.ExitStatus) }

func succeeded(exit string) bool {
	return exit == "OK" || strings.HasPrefix(exit, "WARNINGS")
}

// TaskEntry is a task of a node's list.
type TaskEntry struct {
	UPID UPID   `pve:"upid,must"`
	Node string `pve:"node"`
	Type string `pve:"type"`
	ID   string `pve:"id"`
	User string `pve:"user"`
	// Status is the exit status of one that has ended, else empty or "running".
	Status string `pve:"status"`
	// StartTime and EndTime are in seconds since the epoch; EndTime is 0 while
	// the task runs.
	StartTime int64 `pve:"starttime"`
	EndTime   int64 `pve:"endtime"`
	Extra     Extra
}

// TaskFilter narrows a list of tasks. Its zero value lists the newest ones that
// have ended.
type TaskFilter struct {
	// VMID, Type and Since keep the tasks of that guest, of that kind, and those
	// not older than that second.
	VMID  int
	Type  string
	Since time.Time
	// Active lists running tasks; All lists running and ended ones.
	Active, All bool
	// Limit is the number of entries, the server's default (50) when 0.
	Limit int
}

// Tasks lists the tasks of a node that the identity may see: its own, and with
// Sys.Audit on the node all.
func (c *Client) Tasks(ctx context.Context, node string, filter TaskFilter) ([]TaskEntry, error) {
	p := params{}
	if filter.VMID != 0 {
		p.setInt("vmid", filter.VMID)
	}
	p.setText("typefilter", filter.Type)
	if !filter.Since.IsZero() {
		p.set("since", strconv.FormatInt(filter.Since.Unix(), 10))
	}
	switch {
	case filter.All:
		p.set("source", "all")
	case filter.Active:
		p.set("source", "active")
	}
	if filter.Limit > 0 {
		p.setInt("limit", filter.Limit)
	}
	return getList[TaskEntry](ctx, c, nodePath(node)+"/tasks", p)
}

// TaskStatus returns the state of a task. A task that the server doesn't know is
// an error that means NoSuchTask; another's task needs Sys.Audit on its node.
func (c *Client) TaskStatus(ctx context.Context, upid UPID) (TaskStatus, error) {
	path, err := upid.path()
	if err != nil {
		return TaskStatus{}, err
	}
	return getObject[TaskStatus](ctx, c, path+"/status", nil)
}

// TaskLog returns limit lines of a task's log from line start (0 is the first)
// on, and how many lines it has in all.
func (c *Client) TaskLog(ctx context.Context, upid UPID, start, limit int) (lines []string, total int, err error) {
	path, err := upid.path()
	if err != nil {
		return nil, 0, err
	}
	p := params{}
	p.setInt("start", start)
	p.setInt("limit", limit)
	return c.logLines(ctx, path+"/log", p)
}

// TaskLogTail returns the last n lines of a task's log.
func (c *Client) TaskLogTail(ctx context.Context, upid UPID, n int) ([]string, error) {
	lines, total, err := c.TaskLog(ctx, upid, 0, n)
	if err != nil || total <= len(lines) {
		return lines, err
	}
	lines, _, err = c.TaskLog(ctx, upid, total-n, n)
	return lines, err
}

// StopTask asks the server to stop a task and returns when it has been asked;
// the server answers after about 3 s, and clears up what the task had begun.
// The task's end is waited for with [Client.Wait].
func (c *Client) StopTask(ctx context.Context, upid UPID) error {
	path, err := upid.path()
	if err != nil {
		return err
	}
	return c.del(ctx, path, nil)
}

// TaskResult is a task that ended well.
type TaskResult struct {
	UPID UPID
	// ExitStatus is "OK" or "WARNINGS: n".
	ExitStatus string
	// Warnings are the warnings of its log, at least one entry when ExitStatus
	// says that there are any. [Client.Wait] has reported them already.
	Warnings []string
	// LogTail holds the log's last lines, where the log was read (with warnings).
	LogTail []string
	// Duration is how long Wait waited for it.
	Duration time.Duration
	// Polls is how often it was asked for.
	Polls int
}

// TaskError is a task that failed, or that wasn't waited for to its end.
type TaskError struct {
	UPID UPID
	// ExitStatus is the server's text; empty when the task was still running.
	ExitStatus string
	// LogTail holds the last lines of its log.
	LogTail []string
	// Meaning is what the table of messages makes of ExitStatus.
	Meaning Meaning
	// LockedBy is the kind of lock, where Meaning is Locked.
	LockedBy string
	// StillRunning says that the task ran on when the wait was given up, on
	// account of Err.
	StillRunning bool
	Err          error
}

func (e *TaskError) meaning() Meaning { return e.Meaning }

func (e *TaskError) Unwrap() error { return e.Err }

func (e *TaskError) Error() string {
	what := "task " + string(e.UPID)
	if id, err := e.UPID.Parse(); err == nil {
		what = fmt.Sprintf("task %s of %s on node %s", id.Type, orDefault(id.ID, "the node"), id.Node)
	}
	var b strings.Builder
	if e.StillRunning {
		fmt.Fprintf(&b, "%s: gave up waiting while it may still run there (%s): %v", what, e.UPID, e.Err)
	} else {
		fmt.Fprintf(&b, "%s failed: %s", what, e.ExitStatus)
	}
	if len(e.LogTail) > 0 {
		b.WriteString("\nlast lines of its log:\n  " + strings.Join(e.LogTail, "\n  "))
	}
	return b.String()
}

// WarnFunc gets one warning of the server, as a line of text.
type WarnFunc func(warning string)
