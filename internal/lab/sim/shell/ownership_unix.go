//go:build unix

package shell

import (
	"os"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// ownership is what `test -O` and `test -G` look at: the interpreter compares it with the user that the lab runs as,
// so a file that is the guest's user's own is shown as that user's, and any other as somebody else's.
func ownership(in *vfs.Info, c vfs.Cred) any {
	st := &syscall.Stat_t{Uid: uint32(os.Getuid()) + 1, Gid: uint32(os.Getgid()) + 1}
	if uid, gid := in.Owner(); true {
		if uid == c.UID {
			st.Uid--
		}
		if gid == c.GID {
			st.Gid--
		}
	}
	return st
}
