package pve

import "context"

// DownloadOptions say what a node fetches into a storage.
type DownloadOptions struct {
	Storage string
	// Content is "vztmpl" or "iso".
	Content string
	// Filename is the file's name on the storage; the server normalises it.
	Filename string
	URL      string
	// Algorithm is "sha256", "sha512", …; Checksum the sum in hex. Either both or none.
	Algorithm, Checksum string
}

// DownloadURL starts a download by the node. A file of that name that is there is kept when its checksum is the
// wanted one, and replaced otherwise. A wrong checksum and an unreachable address make the task fail, not the call.
func (c *Client) DownloadURL(ctx context.Context, node string, o DownloadOptions) (UPID, error) {
	p := params{"content": o.Content, "filename": o.Filename, "url": o.URL}
	p.setText("checksum", o.Checksum)
	p.setText("checksum-algorithm", o.Algorithm)
	return c.startTask(ctx, "POST", nodePath(node)+"/storage/"+escapeSegment(o.Storage)+"/download-url", p)
}

// PullImage starts the download of an OCI image ("docker.io/library/debian:13") as a container template file: Proxmox VE
// 9.1 and later. Older ones answer that they have no such method (UnsupportedPath).
func (c *Client) PullImage(ctx context.Context, node, storage, reference, filename string) (UPID, error) {
	p := params{"reference": reference}
	p.setText("filename", filename)
	return c.startTask(ctx, "POST", nodePath(node)+"/storage/"+escapeSegment(storage)+"/oci-registry-pull", p)
}
