package server

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// guestPhase is what a container does between stopped and running.
type guestPhase int

const (
	phaseSteady guestPhase = iota
	// phaseStarting: the container's monitor runs, its init not yet. "Already running" for a start, without a
	// process id in the status. The first mount after a rollback to a running snapshot waits here.
	phaseStarting
	// phaseStopping: init is gone, the monitor not yet. The status still says running, a start is accepted.
	phaseStopping
)

// active is the server's check "is it running", which refuses a second start and lets a stop pass.
func (g *guest) active() bool {
	return (g.Running && g.phase != phaseStopping) || g.phase == phaseStarting
}

// visiblyRunning is what the status shows.
func (g *guest) visiblyRunning() bool { return g.Running || g.phase == phaseStarting }

// hasInit says that there is a process to measure: uptime, memory, pid.
func (g *guest) hasInit() bool { return g.Running && g.phase == phaseSteady }

// uptime in whole seconds, 0 when stopped.
func (g *guest) uptime(now time.Time) int64 {
	if !g.hasInit() || now.Before(g.StartedAt) {
		return 0
	}
	return int64(now.Sub(g.StartedAt) / time.Second)
}

// isTemplate says that the container was converted.
func (g *guest) isTemplate() bool { return g.Config["template"] == "1" }

// name is the host name, or CTnnn as the server's default while there is none.
func (g *guest) name() string {
	if name := g.Config["hostname"]; name != "" {
		return name
	}
	return fmt.Sprintf("CT%d", g.VMID)
}

// checkLock refuses while the configuration has a lock.
func (g *guest) checkLock() error {
	if lock := g.Config["lock"]; lock != "" {
		return failf("CT is locked (%s)", lock)
	}
	return nil
}

// checkProtection refuses what the protection flag forbids; what names it: "can't remove CT 100".
func (g *guest) checkProtection(what string) error {
	if g.Config["protection"] == "1" {
		return failf("%s - protection mode enabled", what)
	}
	return nil
}

// megabytes reads an option in MiB, in bytes; fallback is used when it isn't set.
func (g *guest) megabytes(key string, fallback int64) int64 {
	if n, err := strconv.ParseInt(g.Config[key], 10, 64); err == nil {
		return n << 20
	}
	return fallback << 20
}

// description in the form in which the configuration keeps it: with a final newline, nil if empty.
func descriptionText(given string) string {
	if given == "" {
		return ""
	}
	return strings.TrimRight(given, "\n") + "\n"
}

// guestLockPath is the lock file of a container's configuration, migrationLockPath that of what moves or rewinds it.
func guestLockPath(vmid int) string { return fmt.Sprintf("/run/lock/lxc/pve-config-%d.lock", vmid) }
func migrationLockPath(vmid int) string {
	return fmt.Sprintf("/var/lock/pve-manager/pve-migrate-%d", vmid)
}

// lockPath takes a file lock in a task, which says so in its log when it has to wait.
func (t *task) lockPath(path string) (func(), error) {
	waits := t.s.fileLocks[path]
	if waits {
		t.logf("trying to acquire lock...")
	}
	release, err := t.s.lockFile(t.ctx, path)
	if err != nil {
		return nil, err
	}
	if waits {
		t.logf(" OK")
	}
	return release, nil
}

// lockConfig is lockPath for a container's configuration.
func (t *task) lockConfig(vmid int) (func(), error) { return t.lockPath(guestLockPath(vmid)) }

// lockMigration is lockPath for what moves or rewinds a container.
func (t *task) lockMigration(vmid int) (func(), error) { return t.lockPath(migrationLockPath(vmid)) }

// nextPID is a fresh process id on the node.
func (s *Server) nextPID() int {
	s.st.PID += 3
	return s.st.PID
}

// checkVMIDUnused refuses an id that some container of the cluster has.
func (s *Server) checkVMIDUnused(vmid int) error {
	if g := s.st.Guests[vmid]; g != nil {
		return failf("CT %d already exists on node '%s'", vmid, g.Node)
	}
	return nil
}

// duration makes a number a divisor of times.
func duration(n int) time.Duration { return time.Duration(max(n, 1)) }
