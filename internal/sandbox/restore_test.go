package sandbox_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// saved makes a sandbox with a file in it and backs it up.
func (w *world) saved(p *process) (sandbox.Sandbox, sandbox.Backup) {
	w.t.Helper()
	s := w.create(p, spec("original"))
	prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}
	if _, err := p.WriteFile(w.context(), prior, sandbox.File{Path: "/root/work.txt", Content: strings.NewReader("work\n"), Mode: 0o600}); err != nil {
		w.t.Fatal(err)
	}
	return s, w.backUp(p, backupSpec(s))
}

func restoreSpec(hostname, volid string) sandbox.Spec {
	s := spec(hostname) // the backup brings its size
	s.Source.RestoreFrom = volid
	s.MemoryMiB = nil
	return s
}

func TestARestoredSandboxHasTheContentAndIsItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	original, backup := w.saved(p)
	s := w.create(p, restoreSpec("restored", backup.VolID))
	if s.VMID == original.VMID || s.Claim == original.Claim || s.Network.MACAddress == original.Network.MACAddress || s.IPv4 == original.IPv4 {
		t.Errorf("it shares its id, claim, MAC or IP address with the original: %+v", s)
	}
	if s.Hostname != "restored" || s.MemoryMiB != original.MemoryMiB || s.DiskGiB != original.DiskGiB || !s.Posture.Unprivileged || s.Source.RestoreFrom != backup.VolID {
		t.Errorf("restored %+v", s)
	}
	content, err := p.ReadFile(w.context(), sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}, "/root/work.txt", 100)
	if err != nil || string(content) != "work\n" {
		t.Errorf("the file holds %q, %v", content, err)
	}
	if now, err := p.Read(w.context(), sandbox.Prior{Ref: original.Ref}); err != nil || now.Network != original.Network || now.Description != original.Description || now.Status != sandbox.StatusRunning {
		t.Errorf("the original has changed: %+v, %v", now, err)
	}
	imported, err := w.process().Import(w.context(), "100001")
	if err != nil || imported.Source.RestoreFrom != backup.VolID || imported.Claim != s.Claim {
		t.Errorf("import: %+v, %v", imported.Source, err)
	}
	// The backup has done its part.
	if _, err := p.DestroyBackup(w.context(), backup.BackupRef, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); !slices.Equal(left, []int{original.VMID}) {
		t.Errorf("on the server: %v", left)
	}
}

func TestARestoreBringsNoInterfaceAndNoAddressOfItsOwn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("original"))
	if err := p.client.UpdateLXC(w.context(), s.Node, s.VMID, pve.LXCUpdate{Set: map[string]string{
		"net1": "name=eth1,bridge=" + lab.Bridge + ",ip=manual", "onboot": "1", "protection": "1", "tags": "foreign;sbx-other",
	}}); err != nil {
		t.Fatal(err)
	}
	backup := w.backUp(p, backupSpec(s))
	want := restoreSpec("restored", backup.VolID)
	want.Network.IPv4 = "" // the default isn't the backup's address
	want.WaitFor, want.Started = sandbox.WaitForNone, false
	got := w.create(p, want)
	if len(got.Posture.ExtraNICs) != 0 || got.Network.IPv4 != sandbox.AddressDHCP || got.Network.IPv6 != sandbox.AddressNone {
		t.Errorf("the network is %+v, others %v", got.Network, got.Posture.ExtraNICs)
	}
	if got.OnBoot || got.Protection || !slices.Equal(got.Tags, []string{"ci"}) {
		t.Errorf("it took over onboot %v, protection %v, tags %v", got.OnBoot, got.Protection, got.Tags)
	}
}

func TestASandboxCanBeRestoredFromABackupThatSomebodyElseMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("original"))
	volid := w.byHand(p, s)
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Raw: [][2]string{{"lxc.cap.drop", "sys_admin"}}}); err != nil {
		t.Fatal(err)
	}
	raw := w.byHand(p, s)
	w.create(p, restoreSpec("plain", volid))
	out, err := p.Create(w.context(), restoreSpec("raw", raw), nil)
	if err != nil || len(out.Sandbox.Posture.Raw) != 0 {
		t.Fatalf("%+v, %v", out.Sandbox.Posture, err)
	}
	var told bool
	for _, warning := range out.Warnings {
		told = told || strings.Contains(warning.Detail, "skipping custom lxc options")
	}
	if !told {
		t.Errorf("nothing warns of the raw line: %+v", out.Warnings)
	}
}

func TestARestoreIsRefusedBeforeAnythingIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("original"))
	good := w.backUp(p, backupSpec(s))
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{"mp0": "/srv,mp=/srv"}}); err != nil {
		t.Fatal(err)
	}
	bind := w.byHand(p, s)
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{"mp0": ""}}); err != nil {
		t.Fatal(err)
	}
	upid, err := p.client.Vzdump(w.context(), w.lab.Nodes()[0], pve.VzdumpOptions{VMID: lab.TemplateID, Storage: backupStorage})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	template := w.backups(p, s.Node, lab.TemplateID)[0]
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: s.VMID, Set: map[string]string{"dev0": "/dev/kvm", "cores": ""}}); err != nil {
		t.Fatal(err)
	}
	device := w.byHand(p, s)
	for name, test := range map[string]struct {
		change    func(*sandbox.Spec)
		attribute string
	}{
		"a backup that isn't there": {func(s *sandbox.Spec) {
			s.Source.RestoreFrom = strings.Replace(good.VolID, "-20", "-19", 1)
		}, "restore_from"},
		"a storage that isn't there": {func(s *sandbox.Spec) { s.Source.RestoreFrom = strings.Replace(good.VolID, "local", "nosuch", 1) }, "restore_from"},
		"a bind mount":               {func(s *sandbox.Spec) { s.Source.RestoreFrom = bind }, "restore_from"},
		"a template's":               {func(s *sandbox.Spec) { s.Source.RestoreFrom = template }, "restore_from"},
		"a virtual machine's":        {func(s *sandbox.Spec) { s.Source.RestoreFrom = "local:backup/vzdump-qemu-1-x.vma" }, "restore_from"},
		"a device":                   {func(s *sandbox.Spec) { s.Source.RestoreFrom = device }, "restore_from"},
		"two sources":                {func(s *sandbox.Spec) { s.Source.TemplateID = lab.TemplateID }, "template_file_id"},
		"a full clone":               {func(s *sandbox.Spec) { s.FullClone = true }, "full_clone"},
		"a disk storage that isn't":  {func(s *sandbox.Spec) { s.Storage = "nosuch" }, "storage"},
	} {
		want := restoreSpec("refused", good.VolID)
		test.change(&want)
		problems := p.Check(want)
		if len(problems) == 0 {
			var err error
			if problems, err = p.CheckServer(w.context(), want, nil); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if len(problems) != 1 || problems[0].Attribute != test.attribute {
			t.Errorf("%s: at plan: %v", name, problems)
		}
		var made *sandbox.ProblemsError
		if _, err := p.Create(w.context(), want, nil); !errors.As(err, &made) {
			t.Errorf("%s: at apply: %v", name, err)
		}
	}
	if left := w.marked(); !slices.Equal(left, []int{s.VMID}) {
		t.Errorf("on the server: %v", left)
	}
}

func TestAFullStorageFailsARestoreAndLeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	s := w.create(p, spec("original"))
	backup := w.backUp(p, backupSpec(s))
	if err := w.lab.Control().ResizeStorage(w.context(), control.Storage{Storage: lab.Storage, Total: 1 << 20}); err != nil {
		t.Fatal(err)
	}
	var saved state
	_, err := p.Create(w.context(), restoreSpec("restored", backup.VolID), saved.accept)
	if !errors.Is(err, sandbox.ErrNoSpace) || !strings.Contains(err.Error(), "No space left on device") {
		t.Errorf("got %v", err)
	}
	if left := w.marked(); !slices.Equal(left, []int{s.VMID}) {
		t.Errorf("on the server: %v", left)
	}
	if _, err := p.Destroy(w.context(), saved.ref, saved.upid); err != nil {
		t.Errorf("destroy of what the state holds: %v", err)
	}
}

func TestFaultAtEachRequestOfARestoreLeavesNothingOrATrackedSandbox(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			original, backup := w.saved(w.process())
			if _, err := w.process().Destroy(w.context(), original.Ref, ""); err != nil {
				t.Fatal(err)
			}
			want := restoreSpec("victim", backup.VolID)
			w.loop(t, bad, func(t *testing.T, n int) { w.createUnderFault(t, bad, n, want) })
		})
	}
}
