package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// This file is the only one that waits. Tasks are waited for by pve.Client.Wait
// and SSH by guest.Pool.WaitReady, both called from here.

// Bounds of the pauses between two looks at something.
const (
	pollMin = 50 * time.Millisecond
	pollMax = time.Second
	// lockedMin and lockedMax bound the pause after the server refused a call
	// because something holds a lock: as long as a linked clone at first.
	lockedMin = 100 * time.Millisecond
	lockedMax = 3 * time.Second
	// cleanupTimeout bounds what is still done after a context has ended.
	cleanupTimeout = 10 * time.Second
)

// pause waits for d, spread by ±25 % so that waiters don't move in step.
func (m *Manager) pause(ctx context.Context, d time.Duration) error {
	return m.clock.Sleep(ctx, time.Duration(float64(d)*(0.75+m.jitter()/2)))
}

// poll calls look until it says done, fails, or ctx ends. what is for the
// error of the last case.
func (m *Manager) poll(ctx context.Context, what string, look func(context.Context) (done bool, err error)) error {
	start := m.clock.Now()
	for {
		done, err := look(ctx)
		if done || err != nil {
			return err
		}
		waited := m.clock.Now().Sub(start)
		if err := m.pause(ctx, min(max(pollMin, waited/10), pollMax)); err != nil {
			return fmt.Errorf("gave up after %s while waiting for %s: %w", waited.Round(time.Millisecond), what, err)
		}
	}
}

// isLockRefusal says whether err means that somebody holds a lock that will be
// given back. It may come as an answer or as the exit status of a task.
func isLockRefusal(err error) bool {
	return pve.Means(err, pve.Locked, pve.LockTimeout)
}

// whileLocked calls do until it isn't refused on account of a lock, or ctx
// ends. A lock refusal means that nothing was done, so that calling again is
// safe. node and vmid are the guest that is locked, for the error.
func (m *Manager) whileLocked(ctx context.Context, what, node string, vmid int, do func(context.Context) error) error {
	start := m.clock.Now()
	delay := lockedMin
	var refused error
	stillLocked := func(end error) error {
		return &lockedError{
			what: what, waited: m.clock.Now().Sub(start), last: refused, end: end, holders: m.holders(ctx, node, vmid),
		}
	}
	for {
		err := do(ctx)
		switch {
		case err == nil:
			return nil
		case !isLockRefusal(err) && refused != nil && ctx.Err() != nil:
			return stillLocked(err) // time ran out in the middle of another try
		case !isLockRefusal(err):
			return err
		}
		refused = err
		m.log.DebugContext(ctx, "locked, trying again", "what", what, "cause", err)
		if waitErr := m.pause(ctx, delay); waitErr != nil {
			return stillLocked(waitErr)
		}
		delay = min(delay*3/2, lockedMax)
	}
}

// lockedError says that a lock outlasted the time there was.
type lockedError struct {
	what    string
	waited  time.Duration
	last    error    // the server's refusal
	end     error    // why the wait ended
	holders []string // tasks that work on the guest
}

func (e *lockedError) Error() string {
	text := fmt.Sprintf("%s: still locked after %s: %v", e.what, e.waited.Round(time.Second), e.last)
	if len(e.holders) > 0 {
		text += "; at work on it: " + strings.Join(e.holders, ", ")
	}
	return text
}

func (e *lockedError) Unwrap() []error { return []error{ErrLocked, e.last, e.end} }

// holders lists the tasks that are at work on a guest, as far as the token may
// see them (others' tasks need Sys.Audit on the node).
func (m *Manager) holders(ctx context.Context, node string, vmid int) []string {
	ctx, cancel := detached(ctx)
	defer cancel()
	tasks, err := m.pve.Tasks(ctx, node, pve.TaskFilter{VMID: vmid, Active: true})
	if err != nil {
		return nil
	}
	var list []string
	for _, task := range tasks {
		if task.EndTime == 0 {
			list = append(list, fmt.Sprintf("%s by %s (%s)", task.Type, task.User, task.UPID))
		}
	}
	return list
}

// waitUnlocked waits until the container's configuration has no lock.
func (m *Manager) waitUnlocked(ctx context.Context, node string, vmid int) (*pve.LXCConfig, error) {
	var cfg *pve.LXCConfig
	lock := ""
	err := m.poll(ctx, fmt.Sprintf("the lock of container %d", vmid), func(ctx context.Context) (bool, error) {
		var err error
		cfg, err = m.pve.LXCConfig(ctx, node, vmid)
		if err == nil {
			lock = cfg.Lock()
		}
		return err == nil && lock == "", err
	})
	if err != nil && lock != "" {
		err = fmt.Errorf("%w (lock %q): %w", ErrLocked, lock, err)
	}
	return cfg, err
}

// stoppedFromOutside says whether ctx was cancelled (Ctrl-C), as opposed to
// its time having run out.
func stoppedFromOutside(ctx context.Context) bool {
	return errors.Is(ctx.Err(), context.Canceled)
}

// detached is a context for what must still be asked or tidied up after ctx
// has ended.
func detached(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), cleanupTimeout)
}
