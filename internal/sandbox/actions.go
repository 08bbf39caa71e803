package sandbox

import (
	"context"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// task waits for a task of the server; its warnings are the user's.
func (m *Manager) task(ctx context.Context, upid pve.UPID, w *warnings) error {
	_, err := m.pve.Wait(ctx, upid, m.taskWarnings(upid, w))
	return err
}

func (m *Manager) taskWarnings(upid pve.UPID, w *warnings) func(string) {
	return func(text string) {
		kind := "task"
		if id, err := upid.Parse(); err == nil {
			kind = id.Type
		}
		w.add(fmt.Sprintf("The server warned during %s", kind), text)
	}
}

// taskInPace is task for one of many alike that wait for each other: how long those
// before took says when to look. like names the kind.
func (m *Manager) taskInPace(ctx context.Context, upid pve.UPID, like string, w *warnings) error {
	about := m.paces.about(like)
	done, err := m.pve.WaitAbout(ctx, upid, about, m.taskWarnings(upid, w))
	if err == nil {
		m.paces.took(like, about, done.Duration, done.Polls)
	}
	return err
}

// action is a change that the server makes as a task.
type action struct {
	what string // for messages, e.g. "start container 105"
	ref  Ref    // of the container
	// send makes the call. An empty UPID without an error says that there is
	// nothing left to do.
	send func(ctx context.Context) (pve.UPID, error)
	// done says whether the change has been made, for when an answer was lost.
	done func(ctx context.Context) (bool, error)
}

// do carries out an action: it waits while something else holds the lock, and
// when an answer is lost it looks before it sends the call again.
func (m *Manager) do(ctx context.Context, a action, w *warnings) error {
	lost := false
	attempt := 0
	return m.whileLocked(ctx, a.what, a.ref.Node, a.ref.VMID, func(ctx context.Context) error {
		for {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			upid, err := a.send(context.WithoutCancel(ctx))
			if err == nil && upid == "" {
				return nil
			}
			if err == nil {
				err = m.task(ctx, upid, w)
				if err == nil || !lost {
					return err
				}
				// The call that was lost may have been carried out meanwhile, so
				// that this one had nothing left to do.
				if done, doneErr := a.done(ctx); doneErr == nil && done {
					return nil
				}
				return err
			}
			if !pve.LostAnswer(err) || attempt == lostAttempts {
				return err
			}
			lost = true
			if pauseErr := m.pause(ctx, lockedMin<<attempt); pauseErr != nil {
				return fmt.Errorf("%w (after: %w)", pauseErr, err)
			}
			attempt++
			if done, doneErr := a.done(ctx); doneErr == nil && done {
				return nil
			}
		}
	})
}

// write sends a change that the server makes at once and that may be sent
// twice. Like do, it waits for locks and survives lost answers.
func (m *Manager) write(ctx context.Context, ref Ref, what string, send func(ctx context.Context) error) error {
	attempt := 0
	return m.whileLocked(ctx, what, ref.Node, ref.VMID, func(ctx context.Context) error {
		for {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			err := send(context.WithoutCancel(ctx))
			if err == nil || !pve.LostAnswer(err) || attempt == lostAttempts {
				return err
			}
			if pauseErr := m.pause(ctx, lockedMin<<attempt); pauseErr != nil {
				return fmt.Errorf("%w (after: %w)", pauseErr, err)
			}
			attempt++
		}
	})
}
