package container_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// backUp makes a backup of a container outside of any state.
func backUp(t *testing.T, env *acctest.Environment, c *pve.Client, r *protocoltest.Resource) string {
	t.Helper()
	node, vmid := r.Text(t, "node_name"), r.VMID(t)
	upid, err := c.Vzdump(t.Context(), node, pve.VzdumpOptions{VMID: vmid, Storage: env.Backups, Compress: "zstd"})
	wait(t, c, upid, err)
	list, err := c.StorageContent(t.Context(), node, env.Backups, "backup", vmid)
	if err != nil || len(list) != 1 {
		t.Fatalf("%d backups, %v", len(list), err)
	}
	volid := list[0].VolID
	t.Cleanup(func() { removeBackup(t, c, node, volid) })
	return volid
}

func removeBackup(t *testing.T, c *pve.Client, node, volid string) {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	upid, err := c.DeleteVolume(ctx, node, volid)
	if pve.Means(err, pve.NoSuchVolume) {
		return
	}
	wait(t, c, upid, err)
}

func TestAContainerRestoredFromABackup(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsPrivilege(t, env, "/vms", "VM.Backup")
	server := protocoltest.For(t, env, nil)
	c := client(t, env)
	original := create(t, server, values{"hostname": "original", "memory": 192, "tags": []string{"old"}, "description": "its own"})
	volid := backUp(t, env, c, original)
	disk := env.DiskGiB(t, 1)
	config := values{"hostname": "restored", "restore_from": volid, "disk": disk}
	r := create(t, server, config)
	for path, want := range map[string]any{
		"restore_from": volid, "template_id": nil, "template_file_id": nil, "status": "running", "memory": 192.0, "disk": float64(disk),
		"description": nil, "tags": nil, "posture.unprivileged": true, "template_current": nil,
	} {
		if got := r.Get(t, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	for _, path := range []string{"claim", "vmid", "network.mac_address", "ipv4_address"} {
		if r.Get(t, path) == original.Get(t, path) {
			t.Errorf("it has the original's %s", path)
		}
	}
	settled(t, server, original, values{"hostname": "original", "memory": 192, "tags": []string{"old"}, "description": "its own"})

	imported, diags := server.Import(t, resourceType, r.Text(t, "id"))
	protocoltest.NoErrors(t, diags)
	if imported.Get(t, "restore_from") != volid {
		t.Errorf("imported from %v", imported.Get(t, "restore_from"))
	}
	settled(t, server, imported, config)

	other := strings.Replace(volid, "-20", "-19", 1)
	for name, test := range map[string]struct {
		config values
		want   string
	}{
		"another backup, kept":     {with(config, values{"restore_from": other, "on_template_change": "keep"}), "update"},
		"a template, not kept":     {values{"hostname": "restored"}, "replace"},
		"unknown, not kept":        {with(config, values{"restore_from": protocoltest.Unknown}), "replace"},
		"unknown, but kept":        {with(config, values{"restore_from": protocoltest.Unknown, "on_template_change": "keep"}), "update"},
		"a template file instead":  {values{"hostname": "restored", "template_file_id": env.TemplateFile, "cores": 1}, "replace"},
		"the memory of its backup": {with(config, values{"memory": 192}), "no-op"},
	} {
		plan := server.Plan(t, r, test.config)
		protocoltest.NoErrors(t, plan.Diags)
		if plan.Action() != test.want {
			t.Errorf("%s: planned %s because of %v, want %s", name, plan.Action(), plan.Replace, test.want)
		}
	}
	// That the backup goes changes nothing for what was made of it.
	removeBackup(t, c, original.Text(t, "node_name"), volid)
	settled(t, server, r, config)
	plan := server.Plan(t, server.NewResource(t, resourceType), values{"hostname": "late", "restore_from": volid})
	wants(t, plan.Diags, "There is no backup", volid)
}

func TestARestoreHasOneSource(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	const volid = "local:backup/vzdump-lxc-100000-2026_12_01-05_07_33.tar.zst"
	for name, config := range map[string]values{
		"a template too":      {"hostname": "web-1", "restore_from": volid, "template_id": 9000},
		"a template file too": {"hostname": "web-1", "restore_from": volid, "template_file_id": env.TemplateFile},
	} {
		if diags := server.Validate(t, resourceType, config); !protocoltest.HasErrors(diags) {
			t.Errorf("%s was accepted", name)
		}
	}
	plan := server.Plan(t, server.NewResource(t, resourceType), values{"hostname": "web-1", "restore_from": "local:vztmpl/debian.tar.zst"})
	wants(t, plan.Diags, "is no backup")
}
