package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ReadWorkspace says what the server says now. ErrGone is returned only when
// the server said directly that the holder isn't there, and no sandbox has its
// volume.
func (m *Manager) ReadWorkspace(ctx context.Context, ref Ref) (Workspace, error) {
	h, err := m.holder(ctx, "read", ref.VMID, ref.Node, ref.Claim)
	if err != nil {
		return Workspace{}, err
	}
	return m.workspace(ctx, h)
}

// FindWorkspace finds a workspace of our owner by its name. ErrGone says that
// there is none.
func (m *Manager) FindWorkspace(ctx context.Context, name string) (Workspace, error) {
	holders, err := m.workspaceHolders(ctx)
	if err != nil {
		return Workspace{}, err
	}
	holders = slices.DeleteFunc(holders, func(h holder) bool { return h.name() != name })
	if len(holders) == 0 {
		return Workspace{}, &Error{Op: "read", Kind: ErrGone, What: fmt.Sprintf("there is no workspace %q of owner %q", name, m.settings.Owner)}
	}
	return m.workspace(ctx, holders[0])
}

// ImportWorkspace finds a workspace by its id for a state that doesn't hold it
// yet.
func (m *Manager) ImportWorkspace(ctx context.Context, id int) (Workspace, error) {
	if err := m.requireOwner("import"); err != nil {
		return Workspace{}, err
	}
	return m.ReadWorkspace(ctx, Ref{VMID: id})
}

func (m *Manager) workspace(ctx context.Context, h holder) (Workspace, error) {
	w := Workspace{Ref: h.ref, Name: h.name(), Status: WorkspaceMissing, Unfinished: h.marker.Phase == PhaseCreating}
	for _, note := range h.marker.Extra {
		if isForkNote(note) {
			w.ForkOf, _ = strconv.Atoi(note[len(forkNote):])
		}
	}
	if slot, volume, ok := h.home(); ok {
		w.Status, w.Volume = WorkspaceDetached, volume
		w.SizeGiB = sizeGiBOf(mountIn(h.cfg, slot))
		w.Storage = storageOf(volume)
		return w, nil
	}
	if h.marker.At == nil {
		return w, nil
	}
	u, err := m.user(ctx, h)
	if err != nil {
		return w, err
	}
	if u.slot == "" {
		return w, nil
	}
	w.Status, w.Volume, w.SizeGiB, w.Storage = WorkspaceAttached, u.volume, u.sizeGiB, storageOf(u.volume)
	if u.released {
		w.Status = WorkspaceReleasing
	}
	w.Attached = &WorkspaceUser{VMID: u.VMID, Hostname: u.Hostname, Path: u.Path}
	return w, nil
}

func storageOf(volume string) string {
	return pve.Mount{Properties: pve.ParseProperties(volume)}.Storage()
}

// UpdateWorkspace renames a workspace and grows its volume, wherever that is;
// to another storage or node it goes while it is detached (else ErrHeld).
func (m *Manager) UpdateWorkspace(ctx context.Context, ref Ref, spec WorkspaceSpec) (Workspace, []Warning, error) {
	if err := m.requireOwner("update"); err != nil {
		return Workspace{}, nil, err
	}
	if err := asError(m.CheckWorkspace(spec)); err != nil {
		return Workspace{}, nil, err
	}
	w := &warnings{}
	out, err := m.updateWorkspace(ctx, ref, spec, w)
	return out, w.take(), err
}

func (m *Manager) updateWorkspace(ctx context.Context, ref Ref, spec WorkspaceSpec, w *warnings) (Workspace, error) {
	h, err := m.holder(ctx, "update", ref.VMID, ref.Node, ref.Claim)
	if err != nil {
		return Workspace{}, err
	}
	now, err := m.workspace(ctx, h)
	if err != nil {
		return Workspace{}, err
	}
	err = m.edit(ctx, h.ref, "rename the workspace", h.cfg, func(cfg *pve.LXCConfig, _ *Marker) (change, error) {
		c := noChange()
		if cfg.Hostname() != spec.Name {
			c.put("hostname", spec.Name)
		}
		return c, nil
	})
	if err != nil {
		return Workspace{}, err
	}
	if err := m.relocate(ctx, &h, &now, spec, w); err != nil {
		return Workspace{}, err
	}
	// A size between two whole numbers is somebody's doing, and no request.
	if spec.SizeGiB != 0 && spec.SizeGiB != int(now.SizeGiB) {
		if err := m.growWorkspace(ctx, h, now, spec.SizeGiB, w); err != nil {
			return Workspace{}, err
		}
	}
	return m.ReadWorkspace(ctx, h.ref)
}

// relocate moves the volume to another storage and the holder to another node,
// while no sandbox has it.
func (m *Manager) relocate(ctx context.Context, h *holder, now *Workspace, spec WorkspaceSpec, w *warnings) error {
	toStorage := spec.Storage != "" && spec.Storage != now.Storage
	toNode := spec.NodeName != "" && spec.NodeName != now.Node
	if !toStorage && !toNode {
		return nil
	}
	switch {
	case now.Status == WorkspaceMissing:
		return &Error{Op: "update", Ref: h.ref, Kind: ErrNoVolume, What: "its volume can't be found", Remedy: "data source sandbox_workspace says where to look"}
	case now.Status != WorkspaceDetached:
		held := &HeldError{Workspace: h.ref.VMID, Name: h.name(), By: *now.Attached, Releasing: now.Status == WorkspaceReleasing}
		return &Error{Op: "update", Ref: h.ref, Kind: ErrHeld, What: "a workspace moves to another storage or node while it is detached", Err: held, Remedy: held.remedy()}
	}
	if toStorage {
		if err := m.changeStorage(ctx, *h, spec.Storage, w); err != nil {
			return err
		}
	}
	if toNode {
		if err := m.migrate(ctx, h.ref, spec.NodeName, false, w); err != nil {
			return err
		}
		h.ref.Node = spec.NodeName
	}
	var err error
	if *h, err = m.holder(ctx, "update", h.ref.VMID, h.ref.Node, h.ref.Claim); err != nil {
		return err
	}
	*now, err = m.workspace(ctx, *h)
	return err
}

// changeStorage copies the volume to another storage and removes the old one.
func (m *Manager) changeStorage(ctx context.Context, h holder, storage string, w *warnings) error {
	if slot, _, _ := h.home(); slot != homeSlot {
		if err := m.house(ctx, h, ""); err != nil {
			return err
		}
	}
	err := m.do(ctx, action{
		what: fmt.Sprintf("move workspace %d to storage %s", h.ref.VMID, storage),
		ref:  h.ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			return m.pve.MoveVolume(ctx, h.ref.Node, h.ref.VMID, pve.MoveVolumeOptions{Volume: homeSlot, Storage: storage, DeleteSource: true})
		},
		done: func(ctx context.Context) (bool, error) {
			cfg, err := m.pve.LXCConfig(ctx, h.ref.Node, h.ref.VMID)
			return err == nil && mountIn(cfg, homeSlot).Storage() == storage && cfg.Lock() == "", err
		},
	}, w)
	return m.step("update", h.ref, "move the volume to storage "+storage, err)
}

// growWorkspace enlarges the volume where it is. A sandbox that runs sees the
// new size at once.
func (m *Manager) growWorkspace(ctx context.Context, h holder, now Workspace, want int, w *warnings) error {
	switch {
	case now.Status == WorkspaceMissing:
		return &Error{Op: "update", Ref: h.ref, Kind: ErrNoVolume, What: "its volume can't be found", Remedy: "data source sandbox_workspace says where to look"}
	case now.Status == WorkspaceReleasing:
		return &Error{Op: "update", Ref: h.ref, Kind: ErrHeld, What: fmt.Sprintf("container %d is letting go of it", now.Attached.VMID), Remedy: "grow it when it is detached or attached anew"}
	case float64(want) < now.SizeGiB:
		return &ProblemsError{Problems: []Problem{shrunkWorkspace(want, now.SizeGiB)}}
	case now.Status == WorkspaceDetached:
		if slot, _, _ := h.home(); slot != homeSlot {
			if err := m.house(ctx, h, ""); err != nil {
				return err
			}
		}
		return m.enlarge(ctx, h.ref, homeSlot, want, w)
	}
	u, err := m.user(ctx, h)
	if err != nil {
		return err
	}
	return m.enlarge(ctx, u.ref, u.slot, want, w)
}

// enlarge enlarges a mount point's volume to sizeGiB.
func (m *Manager) enlarge(ctx context.Context, ref Ref, slot string, sizeGiB int, w *warnings) error {
	size := fmt.Sprintf("%dG", sizeGiB)
	err := m.do(ctx, action{
		what: fmt.Sprintf("grow %s of container %d", slot, ref.VMID),
		ref:  ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.ResizeLXC(ctx, ref.Node, ref.VMID, slot, size, "")
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
			return sizeGiBOf(mountIn(cfg, slot)) >= float64(sizeGiB) && cfg.Lock() == "", nil
		},
	}, w)
	return m.step("resize", ref, fmt.Sprintf("grow the volume in %s to %s", slot, size), err)
}

// RestoreHolder makes a new holder, with the same id, for a workspace whose
// holder was deleted while the sandbox user had the volume. It returns ErrGone
// when that sandbox doesn't have it either.
func (m *Manager) RestoreHolder(ctx context.Context, ref Ref, user int, spec WorkspaceSpec, accepted Accepted) (Workspace, []Warning, error) {
	slot, node, err := m.Orphaned(ctx, ref.VMID, user)
	if err != nil {
		return Workspace{}, nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	spec.ForkOf, spec.NodeName = 0, node
	c := &creation{m: m, accepted: accepted, started: m.clock.Now(), warnings: &warnings{}}
	c.spec.VMID = ref.VMID
	err = (&workspaceCreation{creation: c, want: spec, place: &Place{VMID: user, Slot: slot}}).run(ctx)
	if err != nil {
		return Workspace{Ref: c.told}, c.warnings.take(), m.keepKind("restore", ref, "make a new holder for the workspace", err)
	}
	out, err := m.ReadWorkspace(ctx, c.ref)
	return out, c.warnings.take(), err
}

// Orphaned says where a sandbox has the volume of a workspace whose holder is
// gone. ErrGone says that it hasn't.
func (m *Manager) Orphaned(ctx context.Context, workspace, user int) (slot, node string, err error) {
	gone := &Error{Op: "read", Ref: Ref{VMID: workspace}, Kind: ErrGone, What: "neither its holder nor its volume is there"}
	if user == 0 {
		return "", "", gone
	}
	node, cfg, err := m.find(ctx, user, "")
	if errors.Is(err, ErrGone) {
		return "", "", gone
	}
	if err != nil {
		return "", "", m.keepKind("read", Ref{VMID: user}, "look at the sandbox that has the workspace", err)
	}
	_, marker := SplitDescription(cfg.Text("description"))
	if marker == nil || marker.Owner != m.settings.Owner || marker.VMID != user {
		return "", "", gone
	}
	for slot, id := range workspaceSlots(cfg, marker) {
		if id == workspace {
			return slot, node, nil
		}
	}
	return "", "", gone
}
