//go:build unix

package audit

import (
	"io/fs"
	"syscall"
)

// openNonblock keeps an open of a pipe from waiting for its other end.
const openNonblock = syscall.O_NONBLOCK

type owner struct {
	uid, gid uint32
	device   uint64
}

func ownerOf(info fs.FileInfo) owner {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return owner{uid: s.Uid, gid: s.Gid, device: uint64(s.Dev)} //nolint:unconvert // its type differs between systems
	}
	return owner{}
}
