package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// CheckRollback says, for use at plan, what would keep a container from being
// rolled back now. It asks for the configuration and the snapshots. A snapshot
// that isn't there yet is no problem: the same apply may be about to make it.
// Neither is protection, which the same apply may lift.
func (m *Manager) CheckRollback(ctx context.Context, ref Ref, spec RollbackSpec) ([]Problem, error) {
	p := CheckSnapshotName("snapshot_name", spec.Snapshot)
	if len(p) > 0 {
		return p, nil
	}
	r := &rollingBack{m: m, spec: spec, ref: ref, warnings: &warnings{}, out: &RollbackOutcome{}}
	var err error
	if r.ref, r.now, err = m.owned(ctx, "check", ref); err != nil {
		return nil, err
	}
	if r.snapshots, err = m.pve.Lists().Snapshots(ctx, r.ref.Node, r.ref.VMID); err != nil {
		return nil, m.step("check", r.ref, "list its snapshots", err)
	}
	if _, ok := r.snapshots.Find(spec.Snapshot); !ok {
		return nil, nil
	}
	if r.then, err = m.pve.SnapshotConfig(ctx, r.ref.Node, r.ref.VMID, spec.Snapshot); err != nil {
		if pve.Means(err, pve.NoSuchSnapshot) {
			return nil, nil
		}
		return nil, m.step("check", r.ref, "read the snapshot's configuration", err)
	}
	if err := r.take(r.now); err != nil {
		return nil, err
	}
	problems := r.volumeProblems()
	chain, err := r.chainProblems(ctx)
	return append(problems, chain...), err
}

// refusals are the reasons not to roll back.
func (r *rollingBack) refusals(ctx context.Context) []Problem {
	var p problems
	if r.former.Protection() && r.marker.Kind != KindHolder && !r.spec.Force {
		p.add("force", fmt.Sprintf("Container %d is protected", r.ref.VMID),
			"Proxmox VE itself would roll it back all the same. Set protection = false on the container first, or force = true here.")
	}
	p = append(p, r.volumeProblems()...)
	chain, err := r.chainProblems(ctx)
	if err != nil {
		r.m.log.DebugContext(ctx, "the kinds of storages aren't known, the server decides", "vmid", r.ref.VMID, "cause", err)
	}
	return append(p, chain...)
}

// volumeProblems are about volumes beside the root disk.
func (r *rollingBack) volumeProblems() []Problem {
	var p problems
	if r.marker.Kind == KindHolder {
		return nil
	}
	if within := r.within(); len(within) > 0 && !r.spec.IncludeWorkspaces {
		p.add("include_workspaces", fmt.Sprintf("The snapshot %q holds workspaces", r.spec.Snapshot), fmt.Sprintf(
			"A rollback of container %d would take the work in %s back too. Detach first, or set include_workspaces = true if that is wanted.", r.ref.VMID, describeMounts(r.former, within)))
	}
	if outside := r.outside(); len(outside) > 0 && !r.spec.Force {
		p.add("force", fmt.Sprintf("Container %d has volumes that the snapshot %q doesn't have", r.ref.VMID, r.spec.Snapshot), fmt.Sprintf(
			"Proxmox VE takes %s out of the container when it rolls back. Their content stays. Detach first, or set force = true: they are then mounted again after the rollback.", describeMounts(r.former, outside)))
	}
	return p
}

// within are the mount points whose volumes the snapshot holds, too.
func (r *rollingBack) within() []string {
	return slices.DeleteFunc(attachedVolumes(r.former), func(key string) bool { return !r.held(key) })
}

// outside are the mount points whose volumes are newer than the snapshot.
func (r *rollingBack) outside() []string {
	return slices.DeleteFunc(attachedVolumes(r.former), r.held)
}

// held says whether the snapshot has the volume that is mounted as key.
func (r *rollingBack) held(key string) bool {
	volume := volumeAt(r.former, key).Volume()
	return slices.ContainsFunc(volumeKeys(r.then), func(k string) bool { return volumeAt(r.then, k).Volume() == volume })
}

// chainProblems refuses what ZFS can't do: to roll back past newer snapshots.
func (r *rollingBack) chainProblems(ctx context.Context) ([]Problem, error) {
	if r.spec.DiscardNewer {
		return nil, nil
	}
	names, err := r.inTheWay(ctx)
	if err != nil || len(names) == 0 {
		return nil, err
	}
	return []Problem{{Attribute: "discard_newer", Summary: fmt.Sprintf("Newer snapshots stand in the way of a rollback to %q", r.spec.Snapshot), Detail: fmt.Sprintf(
		"Container %d is on ZFS, which rolls back only to the newest snapshot. Newer are: %s. Set discard_newer = true to delete them first, or roll back to the newest.", r.ref.VMID, strings.Join(names, ", "))}}, nil
}

// inTheWay are the snapshots, oldest first, that the storage would have to lose
// for this rollback.
func (r *rollingBack) inTheWay(ctx context.Context) ([]string, error) {
	ordered := inOrder(r.snapshots)
	at := slices.IndexFunc(ordered, func(s pve.Snapshot) bool { return s.Name == r.spec.Snapshot })
	if at < 0 || at == len(ordered)-1 {
		return nil, nil
	}
	resources, err := r.m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, r.m.step("roll back", r.ref, "list the cluster's storages", err)
	}
	for _, key := range volumeKeys(r.then) {
		storage := storageIn(resources, r.ref.Node, volumeAt(r.then, key).Storage())
		if storage == nil || storage.PluginType != "zfspool" {
			continue
		}
		var names []string
		for _, s := range ordered[at+1:] {
			names = append(names, s.Name)
		}
		return names, nil
	}
	return nil, nil
}
