package pve

import (
	"context"
	"slices"
	"strings"
)

// StorageStatus is a storage as one node has it.
type StorageStatus struct {
	Storage string `pve:"storage"`
	// Type is the kind: "dir", "btrfs", "lvmthin", "zfspool", "rbd", …
	Type string `pve:"type"`
	// Content is what it may hold, joined by commas in no order.
	Content string `pve:"content"`
	Active  bool   `pve:"active"`
	Enabled bool   `pve:"enabled"`
	// Shared says that all nodes have the same content.
	Shared bool `pve:"shared"`
	// Total, Used and Avail are in bytes; 0 where it isn't active.
	Total int64 `pve:"total"`
	Used  int64 `pve:"used"`
	Avail int64 `pve:"avail"`
	Extra Extra
}

// Holds reports whether the storage may hold that kind of content ("rootdir",
// "vztmpl", "backup", …).
func (s StorageStatus) Holds(content string) bool {
	return slices.Contains(strings.Split(s.Content, ","), content)
}

// Storages lists the storages of a node that the identity may see; content
// ("" for any) keeps those that may hold it.
func (c *Client) Storages(ctx context.Context, node, content string) ([]StorageStatus, error) {
	p := params{}
	p.setText("content", content)
	return getList[StorageStatus](ctx, c, nodePath(node)+"/storage", p)
}

// StorageStatus returns one storage of a node; one that isn't there is an error
// that means NoSuchStorage.
func (c *Client) StorageStatus(ctx context.Context, node, storage string) (StorageStatus, error) {
	s, err := getObject[StorageStatus](ctx, c, nodePath(node)+"/storage/"+escapeSegment(storage)+"/status", nil)
	s.Storage = storage
	return s, err
}

// StorageVolume is a volume on a storage.
type StorageVolume struct {
	VolID   string `pve:"volid,must"`
	Content string `pve:"content"`
	Format  string `pve:"format"`
	// Size is in bytes.
	Size int64 `pve:"size"`
	// VMID is the guest that it belongs to, 0 for none.
	VMID int `pve:"vmid"`
	// Created is in seconds since the epoch.
	Created   int64  `pve:"ctime"`
	Notes     string `pve:"notes"`
	Protected bool   `pve:"protected"`
	// Parent is the base volume of a linked clone.
	Parent string `pve:"parent"`
	Extra  Extra
}

// StorageContent lists the volumes of a storage; content ("" for any) and vmid
// (0 for any) narrow it.
func (c *Client) StorageContent(ctx context.Context, node, storage, content string, vmid int) ([]StorageVolume, error) {
	p := params{}
	p.setText("content", content)
	if vmid != 0 {
		p.setInt("vmid", vmid)
	}
	return getList[StorageVolume](ctx, c, nodePath(node)+"/storage/"+escapeSegment(storage)+"/content", p)
}
