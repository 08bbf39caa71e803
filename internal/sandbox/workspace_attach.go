package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// attaching brings one workspace to one sandbox.
type attaching struct {
	m      *Manager
	want   Attachment
	to     Ref     // the sandbox
	marker *Marker // the sandbox's, kept up to date
	w      *warnings

	h    holder
	slot string
}

// run attaches the workspace in a slot that isn't among taken. In this order:
// the holder's record, which only one can write; the sandbox's, so that a
// destroy knows what it has to hand back; the volume.
func (a *attaching) run(ctx context.Context, taken map[string]bool) error {
	for {
		a.slot = freeSlot(taken)
		if err := a.claim(ctx); err != nil {
			return err
		}
		err := a.record(ctx)
		if err == nil {
			err = a.move(ctx)
		}
		if err == nil {
			return nil
		}
		a.undo(ctx)
		// A volume that is being let go still has its slot, although the
		// configuration no longer shows it.
		if !pve.Means(err, pve.VolumeBusy) || len(taken) > 200 {
			return err
		}
		taken[a.slot] = true
	}
}

func freeSlot(taken map[string]bool) string {
	for n := 0; ; n++ {
		if slot := "mp" + strconv.Itoa(n); !taken[slot] {
			return slot
		}
	}
}

// claim waits until nobody else has the volume and writes down who gets it.
func (a *attaching) claim(ctx context.Context) error {
	began := a.m.clock.Now()
	for {
		held, err := a.tryClaim(ctx)
		if err != nil || held == nil {
			return err
		}
		held.Waited = a.m.clock.Now().Sub(began)
		if held.Waited >= a.want.wait() {
			return &Error{Op: "attach", Ref: a.to, Kind: ErrHeld, What: "attach", Err: held, Remedy: held.remedy()}
		}
		pause := min(max(pollMin, held.Waited/10), pollMax, a.want.wait()-held.Waited)
		if err := a.m.pause(ctx, pause); err != nil {
			return fmt.Errorf("%w (while waiting: %w)", err, held)
		}
	}
}

// tryClaim says who has the volume, if somebody has.
func (a *attaching) tryClaim(ctx context.Context) (*HeldError, error) {
	h, err := a.m.holder(ctx, "attach", a.want.Workspace, a.to.Node, "")
	if errors.Is(err, ErrGone) {
		return nil, &Error{Op: "attach", Ref: a.to, Kind: ErrNoHolder, What: fmt.Sprintf("there is no workspace %d", a.want.Workspace),
			Remedy: "give the id of a sandbox_workspace; one whose holder was deleted by hand has lost its content"}
	}
	if err != nil {
		return nil, err
	}
	a.h = h
	if h.marker.Phase == PhaseCreating {
		return nil, &Error{Op: "attach", Ref: a.to, What: fmt.Sprintf("workspace %d (%s) is unfinished", h.ref.VMID, h.name()), Remedy: "apply the sandbox_workspace again"}
	}
	if h.ref.Node != a.to.Node {
		return nil, elsewhere(h, a.to.Node)
	}
	if _, _, home := h.home(); !home {
		held, err := a.m.collect(ctx, h, a.w)
		if held != nil || err != nil {
			return held, err
		}
		if a.h, err = a.m.holder(ctx, "attach", h.ref.VMID, h.ref.Node, h.ref.Claim); err != nil {
			return nil, err
		}
	}
	if a.h.claimed(a.m.clock.Now(), a.to.VMID) {
		return &HeldError{Workspace: h.ref.VMID, Name: h.name(), By: a.m.userOf(ctx, a.h.marker.At.VMID)}, nil
	}
	return a.take(ctx)
}

// take writes the claim. Somebody may be faster.
func (a *attaching) take(ctx context.Context) (*HeldError, error) {
	place := Place{VMID: a.to.VMID, Slot: a.slot}
	until := a.m.clock.Now().Add(attachTime).Truncate(time.Second)
	var faster *HeldError
	err := a.m.edit(ctx, a.h.ref, "claim the workspace", a.h.cfg, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		now := holder{ref: a.h.ref, cfg: cfg, marker: *marker}
		if _, _, home := now.home(); !home || now.claimed(a.m.clock.Now(), a.to.VMID) {
			faster = &HeldError{Workspace: a.h.ref.VMID, Name: a.h.name()}
			if marker.At != nil {
				faster.By.VMID = marker.At.VMID
			}
			return noChange(), nil
		}
		marker.At, marker.Until = &place, until
		return noChange(), nil
	})
	if err != nil || faster != nil {
		return faster, err
	}
	if a.h, err = a.m.holder(ctx, "attach", a.h.ref.VMID, a.h.ref.Node, a.h.ref.Claim); err != nil {
		return nil, err
	}
	if slot, _, _ := a.h.home(); slot == homeSlot && mountIn(a.h.cfg, homeSlot).Path() == a.want.Path && a.h.cfg.Protection() {
		return nil, nil
	}
	if err := a.m.house(ctx, a.h, a.want.Path); err != nil {
		return nil, err
	}
	a.h, err = a.m.holder(ctx, "attach", a.h.ref.VMID, a.h.ref.Node, a.h.ref.Claim)
	return nil, err
}

// elsewhere says that the volume and the sandbox are on different nodes.
func elsewhere(h holder, node string) error {
	return &Error{Op: "attach", Ref: h.ref, What: fmt.Sprintf("workspace %s is on node %s, the sandbox on node %s: a volume can't be handed from node to node", h.name(), h.ref.Node, node),
		Remedy: fmt.Sprintf("set node_name = %q on the sandbox, or make a workspace on node %s", h.ref.Node, node)}
}

// record notes in the sandbox's marker what it is about to get.
func (a *attaching) record(ctx context.Context) error {
	err := a.m.edit(ctx, a.to, "record the workspace", nil, func(_ *pve.LXCConfig, marker *Marker) (change, error) {
		marker.record(a.slot, a.h.ref.VMID)
		return noChange(), nil
	})
	if err == nil {
		a.marker.record(a.slot, a.h.ref.VMID)
	}
	return err
}

// move hands the volume over. The digest makes sure that our claim still
// stands.
func (a *attaching) move(ctx context.Context) error {
	moved := func(ctx context.Context) (bool, error) {
		there, err := a.m.hasVolume(ctx, a.to, a.slot)
		if err != nil || !there {
			return false, err
		}
		left, err := a.m.hasVolume(ctx, a.h.ref, homeSlot)
		return !left, err
	}
	send := func(ctx context.Context) error {
		err := a.m.do(ctx, action{
			what: fmt.Sprintf("attach workspace %d to container %d", a.h.ref.VMID, a.to.VMID),
			ref:  a.to,
			send: func(ctx context.Context) (pve.UPID, error) {
				return a.m.pve.MoveVolume(ctx, a.h.ref.Node, a.h.ref.VMID, pve.MoveVolumeOptions{
					Volume: homeSlot, TargetVMID: a.to.VMID, TargetVolume: a.slot, Digest: a.h.cfg.Digest(),
				})
			},
			done: moved,
		}, a.w)
		if err != nil && !pve.Means(err, pve.VolumeBusy) {
			// A call whose answer was lost may have been at work until now.
			if done, doneErr := moved(ctx); doneErr == nil && done {
				return nil
			}
		}
		return err
	}
	err := send(ctx)
	if pve.Means(err, pve.HasSnapshots) {
		if err = a.pinned(ctx, err); err != nil {
			return err
		}
		if a.h, err = a.m.holder(ctx, "attach", a.h.ref.VMID, a.h.ref.Node, a.h.ref.Claim); err != nil {
			return err
		}
		err = send(ctx)
	}
	return a.m.step("attach", a.to, fmt.Sprintf("attach workspace %d (%s) at %s", a.h.ref.VMID, a.h.name(), a.want.Path), err)
}

// pinned deals with snapshots of the holder, which hold the volume where it
// is: it deletes them where that is wanted, else it says which they are. Other
// errors stay as they are.
func (a *attaching) pinned(ctx context.Context, err error) error {
	if !pve.Means(err, pve.HasSnapshots) {
		return err
	}
	list, listErr := a.m.pve.Snapshots(ctx, a.h.ref.Node, a.h.ref.VMID)
	if listErr != nil {
		return errors.Join(err, listErr)
	}
	names := make([]string, 0, len(list.Items))
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	if !a.want.DropSnapshots {
		return &Error{Op: "attach", Ref: a.h.ref, Kind: ErrHasSnapshots, Err: err,
			What:   fmt.Sprintf("the snapshots %s hold the volume of workspace %s", strings.Join(names, ", "), a.h.name()),
			Remedy: "delete these snapshots, or set drop_snapshots = true on the attachment to have that done"}
	}
	slices.Reverse(names) // children before their parents
	for _, name := range names {
		err := a.m.do(ctx, action{
			what: fmt.Sprintf("delete snapshot %s of workspace %d", name, a.h.ref.VMID), ref: a.h.ref,
			send: func(ctx context.Context) (pve.UPID, error) {
				return a.m.pve.DeleteSnapshot(ctx, a.h.ref.Node, a.h.ref.VMID, name, false)
			},
			done: func(ctx context.Context) (bool, error) {
				now, err := a.m.pve.Snapshots(ctx, a.h.ref.Node, a.h.ref.VMID)
				_, there := now.Find(name)
				return err == nil && !there, err
			},
		}, a.w)
		if err != nil && !pve.Means(err, pve.NoSuchSnapshot) {
			return a.m.step("attach", a.h.ref, "delete the snapshot "+name, err)
		}
	}
	return nil
}

// undo takes the records of an attachment that failed back, as far as it can;
// what stays is a record that contradicts where the volume is, and counts for
// nothing once its time is over.
func (a *attaching) undo(ctx context.Context) {
	ctx, cancel := detached(ctx)
	defer cancel()
	if there, err := a.m.hasVolume(ctx, a.to, a.slot); err != nil || there {
		return // it may still arrive, or has: then the records are right
	}
	note := func(err error) {
		if err != nil {
			a.m.log.DebugContext(ctx, "a record of a failed attachment could not be taken back", "workspace", a.h.ref.VMID, "cause", err)
		}
	}
	note(a.m.edit(ctx, a.h.ref, "take back the claim", nil, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		now := holder{cfg: cfg}
		if _, _, home := now.home(); home && marker.At != nil && *marker.At == (Place{VMID: a.to.VMID, Slot: a.slot}) {
			marker.At, marker.Until = nil, time.Time{}
		}
		return noChange(), nil
	}))
	note(a.m.edit(ctx, a.to, "take back the record", nil, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		if slot, ok := marker.slotOf(a.h.ref.VMID); ok && slot == a.slot && !cfg.Has(slot) {
			marker.forgetWorkspace(a.h.ref.VMID)
		}
		return noChange(), nil
	}))
	a.marker.forgetWorkspace(a.h.ref.VMID)
}

// hasVolume says whether a container has a volume in a slot, now.
func (m *Manager) hasVolume(ctx context.Context, ref Ref, slot string) (bool, error) {
	cfg, err := m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
	if err != nil {
		return false, err
	}
	return isVolume(cfg, slot) && cfg.Lock() == "", nil
}
