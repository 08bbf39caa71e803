package guest

import (
	"context"
	"errors"
	"strings"
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

func (r Rung) String() string {
	names := [...]string{"none", "tcp", "banner", "host key", "authentication"}
	if r < 0 || int(r) >= len(names) {
		return "unknown"
	}
	return names[r]
}

// Ready is the outcome of WaitReady.
type Ready struct {
	// HostKey is the guest's key in authorized_keys format, to be kept in state.
	HostKey string
	// Pinned says that HostKey was seen for the first time (Target.HostKey was empty).
	Pinned bool
	// Shared names guests that have the same host key, if any; also in TakeWarnings.
	Shared []SharedHostKey
	// Elapsed is the time spent on each rung, waits included.
	Elapsed Elapsed
	// Attempts is the number of connections tried; 0 when a pooled one served.
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
// *JumpError when it is the jump host that can't be used; a *HostKeyChanged
// (wrapped by a NotReady) at once; an *AuthRefused (likewise) after AuthGrace.
func (p *Pool) WaitReady(ctx context.Context, target Target) (Ready, error) {
	ctx, cancel := context.WithTimeout(ctx, p.cfg.Timeout)
	defer cancel()
	w := &wait{timing: p.cfg.Timing, start: time.Now(), first: map[Rung]time.Time{}}
	for {
		c, at, err := p.connect(ctx, target)
		w.note(at)
		if err == nil && at == nil && !c.ping(p.cfg.Timing.Probe) {
			p.Disconnect(target) // pooled, and fallen silent unnoticed
			continue
		}
		if err == nil {
			ready := Ready{
				HostKey: formatHostKey(c.hostKey), Pinned: target.HostKey == "",
				Shared: p.noteHostKey(target, c.hostKey), Elapsed: w.elapsed(), Attempts: w.attempts,
			}
			return ready, nil
		}
		pause, again := w.next(err, over(ctx))
		if !again || ctx.Err() != nil {
			return Ready{}, w.failed(ctx, p, target)
		}
		timer := time.NewTimer(pause)
		select {
		case <-timer.C:
		case <-ctx.Done():
			timer.Stop()
			return Ready{}, w.failed(ctx, p, target)
		}
	}
}

// over says that ctx has ended, or is about to: a dialer's own timer for the
// same deadline may fire first.
func over(ctx context.Context) bool {
	deadline, ok := ctx.Deadline()
	return ctx.Err() != nil || ok && !time.Now().Before(deadline)
}

// wait is the memory of one WaitReady.
type wait struct {
	timing   Timing
	start    time.Time
	attempts int
	first    map[Rung]time.Time // when each rung was first reached
	err      error              // the most telling so far

	polls        int       // in a row, for the backoff
	refusedSince time.Time // since when our key is refused
	refusals     int
	jumpSince    time.Time // since when the jump host fails
}

func (w *wait) note(at *attempt) {
	if at == nil {
		return
	}
	w.attempts++
	at.mu.Lock()
	defer at.mu.Unlock()
	for r, t := range at.reached {
		if w.first[r].IsZero() {
			w.first[r] = t
		}
	}
}

// elapsed divides the time up to the login by the rungs' first successes. A pooled
// connection had none to climb.
func (w *wait) elapsed() Elapsed {
	var e Elapsed
	from := w.start
	for r, d := range []*time.Duration{&e.TCP, &e.Banner, &e.HostKey, &e.Auth} {
		t := w.first[Rung(r+1)]
		if t.IsZero() || t.Before(from) {
			continue
		}
		*d = t.Sub(from)
		from = t
	}
	e.Total = from.Sub(w.start)
	return e
}

// next decides what an error means: how long to wait before another attempt, or
// that there is none to be made.
func (w *wait) next(err error, ended bool) (pause time.Duration, again bool) {
	var notReady *NotReady
	var jump *JumpError
	isGuest := errors.As(err, &notReady)
	// An attempt that the end of the wait cut short says less than the one
	// before; only a refusal can't come from that.
	var changed *HostKeyChanged
	var refused *AuthRefused
	if w.err == nil || !ended || errors.As(err, &changed) || errors.As(err, &refused) {
		w.err = err
	}
	switch {
	case errors.As(err, &jump):
		if w.jumpSince.IsZero() {
			w.jumpSince = time.Now()
		}
		if jump.Final || time.Since(w.jumpSince) >= w.timing.JumpGrace {
			return 0, false
		}
		return w.poll(), true
	case !isGuest:
		return 0, false // configuration, closed pool
	}
	w.jumpSince = time.Time{}

	if errors.As(err, &changed) {
		return 0, false
	}
	if !errors.As(err, &refused) {
		w.refusedSince, w.refusals = time.Time{}, 0
		return w.poll(), true
	}
	// pam_nologin keeps ordinary users out until the boot is over, and says so.
	booting := strings.Contains(strings.ToLower(refused.Message), "booting up")
	if w.refusedSince.IsZero() {
		w.refusedSince = time.Now()
	}
	if !booting && time.Since(w.refusedSince) >= w.timing.AuthGrace {
		return 0, false
	}
	pause = w.timing.AuthRetry << min(w.refusals, 3)
	w.refusals++
	return pause, true
}

func (w *wait) poll() time.Duration {
	pause := min(w.timing.PollMin<<min(w.polls, 10), w.timing.PollMax)
	w.polls++
	return pause
}

// failed is the error of a wait that ended: the most telling one, with how long
// it took.
func (w *wait) failed(ctx context.Context, p *Pool, target Target) error {
	err := w.err
	var notReady *NotReady
	if !errors.As(err, &notReady) {
		if ctx.Err() == nil || errors.As(err, new(*JumpError)) {
			return err
		}
		notReady = p.newNotReady(target, RungTCP, context.Cause(ctx))
	}
	final := *notReady
	final.Waited, final.Attempts, final.Ended = time.Since(w.start), w.attempts, ctx.Err()
	return &final
}
