package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// beforePrefix begins the names of the snapshots that updates take. Only the
// newest is kept.
const beforePrefix = "before-update-"

// snapshotBefore takes a snapshot where the specification asks for one and the
// update is about to restart the container or to change a volume. When that
// fails, nothing has been changed yet.
func (f *finishing) snapshotBefore(ctx context.Context) error {
	if !f.spec.SnapshotBeforeUpdate || f.marker.Phase == PhaseCreating {
		return nil
	}
	reasons, err := f.disruptions(ctx)
	if err != nil || len(reasons) == 0 {
		return err
	}
	leave, err := f.m.alone(ctx, f.ref.VMID)
	if err != nil {
		return f.m.step("snapshot", f.ref, "wait for other work on its snapshots", err)
	}
	defer leave()
	// Workspaces have a life of their own, and snapshots that hold them would
	// keep them from being handed over.
	if err := asError(snapshotProblems(f.ref.VMID, f.now, false)); err != nil {
		return &Error{Op: "snapshot", Ref: f.ref, What: "take the snapshot that snapshot_before_update asks for", Err: err,
			Remedy: "set snapshot_before_update = false, or remove what stands in the way"}
	}
	spec := SnapshotSpec{
		Name:        beforePrefix + f.m.clock.Now().UTC().Format("20060102-150405"),
		Description: "Taken before an update: " + strings.Join(reasons, ", "),
	}
	accepted := false
	if err := f.m.snapshot(ctx, f.ref, spec, f.warnings, &accepted); err != nil {
		return err
	}
	f.now = nil
	if err := f.readConfig(ctx); err != nil { // it names the snapshot now: another digest
		return err
	}
	list, err := f.m.pve.Snapshots(ctx, f.ref.Node, f.ref.VMID)
	if err != nil {
		return f.m.step("snapshot", f.ref, "list its snapshots", err)
	}
	for _, s := range inOrder(list) {
		if strings.HasPrefix(s.Name, beforePrefix) && s.Name != spec.Name && strings.HasPrefix(s.Notes, "Taken before an update: ") {
			if err := f.m.deleteSnapshot(ctx, f.ref, s.Name, f.warnings); err != nil {
				return err
			}
			f.now = nil
		}
	}
	return f.readConfig(ctx)
}

// disruptions says what the update will do to a container that one may want to
// take back.
func (f *finishing) disruptions(ctx context.Context) ([]string, error) {
	c, err := f.change()
	if err != nil {
		return nil, err
	}
	var reasons []string
	if f.spec.DiskGiB != nil && f.sandbox.DiskGiB > 0 && float64(*f.spec.DiskGiB) > f.sandbox.DiskGiB {
		reasons = append(reasons, fmt.Sprintf("the root disk grows to %d GiB", *f.spec.DiskGiB))
	}
	if !f.status.Running() || !f.spec.Started {
		return reasons, nil
	}
	if to := f.spec.NodeName; to != "" && to != f.ref.Node {
		return append(reasons, "a restart for the migration to "+to), nil
	}
	if !f.spec.RestartWhenNeeded {
		return reasons, nil
	}
	waiting, err := f.m.pending(ctx, f.ref)
	if err != nil {
		return nil, f.m.step("update", f.ref, "read its pending settings", err)
	}
	for _, key := range c.keys() {
		if needsRestart(key) && !slices.Contains(waiting, key) {
			waiting = append(waiting, key)
		}
	}
	if len(waiting) > 0 {
		reasons = append(reasons, "a restart for "+strings.Join(waiting, ", "))
	}
	return reasons, nil
}

// needsRestart says whether a running container takes a setting over only when
// it starts (recorded: config; G7, G8).
func needsRestart(key string) bool {
	switch key {
	case "hostname", "nameserver", "searchdomain", "features", "console", "tty", "cmode", "timezone", "env", "entrypoint":
		return true
	}
	return isNumbered(key, "mp")
}

// checkSnapshotBefore says, for use at plan, what would keep the snapshot from
// being taken.
func (m *Manager) checkSnapshotBefore(ctx context.Context, ref Ref) ([]Problem, error) {
	const attribute = "snapshot_before_update"
	ref, cfg, err := m.owned(ctx, "check", ref)
	if err != nil {
		return nil, err
	}
	problems := snapshotProblems(ref.VMID, cfg, false)
	for i := range problems {
		problems[i].Attribute = attribute
	}
	unable, err := m.storageProblems(ctx, attribute, ref, cfg)
	return append(problems, unable...), err
}
