package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ParseBackupImportID reads "volid" or "node/volid".
func ParseBackupImportID(id string) (node, volid string, err error) {
	volid = id
	if head, rest, ok := strings.Cut(id, "/"); ok && !strings.Contains(head, ":") {
		if !validNodeName(head) {
			return "", "", fmt.Errorf("%q is no node's name", head)
		}
		node, volid = head, rest
	}
	_, _, err = ParseBackupID(volid)
	return node, volid, err
}

// ImportBackup finds a backup for a state that doesn't hold it yet. One without
// our marker is ErrUnmarked unless Settings.Adopt is set: then the marker is
// written into its notes. Without a node every one that has such a storage is
// asked: storages of the same name may be different disks.
func (m *Manager) ImportBackup(ctx context.Context, id string) (Backup, error) {
	node, volid, err := ParseBackupImportID(id)
	if err != nil {
		return Backup{}, &Error{Op: "import", What: "read the import id", Err: err}
	}
	if err := m.requireOwner("import"); err != nil {
		return Backup{}, err
	}
	storage, vmid, err := ParseBackupID(volid)
	if err != nil {
		return Backup{}, &Error{Op: "import", What: "read the import id", Err: err}
	}
	if node == "" {
		if node, err = m.nodeWithVolume(ctx, storage, volid); err != nil {
			return Backup{}, m.keepKind("import", Ref{VMID: vmid}, "find the backup", err)
		}
	}
	ref := BackupRef{VolID: volid, VMID: vmid, Node: node}
	info, err := m.pve.VolumeInfo(ctx, node, volid)
	if err != nil {
		return Backup{}, m.step("import", Ref{VMID: vmid, Node: node}, "read the backup "+volid, err)
	}
	if _, marker := SplitDescription(info.Notes); marker == nil {
		if !m.settings.Adopt {
			return Backup{}, &Error{Op: "import", Ref: Ref{VMID: vmid, Node: node}, Kind: ErrUnmarked,
				What:   fmt.Sprintf("the notes of %s carry no ownership marker, so it is somebody else's", volid),
				Remedy: "to take it over for good, set adopt = true in the provider block and import again: the marker is written then"}
		}
		if err := m.adoptBackup(ctx, ref, info.Notes); err != nil {
			return Backup{}, err
		}
	}
	return m.ReadBackup(ctx, ref)
}

func (m *Manager) adoptBackup(ctx context.Context, ref BackupRef, notes string) error {
	at := Ref{VMID: ref.VMID, Node: ref.Node}
	whole, err := joinNotes(strings.TrimSuffix(notes, "\n"), backupMarker(m.settings.Owner, m.newClaim(), ref.VMID, m.newClaim()))
	if err != nil {
		return m.step("import", at, "write the ownership marker", err)
	}
	err = m.write(ctx, at, "adopt the backup "+ref.VolID, func(ctx context.Context) error {
		return m.pve.UpdateVolume(ctx, ref.Node, ref.VolID, pve.VolumeUpdate{Notes: &whole})
	})
	return m.step("import", at, "write the ownership marker", err)
}

// nodeWithVolume finds the node whose storage of that name has a volume.
func (m *Manager) nodeWithVolume(ctx context.Context, storage, volid string) (string, error) {
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return "", err
	}
	var last error
	asked := 0
	for _, r := range resources {
		if r.Type != "storage" || r.Storage != storage {
			continue
		}
		if n := nodeIn(resources, r.Node); n == nil || n.Status != "online" {
			continue
		}
		asked++
		_, err := m.pve.VolumeInfo(ctx, r.Node, volid)
		if err == nil {
			return r.Node, nil
		}
		last = err
		if r.Shared {
			break // the others have the same content
		}
	}
	if asked == 0 {
		return "", fmt.Errorf("no node that is up has the storage %q", storage)
	}
	var answer *pve.Error
	if errors.As(last, &answer) && answer.Status == 500 {
		return "", &Error{Op: "find", Kind: ErrGone, What: "no storage named " + storage + " has " + volid, Err: last}
	}
	return "", last
}
