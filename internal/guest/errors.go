package guest

import "errors"

// NotReady says which rung of the way to a guest wasn't reached, and why. Its
// text carries the remedies.
type NotReady struct {
	Target Target
	Rung   Rung
	Cause  error
}

// JumpError says that the jump host can't be used: no guest behind it was tried.
type JumpError struct {
	Host  string // host:port
	Rung  Rung
	Cause error
}

// HostKeyChanged says that a host shows another key than the pinned one.
type HostKeyChanged struct {
	Name string // of the guest or jump host
	Want string // pinned, "SHA256:…"
	Got  string // shown; empty when the host no longer has a key of that type
}

// LostError says that the connection broke after a command was sent, so that
// nobody knows whether it ran, runs still, or how it ended.
type LostError struct {
	Target Target
	Cause  error
}

// CancelledError says that the context ended before the command did.
type CancelledError struct {
	Target Target
	// Stopped says that the guest confirmed the command's end.
	Stopped bool
	Cause   error
}

// ErrNoKey is the cause when the configuration names no private key.
var ErrNoKey = errors.New("no SSH key is configured")

func (e *NotReady) Error() string       { panic("todo") }
func (e *NotReady) Unwrap() error       { return e.Cause }
func (e *JumpError) Error() string      { panic("todo") }
func (e *JumpError) Unwrap() error      { return e.Cause }
func (e *HostKeyChanged) Error() string { panic("todo") }
func (e *LostError) Error() string      { panic("todo") }
func (e *LostError) Unwrap() error      { return e.Cause }
func (e *CancelledError) Error() string { panic("todo") }
func (e *CancelledError) Unwrap() error { return e.Cause }
