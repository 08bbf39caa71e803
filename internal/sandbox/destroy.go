package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Destroy removes a sandbox and proves that it is gone. pendingUPID is the
// task that may still be making it, or empty. A sandbox that is gone already
// is a success.
func (m *Manager) Destroy(ctx context.Context, ref Ref, pendingUPID string) ([]Warning, error) {
	if err := m.requireOwner("destroy"); err != nil {
		return nil, err
	}
	if ref.VMID == 0 {
		return nil, nil // nothing was made
	}
	w := &warnings{}
	if err := m.endPending(ctx, ref, pve.UPID(pendingUPID), w); err != nil {
		return w.take(), err
	}
	err := m.destroyMarked(ctx, ref, w)
	if errors.Is(err, ErrGone) {
		err = nil
	}
	if err == nil {
		m.dropExposures(ctx, ref, w)
		m.ids.spend(ref.VMID)
		m.settled.Delete(ref.VMID)
		m.guests.Forget(target(ref, Sandbox{}, ""))
	}
	return w.take(), err
}

// endPending ends the task that makes the container, if it still runs: the
// server refuses to remove what it is making, and tidies up after a task that
// is stopped.
func (m *Manager) endPending(ctx context.Context, ref Ref, upid pve.UPID, w *warnings) error {
	if upid == "" {
		return nil
	}
	status, err := m.pve.TaskStatus(ctx, upid)
	if pve.Means(err, pve.NoSuchTask, pve.NoSuchNode, pve.NodeUnreachable) {
		return nil // forgotten, or out of reach: the container's own lock decides
	}
	if err != nil {
		return m.step("destroy", ref, "look at the task that makes it", err)
	}
	if !status.Running() {
		return nil
	}
	if err := m.pve.StopTask(context.WithoutCancel(ctx), upid); err != nil && !pve.Means(err, pve.NoSuchTask) {
		m.log.DebugContext(ctx, "a task could not be stopped, waiting for it", "upid", upid, "cause", err)
	}
	var failed *pve.TaskError
	if err := m.task(ctx, upid, w); err != nil && (!errors.As(err, &failed) || failed.StillRunning) {
		return m.step("destroy", ref, "wait for the task that makes it", err)
	}
	return nil
}

// destroyMarked removes a container after its marker has been read back. The
// one DELETE stops it, removes it from HA, backup and replication, and takes
// its firewall rules and pool membership along; it refuses a protected one
// before anything is stopped, and so do we.
func (m *Manager) destroyMarked(ctx context.Context, ref Ref, w *warnings) error {
	return m.destroyIf(ctx, ref, nil, w)
}

// destroyIf is destroyMarked with one more condition, which looks at the same
// reading as the proof of ownership; nil is none.
func (m *Manager) destroyIf(ctx context.Context, ref Ref, still func(*pve.LXCConfig, *Marker) error, w *warnings) error {
	node, cfg, err := m.find(ctx, ref.VMID, ref.Node)
	if err != nil {
		return m.keepKind("destroy", ref, "find it", err)
	}
	ref.Node = node
	if cfg.Lock() == "create" {
		if cfg, err = m.waitUnlocked(ctx, node, ref.VMID); err != nil {
			if pve.Means(err, pve.NoSuchGuest) {
				return &Error{Op: "destroy", Ref: ref, Kind: ErrGone}
			}
			return &Error{Op: "destroy", Ref: ref, Kind: ErrLocked, What: "wait for its creation to end", Err: err,
				Remedy: fmt.Sprintf("when no task is making it any more, remove the lock on the node: pct unlock %d", ref.VMID)}
		}
	}
	marker, err := m.prove("destroy", ref, cfg)
	if err != nil {
		return err
	}
	if still != nil {
		if err := still(cfg, marker); err != nil {
			return err
		}
	}
	if cfg.Protection() && marker.Kind == KindHolder && marker.Phase == PhaseCreating {
		// A fork that was cut: its protection is its source's.
		if err := m.unprotect(ctx, ref, cfg); err != nil {
			return err
		}
	} else if cfg.Protection() {
		return &Error{Op: "destroy", Ref: ref, Kind: ErrProtected, What: "protection is set, so nothing was stopped",
			Remedy: "set protection = false and apply, then destroy"}
	}
	if err := m.handAllBack(ctx, ref, cfg, marker, w); err != nil {
		return err
	}
	err = m.do(ctx, action{
		what: fmt.Sprintf("destroy container %d", ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.DeleteLXC(ctx, node, ref.VMID, pve.DeleteOptions{Force: true, Purge: true})
			if pve.Means(err, pve.NoSuchGuest) {
				return "", nil
			}
			return upid, err
		},
		done: func(ctx context.Context) (bool, error) { return m.gone(ctx, ref) },
	}, w)
	// The task fails on a guest that somebody else has destroyed meanwhile; the
	// proof below decides.
	if err != nil && !pve.Means(err, pve.NoSuchGuest) {
		return m.destroyError(ref, cfg, err)
	}
	// A task that ended well is no proof.
	gone, err := m.gone(ctx, ref)
	if err != nil {
		return m.step("destroy", ref, "prove that it is gone", err)
	}
	if !gone {
		return &Error{Op: "destroy", Ref: ref, What: "the server says it was removed, but it is still there",
			Remedy: "look at its tasks on node " + node}
	}
	return nil
}

// gone says whether a container that was ours a moment ago no longer is there.
// Another guest may have taken its id since.
func (m *Manager) gone(ctx context.Context, ref Ref) (bool, error) {
	cfg, err := m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
	if pve.Means(err, pve.NoSuchGuest) {
		return true, nil
	}
	if pve.Means(err, pve.Forbidden) {
		// Rights that came from a Proxmox pool ended with the membership.
		return m.pve.IDFree(ctx, ref.VMID)
	}
	if err != nil {
		return false, err
	}
	_, marker := SplitDescription(cfg.Text("description"))
	return !marker.Matches(m.ownerOf(ref), ref.Claim, ref.VMID), nil
}

// destroyError says what holds a container that can't be removed.
func (m *Manager) destroyError(ref Ref, cfg *pve.LXCConfig, err error) error {
	wrapped := m.step("destroy", ref, "remove it", err)
	var e *Error
	if !errors.As(wrapped, &e) {
		return wrapped
	}
	switch {
	case errors.Is(e.Kind, ErrInUse) && cfg.Template():
		e.Remedy = "linked clones need this template's disk: destroy them first, or make them independent (a full clone)"
	case errors.Is(e.Kind, ErrInUse):
		e.Remedy = "linked clones need its disk: destroy them first"
	case errors.Is(e.Kind, ErrLocked):
		e.Remedy = fmt.Sprintf("a task on node %s holds it; when none does any more, remove the lock on the node: pct unlock %d", ref.Node, ref.VMID)
	}
	return e
}

// keepKind wraps err for an operation without hiding what kind it is.
func (m *Manager) keepKind(op string, ref Ref, what string, err error) error {
	var e *Error
	if errors.As(err, &e) {
		c := *e
		c.Op = op
		if c.Ref.Claim == "" {
			c.Ref.Claim, c.Ref.Owner = ref.Claim, ref.Owner
		}
		return &c
	}
	return m.step(op, ref, what, err)
}
