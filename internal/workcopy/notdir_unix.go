//go:build !windows

package workcopy

import "syscall"

// errNotDir is what looking below a file gives.
var errNotDir error = syscall.ENOTDIR

// executableBits says that files here have them.
const executableBits = true
