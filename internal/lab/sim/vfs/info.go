package vfs

import (
	"io/fs"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

// Info describes a file: an fs.FileInfo and fs.DirEntry that knows owners.
type Info struct {
	name   string
	node   tree.Inode
	target string
	sys    any
}

// Name is the last part of the path.
func (i *Info) Name() string { return i.name }

// Size is a file's length, a link's target's, or a directory's 4096.
func (i *Info) Size() int64 {
	switch {
	case i.node.Mode.IsDir():
		return 4096
	case i.node.Mode&fs.ModeSymlink != 0:
		return int64(len(i.target))
	}
	return i.node.Size
}

// Mode is type and permissions.
func (i *Info) Mode() fs.FileMode { return i.node.Mode }

// ModTime is when the content changed.
func (i *Info) ModTime() time.Time { return i.node.ModTime }

// IsDir says whether it is a directory.
func (i *Info) IsDir() bool { return i.node.Mode.IsDir() }

// Sys is what WithSys put in.
func (i *Info) Sys() any { return i.sys }

// WithSys returns a copy whose Sys is v.
func (i *Info) WithSys(v any) *Info {
	c := *i
	c.sys = v
	return &c
}

// Type is the mode's type bits (fs.DirEntry).
func (i *Info) Type() fs.FileMode { return i.node.Mode.Type() }

// Info returns itself (fs.DirEntry).
func (i *Info) Info() (fs.FileInfo, error) { return i, nil }

// Owner is user and group.
func (i *Info) Owner() (uid, gid int) { return i.node.UID, i.node.GID }

// Ino is the inode's number.
func (i *Info) Ino() uint64 { return uint64(i.node.Ino) }

// Links is the number of names.
func (i *Info) Links() int { return i.node.Links }

// Uid and Gid are named as pkg/sftp wants them.
func (i *Info) Uid() uint32 { return uint32(i.node.UID) }

// Gid is the group.
func (i *Info) Gid() uint32 { return uint32(i.node.GID) }
