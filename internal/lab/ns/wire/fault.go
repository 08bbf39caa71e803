//go:build linux

package wire

import (
	"context"
	"errors"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Fault is an error that crossed a process border: its text, and what errors.Is finds in it.
type Fault struct {
	Message string        `json:"message"`
	Kind    string        `json:"kind,omitempty"`
	Errno   syscall.Errno `json:"errno,omitempty"`
}

// kinds are the errors that callers test for.
var kinds = map[string]error{
	"not found": engine.ErrNotFound, "exists": engine.ErrExists, "running": engine.ErrRunning, "not running": engine.ErrNotRunning,
	"in use": engine.ErrInUse, "invalid": engine.ErrInvalid, "no space": engine.ErrNoSpace, "closed": engine.ErrClosed,
	"canceled": context.Canceled, "deadline": context.DeadlineExceeded,
}

func newFault(err error) *Fault {
	f := &Fault{Message: err.Error()}
	for kind, known := range kinds {
		if errors.Is(err, known) {
			f.Kind = kind
		}
	}
	_ = errors.As(err, &f.Errno)
	return f
}

func (f *Fault) Error() string { return f.Message }

// Unwrap gives errors.Is what the error was on the other side.
func (f *Fault) Unwrap() []error {
	var all []error
	if known := kinds[f.Kind]; known != nil {
		all = append(all, known)
	}
	if f.Errno != 0 {
		all = append(all, f.Errno)
	}
	return all
}
