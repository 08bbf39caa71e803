package guest

import (
	"context"
	"time"
)

// Rung is a step on the way to a guest that can be worked with. The zero value
// is no rung.
type Rung int

// The rungs, in the order in which they are climbed.
const (
	RungTCP     Rung = iota + 1 // a TCP connection to sshd's port
	RungBanner                  // sshd's version line
	RungHostKey                 // the host key is the pinned one, or was pinned
	RungAuth                    // our key was accepted
)

// Ready is the outcome of WaitReady.
type Ready struct {
	// HostKey is the guest's key in authorized_keys format, to be kept in state.
	HostKey string
	// Pinned says that HostKey was seen for the first time (Target.HostKey was empty).
	Pinned bool
	// Shared names guests that have the same host key, if any.
	Shared []SharedHostKey
	// Elapsed is the time spent on each rung, waits included.
	Elapsed Elapsed
	// Attempts is the number of connections tried.
	Attempts int
}

// Elapsed is the time that each rung took; Total is their sum.
type Elapsed struct {
	TCP, Banner, HostKey, Auth, Total time.Duration
}

// WaitReady climbs the rungs until the guest accepts our login, trying again
// from PollMin to PollMax apart, for Config.Timeout at most or until ctx ends.
// The connection stays in the pool for the next call.
//
// Errors: *NotReady names the rung that wasn't reached and what to do about it;
// *JumpError when it is the jump host that can't be used; *HostKeyChanged
// (wrapped by a NotReady) at once; a refused key is final after AuthGrace.
func (p *Pool) WaitReady(ctx context.Context, target Target) (Ready, error) { panic("todo") }
