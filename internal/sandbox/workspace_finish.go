package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// wantsWorkspace is the attachment that the specification asks for, if any.
func (f *finishing) wantsWorkspace(holder int) (Attachment, bool) {
	i := slices.IndexFunc(f.spec.Workspaces, func(a Attachment) bool { return a.Workspace == holder })
	if i < 0 {
		return Attachment{}, false
	}
	return f.spec.Workspaces[i], true
}

// release lets go of the workspaces that aren't wanted any more, and changes
// the paths of those that stay. A running container gives a volume back only
// when it stops: it is stopped where that may be, else the detach is left
// pending on the server and in its record. It returns the settings that wait
// for a restart and whether it has stopped the container.
func (f *finishing) release(ctx context.Context, mayStop bool) (keys []string, stopped bool, err error) {
	if len(f.marker.Workspaces) == 0 && len(f.marker.Released) == 0 {
		return nil, false, nil
	}
	if err := f.readConfig(ctx); err != nil {
		return nil, false, err
	}
	f.takeMarker()
	back, err := f.leaving(ctx)
	if err != nil {
		return nil, false, err
	}
	running := f.status.Running()
	if running && mayStop && slices.ContainsFunc(back, func(b handingBack) bool { return strings.HasPrefix(b.from, "mp") }) {
		for _, b := range back { // before anything is stopped for nothing
			if _, err := f.m.returnable(ctx, f.ref, b.holder); err != nil {
				return nil, false, err
			}
		}
		if err := f.m.shutdown(ctx, f.ref, f.warnings); err != nil {
			return nil, false, err
		}
		running, stopped = false, true
		f.statusOK = false
		// What was pending is applied now, and may have another slot.
		f.now = nil
		if err := f.readConfig(ctx); err != nil {
			return nil, true, err
		}
		if back, err = f.leaving(ctx); err != nil {
			return nil, true, err
		}
	}
	for _, b := range back {
		if running && strings.HasPrefix(b.from, "mp") {
			continue // left pending, below
		}
		if err := f.m.handBack(ctx, f.ref, b, f.warnings); err != nil {
			return nil, stopped, err
		}
		f.now = nil
	}
	keys, err = f.settleWorkspaces(ctx, running)
	return keys, stopped, err
}

// takeMarker takes over what was read.
func (f *finishing) takeMarker() {
	if _, marker := SplitDescription(f.now.Text("description")); marker != nil {
		f.marker = *marker
	}
}

// leaving lists the volumes that are to go, with the slots that they have now.
func (f *finishing) leaving(ctx context.Context) ([]handingBack, error) {
	var list []handingBack
	for _, a := range attachedIn(f.now, &f.marker) {
		if _, wanted := f.wantsWorkspace(a.Workspace); !wanted {
			list = append(list, handingBack{holder: a.Workspace, from: a.Slot})
		}
	}
	if len(f.marker.Released) == 0 {
		return list, nil
	}
	current, err := f.m.pve.LXCConfigCurrent(ctx, f.ref.Node, f.ref.VMID)
	if err != nil {
		return nil, f.m.step("update", f.ref, "read its configuration", err)
	}
	for _, r := range f.marker.Released {
		slot := slotWith(current, r.Volume)
		_, wanted := f.wantsWorkspace(r.Holder)
		if slot == "" || wanted && strings.HasPrefix(slot, "mp") {
			continue // gone already, or wanted again before it went
		}
		list = append(list, handingBack{holder: r.Holder, from: slot})
	}
	return list, nil
}

// settleWorkspaces brings records, slots and paths in line after the hand-backs:
// one write, or none.
func (f *finishing) settleWorkspaces(ctx context.Context, running bool) ([]string, error) {
	var current *pve.LXCConfig
	if running && len(f.marker.Released) > 0 {
		var err error
		if current, err = f.m.pve.LXCConfigCurrent(ctx, f.ref.Node, f.ref.VMID); err != nil {
			return nil, f.m.step("update", f.ref, "read its configuration", err)
		}
	}
	var keys, pending []string
	err := f.m.edit(ctx, f.ref, "let go of workspaces", f.now, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		c := noChange()
		keys, pending = nil, nil
		for _, w := range slices.Clone(marker.Workspaces) {
			mount := mountIn(cfg, w.Slot)
			a, wanted := f.wantsWorkspace(w.Holder)
			switch {
			case !isVolume(cfg, w.Slot): // handed back, or never arrived
				marker.forgetWorkspace(w.Holder)
			case !wanted && running:
				c.del = append(c.del, w.Slot)
				marker.forgetWorkspace(w.Holder)
				marker.Released = append(marker.Released, Released{Holder: w.Holder, Volume: mount.Volume()})
				keys, pending = append(keys, w.Slot), append(pending, w.Slot)
			case wanted && mount.Path() != a.Path:
				c.put(w.Slot, mount.With("mp", a.Path).String())
				keys = append(keys, w.Slot)
			}
		}
		f.settleReleased(&c, cfg, current, marker)
		return c, nil
	})
	if err != nil {
		return nil, err
	}
	if len(pending) > 0 {
		f.warnings.add("A workspace is detached at the next restart", fmt.Sprintf(
			"Container %d runs, and a running container keeps a volume until it stops: nobody else can have the workspace before. Set restart_when_needed = true to have the container restarted, or restart it when it suits you.", f.ref.VMID))
	}
	f.now = nil
	if err := f.readConfig(ctx); err != nil {
		return nil, err
	}
	f.takeMarker()
	return keys, nil
}

// settleReleased goes through the detaches of before: a volume that is wanted
// again before it went stays, and one that is gone needs no record.
func (f *finishing) settleReleased(c *change, cfg, current *pve.LXCConfig, marker *Marker) {
	for _, r := range slices.Clone(marker.Released) {
		if current == nil {
			if slotWith(cfg, r.Volume) == "" {
				marker.forgetWorkspace(r.Holder)
			}
			continue
		}
		slot := slotWith(current, r.Volume)
		a, wanted := f.wantsWorkspace(r.Holder)
		switch {
		case slot == "" && slotWith(cfg, r.Volume) == "":
			marker.forgetWorkspace(r.Holder)
		case wanted && strings.HasPrefix(slot, "mp") && !cfg.Has(slot):
			// Setting it again takes the pending removal back.
			c.put(slot, mountIn(current, slot).With("mp", a.Path).String())
			marker.forgetWorkspace(r.Holder)
			marker.record(slot, r.Holder)
		}
	}
}

// attach brings the workspaces that are wanted and aren't there.
func (f *finishing) attach(ctx context.Context) error {
	if len(f.spec.Workspaces) == 0 {
		return nil
	}
	if err := f.readConfig(ctx); err != nil {
		return err
	}
	f.takeMarker()
	for _, want := range f.spec.Workspaces {
		slots := workspaceSlots(f.now, &f.marker)
		if slot, ok := f.marker.slotOf(want.Workspace); ok && slots[slot] == want.Workspace {
			continue
		}
		taken := map[string]bool{}
		for n := range f.now.Mounts() {
			taken[fmt.Sprintf("mp%d", n)] = true
		}
		a := &attaching{m: f.m, want: want, to: f.ref, marker: &f.marker, w: f.warnings}
		if err := a.run(ctx, taken); err != nil {
			return err
		}
		f.arrived = append(f.arrived, want)
		f.now = nil
		if err := f.readConfig(ctx); err != nil {
			return err
		}
		f.takeMarker()
	}
	return nil
}

// AgentUser is the account that agents run as, where a template has it.
const AgentUser = "agent"

// ownScript gives the top of a new workspace to the agent's account. One that
// has it already keeps its mode, and what is in it stays as it is: it was
// written by somebody who knew whose it is.
const ownScript = `uid=$(id -u "$1" 2>/dev/null) || exit 0
[ "$(stat -c %u "$2")" = "$uid" ] && exit 0
chown "$1": "$2" && chmod 0755 "$2"`

// own gives the workspaces that have arrived to the agent's account. Ids mean
// the same in every unprivileged container, so that this is needed only for the
// mount point itself.
func (f *finishing) own(ctx context.Context) error {
	if len(f.arrived) == 0 || !f.spec.Started {
		return nil
	}
	if f.spec.WaitFor != WaitForSSH {
		f.warnings.add("The workspace belongs to root", fmt.Sprintf(
			"The mount point is given to the account %q over SSH, and wait_for = %q doesn't log in to container %d. A workspace that was given away before stays so.", AgentUser, f.spec.WaitFor, f.ref.VMID))
		return nil
	}
	t := target(f.ref, f.sandbox, f.hostKey)
	up, err := f.m.guests.WaitReady(ctx, t)
	if err != nil {
		return &Error{Op: "connect", Ref: f.ref, Kind: ErrNotReady, What: "log in over SSH", Err: err}
	}
	f.hostKey, t.HostKey = up.HostKey, up.HostKey
	f.fillSSH()
	for _, a := range f.arrived {
		result, err := f.m.guests.Exec(ctx, t, Command{Script: ownScript, Args: []string{AgentUser, a.Path}})
		if err == nil && result.ExitCode != 0 {
			err = errors.New(strings.TrimSpace(string(result.Stderr)))
		}
		if err != nil {
			return &Error{Op: "attach", Ref: f.ref, What: fmt.Sprintf("give %s to the account %q", a.Path, AgentUser), Err: err}
		}
	}
	return nil
}
