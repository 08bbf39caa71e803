package pve

import "testing"

func TestTheReasonOfAFailedBackupIsInItsLog(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		line string
		want verdict
	}{
		{"ERROR: Backup of VM 290 failed - CT is locked (snapshot)", verdict{meaning: Locked, lockedBy: "snapshot"}},
		{"ERROR: Backup of VM 290 failed - unable to find VM '290'", verdict{meaning: NoSuchGuest}},
		{"INFO: Backup job finished with errors", verdict{}},
	} {
		got := classify(0, jobError([]string{"INFO: Starting Backup of VM 290 (lxc)", c.line, "TASK ERROR: job errors"}), nil)
		if got != c.want {
			t.Errorf("%q: got %+v, want %+v", c.line, got, c.want)
		}
	}
}

func TestAVolumesPathNamesItsStorageAndEscapesItsName(t *testing.T) {
	t.Parallel()
	got := volumePath("pve1", "local:backup/vzdump-lxc-290-2026_12_01-05_07_42.tar")
	want := "/nodes/pve1/storage/local/content/local%3Abackup%2Fvzdump-lxc-290-2026_12_01-05_07_42.tar"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if StorageOf("no id") != "" {
		t.Error("what has no colon has no storage")
	}
}
