package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// BackupAccepted is called as soon as the server has accepted a backup and
// before it is waited for, so that a caller can save what it needs to find or
// stop it. The ref has no VolID.
type BackupAccepted func(ref BackupRef, upid string)

// CreateBackup backs a sandbox up and returns when the backup is there. The
// sandbox may run or not. series is the claim of the backups that this one
// joins; empty begins a new one. When ctx ends, the server is told to stop, so
// that no archive is left that nobody knows of.
func (m *Manager) CreateBackup(ctx context.Context, spec BackupSpec, series string, accepted BackupAccepted) (Backup, []Warning, error) {
	if err := m.requireOwner("back up"); err != nil {
		return Backup{}, nil, err
	}
	if err := asError(m.CheckBackup(spec)); err != nil {
		return Backup{}, nil, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultBackupTimeout)
		defer cancel()
	}
	b := &backingUp{m: m, spec: spec.withDefaults(), series: cmp.Or(series, m.newClaim()), call: m.newClaim(), accepted: accepted, w: &warnings{}}
	made, err := b.run(ctx)
	return made, b.w.take(), err
}

// backingUp is one backup under way.
type backingUp struct {
	m      *Manager
	spec   BackupSpec
	series string
	call   string // tells this call's backup from all others
	notes  string
	ref    Ref // of the sandbox

	accepted BackupAccepted
	began    time.Time
	w        *warnings
}

func (b *backingUp) run(ctx context.Context) (Backup, error) {
	// Two at once of one container would only wait for each other.
	leave, err := b.m.queues.enter(ctx, fmt.Sprintf("backup %d", b.spec.VMID), 1)
	if err != nil {
		return Backup{}, err
	}
	defer leave()
	if err := b.open(ctx); err != nil {
		return Backup{}, err
	}
	marker := backupMarker(b.m.settings.Owner, b.series, b.spec.VMID, b.call)
	if b.notes, err = joinNotes(b.spec.Notes, marker); err != nil {
		return Backup{}, &Error{Op: "back up", Ref: b.ref, What: "write its notes", Err: err}
	}
	b.began = b.m.clock.Now()
	var running pve.UPID
	err = b.m.do(ctx, action{
		what: fmt.Sprintf("back up container %d", b.ref.VMID),
		ref:  b.ref,
		send: func(ctx context.Context) (pve.UPID, error) {
			var err error
			running, err = b.send(ctx)
			if (err == nil || pve.LostAnswer(err)) && b.accepted != nil {
				b.accepted(BackupRef{Storage: b.spec.Storage, VMID: b.ref.VMID, Node: b.ref.Node, Series: b.series}, string(running))
			}
			return running, err
		},
		done: b.lostButMade,
	}, b.w)
	if b.spec.Mode == BackupStop {
		b.m.guests.Disconnect(target(b.ref, Sandbox{}, ""))
	}
	if err != nil {
		b.abort(ctx, running, err)
		return Backup{}, b.failure(err)
	}
	made, err := b.find(ctx)
	if err == nil && made == nil {
		err = errors.New("the server says that the backup ended well, but it is not on the storage")
	}
	if err != nil {
		return Backup{}, b.m.step("back up", b.ref, "find the new backup on "+b.spec.Storage, err)
	}
	return *made, nil
}

// open finds the sandbox, proves that it is ours, and waits for its lock: a
// backup of a locked container would only fail, as a task that everybody sees.
func (b *backingUp) open(ctx context.Context) error {
	b.ref = Ref{VMID: b.spec.VMID}
	node, cfg, err := b.m.find(ctx, b.spec.VMID, "")
	if err != nil {
		return b.m.keepKind("back up", b.ref, "find it", err)
	}
	b.ref.Node = node
	if cfg.Lock() != "" {
		if cfg, err = b.m.waitUnlocked(ctx, node, b.spec.VMID); err != nil {
			return &Error{Op: "back up", Ref: b.ref, What: "wait until nothing else is at work on it", Err: err, Kind: lockKind(err),
				Remedy: fmt.Sprintf("when no task holds it any more, remove the lock on the node: pct unlock %d", b.spec.VMID)}
		}
	}
	if _, marker := SplitDescription(cfg.Text("description")); marker != nil {
		b.ref.Claim = marker.Claim // whichever of ours it is
	}
	if _, err := b.m.prove("back up", b.ref, cfg); err != nil {
		return err
	}
	for i, mount := range cfg.Mounts() {
		if !mount.Flag("backup") {
			b.w.add(fmt.Sprintf("The backup of container %d leaves out %s", b.spec.VMID, mount.Text("mp")),
				fmt.Sprintf("The mount point mp%d isn't part of backups (backup=0).", i))
		}
	}
	return nil
}

func lockKind(err error) error {
	if errors.Is(err, ErrLocked) {
		return ErrLocked
	}
	return nil
}

func (b *backingUp) send(ctx context.Context) (pve.UPID, error) {
	compress := b.spec.Compression
	if compress == BackupUncompressed {
		compress = "0"
	}
	return b.m.pve.Vzdump(ctx, b.ref.Node, pve.VzdumpOptions{
		VMID: b.ref.VMID, Storage: b.spec.Storage, Mode: b.spec.Mode, Compress: compress,
		Notes: escapeNotes(b.notes), Protected: b.spec.Protected, KeepOthers: true,
	})
}

// lostButMade says, after an answer was lost, whether the call was carried out:
// it waits for what may be our own task first.
func (b *backingUp) lostButMade(ctx context.Context) (bool, error) {
	tasks, err := b.m.pve.Tasks(ctx, b.ref.Node, pve.TaskFilter{VMID: b.ref.VMID, Type: "vzdump", All: true})
	if err != nil {
		return false, err
	}
	for _, task := range tasks {
		// The server's clock may differ from ours by some seconds.
		if task.EndTime != 0 || !b.m.ownTask(task) || time.Unix(task.StartTime, 0).Before(b.began.Add(-time.Minute)) {
			continue
		}
		if err := b.m.task(ctx, task.UPID, b.w); err != nil {
			b.m.log.DebugContext(ctx, "a backup whose answer was lost failed", "upid", task.UPID, "cause", err)
			if ctx.Err() != nil {
				b.abort(ctx, task.UPID, err)
				return false, err
			}
		}
	}
	made, err := b.find(ctx)
	return made != nil, err
}

// find looks for what this call has made. Notes in a list are cut after their
// first line, so the candidates are asked one by one, the newest first.
func (b *backingUp) find(ctx context.Context) (*Backup, error) {
	all, err := b.m.backupsOf(ctx, b.ref.Node, b.spec.Storage, b.spec.VMID)
	if err != nil {
		return nil, err
	}
	var made *Backup
	for _, v := range all {
		if time.Unix(v.Created, 0).Before(b.began.Add(-time.Hour)) {
			break
		}
		info, err := b.m.pve.VolumeInfo(ctx, b.ref.Node, v.VolID)
		if pve.Means(err, pve.NoSuchVolume) {
			continue
		}
		if err != nil {
			return nil, err
		}
		_, marker := SplitDescription(info.Notes)
		if backupCall(marker) != b.call {
			continue
		}
		backup := b.m.backupFrom(b.ref.Node, v, info)
		made = &backup
		break
	}
	return made, nil
}

// abort stops a backup that is under way when the caller gives up. The server
// removes what it has written so far.
func (b *backingUp) abort(ctx context.Context, upid pve.UPID, cause error) {
	var failed *pve.TaskError
	if upid == "" || !errors.As(cause, &failed) || !failed.StillRunning {
		return
	}
	ctx, cancel := detached(ctx)
	defer cancel()
	if err := b.m.pve.StopTask(ctx, upid); err != nil {
		b.w.add("A backup may still be under way", fmt.Sprintf("It could not be stopped: %v. Its task is %s; if it ends well, a backup of container %d is left on %s that no state holds.", err, upid, b.ref.VMID, b.spec.Storage))
	}
}

// failure says what to do about a backup that failed. The task's log is part of
// the error.
func (b *backingUp) failure(err error) error {
	wrapped := b.m.step("back up", b.ref, fmt.Sprintf("back up to %s", b.spec.Storage), err)
	var e *Error
	if !errors.As(wrapped, &e) {
		return wrapped
	}
	switch {
	case pve.Means(err, pve.NoSpace):
		e.Kind, e.Remedy = ErrNoSpace, fmt.Sprintf("free space on the storage %s, or choose another; nothing was left there", b.spec.Storage)
	case pve.Means(err, pve.NoSuchStorage):
		e.Remedy = "name a storage that the container's node has, with the content type backup"
	case pve.Means(err, pve.NoSuchGuest):
		e.Kind = ErrGone
	}
	return e
}

// backupsOf lists the backups of a container on a storage, the newest first.
func (m *Manager) backupsOf(ctx context.Context, node, storage string, vmid int) ([]pve.StorageVolume, error) {
	all, err := m.pve.StorageContent(ctx, node, storage, "backup", vmid)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(v pve.StorageVolume) bool { return v.VMID != 0 && v.VMID != vmid })
	slices.SortFunc(all, func(a, b pve.StorageVolume) int {
		return cmp.Or(cmp.Compare(b.Created, a.Created), strings.Compare(b.VolID, a.VolID))
	})
	return all, nil
}

func (m *Manager) backupFrom(node string, v pve.StorageVolume, info pve.VolumeInfo) Backup {
	notes, marker := SplitDescription(info.Notes)
	storage, vmid, _ := ParseBackupID(v.VolID)
	b := Backup{
		BackupRef: BackupRef{VolID: v.VolID, Storage: storage, VMID: vmid, Node: node},
		SizeBytes: cmp.Or(v.Size, info.Size), CreatedAt: time.Unix(v.Created, 0).UTC(), Notes: notes, Protected: info.Protected,
	}
	if marker != nil && marker.Kind == KindBackup {
		b.Series = marker.Claim
	}
	return b
}
