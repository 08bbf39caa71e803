package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// RollbackPower says what becomes of the power state.
type RollbackPower string

// What a rollback may leave behind. The server itself always leaves the
// container stopped.
const (
	PowerRestore RollbackPower = "restore" // running if it ran before
	PowerAlways  RollbackPower = "always"  // running
	PowerNever   RollbackPower = "never"   // stopped
)

// RollbackSpec is what a user wants of a rollback.
type RollbackSpec struct {
	Snapshot string
	Power    RollbackPower // empty means PowerRestore
	// WaitFor says when a start counts as done; empty means WaitForSSH. With
	// WaitForNone nothing inside the container is read or written.
	WaitFor WaitFor
	// DiscardNewer deletes newer snapshots where the storage can't roll back
	// past them (ZFS). Elsewhere none is in the way, and none is deleted.
	DiscardNewer bool
	// IncludeWorkspaces also takes back the workspaces that the snapshot holds.
	IncludeWorkspaces bool
	// Force rolls back a protected container, one in which a command is under
	// way, and one with volumes that the snapshot doesn't have.
	Force bool
}

// RollbackOutcome is what a rollback hands back.
type RollbackOutcome struct {
	Sandbox  Sandbox
	Warnings []Warning
	// Discarded are the newer snapshots that were deleted.
	Discarded []string
	Timings   RollbackTimings
}

// RollbackTimings says how long the steps took.
type RollbackTimings struct {
	Server time.Duration // the server's own rollback
	Start  time.Duration // starting and reaching the container; 0 when it stays stopped
	Total  time.Duration
}

// Rollback puts a container back to a snapshot and everything that isn't the
// snapshot's business back to what it was before: the configuration as the
// server had it (with the MAC address of before), sizes of volumes, the
// container's authorized keys and its power state.
//
// A rollback that failed or was cut is repeated as a whole. What it would have
// put back isn't lost in between: the marker holds it (rollbackjournal.go).
func (m *Manager) Rollback(ctx context.Context, prior Prior, spec RollbackSpec) (RollbackOutcome, error) {
	var out RollbackOutcome
	out.Sandbox.Ref = prior.Ref
	if err := m.requireOwner("roll back"); err != nil {
		return out, err
	}
	if err := asError(CheckSnapshotName("snapshot_name", spec.Snapshot)); err != nil {
		return out, err
	}
	if spec.Power == "" {
		spec.Power = PowerRestore
	}
	if spec.WaitFor == "" {
		spec.WaitFor = WaitForSSH
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	began := m.clock.Now()
	leave, err := m.alone(ctx, prior.Ref.VMID)
	if err != nil {
		return out, m.step("roll back", prior.Ref, "wait for other work on its snapshots", err)
	}
	defer leave()
	r := &rollingBack{m: m, spec: spec, ref: prior.Ref, hostKey: prior.SSHHostKey, warnings: &warnings{}, out: &out}
	err = r.run(ctx)
	out.Warnings = append(r.warnings.take(), m.guestWarnings()...)
	out.Timings.Total = m.clock.Now().Sub(began)
	return out, m.keepKind("roll back", r.ref, fmt.Sprintf("roll back to %q", spec.Snapshot), err)
}

// rollingBack is one rollback under way.
type rollingBack struct {
	m        *Manager
	spec     RollbackSpec
	ref      Ref
	hostKey  string
	warnings *warnings
	out      *RollbackOutcome

	now       *pve.LXCConfig // as last read
	text      string         // of its description, the user's part
	marker    Marker
	former    *pve.LXCConfig // what is to come back
	snapshots pve.Snapshots
	then      *pve.LXCConfig // the snapshot's configuration
	running   bool           // before this rollback, or the one that was cut
	disk      *diskState     // nil when it wasn't looked at
}

func (r *rollingBack) run(ctx context.Context) error {
	if err := r.open(ctx); err != nil {
		return err
	}
	if err := asError(r.refusals(ctx)); err != nil {
		return err
	}
	if n := r.m.runs.active(r.ref.VMID); n > 0 && !r.spec.Force {
		return &Error{Op: "roll back", Ref: r.ref, Kind: ErrBusy, What: fmt.Sprintf("%d commands are under way inside", n),
			Remedy: "wait for them to end, or set force = true to roll back under them"}
	}
	r.capture(ctx)
	if r.disk != nil && len(r.disk.runs) > 0 && !r.spec.Force {
		return &Error{Op: "roll back", Ref: r.ref, Kind: ErrBusy, What: fmt.Sprintf("runs of agents are under way inside: %s", strings.Join(r.disk.runs, ", ")),
			Remedy: "wait for them to end, stop them (sbx-run stop), or set force = true to roll back under them: they are then lost"}
	}
	if err := r.discardNewer(ctx); err != nil {
		return err
	}
	if err := r.writeJournal(ctx); err != nil {
		return err
	}
	if r.snapshots.Running && len(r.outside()) > 0 {
		// What the rollback doesn't take back must not lose what is under way.
		if err := r.m.shutdown(ctx, r.ref, r.warnings); err != nil {
			return err
		}
	}
	if err := r.rollback(ctx); err != nil {
		return err
	}
	start := r.spec.Power == PowerAlways || r.spec.Power == PowerRestore && r.running
	if err := r.restoreConfig(ctx, start); err != nil {
		return err
	}
	if start {
		began := r.m.clock.Now()
		err := r.start(ctx)
		r.out.Timings.Start = r.m.clock.Now().Sub(began)
		if err != nil {
			return err
		}
	}
	return r.conclude(ctx, start)
}

// open reads everything that decides, once nobody else holds the container.
func (r *rollingBack) open(ctx context.Context) error {
	var err error
	if r.ref, r.now, err = r.m.owned(ctx, "roll back", r.ref); err != nil {
		return err
	}
	if r.now.Lock() != "" {
		if r.now, err = r.m.waitUnlocked(ctx, r.ref.Node, r.ref.VMID); err != nil {
			return r.m.step("roll back", r.ref, "wait for its lock", err)
		}
	}
	if r.snapshots, err = r.m.pve.Snapshots(ctx, r.ref.Node, r.ref.VMID); err != nil {
		return r.m.step("roll back", r.ref, "list its snapshots", err)
	}
	if _, ok := r.snapshots.Find(r.spec.Snapshot); !ok {
		return noSnapshot(r.ref, r.spec.Snapshot, r.snapshots)
	}
	if r.then, err = r.m.pve.SnapshotConfig(ctx, r.ref.Node, r.ref.VMID, r.spec.Snapshot); err != nil {
		return r.m.step("roll back", r.ref, "read the snapshot's configuration", err)
	}
	return r.take(r.now)
}

// take works out from a configuration what is to come back.
func (r *rollingBack) take(cfg *pve.LXCConfig) error {
	marker, err := r.m.prove("roll back", r.ref, cfg)
	if err != nil {
		return err
	}
	r.now, r.marker = cfg, *marker
	r.text, _ = SplitDescription(cfg.Text("description"))
	left := journalOf(marker)
	r.former = left.onto(cfg)
	r.running = r.snapshots.Running || left != nil && left.Running
	return nil
}

func noSnapshot(ref Ref, name string, list pve.Snapshots) error {
	has := "it has none"
	if len(list.Items) > 0 {
		names := make([]string, 0, len(list.Items))
		for _, s := range inOrder(list) {
			names = append(names, s.Name)
		}
		has = fmt.Sprintf("it has %q", names)
	}
	return &Error{Op: "roll back", Ref: ref, Kind: ErrNoSnapshot, What: fmt.Sprintf("roll back to %q: %s", name, has)}
}

// writeJournal writes down what is to come back, unless nothing is.
func (r *rollingBack) writeJournal(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		c, sizes := back(r.former, r.then, r.m.pve.ByToken(), nil)
		j := &journal{Snapshot: r.spec.Snapshot, Running: r.running, Set: c.set, Delete: c.del, Sizes: sizes}
		if j.empty() && journalOf(&r.marker) == nil {
			return nil
		}
		description, err := withJournal(r.text, r.marker, j)
		if err != nil {
			return r.m.step("roll back", r.ref, "note its configuration", err)
		}
		err = r.m.write(ctx, r.ref, fmt.Sprintf("note the configuration of container %d", r.ref.VMID), func(ctx context.Context) error {
			return r.m.pve.UpdateLXC(ctx, r.ref.Node, r.ref.VMID, pve.LXCUpdate{
				Set: map[string]string{"description": description}, Digest: r.now.Digest(),
			})
		})
		if err == nil {
			return nil
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == updateAttempts {
			return r.m.step("roll back", r.ref, "note its configuration", err)
		}
		// Somebody else wrote, or our own write whose answer was lost: either way
		// the former configuration is what the server says now.
		cfg, err := r.m.pve.LXCConfig(ctx, r.ref.Node, r.ref.VMID)
		if err != nil {
			return r.m.step("roll back", r.ref, "read its configuration again", err)
		}
		if err := r.take(cfg); err != nil {
			return err
		}
	}
}

// rollback has the server roll back, and waits for it. The server stops a
// running container.
func (r *rollingBack) rollback(ctx context.Context) error {
	began := r.m.clock.Now()
	err := r.m.do(ctx, action{
		what: fmt.Sprintf("roll container %d back to %q", r.ref.VMID, r.spec.Snapshot),
		ref:  r.ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			return r.m.pve.Rollback(ctx, r.ref.Node, r.ref.VMID, r.spec.Snapshot, false)
		},
		// Whether a lost call was carried out can't be told when the present state
		// came from this snapshot before; rolling back once more does no harm.
		done: func(ctx context.Context) (bool, error) {
			cfg, err := r.m.pve.LXCConfig(ctx, r.ref.Node, r.ref.VMID)
			return err == nil && r.snapshots.Parent != r.spec.Snapshot && cfg.Text("parent") == r.spec.Snapshot && cfg.Lock() == "", err
		},
	}, r.warnings)
	r.out.Timings.Server = r.m.clock.Now().Sub(began)
	r.m.guests.Disconnect(target(r.ref, Sandbox{}, ""))
	if pve.Means(err, pve.NoSuchSnapshot) {
		return &Error{Op: "roll back", Ref: r.ref, Kind: ErrNoSnapshot, What: fmt.Sprintf("roll back to %q", r.spec.Snapshot), Err: err}
	}
	return r.m.step("roll back", r.ref, fmt.Sprintf("roll back to %q", r.spec.Snapshot), err)
}

// discardNewer deletes, from the newest on, what a storage can't roll back past.
func (r *rollingBack) discardNewer(ctx context.Context) error {
	if !r.spec.DiscardNewer {
		return nil
	}
	inTheWay, err := r.inTheWay(ctx)
	if err != nil {
		return err
	}
	for _, name := range slices.Backward(inTheWay) {
		if err := r.m.deleteSnapshot(ctx, r.ref, name, r.warnings); err != nil {
			return err
		}
		r.out.Discarded = append(r.out.Discarded, name)
	}
	if len(inTheWay) == 0 {
		return nil
	}
	// The present state may come from another snapshot now.
	cfg, err := r.m.pve.LXCConfig(ctx, r.ref.Node, r.ref.VMID)
	if err != nil {
		return r.m.step("roll back", r.ref, "read its configuration again", err)
	}
	r.snapshots.Parent = cfg.Text("parent")
	return r.take(cfg)
}
