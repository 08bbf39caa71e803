package workcopy

import "syscall"

// errNotDir is what looking below a file gives.
var errNotDir error = syscall.ERROR_PATH_NOT_FOUND

// executableBits says that files here have none.
const executableBits = false
