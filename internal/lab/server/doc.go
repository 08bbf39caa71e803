// Package server is the lab's Proxmox VE API: one process that answers like a cluster of one or more nodes.
//
// # How a request is answered
//
// The connection loop (httpd.go) reads a request, dispatch.go authenticates it, finds the route, decodes and checks the
// parameters against the table of facts (facts.json, params.go), checks the permission that the table names for the
// path (permission.go), and calls the route's handler. The handler's result becomes {"data": …}, its error the
// status line's reason and {"message": …}.
//
// # Writing an endpoint
//
// Register it from a routes function, a file's own list that server.go calls once:
//
//	func (s *Server) routesLXCConfig() {
//		s.route("GET", "/nodes/{node}/lxc/{vmid}/config", s.lxcConfigGet)
//	}
//
//	func (s *Server) lxcConfigGet(c *call) (any, error) {
//		g, err := c.guest() // "Configuration file 'nodes/pve1/lxc/100.conf' does not exist"
//		…
//		return map[string]any{…}, nil
//	}
//
// Parameters, their checks and the permission come from facts.json by method and path; a route that isn't there is a
// panic at start. Further checks that the real server does in code are the handler's: c.check(path, privilege…).
//
// # The state lock
//
// Handlers and task functions run holding the state lock (s.mu), so they may read and write the state freely, and must
// not block: they wait with c.sleep, t.sleep, s.waitUntil or around s.unlocked(func), which let go of the lock meanwhile. After
// any of these, look at the state again: it may have changed. What a handler returns is encoded under the lock.
//
// # Locks of the real server
//
// A file lock, as flock on /run/lock/lxc/pve-config-ID.lock, is s.lockFile: it waits for Delays.LockTimeout and then is
// the error "can't lock file '…' - got timeout". The lock property of a configuration ("CT is locked (disk)") is just
// the configuration's key "lock".
//
// # Tasks
//
//	return c.startTask("vzstart", strconv.Itoa(vmid), func(t *task) error {
//		t.logf("…")
//		if err := t.sleep(s.delays().Start); err != nil { return err } // aborted by DELETE …/tasks/UPID
//		return nil // TASK OK; t.warnf counts towards WARNINGS: n; an error is TASK ERROR: text
//	})
package server
