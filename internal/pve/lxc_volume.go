package pve

import (
	"context"
	"fmt"
)

// ResizeLXC grows a volume ("rootfs", "mp0"): size is absolute ("8G") or what is
// added ("+2G"). A smaller size is an error that means CannotShrink, the same one
// SameSize. A resize of a stopped container takes about 22 s, and one whose file
// system couldn't grow still ends well.
func (c *Client) ResizeLXC(ctx context.Context, node string, vmid int, disk, size, digest string) (UPID, error) {
	p := params{"disk": disk, "size": size}
	p.setText("digest", digest)
	return c.startTask(ctx, "PUT", lxcPath(node, vmid)+"/resize", p)
}

// MoveVolumeOptions say where a volume goes: to another storage, or to another
// container.
type MoveVolumeOptions struct {
	// Volume is the key of the volume ("mp0", "unused0", and for another storage
	// "rootfs"). Required.
	Volume string
	// Storage is where the volume is copied to; DeleteSource then removes the old
	// one, which else stays as an unused volume.
	Storage      string
	DeleteSource bool
	// TargetVMID hands the volume over to that container, as TargetVolume (or
	// the same key).
	TargetVMID   int
	TargetVolume string
	// Digest and TargetDigest are of the two configurations; empty asks for no
	// check.
	Digest, TargetDigest string
}

// MoveVolume moves a volume. One that a snapshot uses, and one of a running
// source, can't be handed over.
func (c *Client) MoveVolume(ctx context.Context, node string, vmid int, o MoveVolumeOptions) (UPID, error) {
	if (o.Storage == "") == (o.TargetVMID == 0) {
		return "", fmt.Errorf("pve: move of volume %s of container %d: name either a storage or a target container", o.Volume, vmid)
	}
	p := params{"volume": o.Volume}
	p.setText("storage", o.Storage)
	p.setFlag("delete", o.DeleteSource)
	if o.TargetVMID != 0 {
		p.setInt("target-vmid", o.TargetVMID)
	}
	p.setText("target-volume", o.TargetVolume)
	p.setText("digest", o.Digest)
	p.setText("target-digest", o.TargetDigest)
	return c.startTask(ctx, "POST", lxcPath(node, vmid)+"/move_volume", p)
}
