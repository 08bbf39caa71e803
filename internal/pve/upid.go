package pve

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// UPID is the id of a task of the server:
// "UPID:node:pid:pstart:starttime:type:id:user:", numbers in hex. Of a token's
// task the user holds a "!" ("admin@pve!ci").
type UPID string

// TaskID is what a UPID says of its task.
type TaskID struct {
	// Node is where the task runs: its status is asked for there.
	Node string
	// Type is the kind of task: vzclone, vzcreate, vzstart, vzdestroy, resize, …
	Type string
	// ID is what it works on: a vmid for most, empty for some, and more for
	// others ("400-mp0>401-mp0" of a volume that moves).
	ID string
	// User started it: "admin@pve", or "admin@pve!ci" for a token.
	User string
	// Started is the time of the server's clock, to the second.
	Started time.Time
}

// Parse takes the UPID apart. Text that isn't one is an error that shows it.
func (u UPID) Parse() (TaskID, error) {
	fields := strings.Split(string(u), ":")
	if len(fields) < 9 || fields[0] != "UPID" || fields[1] == "" || fields[5] == "" {
		return TaskID{}, fmt.Errorf("pve: %q is not the id of a task (UPID:node:pid:pstart:starttime:type:id:user:)", string(u))
	}
	seconds, err := strconv.ParseInt(fields[4], 16, 64)
	if err != nil {
		return TaskID{}, fmt.Errorf("pve: %q is not the id of a task: start time: %w", string(u), err)
	}
	// An id with colons in it would be in the middle: everything between the
	// type and the user.
	last := len(fields) - 1
	return TaskID{
		Node:    fields[1],
		Type:    fields[5],
		ID:      strings.Join(fields[6:last-1], ":"),
		User:    fields[last-1],
		Started: time.Unix(seconds, 0).UTC(),
	}, nil
}

// Node returns the node that the task runs on, or "" when u isn't a UPID.
func (u UPID) Node() string {
	id, err := u.Parse()
	if err != nil {
		return ""
	}
	return id.Node
}

// VMID returns the guest that the task works on, or 0 when its id is no vmid.
func (u UPID) VMID() int {
	id, err := u.Parse()
	if err != nil {
		return 0
	}
	n, err := strconv.Atoi(id.ID)
	if err != nil {
		return 0
	}
	return n
}

// path returns "/nodes/NODE/tasks/UPID", percent-encoded.
func (u UPID) path() (string, error) {
	id, err := u.Parse()
	if err != nil {
		return "", err
	}
	return "/nodes/" + url.PathEscape(id.Node) + "/tasks/" + escapeSegment(string(u)), nil
}

// escapeSegment percent-encodes everything but unreserved characters: the
// server takes ":" and "!" as they are too, but proxies on the way may not.
func escapeSegment(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
