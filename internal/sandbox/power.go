package sandbox

import (
	"context"
	"fmt"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// shutdownTimeout is how long a guest may take to shut down before it is
// stopped hard. Sandboxes hold nothing that is worth more patience.
const shutdownTimeout = 30 * time.Second

// start starts a container. One that runs already is a success, also when the
// node was faster (on_boot).
func (m *Manager) start(ctx context.Context, ref Ref, w *warnings) error {
	err := m.do(ctx, action{
		what: fmt.Sprintf("start container %d", ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.StartLXC(ctx, ref.Node, ref.VMID)
			if pve.Means(err, pve.AlreadyRunning) {
				return "", nil
			}
			return upid, err
		},
		done: func(ctx context.Context) (bool, error) { return m.running(ctx, ref) },
	}, w)
	m.guests.Disconnect(target(ref, Sandbox{}, ""))
	return m.step("start", ref, fmt.Sprintf("start on node %s", ref.Node), err)
}

// shutdown stops a container, orderly if it lets itself. A stopped one is a
// success.
func (m *Manager) shutdown(ctx context.Context, ref Ref, w *warnings) error {
	timeout := shutdownTimeout
	err := m.do(ctx, action{
		what: fmt.Sprintf("shut down container %d", ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.ShutdownLXC(ctx, ref.Node, ref.VMID, pve.ShutdownOptions{Timeout: &timeout, ForceStop: true})
			if pve.Means(err, pve.NotRunning) {
				return "", nil
			}
			return upid, err
		},
		done: func(ctx context.Context) (bool, error) {
			running, err := m.running(ctx, ref)
			return !running, err
		},
	}, w)
	m.guests.Disconnect(target(ref, Sandbox{}, ""))
	return m.step("stop", ref, "shut down", err)
}

func (m *Manager) running(ctx context.Context, ref Ref) (bool, error) {
	status, err := m.pve.LXCStatus(ctx, ref.Node, ref.VMID)
	return err == nil && status.Running(), err
}

// restart restarts a running container and returns when the server has seen it
// go down and come up: its init process is another one. That the guest itself
// is up again is awaited by ready, whose boot id is compared there.
func (m *Manager) restart(ctx context.Context, ref Ref, w *warnings) error {
	before, err := m.pve.LXCStatus(ctx, ref.Node, ref.VMID)
	if err != nil {
		return m.step("restart", ref, "read the status", err)
	}
	if !before.Running() {
		return m.start(ctx, ref, w)
	}
	anotherInit := func(ctx context.Context) (bool, error) {
		now, err := m.pve.LXCStatus(ctx, ref.Node, ref.VMID)
		if err != nil {
			return false, err
		}
		return now.Running() && now.PID != before.PID, nil
	}
	timeout := shutdownTimeout
	err = m.do(ctx, action{
		what: fmt.Sprintf("restart container %d", ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			return m.pve.RebootLXC(ctx, ref.Node, ref.VMID, &timeout)
		},
		done: anotherInit,
	}, w)
	if err == nil {
		err = m.poll(ctx, "the restarted container", anotherInit)
	}
	return m.step("restart", ref, "restart", err)
}

// migrate moves a container to another node. A running one is restarted there:
// containers have no live migration.
func (m *Manager) migrate(ctx context.Context, ref Ref, to string, running bool, w *warnings) error {
	err := m.do(ctx, action{
		what: fmt.Sprintf("migrate container %d to node %s", ref.VMID, to),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			return m.pve.MigrateLXC(ctx, ref.Node, ref.VMID, pve.MigrateOptions{Target: to, Restart: running, Timeout: shutdownTimeout})
		},
		done: func(ctx context.Context) (bool, error) {
			cfg, err := m.pve.LXCConfig(ctx, to, ref.VMID)
			if pve.Means(err, pve.NoSuchGuest) {
				return false, nil
			}
			return err == nil && cfg.Lock() == "", err
		},
	}, w)
	m.guests.Disconnect(target(ref, Sandbox{}, ""))
	return m.step("migrate", ref, fmt.Sprintf("migrate from node %s to %s", ref.Node, to), err)
}

// grow enlarges the root disk to sizeGiB.
func (m *Manager) grow(ctx context.Context, ref Ref, sizeGiB int, w *warnings) error {
	size := fmt.Sprintf("%dG", sizeGiB)
	err := m.do(ctx, action{
		what: fmt.Sprintf("grow the root disk of container %d", ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.ResizeLXC(ctx, ref.Node, ref.VMID, "rootfs", size, "")
			if pve.Means(err, pve.SameSize) {
				return "", nil
			}
			return upid, err
		},
		done: func(ctx context.Context) (bool, error) {
			cfg, err := m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
			if err != nil {
				return false, err
			}
			bytes, ok := cfg.RootFS().SizeBytes()
			return ok && bytes >= int64(sizeGiB)*gib && cfg.Lock() == "", nil
		},
	}, w)
	return m.step("resize", ref, "grow the root disk to "+size, err)
}

// setPool moves a container into a pool, or out of any.
func (m *Manager) setPool(ctx context.Context, ref Ref, from, to string) error {
	err := m.write(ctx, ref, "change the pool", func(ctx context.Context) error {
		var err error
		if to == "" {
			err = m.pve.RemoveFromPool(ctx, from, []int{ref.VMID})
		} else {
			err = m.pve.AddToPool(ctx, to, []int{ref.VMID}, true)
		}
		if pve.Means(err, pve.AlreadyMember, pve.NotMember) {
			return nil
		}
		return err
	})
	return m.step("pool", ref, fmt.Sprintf("move from pool %q to %q", from, to), err)
}

// step names what failed; nil stays nil.
func (m *Manager) step(op string, ref Ref, what string, err error) error {
	if err == nil {
		return nil
	}
	e := &Error{Op: op, Ref: ref, What: what, Err: err}
	switch {
	case pve.Means(err, pve.HAManaged):
		e.Kind, e.Remedy = ErrHAManaged, fmt.Sprintf("take ct:%d out of HA (ha-manager remove ct:%d) or let HA do it", ref.VMID, ref.VMID)
	case pve.Means(err, pve.Protected):
		e.Kind, e.Remedy = ErrProtected, "set protection = false first"
	case pve.Means(err, pve.StillInUse):
		e.Kind = ErrInUse
	case isLockRefusal(err):
		e.Kind = ErrLocked
	}
	return e
}
