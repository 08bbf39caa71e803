package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// What markers say of workspaces. A list's members are joined by "+", which is
// in no slot, id or volume name.

// Mounted is a sandbox's record of a workspace that it has.
type Mounted struct {
	Slot   string // mp0 …
	Holder int
}

// Released is a sandbox's record of a workspace that it was asked to let go
// while it was running: the server unmounts only when the container stops.
type Released struct {
	Holder int
	Volume string // volume id
}

// Place is a holder's record of where its volume is, or is about to be.
type Place struct {
	VMID int
	Slot string
}

func (p Place) String() string { return fmt.Sprintf("%d:%s", p.VMID, p.Slot) }

func formatMounted(list []Mounted) string {
	parts := make([]string, 0, len(list))
	for _, w := range list {
		parts = append(parts, fmt.Sprintf("%s:%d", w.Slot, w.Holder))
	}
	return strings.Join(parts, "+")
}

func parseMounted(s string) ([]Mounted, bool) {
	var list []Mounted
	for part := range strings.SplitSeq(s, "+") {
		slot, id, _ := strings.Cut(part, ":")
		holder, err := strconv.Atoi(id)
		if err != nil || holder <= 0 || !isNumbered(slot, "mp") {
			return nil, false
		}
		list = append(list, Mounted{Slot: slot, Holder: holder})
	}
	return list, true
}

func formatReleased(list []Released) string {
	parts := make([]string, 0, len(list))
	for _, r := range list {
		parts = append(parts, fmt.Sprintf("%d:%s", r.Holder, r.Volume))
	}
	return strings.Join(parts, "+")
}

func parseReleased(s string) ([]Released, bool) {
	var list []Released
	for part := range strings.SplitSeq(s, "+") {
		id, volume, ok := strings.Cut(part, ":")
		holder, err := strconv.Atoi(id)
		if err != nil || holder <= 0 || !ok || volume == "" {
			return nil, false
		}
		list = append(list, Released{Holder: holder, Volume: volume})
	}
	return list, true
}

func parsePlace(s string) (*Place, bool) {
	id, slot, _ := strings.Cut(s, ":")
	vmid, err := strconv.Atoi(id)
	if err != nil || vmid <= 0 || !isNumbered(slot, "mp") {
		return nil, false
	}
	return &Place{VMID: vmid, Slot: slot}, true
}

// slotOf is where the sandbox has a workspace by its own record.
func (m *Marker) slotOf(holder int) (string, bool) {
	for _, w := range m.Workspaces {
		if w.Holder == holder {
			return w.Slot, true
		}
	}
	return "", false
}

// record notes that a workspace is, or will be, in a slot. What was said of
// the slot or of the workspace before is out of date.
func (m *Marker) record(slot string, holder int) {
	m.Workspaces = slices.DeleteFunc(m.Workspaces, func(w Mounted) bool { return w.Slot == slot || w.Holder == holder })
	m.Workspaces = append(m.Workspaces, Mounted{Slot: slot, Holder: holder})
}

// forgetWorkspace drops what is said of a workspace.
func (m *Marker) forgetWorkspace(holder int) {
	m.Workspaces = slices.DeleteFunc(m.Workspaces, func(w Mounted) bool { return w.Holder == holder })
	m.Released = slices.DeleteFunc(m.Released, func(r Released) bool { return r.Holder == holder })
}

// clone is a copy whose lists can be changed.
func (m *Marker) clone() Marker {
	c := *m
	c.Workspaces, c.Released, c.Extra = slices.Clone(m.Workspaces), slices.Clone(m.Released), slices.Clone(m.Extra)
	if m.At != nil {
		at := *m.At
		c.At = &at
	}
	return c
}

// isVolume says whether a configuration's slot holds a volume of a storage, as
// opposed to a bind mount, a device or nothing.
func isVolume(cfg *pve.LXCConfig, slot string) bool {
	return mountIn(cfg, slot).Storage() != ""
}

// mountIn is the mount point in a slot; an empty one if there is none.
func mountIn(cfg *pve.LXCConfig, slot string) pve.Mount {
	return pve.Mount{Properties: pve.ParseProperties(cfg.Text(slot))}
}

// workspaceSlots are the slots that hold workspaces: recorded, and with a
// volume in them. Something else in such a slot is somebody's doing, and shows.
func workspaceSlots(cfg *pve.LXCConfig, marker *Marker) map[string]int {
	slots := map[string]int{}
	if marker == nil || marker.Kind == KindHolder {
		return slots
	}
	for _, w := range marker.Workspaces {
		if isVolume(cfg, w.Slot) {
			slots[w.Slot] = w.Holder
		}
	}
	return slots
}

// attachedIn lists the workspaces that a sandbox has, in the order of their
// records.
func attachedIn(cfg *pve.LXCConfig, marker *Marker) []Attached {
	slots := workspaceSlots(cfg, marker)
	if len(slots) == 0 {
		return nil
	}
	var list []Attached
	for _, w := range marker.Workspaces {
		if _, ok := slots[w.Slot]; ok {
			list = append(list, Attached{Workspace: w.Holder, Path: mountIn(cfg, w.Slot).Path(), Slot: w.Slot})
		}
	}
	return list
}
