package sandbox_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// backupStorage is the lab's storage for backups.
const backupStorage = "local"

// backups are the volume ids of a container's backups, the newest first.
func (w *world) backups(p *process, node string, vmid int) []string {
	w.t.Helper()
	list, err := p.client.StorageContent(context.WithoutCancel(w.t.Context()), node, backupStorage, "backup", vmid)
	if err != nil {
		w.t.Fatal(err)
	}
	slices.SortFunc(list, func(a, b pve.StorageVolume) int { return strings.Compare(b.VolID, a.VolID) })
	ids := make([]string, 0, len(list))
	for _, v := range list {
		ids = append(ids, v.VolID)
	}
	return ids
}

func backupSpec(s sandbox.Sandbox) sandbox.BackupSpec {
	return sandbox.BackupSpec{VMID: s.VMID, Storage: backupStorage, Notes: "before the\nbig \\change"}
}

func (w *world) backUp(p *process, spec sandbox.BackupSpec) sandbox.Backup {
	w.t.Helper()
	b, _, err := p.CreateBackup(w.context(), spec, "", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// byHand makes a backup that is nobody's.
func (w *world) byHand(p *process, s sandbox.Sandbox) string {
	w.t.Helper()
	had := w.backups(p, s.Node, s.VMID)
	upid, err := p.client.Vzdump(w.context(), s.Node, pve.VzdumpOptions{VMID: s.VMID, Storage: backupStorage, Notes: "mine"})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		w.t.Fatal(err)
	}
	for _, id := range w.backups(p, s.Node, s.VMID) {
		if !slices.Contains(had, id) {
			return id
		}
	}
	w.t.Fatal("no backup was made")
	return ""
}

func TestABackupIsMadeReadAndRemoved(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	for _, compression := range []string{sandbox.BackupZstd, sandbox.BackupUncompressed} {
		want := backupSpec(s)
		want.Compression = compression
		made := w.backUp(p, want)
		if made.SizeBytes <= 0 || time.Since(made.CreatedAt) > time.Hour || made.Notes != want.Notes || made.VMID != s.VMID || made.Protected || made.Series == "" {
			t.Errorf("made %+v", made)
		}
		if strings.HasSuffix(made.VolID, ".zst") != (compression == sandbox.BackupZstd) {
			t.Errorf("%s made %s", compression, made.VolID)
		}
		// Somebody who holds nothing but the state.
		read, err := w.process().ReadBackup(w.context(), made.BackupRef)
		if err != nil || read != made {
			t.Errorf("read %+v, %v; want %+v", read, err, made)
		}
		for range 2 { // the second finds it gone, which is a success
			if _, err := p.DestroyBackup(w.context(), made.BackupRef, ""); err != nil {
				t.Fatal(err)
			}
		}
		if left := w.backups(p, s.Node, s.VMID); len(left) != 0 {
			t.Errorf("left on the storage: %v", left)
		}
		if _, err := p.ReadBackup(w.context(), made.BackupRef); !errors.Is(err, sandbox.ErrGone) {
			t.Errorf("read after the removal: %v", err)
		}
	}
}

func TestARenewalKeepsTheLastOfItsSeriesAndNothingElseIsTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	stranger := w.byHand(p, s)
	other := w.backUp(p, backupSpec(s))
	want := backupSpec(s)
	want.KeepLast = 2
	first := w.backUp(p, want)
	renew := func(b sandbox.Backup, was, spec sandbox.BackupSpec) sandbox.Backup {
		t.Helper()
		next, warnings, err := p.RenewBackup(w.context(), b.BackupRef, was, spec)
		if err != nil || len(warnings) > 0 {
			t.Fatal(warnings, err)
		}
		if next.Series != first.Series || next.VolID == b.VolID {
			t.Fatalf("renewed %+v", next)
		}
		return next
	}
	check := func(ids ...string) {
		t.Helper()
		ids = append(ids, stranger, other.VolID)
		slices.Sort(ids)
		slices.Reverse(ids)
		if got := w.backups(p, s.Node, s.VMID); !slices.Equal(got, ids) {
			t.Fatalf("on the storage: %v, want %v", got, ids)
		}
	}
	second := renew(first, want, want)
	check(first.VolID, second.VolID)
	third := renew(second, want, want)
	check(second.VolID, third.VolID)

	// Our own protection doesn't keep our own retention from working, somebody else's does.
	guarded := want
	guarded.Protected, guarded.KeepLast = true, 1
	fourth := renew(third, want, guarded)
	check(fourth.VolID)
	fifth := renew(fourth, guarded, guarded)
	check(fifth.VolID)

	if _, err := p.DestroyBackup(w.context(), fifth.BackupRef, ""); !errors.Is(err, sandbox.ErrProtected) {
		t.Fatalf("a protected one: %v", err)
	}
	check(fifth.VolID)
	off := false
	if _, _, err := p.UpdateBackup(w.context(), fifth.BackupRef, sandbox.BackupChange{Protected: &off}, 1); err != nil {
		t.Fatal(err)
	}
	if _, err := p.DestroyBackup(w.context(), fifth.BackupRef, ""); err != nil {
		t.Fatal(err)
	}
	check()
}

func TestABackupWhoseNotesDontSayThatItIsOursIsLeftAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	made := w.backUp(p, backupSpec(s))
	info, err := p.client.VolumeInfo(w.context(), s.Node, made.VolID)
	if err != nil {
		t.Fatal(err)
	}
	for name, notes := range map[string]string{
		"no marker":           "somebody's",
		"another owner's":     strings.Replace(info.Notes, "owner="+testOwner, "owner=other", 1),
		"another series'":     strings.Replace(info.Notes, made.Series, strings.Repeat("a", 26), 1),
		"another container's": strings.Replace(info.Notes, "vmid=", "vmid=9", 1),
		"a container's":       strings.Replace(info.Notes, "kind=backup", "kind=container", 1),
	} {
		if err := p.client.UpdateVolume(w.context(), s.Node, made.VolID, pve.VolumeUpdate{Notes: &notes}); err != nil {
			t.Fatal(err)
		}
		if _, err := p.ReadBackup(w.context(), made.BackupRef); !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("%s: read: %v", name, err)
		}
		if _, err := p.DestroyBackup(w.context(), made.BackupRef, ""); !errors.Is(err, sandbox.ErrForeign) {
			t.Errorf("%s: destroy: %v", name, err)
		}
		if left := w.backups(p, s.Node, s.VMID); len(left) != 1 {
			t.Fatalf("%s: on the storage: %v", name, left)
		}
	}
	if err := p.client.UpdateVolume(w.context(), s.Node, made.VolID, pve.VolumeUpdate{Notes: &info.Notes}); err != nil {
		t.Fatal(err)
	}
	stranger, err := w.process(func(_ *pveConfig, s *sandbox.Settings, _ *sandbox.Options) { s.Owner = "other" }).
		ImportBackup(w.context(), made.VolID)
	if !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("import by another owner: %+v, %v", stranger, err)
	}
}

func TestAContainerThatIsNotOursIsNotBackedUp(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.create(w.process(), spec("web-1"))
	other := w.process(func(_ *pveConfig, s *sandbox.Settings, _ *sandbox.Options) { s.Owner = "other" })
	if _, _, err := other.CreateBackup(w.context(), backupSpec(s), "", nil); !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("another owner's: %v", err)
	}
	if _, _, err := other.CreateBackup(w.context(), sandbox.BackupSpec{VMID: lab.VMIDLast, Storage: backupStorage}, "", nil); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("one that isn't there: %v", err)
	}
	if left := w.backups(other, s.Node, s.VMID); len(left) != 0 {
		t.Errorf("on the storage: %v", left)
	}
}

func TestImportOfABackup(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	s := w.create(p, spec("web-1"))
	made := w.backUp(p, backupSpec(s))
	for _, id := range []string{made.VolID, made.Node + "/" + made.VolID} {
		got, err := w.process().ImportBackup(w.context(), id)
		if err != nil || got != made {
			t.Errorf("%s: %+v, %v; want %+v", id, got, err, made)
		}
	}
	stranger := w.byHand(p, s)
	if _, err := p.ImportBackup(w.context(), stranger); !errors.Is(err, sandbox.ErrUnmarked) {
		t.Errorf("somebody's: %v", err)
	}
	adopting := w.process(func(_ *pveConfig, s *sandbox.Settings, _ *sandbox.Options) { s.Adopt = true })
	got, err := adopting.ImportBackup(w.context(), stranger)
	if err != nil || got.Notes != "mine" || got.Series == "" {
		t.Fatalf("adopted: %+v, %v", got, err)
	}
	if _, err := p.DestroyBackup(w.context(), got.BackupRef, ""); err != nil {
		t.Fatal(err)
	}
	missing := strings.Replace(made.VolID, "-20", "-19", 1)
	if _, err := p.ImportBackup(w.context(), missing); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("one that isn't there: %v", err)
	}
}

func TestAFullStorageFailsABackupWithTheLogAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	if err := w.lab.Control().ResizeStorage(w.context(), control.Storage{Storage: backupStorage, Total: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	_, _, err := p.CreateBackup(w.context(), backupSpec(s), "", nil)
	if !errors.Is(err, sandbox.ErrNoSpace) {
		t.Fatalf("got %v", err)
	}
	for _, want := range []string{"No space left on device", "ERROR: Backup of VM", "free space on the storage local"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q is missing in: %v", want, err)
		}
	}
	if left := w.backups(p, s.Node, s.VMID); len(left) != 0 {
		t.Errorf("on the storage: %v", left)
	}
	if now, err := p.Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil || now.Lock != "" || now.Status != sandbox.StatusRunning {
		t.Errorf("the sandbox afterwards: %+v, %v", now, err)
	}
}

func TestAFailedBackupSurfacesTheServersReason(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	spec := backupSpec(s)
	spec.Storage = "nosuch"
	_, _, err := p.CreateBackup(w.context(), spec, "", nil)
	if err == nil || !strings.Contains(err.Error(), "storage 'nosuch' does not exist") {
		t.Errorf("got %v", err)
	}
}

func TestABackupWaitsForALockAndNamesIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	lock := func(value string) {
		if err := w.lab.Control().ChangeGuest(context.WithoutCancel(t.Context()), control.Guest{VMID: s.VMID, Set: map[string]string{"lock": value}}); err != nil {
			t.Error(err)
		}
	}
	lock("snapshot")
	_, _, err := p.CreateBackup(short(t, 300*time.Millisecond), backupSpec(s), "", nil)
	if !errors.Is(err, sandbox.ErrLocked) || !strings.Contains(err.Error(), `lock "snapshot"`) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	time.AfterFunc(200*time.Millisecond, func() { lock("") })
	w.backUp(p, backupSpec(s))
	if left := w.backups(p, s.Node, s.VMID); len(left) != 1 {
		t.Errorf("on the storage: %v", left)
	}
}

func TestWhatMeetsABackupWaitsForItAndNamesItsLock(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	delays, err := w.lab.Control().Delays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	delays.Backup = 2 * time.Second
	if err := w.lab.Control().SetDelays(t.Context(), delays); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() {
		_, _, err := p.CreateBackup(w.context(), backupSpec(s), "", nil)
		done <- err
	}()
	w.untilLocked(p, s, "backup")
	from, to := spec("web-1"), spec("web-1")
	to.Description = "changed meanwhile"
	prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}
	if _, err := w.process().Update(short(t, 200*time.Millisecond), prior, from, to); !errors.Is(err, sandbox.ErrLocked) ||
		!strings.Contains(err.Error(), "CT is locked (backup)") || !strings.Contains(err.Error(), "vzdump by") {
		t.Errorf("an impatient update: %v", err)
	}
	if out, err := w.process().Update(w.context(), prior, from, to); err != nil || out.Sandbox.Description != to.Description {
		t.Errorf("a patient update: %+v, %v", out.Sandbox.Description, err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
}

// untilLocked waits until the container shows a lock.
func (w *world) untilLocked(p *process, s sandbox.Sandbox, lock string) {
	w.t.Helper()
	for deadline := time.Now().Add(10 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		cfg, err := p.client.LXCConfig(w.context(), s.Node, s.VMID)
		if err != nil || time.Now().After(deadline) {
			w.t.Fatalf("no lock %q: %v", lock, err)
		}
		if cfg.Lock() == lock {
			return
		}
	}
}

func TestABackupThatIsInterruptedIsStoppedAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("web-1"))
	delays, err := w.lab.Control().Delays(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	delays.Backup, delays.TaskStop = time.Minute, 50*time.Millisecond
	if err := w.lab.Control().SetDelays(t.Context(), delays); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(w.context())
	done := make(chan error, 1)
	go func() {
		_, _, err := p.CreateBackup(ctx, backupSpec(s), "", nil)
		done <- err
	}()
	w.untilLocked(p, s, "backup")
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	w.settle()
	if left := w.backups(w.process(), s.Node, s.VMID); len(left) != 0 {
		t.Errorf("on the storage: %v", left)
	}
	if now, err := w.process().Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil || now.Lock != "" {
		t.Errorf("the sandbox afterwards: lock %q, %v", now.Lock, err)
	}
}

func TestFaultAtEachRequestOfABackupLeavesOneBackupOrNone(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			s := w.create(w.process(), spec("web-1"))
			w.loop(t, bad, func(t *testing.T, n int) {
				var made sandbox.Backup
				var saved sandbox.BackupRef // what a state would hold
				var upid string
				var err error
				w.at(bad, n, func() {
					made, _, err = w.process(impatient).CreateBackup(short(t, 10*time.Second), backupSpec(s), "",
						func(ref sandbox.BackupRef, task string) { saved, upid = ref, task })
				})
				p := w.process()
				left := w.backups(p, s.Node, s.VMID)
				switch {
				case err == nil && !slices.Equal(left, []string{made.VolID}):
					t.Fatalf("made %s, on the storage: %v", made.VolID, left)
				case len(left) > 1, len(left) == 1 && saved.Series == "":
					t.Fatalf("left behind: %v, in the state %+v (%v)", left, saved, err)
				}
				if err != nil && saved.Series != "" { // Terraform destroys what is tainted
					if _, err := p.DestroyBackup(w.context(), saved, upid); err != nil {
						t.Fatalf("destroy of the tainted one: %v", err)
					}
					if left := w.backups(p, s.Node, s.VMID); len(left) != 0 {
						t.Fatalf("after the destroy of the tainted one: %v", left)
					}
					return
				}
				// What there is says whose it is.
				for _, id := range left {
					b, err := p.ImportBackup(w.context(), id)
					if err != nil {
						t.Fatalf("what was left behind: %v", err)
					}
					w.removeUnderFault(t, bad, n, b)
				}
			})
		})
	}
}

func (w *world) removeUnderFault(t *testing.T, bad badness, n int, b sandbox.Backup) {
	t.Helper()
	hit := w.lastFired
	var err error
	w.at(bad, n, func() { _, err = w.process(impatient).DestroyBackup(short(t, 10*time.Second), b.BackupRef, "") })
	w.lastFired = hit
	if left := w.backups(w.process(), b.Node, b.VMID); err == nil && len(left) != 0 {
		t.Fatalf("said to be removed, on the storage: %v", left)
	}
	if _, err := w.process().DestroyBackup(w.context(), b.BackupRef, ""); err != nil {
		t.Fatalf("the next run: %v", err)
	}
	if left := w.backups(w.process(), b.Node, b.VMID); len(left) != 0 {
		t.Fatalf("after the next run: %v", left)
	}
}

func TestCheckBackupFindsWhatTheServerWouldRefuseOrChange(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	good := sandbox.BackupSpec{VMID: lab.VMIDFirst, Storage: backupStorage}
	for name, test := range map[string]struct {
		change    func(*sandbox.BackupSpec)
		attribute string
	}{
		"no storage":        {func(s *sandbox.BackupSpec) { s.Storage = "" }, "storage"},
		"a mode":            {func(s *sandbox.BackupSpec) { s.Mode = "fast" }, "mode"},
		"a compression":     {func(s *sandbox.BackupSpec) { s.Compression = "0" }, "compression"},
		"long notes":        {func(s *sandbox.BackupSpec) { s.Notes = strings.Repeat("x", sandbox.MaxBackupNotes+1) }, "notes"},
		"a variable":        {func(s *sandbox.BackupSpec) { s.Notes = "{{guestname}}" }, "notes"},
		"a marker":          {func(s *sandbox.BackupSpec) { s.Notes = "<!-- sandbox v1 owner=x -->" }, "notes"},
		"a carriage return": {func(s *sandbox.BackupSpec) { s.Notes = "a\r\nb" }, "notes"},
	} {
		s := good
		test.change(&s)
		if found := p.CheckBackup(s); len(found) != 1 || found[0].Attribute != test.attribute {
			t.Errorf("%s: %v", name, found)
		}
	}
	if found := p.CheckBackup(good); len(found) != 0 {
		t.Errorf("a good one: %v", found)
	}
}

func TestBackupIDs(t *testing.T) {
	t.Parallel()
	for id, want := range map[string]int{
		"local:backup/vzdump-lxc-290-2026_12_01-05_07_33.tar.zst":  290,
		"nas:backup/dir/vzdump-lxc-100012-2026_12_01-05_07_33.tar": 100012,
		"pbs:backup/ct/290/2026-12-01T05:07:33Z":                   290,
		"local:backup/vzdump-qemu-290-2026_12_01-05_07_33.vma.zst": 0,
		"local:vztmpl/debian-13.tar.zst":                           0,
		"vzdump-lxc-290-2026_12_01-05_07_33.tar.zst":               0,
		"": 0,
	} {
		if _, vmid, err := sandbox.ParseBackupID(id); vmid != want || (err == nil) != (want != 0) {
			t.Errorf("%q: %d, %v", id, vmid, err)
		}
	}
	node, volid, err := sandbox.ParseBackupImportID("pve1/local:backup/vzdump-lxc-290-2026_12_01-05_07_33.tar.zst")
	if node != "pve1" || volid != "local:backup/vzdump-lxc-290-2026_12_01-05_07_33.tar.zst" || err != nil {
		t.Errorf("%q, %q, %v", node, volid, err)
	}
}
