package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// DestroyWorkspace removes a workspace with its content, and proves that it is
// gone. One that a sandbox has is refused (ErrHeld), naming the sandbox. A
// workspace that is gone already is a success.
func (m *Manager) DestroyWorkspace(ctx context.Context, ref Ref, pendingUPID string) ([]Warning, error) {
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
	err := m.destroyWorkspace(ctx, ref, w)
	if errors.Is(err, ErrGone) {
		err = nil
	}
	if err == nil {
		m.ids.spend(ref.VMID)
		m.settled.Delete(ref.VMID)
	}
	return w.take(), err
}

func (m *Manager) destroyWorkspace(ctx context.Context, ref Ref, w *warnings) error {
	h, err := m.holder(ctx, "destroy", ref.VMID, ref.Node, ref.Claim)
	if err != nil {
		return err
	}
	if _, _, home := h.home(); !home && h.marker.At != nil {
		user, err := m.user(ctx, h)
		if err != nil {
			return err
		}
		missing := user.slot == ""
		if missing && !user.stranger {
			if missing, err = m.confirmMissing(ctx, h); err != nil {
				return err
			}
		}
		if !missing || user.stranger {
			held := &HeldError{Workspace: h.ref.VMID, Name: h.name(), By: user.WorkspaceUser, Releasing: user.released}
			return &Error{Op: "destroy", Ref: h.ref, Kind: ErrHeld, What: "destroy", Err: held, Remedy: held.remedy()}
		}
	} else if home && h.claimed(m.clock.Now(), 0) {
		held := &HeldError{Workspace: h.ref.VMID, Name: h.name(), By: m.userOf(ctx, h.marker.At.VMID)}
		return &Error{Op: "destroy", Ref: h.ref, Kind: ErrHeld, What: "destroy", Err: held, Remedy: held.remedy()}
	}
	if err := m.unprotect(ctx, h.ref, h.cfg); err != nil {
		return err
	}
	return m.destroyMarked(ctx, h.ref, w)
}

func (m *Manager) unprotect(ctx context.Context, ref Ref, cfg *pve.LXCConfig) error {
	return m.edit(ctx, ref, "take the protection off", cfg, func(cfg *pve.LXCConfig, _ *Marker) (change, error) {
		c := noChange()
		c.remove(cfg, "protection")
		return c, nil
	})
}

// handAllBack gives every workspace of a sandbox back before the sandbox is
// destroyed, for a destroy takes every volume of the configuration along: stop,
// hand back, verify. Whether all can be handed back is found out first, so that
// nothing is stopped for a destroy that is refused.
func (m *Manager) handAllBack(ctx context.Context, ref Ref, cfg *pve.LXCConfig, marker *Marker, w *warnings) error {
	if marker.Kind == KindHolder {
		return nil
	}
	back, err := m.borrowed(ctx, ref, cfg, marker)
	if err != nil || len(back) == 0 {
		return err
	}
	for _, b := range back {
		if _, err := m.returnable(ctx, ref, b.holder); err != nil {
			return err
		}
	}
	if running, err := m.running(ctx, ref); err != nil {
		return m.step("destroy", ref, "read its status", err)
	} else if running {
		if err := m.shutdown(ctx, ref, w); err != nil {
			return err
		}
		if cfg, err = m.pve.LXCConfig(ctx, ref.Node, ref.VMID); err != nil {
			return m.step("destroy", ref, "read its configuration", err)
		}
		if back, err = m.borrowed(ctx, ref, cfg, marker); err != nil {
			return err
		}
	}
	for _, b := range back {
		if err := m.handBack(ctx, ref, b, w); err != nil {
			return err
		}
	}
	if cfg, err = m.pve.LXCConfig(ctx, ref.Node, ref.VMID); err != nil {
		return m.step("destroy", ref, "read its configuration", err)
	}
	if back, err = m.borrowed(ctx, ref, cfg, marker); err != nil || len(back) > 0 {
		if err == nil {
			err = &Error{Op: "destroy", Ref: ref, What: fmt.Sprintf("it still has the volume of workspace %d after that was handed back", back[0].holder),
				Remedy: "somebody else is at work on it; nothing was destroyed"}
		}
		return err
	}
	return nil
}

// borrowed lists the volumes of a sandbox that belong to workspaces: by its own
// record, and, for volumes that nothing explains, by the holders'. A record may
// be missing where a run was cut or a description was edited by hand.
func (m *Manager) borrowed(ctx context.Context, ref Ref, cfg *pve.LXCConfig, marker *Marker) ([]handingBack, error) {
	var list []handingBack
	explained := map[string]bool{}
	for slot, id := range workspaceSlots(cfg, marker) {
		list = append(list, handingBack{holder: id, from: slot})
		explained[slot] = true
	}
	if len(marker.Released) > 0 {
		current, err := m.pve.LXCConfigCurrent(ctx, ref.Node, ref.VMID)
		if err != nil {
			return nil, m.step("destroy", ref, "read its configuration", err)
		}
		for _, r := range marker.Released {
			if slot := slotWith(current, r.Volume); slot != "" {
				list = append(list, handingBack{holder: r.Holder, from: slot})
				explained[slot] = true
			}
		}
	}
	var unexplained []string
	for n, mount := range cfg.Mounts() {
		if slot := "mp" + strconv.Itoa(n); mount.Storage() != "" && !explained[slot] {
			unexplained = append(unexplained, slot)
		}
	}
	for n := range cfg.Unused() {
		if slot := "unused" + strconv.Itoa(n); !explained[slot] {
			unexplained = append(unexplained, slot)
		}
	}
	if len(unexplained) > 0 {
		more, err := m.unrecorded(ctx, ref, unexplained, list)
		if err != nil {
			return nil, err
		}
		list = append(list, more...)
	}
	slices.SortFunc(list, func(a, b handingBack) int { return a.holder - b.holder })
	return list, nil
}

// unrecorded asks the holders whether one of a sandbox's volumes is theirs. A
// holder whose volume is in a slot that it doesn't name may have been moved by
// hand: then nothing is destroyed.
func (m *Manager) unrecorded(ctx context.Context, ref Ref, slots []string, known []handingBack) ([]handingBack, error) {
	holders, err := m.workspaceHolders(ctx)
	if err != nil {
		return nil, err
	}
	var list []handingBack
	for _, h := range holders {
		if h.marker.At == nil || h.marker.At.VMID != ref.VMID || slices.ContainsFunc(known, func(b handingBack) bool { return b.holder == h.ref.VMID }) {
			continue
		}
		if _, _, home := h.home(); home {
			continue
		}
		if slices.Contains(slots, h.marker.At.Slot) {
			list = append(list, handingBack{holder: h.ref.VMID, from: h.marker.At.Slot})
			continue
		}
		return nil, &Error{Op: "destroy", Ref: ref, Kind: ErrHeld,
			What:   fmt.Sprintf("one of its volumes (%v) may be that of workspace %d (%s), which should be at %s", slots, h.ref.VMID, h.name(), h.marker.At.Slot),
			Remedy: fmt.Sprintf("move the volume back to %s, or detach what isn't the workspace's, and destroy again", h.marker.At.Slot)}
	}
	return list, nil
}

// workspaceHolders reads all holders of our owner, by the tag that they carry.
func (m *Manager) workspaceHolders(ctx context.Context) ([]holder, error) {
	fleet, err := m.pve.Lists().Fleet(ctx)
	if err != nil {
		return nil, m.step("list", Ref{}, "list the cluster's guests", err)
	}
	var list []holder
	for _, id := range sortedKeys(fleet.Guests) {
		r := fleet.Guests[id]
		if !isHolderGuest(r) {
			continue
		}
		cfg, err := m.pve.LXCConfig(ctx, r.Node, r.VMID)
		if pve.Means(err, pve.NoSuchGuest, pve.NodeUnreachable, pve.Forbidden) {
			continue
		}
		if err != nil {
			return nil, m.step("list", Ref{VMID: r.VMID, Node: r.Node}, "read the holder of a workspace", err)
		}
		text, marker := SplitDescription(cfg.Text("description"))
		if marker == nil || marker.Kind != KindHolder || marker.Owner != m.settings.Owner || marker.VMID != r.VMID {
			continue
		}
		list = append(list, holder{ref: Ref{VMID: r.VMID, Node: r.Node, Claim: marker.Claim, Owner: marker.Owner}, cfg: cfg, text: text, marker: *marker})
	}
	return list, nil
}
