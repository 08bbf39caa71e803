package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// captureTimeout bounds the look into a container that is about to be rolled
// back: what is broken in there may be why.
const captureTimeout = 10 * time.Second

// firstStart is what a user should know of the start that follows.
const firstStart = "the first start after a rollback to a snapshot of a running container can take 45 s or more, because ext4 waits for the node that seems to have it mounted"

// diskState is what lives on the container's disk, belongs to the provider, and
// is lost by a rollback.
type diskState struct {
	bootID string
	// keys are the authorized keys that we wrote last. writeKeys is false where
	// the container has others than that: somebody inside has changed them, and
	// a rollback is no way to keep that.
	keys      []string
	writeKeys bool
	runs      []string // of agents, under way
}

// capture reads it while the container still runs. A container that doesn't let
// us in keeps what the snapshot has, with a warning.
func (r *rollingBack) capture(ctx context.Context) {
	if !r.snapshots.Running || r.spec.WaitFor == WaitForNone {
		return
	}
	limited, cancel := context.WithTimeout(ctx, captureTimeout)
	defer cancel()
	disk, err := r.look(limited)
	if err != nil {
		r.m.log.InfoContext(ctx, "can't look into the container before its rollback", "vmid", r.ref.VMID, "cause", err)
		if r.marker.extra(markerKeys) != "" {
			r.warnings.add("authorized_keys are those of the snapshot", fmt.Sprintf(
				"Container %d let nobody in before the rollback, so its keys couldn't be read: %v. If they have changed since the snapshot, change authorized_keys (or authorized_keys_wo_version) to have them written again.", r.ref.VMID, err))
		}
		return
	}
	r.disk = disk
	if disk.writeKeys || r.marker.extra(markerKeys) == "" {
		return
	}
	r.warnings.add("authorized_keys are those of the snapshot", fmt.Sprintf(
		"Somebody in container %d has changed the keys that this provider wrote there, so they were not carried over the rollback. If the configuration's keys have changed since the snapshot, change authorized_keys_wo_version or the list to have them written again.", r.ref.VMID))
}

// runs are the runs under way, also those that another process has started.
func (r *rollingBack) runs(ctx context.Context, t guest.Target) []string {
	ids, err := run.UnderWay(ctx, &Inside{Login: Login{Ref: r.ref}, manager: r.m, target: t})
	if err != nil {
		r.m.log.InfoContext(ctx, "can't look for runs before the rollback", "vmid", r.ref.VMID, "cause", err)
	}
	return ids
}

func (r *rollingBack) look(ctx context.Context) (*diskState, error) {
	s := r.m.fromConfig(r.ref.Node, r.ref.VMID, r.now)
	if !s.address().IsValid() {
		interfaces, err := r.m.pve.LXCInterfaces(ctx, r.ref.Node, r.ref.VMID)
		if err != nil {
			return nil, err
		}
		s.IPv4, s.IPv6 = addressesOf(interfaces, s.Network.MACAddress)
	}
	if !s.address().IsValid() {
		return nil, errors.New("it has no address")
	}
	t := target(r.ref, s, r.hostKey)
	disk := &diskState{}
	var err error
	if disk.bootID, err = r.m.guests.BootID(ctx, t); err != nil {
		return nil, err
	}
	disk.runs = r.runs(ctx, t)
	ours := r.marker.extra(markerKeys)
	if ours == "" {
		return disk, nil // we never wrote any
	}
	if disk.keys, err = r.m.guests.AuthorizedKeysOf(ctx, t, r.m.sshOf(s, "").Username); err != nil {
		return nil, err
	}
	disk.writeKeys = keysDigest(disk.keys) == ours
	return disk, nil
}

// start starts the container and waits for what the user wants to wait for: a
// machine of two states, because the session that is just dying isn't "up".
func (r *rollingBack) start(ctx context.Context) error {
	r.m.log.InfoContext(ctx, "starting after the rollback; "+firstStart, "vmid", r.ref.VMID)
	f := &finishing{
		m: r.m, ref: r.ref, hostKey: r.hostKey, warnings: r.warnings, timings: &Timings{}, marker: r.marker,
		spec: Spec{WaitFor: r.spec.WaitFor, Started: true},
		// The lease on the disk is the snapshot's, which may be over long since.
		tell: true,
	}
	if r.disk != nil && r.disk.writeKeys {
		f.writeKeys, f.spec.AuthorizedKeys = true, append([]string{}, r.disk.keys...)
	}
	err := r.startDark(ctx, f)
	if err == nil {
		err = r.reach(ctx, f)
	}
	r.hostKey = f.hostKey
	if f.now != nil {
		r.now = f.now
	}
	return explainStart(err)
}

func (r *rollingBack) reach(ctx context.Context, f *finishing) error {
	if err := f.readConfig(ctx); err != nil {
		return err
	}
	f.fill()
	if r.disk != nil && r.spec.WaitFor == WaitForSSH {
		if err := f.waitAddress(ctx); err != nil {
			return err
		}
		if _, err := r.m.guests.WaitReboot(ctx, target(f.ref, f.sandbox, f.hostKey), r.disk.bootID); err != nil {
			return notReady(f.ref, err)
		}
	}
	if err := f.ready(ctx); err != nil {
		return err
	}
	return f.readStatus(ctx)
}

// notReady says that a container didn't come up, and what a key that has
// changed means here.
func notReady(ref Ref, err error) error {
	e := &Error{Op: "roll back", Ref: ref, Kind: ErrNotReady, What: "wait for the guest to come up again", Err: err}
	var changed *guest.HostKeyChanged
	if errors.As(err, &changed) {
		e.Remedy = "a snapshot from before the container's first start has no host keys yet, so it makes new ones; take snapshots of containers that have been started"
	}
	return e
}

// explainStart adds to a start that ran out of time why it may have been slow.
func explainStart(err error) error {
	var e *Error
	if err == nil || !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &e) || e.Remedy != "" {
		return err
	}
	c := *e
	c.Remedy = firstStart + "; raise timeouts.create"
	return &c
}

// conclude takes the journal out of the marker and reads back what has come of
// it all.
func (r *rollingBack) conclude(ctx context.Context, started bool) error {
	for attempt := 1; ; attempt++ {
		if r.now == nil {
			cfg, err := r.m.pve.LXCConfig(ctx, r.ref.Node, r.ref.VMID)
			if err != nil {
				return r.m.step("roll back", r.ref, "read back its configuration", err)
			}
			r.now = cfg
		}
		marker, err := r.m.prove("roll back", r.ref, r.now)
		if err != nil {
			return err
		}
		r.marker = *marker
		if err = r.m.closeJournal(ctx, r.ref, r.now); err == nil {
			break
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == updateAttempts {
			return r.m.step("roll back", r.ref, "note that it is done", err)
		}
		r.now = nil
	}
	s := r.m.fromConfig(r.ref.Node, r.ref.VMID, r.now)
	s.Ref, s.Status, s.RollingBack = r.ref, StatusStopped, ""
	if started {
		s.Status = StatusRunning
	}
	s.SSH = r.m.sshOf(s, r.hostKey)
	r.out.Sandbox = s
	return nil
}

// closeJournal takes the journal out of the marker, if there is one.
func (m *Manager) closeJournal(ctx context.Context, ref Ref, now *pve.LXCConfig) error {
	text, marker := SplitDescription(now.Text("description"))
	if marker == nil || marker.extra(markerRollback) == "" {
		return nil
	}
	description, err := withJournal(text, *marker, nil)
	if err != nil {
		return err
	}
	return m.write(ctx, ref, fmt.Sprintf("note that the rollback of container %d is done", ref.VMID), func(ctx context.Context) error {
		return m.pve.UpdateLXC(ctx, ref.Node, ref.VMID, pve.LXCUpdate{
			Set: map[string]string{"description": description}, Digest: now.Digest(),
		})
	})
}
