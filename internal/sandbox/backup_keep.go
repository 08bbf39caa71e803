package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ReadBackup says what the server says of a backup. ErrGone is returned only
// when the storage was asked and doesn't have it; ErrForeign when its notes no
// longer say that it is ours.
func (m *Manager) ReadBackup(ctx context.Context, ref BackupRef) (Backup, error) {
	storage, vmid, err := ref.place()
	if err != nil {
		return Backup{}, &Error{Op: "read", What: "read the backup's id", Err: err}
	}
	at := Ref{VMID: vmid, Node: ref.Node}
	node, err := m.storageNode(ctx, storage, ref.Node)
	if err != nil {
		return Backup{}, m.step("read", at, "find a node with the backup's storage", err)
	}
	ref.Node, at.Node = node, node
	info, err := m.pve.VolumeInfo(ctx, node, ref.VolID)
	if err != nil && !pve.Means(err, pve.NoSuchVolume, pve.Unknown) {
		return Backup{}, m.step("read", at, "read the backup "+ref.VolID, err)
	}
	// The list has what the volume's own answer lacks, and tells a file that
	// isn't there from one that can't be read: that is said in many words.
	all, listErr := m.backupsOf(ctx, node, storage, vmid)
	if listErr != nil {
		return Backup{}, m.step("read", at, "list the backups on "+storage, errors.Join(err, listErr))
	}
	for _, v := range all {
		if v.VolID != ref.VolID {
			continue
		}
		if err != nil {
			return Backup{}, m.step("read", at, "read the backup "+ref.VolID, err)
		}
		if _, err := m.proveBackup("read", ref, info.Notes); err != nil {
			return Backup{}, err
		}
		return m.backupFrom(node, v, info), nil
	}
	if err == nil {
		// Its own answer has it, the list hasn't: a right is missing.
		return Backup{}, m.step("read", at, "list the backups on "+storage, fmt.Errorf("the list leaves out %s: the token needs VM.Backup on /vms/%d, or Datastore.Allocate on /storage/%s", ref.VolID, vmid, storage))
	}
	var answer *pve.Error
	if !errors.As(err, &answer) || answer.Status != 500 {
		return Backup{}, m.step("read", at, "read the backup "+ref.VolID, err)
	}
	return Backup{}, &Error{Op: "read", Ref: at, Kind: ErrGone, What: "the backup " + ref.VolID + " is gone"}
}

// RenewBackup makes a new backup of the series that ref belongs to, and then
// removes those of it that are too many, the one that ref names included. When
// the new one fails, the old ones stay.
func (m *Manager) RenewBackup(ctx context.Context, ref BackupRef, was, spec BackupSpec) (Backup, []Warning, error) {
	made, list, err := m.CreateBackup(ctx, spec, ref.Series, nil)
	if err != nil {
		return Backup{}, list, err
	}
	w := &warnings{list: list}
	// Where the storage was changed, the old one has nothing of this series left.
	keep := spec.withDefaults().KeepLast
	if ref.Storage != "" && ref.Storage != made.Storage {
		m.thinOut(ctx, ref, 0, "", was.Protected, w)
	}
	m.thinOut(ctx, made.BackupRef, keep, made.VolID, was.Protected, w)
	return made, w.take(), nil
}

// thinOut removes all but the keep newest backups of a series from a storage.
// It never removes newest. What can't be removed is a warning: the backup that
// was asked for is there.
func (m *Manager) thinOut(ctx context.Context, ref BackupRef, keep int, newest string, protectedByUs bool, w *warnings) {
	series, err := m.series(ctx, ref)
	if err != nil {
		w.add("Old backups were not removed", fmt.Sprintf("Those on the storage of %s could not be listed: %v", ref.VolID, err))
		return
	}
	series = slices.DeleteFunc(series, func(b Backup) bool { return b.VolID == newest })
	if newest != "" {
		keep--
	}
	for _, b := range series[min(max(keep, 0), len(series)):] {
		// The flag that this resource has set doesn't guard against its own
		// retention; somebody else's does.
		if b.Protected && !protectedByUs {
			w.add("A protected backup was kept", fmt.Sprintf("%s is more than keep_last allows, but somebody has protected it.", b.VolID))
			continue
		}
		if err := m.removeBackup(ctx, b, w); err != nil {
			w.add("An old backup was not removed", fmt.Sprintf("%s is more than keep_last allows: %v", b.VolID, err))
		}
	}
}

// series lists the backups with ref's claim on its storage, the newest first.
// Each was proved to be ours.
func (m *Manager) series(ctx context.Context, ref BackupRef) ([]Backup, error) {
	storage, vmid, err := ref.place()
	if err != nil {
		return nil, err
	}
	node, err := m.storageNode(ctx, storage, ref.Node)
	if err != nil {
		return nil, err
	}
	all, err := m.backupsOf(ctx, node, storage, vmid)
	if err != nil {
		return nil, err
	}
	var out []Backup
	for _, v := range all {
		info, err := m.pve.VolumeInfo(ctx, node, v.VolID)
		if pve.Means(err, pve.NoSuchVolume, pve.Forbidden) {
			continue
		}
		if err != nil {
			return nil, err
		}
		one := BackupRef{VolID: v.VolID, VMID: vmid, Node: node, Series: ref.Series}
		if _, err := m.proveBackup("list", one, info.Notes); err == nil && ref.Series != "" {
			out = append(out, m.backupFrom(node, v, info))
		}
	}
	return out, nil
}

// BackupChange is what can be changed about a backup that exists; nil leaves
// something as it is.
type BackupChange struct {
	Notes     *string
	Protected *bool
}

// UpdateBackup changes notes and protection, and thins out the series.
func (m *Manager) UpdateBackup(ctx context.Context, ref BackupRef, change BackupChange, keepLast int) (Backup, []Warning, error) {
	if err := m.requireOwner("change"); err != nil {
		return Backup{}, nil, err
	}
	now, err := m.ReadBackup(ctx, ref)
	if err != nil {
		return Backup{}, nil, err
	}
	at := Ref{VMID: now.VMID, Node: now.Node}
	update := pve.VolumeUpdate{Protected: change.Protected}
	if change.Notes != nil {
		info, err := m.pve.VolumeInfo(ctx, now.Node, now.VolID)
		if err != nil {
			return Backup{}, nil, m.step("change", at, "read the notes of "+ref.VolID, err)
		}
		marker, err := m.proveBackup("change", ref, info.Notes)
		if err != nil {
			return Backup{}, nil, err
		}
		whole, err := joinNotes(*change.Notes, marker)
		if err != nil {
			return Backup{}, nil, m.step("change", at, "write the notes of "+ref.VolID, err)
		}
		update.Notes = &whole
	}
	if update.Notes != nil || update.Protected != nil {
		err := m.write(ctx, at, "change the backup "+ref.VolID, func(ctx context.Context) error {
			return m.pve.UpdateVolume(ctx, now.Node, now.VolID, update)
		})
		if err != nil {
			return Backup{}, nil, m.step("change", at, "change the backup "+ref.VolID, err)
		}
	}
	w := &warnings{}
	m.thinOut(ctx, now.BackupRef, max(keepLast, 1), now.VolID, now.Protected, w)
	after, err := m.ReadBackup(ctx, ref)
	return after, w.take(), err
}

// DestroyBackup removes a backup and the others of its series. One that is gone
// is a success; a protected one is ErrProtected, and then nothing is removed.
// pendingUPID is the task that may still be making it, or empty.
func (m *Manager) DestroyBackup(ctx context.Context, ref BackupRef, pendingUPID string) ([]Warning, error) {
	if err := m.requireOwner("remove"); err != nil {
		return nil, err
	}
	w := &warnings{}
	if err := m.endPending(ctx, Ref{VMID: ref.VMID, Node: ref.Node}, pve.UPID(pendingUPID), w); err != nil {
		return w.take(), err
	}
	var doomed []Backup
	if ref.VolID != "" {
		switch b, err := m.ReadBackup(ctx, ref); {
		case errors.Is(err, ErrGone):
		case err != nil:
			return nil, err
		default:
			doomed = append(doomed, b)
		}
	}
	others, err := m.series(ctx, ref)
	if err != nil {
		return nil, m.step("remove", Ref{VMID: ref.VMID, Node: ref.Node}, "list the other backups of the series", err)
	}
	for _, b := range others {
		if b.VolID != ref.VolID {
			doomed = append(doomed, b)
		}
	}
	var guarded []string
	for _, b := range doomed {
		if b.Protected {
			guarded = append(guarded, b.VolID)
		}
	}
	if len(guarded) > 0 {
		return nil, &Error{Op: "remove", Ref: Ref{VMID: ref.VMID, Node: ref.Node}, Kind: ErrProtected,
			What:   "nothing was removed, because of the protection of " + strings.Join(guarded, ", "),
			Remedy: "set protected = false and apply, then destroy; one that somebody else has protected is unprotected in the web interface"}
	}
	for _, b := range doomed {
		if err := m.removeBackup(ctx, b, w); err != nil {
			return w.take(), err
		}
	}
	return w.take(), nil
}

// removeBackup removes one backup, reading its origin back first.
func (m *Manager) removeBackup(ctx context.Context, b Backup, w *warnings) error {
	at := Ref{VMID: b.VMID, Node: b.Node}
	now, err := m.ReadBackup(ctx, b.BackupRef)
	if errors.Is(err, ErrGone) {
		return nil
	}
	if err != nil {
		return err
	}
	if now.Protected {
		off := false
		err := m.write(ctx, at, "unprotect the backup "+b.VolID, func(ctx context.Context) error {
			return m.pve.UpdateVolume(ctx, now.Node, b.VolID, pve.VolumeUpdate{Protected: &off})
		})
		if err != nil {
			return m.step("remove", at, "unprotect the backup "+b.VolID, err)
		}
	}
	gone := func(ctx context.Context) (bool, error) {
		_, err := m.ReadBackup(ctx, b.BackupRef)
		if errors.Is(err, ErrGone) {
			return true, nil
		}
		return false, err
	}
	err = m.do(ctx, action{
		what: "remove the backup " + b.VolID, ref: at, done: gone,
		send: func(ctx context.Context) (pve.UPID, error) {
			upid, err := m.pve.DeleteVolume(ctx, now.Node, b.VolID)
			if err != nil && !pve.LostAnswer(err) {
				if is, goneErr := gone(ctx); goneErr == nil && is {
					return "", nil // somebody else was faster
				}
			}
			return upid, err
		},
	}, w)
	// A task that ended well is no proof.
	if is, goneErr := gone(ctx); goneErr == nil && is {
		return nil
	} else if err == nil {
		err = errors.Join(goneErr, errors.New("the server says that it was removed, but it is still there"))
	}
	return m.step("remove", at, "remove the backup "+b.VolID, err)
}
