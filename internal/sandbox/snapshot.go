package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// SnapshotSpec is what a user wants of one snapshot.
type SnapshotSpec struct {
	Name        string
	Description string // the user's text, kept as it is
	// IncludeWorkspaces takes a snapshot although workspaces are attached: they
	// become part of it, and can't be handed over while it exists.
	IncludeWorkspaces bool
}

// Snapshot is what the server says about one snapshot.
type Snapshot struct {
	Ref         // of the container; the claim is empty where only a list was read
	Name        string
	Description string
	Created     time.Time // by the server's clock, to the second
	Parent      string    // the snapshot before it, empty for the first
}

// SnapshotList are the snapshots of one container, oldest first.
type SnapshotList struct {
	Ref
	Snapshots []Snapshot
	Parent    string // the snapshot that the present state comes from, empty if none
}

// SnapshotOutcome is what a change of a snapshot hands back.
type SnapshotOutcome struct {
	Snapshot Snapshot
	Warnings []Warning
	// Accepted says that the server has begun to take the snapshot, also when an
	// error or a stop kept us from seeing it done: it may exist.
	Accepted bool
	// Unfinished says that the wait was stopped from outside; the server goes on.
	Unfinished bool
}

// CreateSnapshot takes a snapshot and returns when the server's task has ended
// and the snapshot was read back. A name that is taken is ErrSnapshotExists.
// ref's claim may be empty: the container must then be one of our owner's.
func (m *Manager) CreateSnapshot(ctx context.Context, ref Ref, spec SnapshotSpec) (SnapshotOutcome, error) {
	var out SnapshotOutcome
	out.Snapshot = Snapshot{Ref: ref, Name: spec.Name, Description: spec.Description}
	if err := m.requireOwner("snapshot"); err != nil {
		return out, err
	}
	if err := asError(CheckSnapshotName("name", spec.Name)); err != nil {
		return out, err
	}
	leave, err := m.alone(ctx, ref.VMID)
	if err != nil {
		return out, m.step("snapshot", ref, "wait for other work on its snapshots", err)
	}
	defer leave()
	ref, cfg, err := m.ownedJustNow(ctx, "snapshot", ref)
	out.Snapshot.Ref = ref
	if err != nil {
		return out, err
	}
	if err := asError(snapshotProblems(ref.VMID, cfg, spec.IncludeWorkspaces)); err != nil {
		return out, err
	}
	if cfg.Text("parent") == spec.Name {
		return out, snapshotExists(ref, spec.Name, nil)
	}
	var w warnings
	err = m.snapshot(ctx, ref, spec, &w, &out.Accepted)
	out.Warnings = w.take()
	if err != nil {
		if out.Accepted && isStop(ctx, err) {
			out.Unfinished = true
			return out, nil
		}
		return out, err
	}
	list, err := m.pve.Snapshots(ctx, ref.Node, ref.VMID)
	if err != nil {
		if isStop(ctx, err) {
			out.Unfinished = true
			return out, nil
		}
		return out, m.step("snapshot", ref, "read it back", err)
	}
	made, ok := list.Find(spec.Name)
	if !ok {
		return out, &Error{Op: "snapshot", Ref: ref, Kind: ErrNoSnapshot, What: fmt.Sprintf("the snapshot %q is gone right after it was made", spec.Name)}
	}
	out.Snapshot = snapshotOf(ref, made)
	return out, nil
}

// snapshot makes the call and waits for its task. accepted is set as soon as
// the server may have begun.
func (m *Manager) snapshot(ctx context.Context, ref Ref, spec SnapshotSpec, w *warnings, accepted *bool) error {
	err := m.do(ctx, action{
		what: fmt.Sprintf("take the snapshot %q of container %d", spec.Name, ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.CreateSnapshot(ctx, ref.Node, ref.VMID, spec.Name, spec.Description)
			*accepted = *accepted || err == nil || pve.LostAnswer(err)
			return upid, err
		},
		// Before the call the present state came from another snapshot, so that
		// this name as its parent is the call's work, not somebody else's.
		done: func(ctx context.Context) (bool, error) {
			cfg, err := m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
			return err == nil && cfg.Text("parent") == spec.Name && cfg.Lock() == "", err
		},
	}, w)
	switch {
	case err == nil:
		return nil
	case pve.Means(err, pve.SnapshotExists):
		*accepted = false
		return snapshotExists(ref, spec.Name, err)
	case pve.Means(err, pve.Unsupported):
		*accepted = false
		return &Error{Op: "snapshot", Ref: ref, What: fmt.Sprintf("take the snapshot %q", spec.Name), Err: err,
			Remedy: "a snapshot needs every volume of the container on a storage that can make one (ZFS, LVM-thin, btrfs, Ceph RBD)"}
	case pve.Means(err, pve.IsTemplate):
		*accepted = false
	}
	return m.step("snapshot", ref, fmt.Sprintf("take the snapshot %q", spec.Name), err)
}

func snapshotExists(ref Ref, name string, cause error) error {
	return &Error{Op: "snapshot", Ref: ref, Kind: ErrSnapshotExists, What: fmt.Sprintf("take the snapshot %q", name), Err: cause,
		Remedy: fmt.Sprintf("choose another name, delete the one that is there, or import it as %d/%s", ref.VMID, name)}
}

// ReadSnapshot says what the server says of a snapshot: one request for all
// snapshots of the container. ErrNoSnapshot and ErrGone (the container is gone)
// are returned only when the server said so directly.
func (m *Manager) ReadSnapshot(ctx context.Context, ref Ref, name string) (Snapshot, error) {
	ref, list, err := m.listSnapshots(ctx, ref)
	if err != nil {
		return Snapshot{}, err
	}
	s, ok := list.Find(name)
	if !ok {
		return Snapshot{}, &Error{Op: "read", Ref: ref, Kind: ErrNoSnapshot, What: fmt.Sprintf("read the snapshot %q", name)}
	}
	return snapshotOf(ref, s), nil
}

// ImportSnapshot is ReadSnapshot for a state that doesn't hold the snapshot yet:
// it proves that the container is ours, and returns its claim.
func (m *Manager) ImportSnapshot(ctx context.Context, ref Ref, name string) (Snapshot, error) {
	ref, _, err := m.owned(ctx, "import", ref)
	if err != nil {
		return Snapshot{}, err
	}
	return m.ReadSnapshot(ctx, ref, name)
}

// ListSnapshots lists the snapshots of a container, of whatever owner, oldest
// first.
func (m *Manager) ListSnapshots(ctx context.Context, vmid int, node string) (SnapshotList, error) {
	ref, list, err := m.listSnapshots(ctx, Ref{VMID: vmid, Node: node})
	if err != nil {
		return SnapshotList{}, err
	}
	out := SnapshotList{Ref: ref, Parent: list.Parent}
	for _, s := range inOrder(list) {
		out.Snapshots = append(out.Snapshots, snapshotOf(ref, s))
	}
	return out, nil
}

// listSnapshots reads the list where the container was seen last, and looks for
// the container when it isn't there any more.
func (m *Manager) listSnapshots(ctx context.Context, ref Ref) (Ref, pve.Snapshots, error) {
	node, err := m.nodeOf(ctx, ref)
	if err != nil {
		return ref, pve.Snapshots{}, err
	}
	for attempt := 0; ; attempt++ {
		if node != "" {
			ref.Node = node
			list, err := m.pve.Lists().Snapshots(ctx, node, ref.VMID)
			if err == nil {
				m.nodes.Store(ref.VMID, node)
				return ref, list, nil
			}
			if !pve.Means(err, pve.NoSuchGuest, pve.NoSuchNode) || attempt > 0 {
				return ref, pve.Snapshots{}, m.step("read", ref, "list its snapshots", err)
			}
			m.nodes.Delete(ref.VMID)
		}
		// It was moved, or is gone.
		found, _, err := m.find(ctx, ref.VMID, node)
		if err != nil {
			return ref, pve.Snapshots{}, m.keepKind("read", ref, "find it", err)
		}
		node = found
	}
}

// nodeOf is where a container was seen last, or where the cluster's list has
// it; empty when neither knows it.
func (m *Manager) nodeOf(ctx context.Context, ref Ref) (string, error) {
	if node, ok := m.nodes.Load(ref.VMID); ok {
		return fmt.Sprint(node), nil
	}
	if ref.Node != "" {
		return ref.Node, nil
	}
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return "", m.step("read", ref, "list the cluster's guests", err)
	}
	// One list is a hint about all guests: writes drop it, and each of a fleet's
	// snapshots would otherwise ask for it again.
	node := ""
	for _, r := range resources {
		if r.Type == "lxc" && r.VMID != 0 {
			m.nodes.LoadOrStore(r.VMID, r.Node)
		}
		if r.Type == "lxc" && r.VMID == ref.VMID {
			node = r.Node
		}
	}
	return node, nil
}

// DescribeSnapshot changes a snapshot's description.
func (m *Manager) DescribeSnapshot(ctx context.Context, ref Ref, name, description string) (Snapshot, error) {
	ref, _, err := m.owned(ctx, "update", ref)
	if err != nil {
		return Snapshot{}, err
	}
	err = m.write(ctx, ref, fmt.Sprintf("describe the snapshot %q of container %d", name, ref.VMID), func(ctx context.Context) error {
		return m.pve.UpdateSnapshot(ctx, ref.Node, ref.VMID, name, description)
	})
	if err != nil {
		if pve.Means(err, pve.NoSuchSnapshot) {
			return Snapshot{}, &Error{Op: "update", Ref: ref, Kind: ErrNoSnapshot, What: fmt.Sprintf("describe the snapshot %q", name), Err: err}
		}
		return Snapshot{}, m.step("update", ref, fmt.Sprintf("describe the snapshot %q", name), err)
	}
	return m.ReadSnapshot(ctx, ref, name)
}

// DestroySnapshot removes a snapshot; its children keep their content and get
// its parent. One that is gone, with its container or without, is a success: so
// is one whose container was replaced by another under the same id.
func (m *Manager) DestroySnapshot(ctx context.Context, ref Ref, name string) ([]Warning, error) {
	leave, err := m.alone(ctx, ref.VMID)
	if err != nil {
		return nil, m.step("destroy", ref, "wait for other work on its snapshots", err)
	}
	defer leave()
	ref, cfg, err := m.owned(ctx, "destroy a snapshot of", ref)
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, ErrForeign) && m.replaced(ref, cfg):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var w warnings
	err = m.deleteSnapshot(ctx, ref, name, &w)
	return w.take(), err
}

func (m *Manager) deleteSnapshot(ctx context.Context, ref Ref, name string, w *warnings) error {
	err := m.do(ctx, action{
		what: fmt.Sprintf("delete the snapshot %q of container %d", name, ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			return m.pve.DeleteSnapshot(ctx, ref.Node, ref.VMID, name, false)
		},
		done: func(ctx context.Context) (bool, error) {
			list, err := m.pve.Snapshots(ctx, ref.Node, ref.VMID)
			if pve.Means(err, pve.NoSuchGuest) {
				return true, nil
			}
			if err != nil {
				return false, err
			}
			_, there := list.Find(name)
			return !there, nil
		},
	}, w)
	if pve.Means(err, pve.NoSuchSnapshot, pve.NoSuchGuest) {
		return nil
	}
	return m.step("destroy", ref, fmt.Sprintf("delete the snapshot %q", name), err)
}

// replaced says whether the guest behind the id is another sandbox of our
// owner's: the one that is meant, and its snapshots with it, are gone.
func (m *Manager) replaced(ref Ref, cfg *pve.LXCConfig) bool {
	if cfg == nil || ref.Claim == "" {
		return false
	}
	_, marker := SplitDescription(cfg.Text("description"))
	return marker != nil && marker.Claim != ref.Claim && marker.Matches(m.ownerOf(ref), marker.Claim, ref.VMID)
}

// owned finds a container and proves that it is ours: of ref's claim, or of any
// where that is empty. The Ref that it returns has node and claim.
func (m *Manager) owned(ctx context.Context, op string, ref Ref) (Ref, *pve.LXCConfig, error) {
	if ref.Owner == "" {
		ref.Owner = m.settings.Owner
	}
	hint, err := m.nodeOf(ctx, ref)
	if err != nil {
		return ref, nil, err
	}
	node, cfg, err := m.find(ctx, ref.VMID, hint)
	if err != nil {
		return ref, nil, m.keepKind(op, ref, "find it", err)
	}
	ref.Node = node
	if ref.Claim == "" {
		if _, marker := SplitDescription(cfg.Text("description")); marker != nil {
			ref.Claim = marker.Claim
		}
	}
	if _, err := m.prove(op, ref, cfg); err != nil {
		return ref, cfg, err
	}
	return ref, cfg, nil
}

// alone waits until nobody else in this process works on a container's
// snapshots: the server would make one of two wait in vain for its lock file.
func (m *Manager) alone(ctx context.Context, vmid int) (leave func(), err error) {
	return m.queues.enter(ctx, fmt.Sprintf("snapshots of %d", vmid), 1)
}

// inOrder sorts snapshots from the oldest on; those of one second by descent.
func inOrder(list pve.Snapshots) []pve.Snapshot {
	depth := func(s pve.Snapshot) int {
		n := 0
		for ok := true; ok && s.Parent != "" && n <= len(list.Items); n++ {
			s, ok = list.Find(s.Parent)
		}
		return n
	}
	return slices.SortedStableFunc(slices.Values(list.Items), func(a, b pve.Snapshot) int {
		return cmp.Or(cmp.Compare(a.Seconds, b.Seconds), cmp.Compare(depth(a), depth(b)), cmp.Compare(a.Name, b.Name))
	})
}

func snapshotOf(ref Ref, s pve.Snapshot) Snapshot {
	return Snapshot{Ref: ref, Name: s.Name, Description: s.Description(), Created: s.Created(), Parent: s.Parent}
}
