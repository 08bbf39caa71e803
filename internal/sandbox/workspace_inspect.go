package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// WorkspaceFinding is something that is wrong with a workspace.
type WorkspaceFinding struct {
	// Check is "volume", "holder", "user", "slot" or "snapshots".
	Check   string
	Summary string
	Remedy  string
}

// InspectWorkspace reads a workspace and looks for what is wrong with it: the
// volume missing, with a stranger, in two sandboxes, or in another slot than the
// records say. It reads the configuration of every sandbox of our owner.
func (m *Manager) InspectWorkspace(ctx context.Context, id int) (Workspace, []WorkspaceFinding, error) {
	h, err := m.holder(ctx, "read", id, "", "")
	if err != nil {
		return Workspace{}, nil, err
	}
	w, err := m.workspace(ctx, h)
	if err != nil {
		return Workspace{}, nil, err
	}
	i := &inspection{m: m, h: h, w: w}
	if err := i.run(ctx); err != nil {
		return Workspace{}, nil, err
	}
	return w, i.findings, nil
}

type inspection struct {
	m        *Manager
	h        holder
	w        Workspace
	findings []WorkspaceFinding
}

func (i *inspection) add(check, summary, remedy string) {
	i.findings = append(i.findings, WorkspaceFinding{Check: check, Summary: summary, Remedy: remedy})
}

func (i *inspection) run(ctx context.Context) error {
	if i.w.Unfinished {
		i.add("holder", "The workspace's creation hasn't come to its end.", "Apply its sandbox_workspace again.")
	}
	if !i.h.cfg.Protection() && !i.w.Unfinished {
		i.add("holder", fmt.Sprintf("Holder %d isn't protected: a slip of the hand would destroy the content.", i.h.ref.VMID), fmt.Sprintf("pct set %d --protection 1", i.h.ref.VMID))
	}
	if running, err := i.m.running(ctx, i.h.ref); err != nil {
		return i.m.step("read", i.h.ref, "read its status", err)
	} else if running {
		i.add("holder", fmt.Sprintf("Holder %d runs, and a running container can't hand its volume over.", i.h.ref.VMID), fmt.Sprintf("pct stop %d", i.h.ref.VMID))
	}
	if err := i.users(ctx); err != nil {
		return err
	}
	return i.snapshots(ctx)
}

// users compares the holder's record with what the sandboxes have.
func (i *inspection) users(ctx context.Context) error {
	id := i.h.ref.VMID
	fleet, err := i.m.ListContainers(ctx, Filter{})
	if err != nil {
		return err
	}
	var having []Sandbox
	for _, s := range fleet {
		if slices.ContainsFunc(s.Workspaces, func(a Attached) bool { return a.Workspace == id }) {
			having = append(having, s)
		}
	}
	_, _, home := i.h.home()
	if len(having) > 1 || home && len(having) > 0 {
		names := make([]string, 0, len(having))
		for _, s := range having {
			names = append(names, fmt.Sprintf("container %d (%s)", s.VMID, s.Hostname))
		}
		if home {
			names = append(names, fmt.Sprintf("its own holder %d", id))
		}
		i.add("user", "The workspace is attached twice: "+strings.Join(names, " and ")+" each have a volume that is recorded as this workspace's.",
			"Compare the volumes' content, and detach the wrong one by hand (pct set <vmid> -delete <mpN>).")
	}
	at := i.h.marker.At
	switch {
	case home:
		return nil
	case at == nil && len(having) == 0:
		i.add("volume", "The volume is missing: the holder hasn't got it and doesn't say who has.", i.searchHint())
		return nil
	case at == nil:
		i.add("user", fmt.Sprintf("Container %d has the volume, but the holder doesn't know.", having[0].VMID), fmt.Sprintf("Stop container %d and hand the volume back: pct move-volume %d <mpN> --target-vmid %d --target-volume %s", having[0].VMID, having[0].VMID, id, homeSlot))
		return nil
	}
	u, err := i.m.user(ctx, i.h)
	if err != nil {
		return err
	}
	i.user(ctx, u)
	return nil
}

// user judges the sandbox that the record names.
func (i *inspection) user(ctx context.Context, u userState) {
	at, id := i.h.marker.At, i.h.ref.VMID
	switch {
	case u.gone:
		i.add("volume", fmt.Sprintf("The volume is missing: container %d had it and was destroyed by hand, with all its volumes.", at.VMID),
			"Restore it from a backup, or replace the workspace to begin anew: terraform apply -replace=<address>")
	case u.stranger:
		i.add("user", fmt.Sprintf("The volume is with a stranger: container %d (%s) carries no marker of this owner.", at.VMID, u.Hostname),
			fmt.Sprintf("Stop it and hand the volume back: pct move-volume %d %s --target-vmid %d --target-volume %s", at.VMID, at.Slot, id, homeSlot))
	case u.slot == "":
		i.missingSlot(ctx, u)
	case !u.released && u.slot != at.Slot:
		i.add("slot", fmt.Sprintf("The holder says %s, container %d has the volume in %s.", at.Slot, u.VMID, u.slot), "Detach and attach it once: take the workspace out of the sandbox's configuration, apply, and put it in again.")
	case u.released && !u.running:
		i.add("slot", fmt.Sprintf("Container %d has let go of the volume, which lies there as %s.", u.VMID, u.slot), "Nothing to do by hand: the next apply that attaches it, or that touches the sandbox, brings it home.")
	}
}

// missingSlot: the sandbox should have the volume in a slot and hasn't. It may
// have it in another one.
func (i *inspection) missingSlot(ctx context.Context, u userState) {
	at, id := i.h.marker.At, i.h.ref.VMID
	cfg, err := i.m.pve.LXCConfig(ctx, u.ref.Node, u.VMID)
	if err != nil {
		i.add("slot", fmt.Sprintf("Container %d can't be looked at: %v", u.VMID, err), "Grant VM.Audit on it.")
		return
	}
	_, marker := SplitDescription(cfg.Text("description"))
	known := workspaceSlots(cfg, marker)
	var others []string
	for _, key := range cfg.Keys() {
		_, recorded := known[key]
		if (isNumbered(key, "mp") && isVolume(cfg, key) || isNumbered(key, "unused")) && !recorded {
			others = append(others, key)
		}
	}
	if len(others) == 0 {
		i.add("volume", fmt.Sprintf("The volume is missing: container %d (%s) should have it in %s and has no such volume.", u.VMID, u.Hostname, at.Slot), i.searchHint())
		return
	}
	i.add("slot", fmt.Sprintf("The slot has drifted: container %d (%s) should have the volume in %s, and has an unrecorded volume in %s.", u.VMID, u.Hostname, at.Slot, strings.Join(others, ", ")),
		fmt.Sprintf("Stop it and hand the volume back: pct move-volume %d %s --target-vmid %d --target-volume %s (an unused volume goes to unused0)", u.VMID, others[0], id, homeSlot))
}

func (i *inspection) searchHint() string {
	return fmt.Sprintf("Look for a volume that nobody expects (pvesm list <storage>), and hand it back: pct move-volume <vmid> <mpN> --target-vmid %d --target-volume %s. Without it the content is lost: replace the workspace to begin anew.", i.h.ref.VMID, homeSlot)
}

// snapshots of the holder keep the volume from being attached.
func (i *inspection) snapshots(ctx context.Context) error {
	list, err := i.m.pve.Snapshots(ctx, i.h.ref.Node, i.h.ref.VMID)
	if err != nil {
		return i.m.step("read", i.h.ref, "list its snapshots", err)
	}
	if len(list.Items) == 0 {
		return nil
	}
	names := make([]string, 0, len(list.Items))
	for _, s := range list.Items {
		names = append(names, s.Name)
	}
	i.add("snapshots", fmt.Sprintf("The snapshots %s keep the volume from being attached.", strings.Join(names, ", ")), "Delete them before the next attachment, or set drop_snapshots = true on it.")
	return nil
}

// InspectWorkspaceByName is InspectWorkspace for callers that hold a name.
func (m *Manager) InspectWorkspaceByName(ctx context.Context, name string) (Workspace, []WorkspaceFinding, error) {
	w, err := m.FindWorkspace(ctx, name)
	if errors.Is(err, ErrGone) {
		var e *Error
		if errors.As(err, &e) {
			e.Remedy = "the name is that of a sandbox_workspace of the provider's owner"
		}
	}
	if err != nil {
		return Workspace{}, nil, err
	}
	return m.InspectWorkspace(ctx, w.VMID)
}
