package sandbox

import (
	"errors"
	"fmt"
)

// The kinds of failure that a caller decides by. Use errors.Is.
var (
	// ErrGone says that the container does not exist, and that the server said
	// so when it was asked directly. It is the only proof of absence.
	ErrGone = errors.New("the container does not exist")
	// ErrForeign says that a guest has the id but is not the one that is meant.
	ErrForeign = errors.New("the guest with this id is not ours")
	// ErrUnmarked says that a guest without our marker can't be imported.
	ErrUnmarked = errors.New("the guest carries no ownership marker")
	// ErrNoFreeID says that the range of ids is used up.
	ErrNoFreeID = errors.New("no free id in the range")
	// ErrProtected says that the container's protection flag is set.
	ErrProtected = errors.New("the container is protected")
	// ErrHAManaged says that the high-availability stack holds the container.
	ErrHAManaged = errors.New("the container is managed by HA")
	// ErrLocked says that the server still held a lock when time ran out.
	ErrLocked = errors.New("the container is locked")
	// ErrInUse says that other guests depend on the container's volumes.
	ErrInUse = errors.New("other guests depend on this container")
	// ErrNotRunning says that something needs a running container.
	ErrNotRunning = errors.New("the container is not running")
	// ErrNotReady says that a started container could not be reached.
	ErrNotReady = errors.New("the container is not reachable")
	// ErrChangedOutside says that somebody else keeps changing the container.
	ErrChangedOutside = errors.New("the configuration was changed by somebody else")
	// ErrNoSnapshot says that the container has no snapshot of that name.
	ErrNoSnapshot = errors.New("the container has no such snapshot")
	// ErrSnapshotExists says that the container has a snapshot of that name.
	ErrSnapshotExists = errors.New("the container has a snapshot of that name already")
	// ErrNoTemplate says that no template is as it was described.
	ErrNoTemplate = errors.New("there is no such template")
	// ErrBusy says that a command is under way inside the container.
	ErrBusy = errors.New("a command is under way inside the container")
	// ErrWall says that the container's firewall could not be brought to what its
	// network mode asks for. Nothing was started behind it.
	ErrWall = errors.New("the firewall isn't as the network mode asks for")
	// ErrExposed says that a container reached what its network mode forbids. Its
	// link is down and it is stopped.
	ErrExposed = errors.New("the container reached what its network mode forbids")
	// ErrRunNeeds says that a container's template lacks what a run needs.
	ErrRunNeeds = errors.New("the container can't supervise runs")
	// ErrGuestFull says that nothing could be written in a container.
	ErrGuestFull = errors.New("the container's disk is full or read-only")
	// ErrNoTmpfs says that a container has no file system in memory, so that no
	// secret was sent there.
	ErrNoTmpfs = errors.New("the container keeps no files in memory")
	// ErrNoAgent says that an agent isn't installed.
	ErrNoAgent = errors.New("the agent isn't installed")
	// ErrRunTwice says that the same run is under way already in this process.
	ErrRunTwice = errors.New("another run of this apply has the same container, name and inputs")
	// ErrReaping says that a reaper is about to destroy the container.
	ErrReaping = errors.New("a reaper is about to destroy the container")
	// ErrClock says that this machine's clock and the server's disagree, so that
	// neither tells whether a lease is over.
	ErrClock = errors.New("the clocks of this machine and the server disagree")
	// ErrNoOwner says that the provider's owner is missing.
	ErrNoOwner = errors.New("no owner is configured")
)

// Error is a failure of one operation on one sandbox: what failed, why, and
// what to do about it. Unwrap gives the cause, so that errors.Is finds the
// kinds above and errors.As the access layer's error.
type Error struct {
	Op     string // "create", "read", "update", "destroy", …
	Ref    Ref    // VMID 0 when no id was taken yet
	What   string // the step that failed, e.g. "clone template 9000"
	Err    error  // the cause
	Kind   error  // one of the kinds above, or nil
	Remedy string // what to do next; may be empty
}

func (e *Error) Error() string {
	s := e.What
	if s == "" {
		s = e.Op
	}
	if e.Ref.VMID != 0 {
		s = fmt.Sprintf("container %d: %s", e.Ref.VMID, s)
	}
	switch {
	case e.Err != nil:
		s += ": " + e.Err.Error()
	case e.Kind != nil:
		s += ": " + e.Kind.Error()
	}
	if e.Remedy != "" {
		s += " (" + e.Remedy + ")"
	}
	return s
}

// Unwrap gives the kind and the cause.
func (e *Error) Unwrap() []error {
	var errs []error
	if e.Kind != nil {
		errs = append(errs, e.Kind)
	}
	if e.Err != nil {
		errs = append(errs, e.Err)
	}
	return errs
}
