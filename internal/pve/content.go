package pve

import (
	"context"
	"strings"
)

// VolumeInfo is one volume of a storage, asked for by itself.
type VolumeInfo struct {
	// Path is where its file is on the node.
	Path   string `pve:"path"`
	Format string `pve:"format"`
	// Size and Used are in bytes.
	Size int64 `pve:"size"`
	Used int64 `pve:"used"`
	// Notes and Protected are those of a backup.
	Notes     string `pve:"notes"`
	Protected bool   `pve:"protected"`
	Extra     Extra
}

// VolumeInfo asks for one volume by its id. A list leaves out what the identity
// may not see; this call says so instead.
func (c *Client) VolumeInfo(ctx context.Context, node, volid string) (VolumeInfo, error) {
	return getObject[VolumeInfo](ctx, c, volumePath(node, volid), nil)
}

// VolumeUpdate is a change of a backup's notes or protection; nil leaves one as
// it is.
type VolumeUpdate struct {
	Notes     *string
	Protected *bool
}

// UpdateVolume changes notes or protection of a backup, at once.
func (c *Client) UpdateVolume(ctx context.Context, node, volid string, u VolumeUpdate) error {
	p := params{}
	if u.Notes != nil {
		p.set("notes", *u.Notes)
	}
	if u.Protected != nil {
		p.set("protected", Bool(*u.Protected))
	}
	return c.put(ctx, volumePath(node, volid), p)
}

// DeleteVolume starts the removal of a volume. A protected backup makes the task
// fail, not the call. It asks whoever calls to be sure: nothing on a storage is
// guarded but by that flag.
func (c *Client) DeleteVolume(ctx context.Context, node, volid string) (UPID, error) {
	return c.startTask(ctx, "DELETE", volumePath(node, volid), params{})
}

// BackupConfig reads the configuration of the guest inside a backup, as the text
// of its file.
func (c *Client) BackupConfig(ctx context.Context, node, volid string) (string, error) {
	return getText(ctx, c, nodePath(node)+"/vzdump/extractconfig", params{"volume": volid})
}

// volumePath is a volume's path; the storage's name is the part of the id before
// the colon.
func volumePath(node, volid string) string {
	return nodePath(node) + "/storage/" + escapeSegment(StorageOf(volid)) + "/content/" + escapeSegment(volid)
}

// StorageOf is the name of the storage in a volume's id; "" for what is no id.
func StorageOf(volid string) string {
	storage, _, ok := strings.Cut(volid, ":")
	if !ok {
		return ""
	}
	return storage
}

// getText gets one text.
func getText(ctx context.Context, c *Client, path string, p params) (string, error) {
	raw, err := c.get(ctx, path, p)
	if err != nil {
		return "", err
	}
	text, err := scalarText(raw)
	if err != nil {
		return "", &AnswerError{Method: "GET", Path: path, Err: err}
	}
	return text, nil
}
