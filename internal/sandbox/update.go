package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// updateAttempts bounds how often somebody else may change the configuration
// between our reading and our writing it.
const updateAttempts = 4

// Update brings a sandbox to the specification to, and finishes a creation
// that was stopped. What differs is found by comparing with the server, not
// with from, so a run that was cut is simply repeated; where nothing differs,
// nothing is sent. from is the specification as it was last applied and only
// tells whether keys and the guest's lease have to be written anew.
func (m *Manager) Update(ctx context.Context, prior Prior, from, to Spec) (Outcome, error) {
	if err := m.requireOwner("update"); err != nil {
		return Outcome{}, err
	}
	if err := asError(m.check(to, false)); err != nil {
		return Outcome{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	began := m.clock.Now()
	out := Outcome{Sandbox: Sandbox{Ref: prior.Ref}}
	f := &finishing{
		m: m, spec: m.resolve(to), ref: prior.Ref, warnings: &warnings{}, timings: &out.Timings,
		hostKey: prior.SSHHostKey, baseline: prior.Baseline,
		// Also when the marker has the lease already: the run that wrote it may have been cut.
		tell:      !from.Lease.same(to.Lease),
		writeKeys: to.AuthorizedKeys != nil && (from.AuthorizedKeys == nil || !slices.Equal(from.AuthorizedKeys, to.AuthorizedKeys)),
	}
	err := f.update(ctx)
	if f.sandbox.VMID != 0 {
		out.Sandbox, out.Pinned = f.sandbox, f.spec.Network.Pinned
	}
	out.Warnings = append(f.warnings.take(), m.guestWarnings()...)
	out.Timings.Total = m.clock.Now().Sub(began)
	if err != nil && isStop(ctx, err) {
		out.Unfinished = true
		return out, nil
	}
	return out, m.keepKind("update", f.ref, "update it", err)
}

func (f *finishing) update(ctx context.Context) error {
	if err := f.open(ctx); err != nil {
		return err
	}
	if deadline, ok := ctx.Deadline(); ok && f.marker.Phase == PhaseCreating {
		// It is somebody's work again: no reaper may take it for a leftover while it
		// is being finished.
		f.marker.Until = f.m.clock.Now().Add(time.Until(deadline)).Add(time.Minute)
	}
	f.withdraw(ctx)
	return f.bring(ctx)
}

// bring takes a container that was opened to what its specification says.
func (f *finishing) bring(ctx context.Context) error {
	unfinished := f.marker.Phase == PhaseCreating
	f.claimed = f.claimed || unfinished && f.marker.Kind == KindContainer && f.marker.Pool != ""
	f.takeOverRollback()
	f.writeKeys = f.writeKeys || (unfinished || f.left != nil) && f.spec.AuthorizedKeys != nil
	f.noteKeys()
	f.tell = f.marker.take(f.spec.Lease, f.m.clock.Now()) || f.tell
	if f.tell && f.spec.Started && f.spec.WaitFor != WaitForSSH && !unfinished {
		f.warnings.add("The guest isn't told its new lease", fmt.Sprintf(
			"Nobody logs in to container %d (wait_for is %q), so if it was told a lease before, its own timer goes on with that one. With wait_for = \"ssh\" it is told.", f.ref.VMID, f.spec.WaitFor))
	}
	f.tell = f.tell || unfinished || f.left != nil
	wasRunning := f.status.Running()

	had, err := f.planWall(ctx, wasRunning)
	if err != nil {
		return err
	}
	if err := f.snapshotBefore(ctx); err != nil {
		return err
	}
	keys, err := f.configure(ctx)
	if err != nil {
		return err
	}
	if err := f.raiseWall(ctx, had); err != nil {
		return err
	}
	if err := f.resize(ctx); err != nil {
		return err
	}
	if err := f.growBack(ctx); err != nil {
		return err
	}
	if err := f.changePool(ctx); err != nil {
		return err
	}
	migrated := f.spec.NodeName != "" && f.spec.NodeName != f.ref.Node
	waiting, stopped, err := f.release(ctx, f.spec.RestartWhenNeeded || migrated || !f.spec.Started)
	if err != nil {
		return err
	}
	keys, wasRunning = append(keys, waiting...), wasRunning && !stopped
	if migrated && f.dark() {
		if err := f.link(ctx, false); err != nil {
			return err
		}
	}
	if err := f.move(ctx, wasRunning); err != nil {
		return err
	}
	if err := f.attach(ctx); err != nil {
		return err
	}
	if wasRunning && f.spec.Started && !migrated {
		if err := f.cutOver(ctx); err != nil {
			return err
		}
	}
	cameUp, err := f.power(ctx, wasRunning, migrated && wasRunning, keys)
	if err != nil {
		return err
	}
	if f.spec.Started {
		f.proof = f.proof || f.wall != nil && (cameUp && !f.wrote.IsZero() || unfinished)
		if err := f.light(ctx); err != nil {
			return err
		}
	}
	if cameUp && f.spec.AuthorizedKeys != nil {
		f.writeKeys = true
	}
	f.tell = f.tell || cameUp
	if err := f.conclude(ctx, f.spec.Started && (cameUp || unfinished || f.left != nil)); err != nil {
		return err
	}
	return f.closeRollback(ctx)
}

// open finds the container, proves that it is ours and reads what is needed to
// compare.
func (f *finishing) open(ctx context.Context) error {
	node, cfg, err := f.m.find(ctx, f.ref.VMID, f.ref.Node)
	if err != nil {
		return f.m.keepKind("update", f.ref, "find it", err)
	}
	f.ref.Node = node
	if f.ref.Owner == "" {
		f.ref.Owner = f.m.settings.Owner
	}
	if cfg.Lock() == "create" {
		if cfg, err = f.m.waitUnlocked(ctx, node, f.ref.VMID); err != nil {
			return f.m.step("update", f.ref, "wait for its creation to end", err)
		}
	}
	marker, err := f.m.prove("update", f.ref, cfg)
	if err != nil {
		return err
	}
	if err := f.m.refuseReaping("update", f.ref, marker); err != nil {
		return err
	}
	f.now, f.marker = cfg, marker.withExtra(markerReaping, "")
	resources, err := f.m.pve.Lists().Resources(ctx)
	if err != nil {
		return f.m.step("update", f.ref, "list the cluster's guests", err)
	}
	if r := guestIn(resources, f.ref.VMID); r != nil {
		f.pool = r.Pool
	}
	if f.status, err = f.m.pve.LXCStatus(ctx, node, f.ref.VMID); err != nil {
		return f.m.step("update", f.ref, "read its status", err)
	}
	f.statusOK = true
	f.fill()
	f.sandbox.fillStatus(f.status.Status, f.status.Uptime)
	f.sandbox.HA = f.status.HA.Managed
	return nil
}

// configure writes what differs, in one call, and returns the keys it wrote.
// The digest makes sure that nothing is overwritten that nobody has looked at.
func (f *finishing) configure(ctx context.Context) ([]string, error) {
	for attempt := 1; ; attempt++ {
		c, err := f.change()
		if err != nil {
			return nil, err
		}
		if c.empty() {
			return nil, nil
		}
		digest := f.now.Digest()
		err = f.m.write(ctx, f.ref, fmt.Sprintf("configure container %d", f.ref.VMID), func(ctx context.Context) error {
			return f.m.pve.UpdateLXC(ctx, f.ref.Node, f.ref.VMID, c.update(digest))
		})
		if err == nil {
			f.now = nil
			return c.keys(), nil
		}
		if !pve.Means(err, pve.DigestMismatch) {
			return nil, f.m.step("update", f.ref, "write its configuration", err)
		}
		if attempt == updateAttempts {
			return nil, &Error{Op: "update", Ref: f.ref, Kind: ErrChangedOutside, What: "write its configuration", Err: err,
				Remedy: "somebody else keeps changing the container; apply again when they are done"}
		}
		// Either somebody else wrote, or our own write whose answer was lost.
		f.now = nil
		if err := f.readConfig(ctx); err != nil {
			return nil, err
		}
		_, marker := SplitDescription(f.now.Text("description"))
		if err := f.m.refuseReaping("update", f.ref, marker); err != nil {
			return nil, err
		}
	}
}

// change is what differs from the specification, and what a rollback that was
// cut still has to put back.
func (f *finishing) change() (change, error) {
	c, err := f.m.difference(f.spec, f.ref.VMID, f.left.onto(f.now), &f.marker)
	if err != nil {
		return change{}, f.m.step("update", f.ref, "work out the configuration", err)
	}
	f.left.into(&c, f.now)
	c.repairs(postureOf(f.now), f.baseline)
	return c, nil
}

func (f *finishing) resize(ctx context.Context) error {
	want := f.spec.DiskGiB
	have := f.sandbox.DiskGiB
	switch {
	case want == nil || have == 0 || float64(*want) == have:
		return nil
	case float64(*want) < have:
		return &ProblemsError{Problems: []Problem{shrinkProblem(*want, have)}}
	}
	f.now = nil
	return f.m.grow(ctx, f.ref, *want, f.warnings)
}

func shrinkProblem(want int, have float64) Problem {
	return Problem{Attribute: "disk", Summary: fmt.Sprintf("The root disk can't shrink from %g to %d GiB", have, want),
		Detail: "Proxmox VE only grows root disks. Keep the size, or replace the sandbox (terraform apply -replace=…) to get a smaller one."}
}

func (f *finishing) changePool(ctx context.Context) error {
	if f.pool == f.spec.PoolID {
		return nil
	}
	if err := f.m.setPool(ctx, f.ref, f.pool, f.spec.PoolID); err != nil {
		return err
	}
	f.pool = f.spec.PoolID
	return nil
}

// power brings the container to the wanted power state, and restarts it where
// a change needs that and the specification allows it. cameUp says that it
// has just begun to run. A container that was just started has everything; it
// is never restarted on top.
func (f *finishing) power(ctx context.Context, wasRunning, restarted bool, keys []string) (cameUp bool, err error) {
	switch {
	case f.spec.Started && !wasRunning:
		return true, f.start(ctx)
	case !f.spec.Started && wasRunning:
		f.statusOK = false
		return false, f.m.shutdown(ctx, f.ref, f.warnings)
	case !wasRunning:
		return false, nil
	case restarted:
		f.statusOK = false
		return true, nil
	}
	waiting, err := f.waitingForRestart(ctx, keys)
	if err != nil || len(waiting) == 0 {
		return false, err
	}
	if !f.spec.RestartWhenNeeded {
		f.warnings.add("Changes wait for a restart", fmt.Sprintf(
			"Container %d goes on with its old %s until it restarts. Set restart_when_needed = true to have that done, or restart it when it suits you.",
			f.ref.VMID, strings.Join(waiting, ", ")))
		return false, nil
	}
	return true, f.restart(ctx)
}

// waitingForRestart lists the settings that the running guest doesn't have
// yet: those that the server calls pending, and those that the server has
// taken over but a guest reads only when it boots.
func (f *finishing) waitingForRestart(ctx context.Context, keys []string) ([]string, error) {
	if len(keys) == 0 && !f.spec.RestartWhenNeeded {
		return nil, nil
	}
	waiting, err := f.m.pending(ctx, f.ref)
	if err != nil {
		return nil, f.m.step("update", f.ref, "read its pending settings", err)
	}
	f.sandbox.Posture.Pending = slices.Clone(waiting)
	for _, key := range []string{"hostname", "nameserver", "searchdomain"} {
		if key == "hostname" && f.claimed && f.spec.WaitFor == WaitForSSH {
			continue // is told over SSH
		}
		if slices.Contains(keys, key) && !slices.Contains(waiting, key) {
			waiting = append(waiting, key)
		}
	}
	return waiting, nil
}

// restart restarts the container. Where SSH is waited for, the guest's boot id
// proves that it is another boot: down seen, then up.
func (f *finishing) restart(ctx context.Context) error {
	boot := ""
	reach := f.spec.WaitFor == WaitForSSH && f.sandbox.address().IsValid()
	if reach {
		var err error
		if boot, err = f.m.guests.BootID(ctx, target(f.ref, f.sandbox, f.hostKey)); err != nil {
			f.m.log.DebugContext(ctx, "no boot id before the restart", "vmid", f.ref.VMID, "cause", err)
		}
	}
	f.now, f.statusOK = nil, false
	if err := f.m.restart(ctx, f.ref, f.warnings); err != nil {
		return err
	}
	f.sandbox.Posture.Pending = nil
	if boot == "" {
		f.m.guests.Disconnect(target(f.ref, f.sandbox, ""))
		return nil
	}
	_, err := f.m.guests.WaitReboot(ctx, target(f.ref, f.sandbox, f.hostKey), boot)
	if err != nil {
		kind := ErrNotReady
		if errors.Is(err, context.Canceled) {
			kind = nil
		}
		return &Error{Op: "restart", Ref: f.ref, Kind: kind, What: "wait for the guest to come up again", Err: err}
	}
	return nil
}
