package sandbox

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// CheckSnapshotName says whether Proxmox VE would take a name for a snapshot,
// and what SnapshotName would make of one that it wouldn't. attribute is where
// the name stands.
func CheckSnapshotName(attribute, name string) []Problem {
	if validSnapshotName(name) {
		return nil
	}
	detail := fmt.Sprintf("A snapshot's name has 2 to %d characters: a letter first, then letters, digits, \"-\" and \"_\"; \"current\" and \"vzdump\" are Proxmox VE's own.", MaxSnapshotName)
	if better, err := SnapshotName(name); err == nil {
		detail += fmt.Sprintf(" The function snapshot_name makes %q of it.", better)
	}
	return []Problem{{Attribute: attribute, Summary: fmt.Sprintf("%q can't be a snapshot's name", name), Detail: detail}}
}

// CheckSnapshot says, for use at plan, what keeps the server from taking a
// snapshot of a container now: one request, and the list that all readers
// share. The error is a failure to ask, or a container that isn't ours.
func (m *Manager) CheckSnapshot(ctx context.Context, ref Ref, spec SnapshotSpec) (Ref, []Problem, error) {
	p := CheckSnapshotName("name", spec.Name)
	ref, cfg, err := m.owned(ctx, "check", ref)
	if err != nil {
		return ref, p, err
	}
	m.checked.Store(ref.VMID, checkedConfig{ref: ref, cfg: cfg, at: m.clock.Now()})
	p = append(p, snapshotProblems(ref.VMID, cfg, spec.IncludeWorkspaces)...)
	unable, err := m.storageProblems(ctx, "container_id", ref, cfg)
	return ref, append(p, unable...), err
}

// snapshotProblems are those that the container's configuration shows.
func snapshotProblems(vmid int, cfg *pve.LXCConfig, includeWorkspaces bool) []Problem {
	var p problems
	if cfg.Template() {
		p.add("container_id", fmt.Sprintf("Container %d is a template", vmid), "Proxmox VE takes no snapshots of templates. Clone it, and take them of the clone.")
	}
	mounts := cfg.Mounts()
	for _, n := range slices.Sorted(maps.Keys(mounts)) {
		if mount := mounts[n]; mount.Storage() == "" {
			p.add("container_id", fmt.Sprintf("Container %d has a bind mount", vmid), fmt.Sprintf(
				"mp%d mounts %s of the node at %s, and Proxmox VE takes no snapshot of a container with a folder or device of the node in it. Take it out first.", n, mount.Volume(), mount.Path()))
		}
	}
	if attached := attachedVolumes(cfg); len(attached) > 0 && !includeWorkspaces {
		p.add("include_workspaces", fmt.Sprintf("Container %d has workspaces", vmid), fmt.Sprintf(
			"A snapshot would hold %s too: a rollback would then take the work there back as well, and the volume can't be handed over to another sandbox while the snapshot exists. "+
				"Detach first, or set include_workspaces = true if that is wanted.", describeMounts(cfg, attached)))
	}
	return p
}

// storageProblems names the storages of the container's volumes that can make
// no snapshots, by their type.
func (m *Manager) storageProblems(ctx context.Context, attribute string, ref Ref, cfg *pve.LXCConfig) ([]Problem, error) {
	var p problems
	seen := map[string]bool{}
	for _, key := range volumeKeys(cfg) {
		name := volumeAt(cfg, key).Storage()
		kind, err := m.storageType(ctx, ref, name)
		if err != nil {
			return nil, err
		}
		if seen[name] || !withoutSnapshots(kind) {
			continue
		}
		seen[name] = true
		p.add(attribute, fmt.Sprintf("The storage %q makes no snapshots", name), fmt.Sprintf(
			"%s of container %d is on it, and a storage of type %q can't make snapshots of container disks. ZFS, LVM-thin, btrfs and Ceph RBD can.", key, ref.VMID, kind))
	}
	return p, nil
}

// storageType is the kind of a storage as a node has it, empty when the list
// doesn't have it. A storage doesn't change its kind, so that it is asked for
// once a run.
func (m *Manager) storageType(ctx context.Context, ref Ref, name string) (string, error) {
	if kind, ok := m.storageTypes.Load(ref.Node + "/" + name); ok {
		return fmt.Sprint(kind), nil
	}
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return "", m.step("check", ref, "list the cluster's storages", err)
	}
	storage := storageIn(resources, ref.Node, name)
	if storage == nil {
		return "", nil
	}
	m.storageTypes.Store(ref.Node+"/"+name, storage.PluginType)
	return storage.PluginType, nil
}

// checkedFor is how long what a check has read serves the call that follows it:
// Terraform plans a resource once more right before it applies it.
const checkedFor = 5 * time.Second

type checkedConfig struct {
	ref Ref
	cfg *pve.LXCConfig
	at  time.Time
}

// ownedJustNow is owned, without a request where a check has asked a moment ago.
// It serves one call.
func (m *Manager) ownedJustNow(ctx context.Context, op string, ref Ref) (Ref, *pve.LXCConfig, error) {
	if v, ok := m.checked.LoadAndDelete(ref.VMID); ok {
		last, ok := v.(checkedConfig)
		if ok && m.clock.Now().Sub(last.at) < checkedFor && (ref.Claim == "" || ref.Claim == last.ref.Claim) && (ref.Owner == "" || ref.Owner == last.ref.Owner) {
			return last.ref, last.cfg, nil
		}
	}
	return m.owned(ctx, op, ref)
}

// withoutSnapshots says whether a type of storage is known to make no snapshots
// of container disks. Of another, the server has the last word.
func withoutSnapshots(storageType string) bool {
	return slices.Contains([]string{"dir", "nfs", "cifs", "glusterfs", "cephfs", "lvm", "iscsi", "iscsidirect", "pbs", "esxi"}, storageType)
}

// attachedVolumes are the mount points of a sandbox that hold a volume of their
// own, in order: its workspaces. A holder's volume isn't attached, it is what
// the holder is for.
func attachedVolumes(cfg *pve.LXCConfig) []string {
	if _, marker := SplitDescription(cfg.Text("description")); marker != nil && marker.Kind == KindHolder {
		return nil
	}
	return slices.DeleteFunc(volumeKeys(cfg), func(key string) bool { return key == "rootfs" })
}

// volumeKeys are the keys of a configuration that hold a volume of a storage:
// rootfs, then mp0 and so on.
func volumeKeys(cfg *pve.LXCConfig) []string {
	keys := []string{}
	if cfg.RootFS().Storage() != "" {
		keys = append(keys, "rootfs")
	}
	mounts := cfg.Mounts()
	for _, n := range slices.Sorted(maps.Keys(mounts)) {
		if mounts[n].Storage() != "" {
			keys = append(keys, "mp"+strconv.Itoa(n))
		}
	}
	return keys
}

// volumeAt is the mount point under a key; an empty one if there is none.
func volumeAt(cfg *pve.LXCConfig, key string) pve.Mount {
	return pve.Mount{Properties: pve.ParseProperties(cfg.Text(key))}
}

func describeMounts(cfg *pve.LXCConfig, keys []string) string {
	parts := make([]string, 0, len(keys))
	for _, key := range keys {
		parts = append(parts, fmt.Sprintf("%s (%s)", volumeAt(cfg, key).Path(), key))
	}
	return strings.Join(parts, ", ")
}
