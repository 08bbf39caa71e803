package server

import (
	"fmt"
	"regexp"
	"sync"
	"time"
)

// Fault is something that goes wrong, or waits, at chosen requests.
type Fault struct {
	// Method is the HTTP method, empty for any; Pattern a regular expression for the path without /api2/json, found anywhere.
	Method  string `json:"method"`
	Pattern string `json:"pattern"`
	// Nth is the first matching request that it hits, from 1 (0 means 1); Count how many from there on (0 means 1, -1 all).
	Nth   int `json:"nth"`
	Count int `json:"count"`
	// Kind is one of the Fault… constants.
	Kind string `json:"kind"`
	// Status, Reason and Body are an injected answer's. Without a body it is the usual JSON one.
	Status int     `json:"status,omitempty"`
	Reason string  `json:"reason,omitempty"`
	Body   *string `json:"body,omitempty"`
	// Delay is how long FaultLatency waits.
	Delay time.Duration `json:"delay,omitempty"`
}

// Kinds of faults.
const (
	// FaultStatus answers Status and Reason; nothing is executed.
	FaultStatus = "status"
	// FaultStatusAfter executes the request and then answers Status and Reason.
	FaultStatusAfter = "status_after"
	// FaultDropBefore closes the connection; nothing is executed.
	FaultDropBefore = "drop_before"
	// FaultDropAfter executes the request and closes the connection: a lost answer.
	FaultDropAfter = "drop_after"
	// FaultLatency waits for Delay, then goes on.
	FaultLatency = "latency"
	// FaultHold keeps the request until it is released, then executes it.
	FaultHold = "hold"
	// FaultHoldDrop keeps the request until it is released, then closes the connection; nothing is executed.
	FaultHoldDrop = "hold_drop"
	// FaultHoldAfter executes the request and keeps the answer until it is released.
	FaultHoldAfter = "hold_after"
)

// FaultState is a fault and what became of it.
type FaultState struct {
	ID    int   `json:"id"`
	Fault Fault `json:"fault"`
	Seen  int   `json:"seen"`  // matching requests so far
	Fired int   `json:"fired"` // of these, hit
	Held  int   `json:"held"`  // waiting to be released now
}

type fault struct {
	FaultState
	pattern *regexp.Regexp
	release chan struct{}
}

// TaskFault makes tasks of a type fail.
type TaskFault struct {
	// Type is the task's type ("vzclone"), empty for any; Nth and Count choose as for Fault.
	Type  string `json:"type"`
	Nth   int    `json:"nth"`
	Count int    `json:"count"`
	// Exit is the exit status, "unable to create volume".
	Exit string `json:"exit"`
	// After lets the task do its work first; else it fails at once and has done nothing.
	After bool `json:"after"`
}

type taskFault struct {
	text   string
	before bool
}

type taskRule struct {
	TaskFault
	seen int
}

// faults holds what the control API ordered.
type faults struct {
	mu      sync.Mutex
	nextID  int
	list    []*fault
	tasks   []*taskRule
	changed chan struct{}
}

func newFaults() *faults { return &faults{changed: make(chan struct{})} }

// add installs a fault and returns its id.
func (f *faults) add(spec Fault) (int, error) {
	re, err := regexp.Compile(spec.Pattern)
	if err != nil {
		return 0, fmt.Errorf("pattern %q: %w", spec.Pattern, err)
	}
	switch spec.Kind {
	case FaultStatus, FaultStatusAfter, FaultDropBefore, FaultDropAfter, FaultLatency, FaultHold, FaultHoldDrop, FaultHoldAfter:
	default:
		return 0, fmt.Errorf("unknown kind of fault %q", spec.Kind)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.nextID++
	f.list = append(f.list, &fault{FaultState: FaultState{ID: f.nextID, Fault: spec}, pattern: re, release: make(chan struct{})})
	return f.nextID, nil
}

func (f *faults) addTask(spec TaskFault) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tasks = append(f.tasks, &taskRule{TaskFault: spec})
}

// clear removes every fault and lets go of what is held.
func (f *faults) clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, each := range f.list {
		f.letGo(each)
	}
	f.list, f.tasks = nil, nil
	f.notify()
}

// releaseHeld lets go of what a fault holds; the fault goes on counting.
func (f *faults) releaseHeld(id int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, each := range f.list {
		if each.ID == id {
			f.letGo(each)
			return true
		}
	}
	return false
}

func (f *faults) letGo(each *fault) {
	close(each.release)
	each.release = make(chan struct{})
}

func (f *faults) notify() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *faults) states() ([]FaultState, <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	out := make([]FaultState, 0, len(f.list))
	for _, each := range f.list {
		out = append(out, each.FaultState)
	}
	return out, f.changed
}

// hits are the faults that a request meets, in the order in which they were installed.
func (f *faults) hits(method, path string) []*fault {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*fault
	for _, each := range f.list {
		if (each.Fault.Method != "" && each.Fault.Method != method) || !each.pattern.MatchString(path) {
			continue
		}
		each.Seen++
		if chosen(each.Seen, each.Fault.Nth, each.Fault.Count) {
			each.Fired++
			out = append(out, each)
		}
	}
	if len(out) > 0 {
		f.notify()
	}
	return out
}

// chosen says whether the seen-th match is one of count from the nth on.
func chosen(seen, nth, count int) bool {
	nth, count = max(nth, 1), max(count, 1)*sign(count)
	return seen >= nth && (count < 0 || seen < nth+count)
}

func sign(n int) int {
	if n < 0 {
		return -1
	}
	return 1
}

// nextTask says whether a task that starts now is to fail.
func (f *faults) nextTask(typ string) *taskFault {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, rule := range f.tasks {
		if rule.Type != "" && rule.Type != typ {
			continue
		}
		rule.seen++
		if chosen(rule.seen, rule.Nth, rule.Count) {
			return &taskFault{text: rule.Exit, before: !rule.After}
		}
	}
	return nil
}

// hold waits until the fault is released or the server closes.
func (f *faults) hold(each *fault, stop <-chan struct{}) {
	f.mu.Lock()
	each.Held++
	release := each.release
	f.notify()
	f.mu.Unlock()
	select {
	case <-release:
	case <-stop:
	}
	f.mu.Lock()
	each.Held--
	f.notify()
	f.mu.Unlock()
}
