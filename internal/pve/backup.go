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
	// Prune is the retention ("keep-last=3"); empty keeps all.
	Prune string
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
	return c.startTask(ctx, "POST", nodePath(node)+"/vzdump", p)
}
