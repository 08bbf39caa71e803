package sandbox

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"
)

// A backup carries an ownership marker as guests do: the last line of its
// notes, written by the very call that makes it. Its claim is that of its
// series (all backups that one resource has made), and backup=… tells the
// single call apart, so that a backup whose answer was lost can be found.

// KindBackup marks no guest but an archive on a storage.
const KindBackup Kind = "backup"

const backupCallKey = "backup="

func backupMarker(owner, series string, vmid int, call string) *Marker {
	return &Marker{Owner: owner, Claim: series, VMID: vmid, Kind: KindBackup, Extra: []string{backupCallKey + call}}
}

// backupCall is the call that made a backup.
func backupCall(m *Marker) string {
	if m == nil || m.Kind != KindBackup {
		return ""
	}
	for _, kv := range m.Extra {
		if call, ok := strings.CutPrefix(kv, backupCallKey); ok {
			return call
		}
	}
	return ""
}

// joinNotes puts the user's notes and the marker together.
func joinNotes(notes string, m *Marker) (string, error) {
	whole, err := JoinDescription(notes, m)
	if err != nil {
		return "", err
	}
	if n := utf8.RuneCountInString(escapeNotes(whole)); n > maxServerNotes {
		return "", fmt.Errorf("notes and marker: %d characters, the server takes %d", n, maxServerNotes)
	}
	return whole, nil
}

// escapeNotes writes notes as vzdump's template wants them: on one line.
func escapeNotes(notes string) string {
	return strings.NewReplacer(`\`, `\\`, "\n", `\n`).Replace(notes)
}

// archiveForm is a container's backup: of vzdump on a file storage
// ("vzdump-lxc-290-2026_12_01-05_07_33.tar.zst"), or on a Proxmox Backup
// Server ("ct/290/2026-12-01T05:07:33Z").
var archiveForm = regexp.MustCompile(`^([A-Za-z][A-Za-z0-9._-]*):backup/(?:[^/]+/)*(?:vzdump-lxc-(\d+)-[^/]+|ct/(\d+)/[^/]+)$`)

// ParseBackupID reads a backup's volume id: the storage it is on, and the
// container that it was made of.
func ParseBackupID(volid string) (storage string, vmid int, err error) {
	m := archiveForm.FindStringSubmatch(volid)
	if m == nil {
		return "", 0, fmt.Errorf(`%q is no backup of a container, such as "local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst"`, volid)
	}
	vmid, err = strconv.Atoi(m[2] + m[3])
	if err != nil {
		return "", 0, fmt.Errorf("%q: %w", volid, err)
	}
	return m[1], vmid, nil
}

// proveBackup says whether a backup is the one that ref means: its notes carry
// the owner, the series and the container, and its name the container too. An
// empty series takes any of our owner's.
func (m *Manager) proveBackup(op string, ref BackupRef, notes string) (*Marker, error) {
	_, marker := SplitDescription(notes)
	_, vmid, err := ParseBackupID(ref.VolID)
	owner := m.settings.Owner
	var why string
	switch {
	case err != nil:
		why = err.Error()
	case marker == nil:
		why = "its notes carry no ownership marker"
	case marker.Kind != KindBackup:
		why = fmt.Sprintf("its marker is that of a %s", marker.Kind)
	case marker.Owner != owner:
		why = fmt.Sprintf("its marker says owner %q, not %q", marker.Owner, owner)
	case marker.VMID != vmid || ref.VMID != 0 && ref.VMID != vmid:
		why = fmt.Sprintf("it is a backup of container %d, and its marker speaks of %d", vmid, marker.VMID)
	case ref.Series != "" && marker.Claim != ref.Series:
		why = "its marker has another claim"
	default:
		return marker, nil
	}
	return marker, &Error{
		Op: op, Ref: Ref{VMID: ref.VMID, Node: ref.Node}, Kind: ErrForeign,
		What:   fmt.Sprintf("the backup %s is not one that was made here: %s", ref.VolID, why),
		Remedy: "it was left alone; remove this resource from the state, or see to the backup by hand",
	}
}
