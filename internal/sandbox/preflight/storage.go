package preflight

import "slices"

// Ability is what a storage can do for containers, by its type.
type Ability struct {
	// Known is false for a type that isn't in the table: the server has the last word then.
	Known bool
	// Containers: it can hold root disks at all.
	Containers bool
	// Snapshots of container disks; LinkedClones of a template there; Templates: a container there can become one.
	Snapshots, LinkedClones, Templates bool
	// RollbackNewestOnly: older snapshots can't be rolled back to while newer ones exist.
	RollbackNewestOnly bool
}

// abilities follow the storages' own table of features in Proxmox VE 8 and 9 (volume_has_feature), for the formats that
// containers have: raw and subvol. Files in qcow2 could do more, and no container uses them.
var abilities = map[string]Ability{
	"btrfs":       {Containers: true, Snapshots: true, LinkedClones: true, Templates: true},
	"zfspool":     {Containers: true, Snapshots: true, LinkedClones: true, Templates: true, RollbackNewestOnly: true},
	"lvmthin":     {Containers: true, Snapshots: true, LinkedClones: true, Templates: true},
	"rbd":         {Containers: true, Snapshots: true, LinkedClones: true, Templates: true},
	"dir":         {Containers: true, Templates: true},
	"nfs":         {Containers: true, Templates: true},
	"cifs":        {Containers: true, Templates: true},
	"glusterfs":   {Templates: false},
	"lvm":         {Containers: true},
	"cephfs":      {},
	"iscsi":       {},
	"iscsidirect": {},
	"zfs":         {}, // ZFS over iSCSI: virtual machines only
	"pbs":         {},
	"esxi":        {},
}

// AbilityOf looks a storage up by its type; content is what it is set up to hold.
func AbilityOf(storageType string, content []string) Ability {
	a, known := abilities[storageType]
	a.Known = known
	if !known {
		a.Containers = true
	}
	if !slices.Contains(content, "rootdir") {
		a.Containers, a.Snapshots, a.LinkedClones, a.Templates = false, false, false, false
	}
	return a
}
