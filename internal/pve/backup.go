package pve

import "context"

// VzdumpOptions are the parameters of a backup.
type VzdumpOptions struct {
	VMID    int
	Storage string
	// Mode is "snapshot", "suspend" or "stop"; the server's default is snapshot.
	Mode string
	// Compress is "0", "gzip", "lzo" or "zstd".
	Compress string
	// Notes is a template: {{guestname}}, {{vmid}}, {{node}} and {{cluster}} are
	// replaced.
	Notes     string
	Protected bool
	// Prune is the retention ("keep-last=3"); empty is the storage's own. It needs
	// Datastore.Allocate on the storage.
	Prune string
	// KeepOthers removes no older backups, whatever the retention says.
	KeepOthers bool
}

// Vzdump starts a backup of a guest. A guest or storage that isn't there makes
// the task fail, not the call.
func (c *Client) Vzdump(ctx context.Context, node string, o VzdumpOptions) (UPID, error) {
	p := params{}
	p.setInt("vmid", o.VMID)
	p.setText("storage", o.Storage)
	p.setText("mode", o.Mode)
	p.setText("compress", o.Compress)
	p.setText("notes-template", o.Notes)
	p.setFlag("protected", o.Protected)
	p.setText("prune-backups", o.Prune)
	if o.KeepOthers {
		p.set("remove", "0")
	}
	return c.startTask(ctx, "POST", nodePath(node)+"/vzdump", p)
}
