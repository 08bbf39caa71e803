package server

import (
	"context"
	"fmt"
)

// lockFile takes the lock that a file stands for on a real node. It waits for Delays.LockTimeout; then the error is the
// server's "can't lock file '…' - got timeout". The function that it returns lets go; calling it twice does no harm.
func (s *Server) lockFile(ctx context.Context, path string) (func(), error) {
	free := func() bool { return !s.fileLocks[path] }
	if !s.waitUntil(ctx, s.delays().LockTimeout, free) {
		return nil, failf("can't lock file '%s' - got timeout", path)
	}
	s.fileLocks[path] = true
	held := true
	return func() {
		if held {
			held = false
			delete(s.fileLocks, path)
		}
	}, nil
}

// lockGuest takes the lock of a container's configuration file. Its holder may change the configuration; a task that
// starts, stops or resizes holds it to its end.
func (s *Server) lockGuest(ctx context.Context, vmid int) (func(), error) {
	return s.lockFile(ctx, fmt.Sprintf("/run/lock/lxc/pve-config-%d.lock", vmid))
}

// lockStorage takes the lock under which volumes are made and removed.
func (s *Server) lockStorage(ctx context.Context, storage string) (func(), error) {
	return s.lockFile(ctx, fmt.Sprintf("/var/lock/pve-manager/pve-storage-%s", storage))
}
