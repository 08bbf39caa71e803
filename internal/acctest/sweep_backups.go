package acctest

import (
	"context"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// sweepBackups deletes what a test left on the storage for backups: archives of ids of its range whose notes carry its
// owner's mark. They outlive their containers, so that looking for guests doesn't find them.
func sweepBackups(ctx context.Context, t testing.TB, client *pve.Client, env *Environment) {
	t.Helper()
	for _, node := range env.Nodes {
		volumes, err := client.StorageContent(ctx, node, env.Backups, "backup", 0)
		if err != nil {
			t.Logf("backups on %s can't be looked at: %v", env.Backups, err) // not every test has need of such a storage
			return
		}
		for _, v := range volumes {
			_, marker := sandbox.SplitDescription(v.Notes)
			if v.VMID < env.VMIDs.First || v.VMID > env.VMIDs.Last || marker == nil || marker.Owner != env.Owner || marker.VMID != v.VMID {
				continue
			}
			if !t.Failed() {
				t.Errorf("the test left the backup %s behind", v.VolID)
			}
			if err := deleteBackup(ctx, client, node, v); err != nil {
				t.Errorf("the backup %s stays: %v", v.VolID, err)
			}
		}
	}
}

func deleteBackup(ctx context.Context, client *pve.Client, node string, v pve.StorageVolume) error {
	if v.Protected {
		off := false
		if err := client.UpdateVolume(ctx, node, v.VolID, pve.VolumeUpdate{Protected: &off}); err != nil {
			return err
		}
	}
	upid, err := client.DeleteVolume(ctx, node, v.VolID)
	if err != nil {
		return err
	}
	_, err = client.Wait(ctx, upid, func(string) {})
	return err
}
