package server

import (
	"log/slog"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Options say what a lab's server is like.
type Options struct {
	// Nodes is the number of nodes: pve1, pve2, … 0 means 1.
	Nodes int
	// Dir is the folder in which the state is kept, so that it survives a restart. Empty keeps nothing.
	Dir string
	// Delays are the times that things take; Fast() if nil.
	Delays *Delays
	// Secret guards the control API. Empty makes a random one.
	Secret string
	// Controllers are the nodes' cgroup v2 controllers: a container with a raw lxc.cgroup2 line for another one doesn't
	// start. Nil means all that Linux has; empty, none.
	Controllers []string
	// Engine runs the guests. Nil: guests have a status and nothing inside.
	Engine engine.Engine
	// Log gets what the server does; nil discards it.
	Log *slog.Logger
	// Seed fills a new state (one that wasn't loaded from Dir), holding the state lock.
	Seed func(*Seeder) error
	// Listen is the address to listen on, 127.0.0.1:0 if empty.
	Listen string
}

// Delays are the times that the server takes. Two sets exist: Fast for tests, Real as recorded on an idle node.
type Delays struct {
	// Start is a vzstart task's time, Shutdown a clean one's, Stop a hard one's.
	Start, Shutdown, Stop time.Duration
	// CloneLinked and CloneFull are how long a vzclone task holds its source's lock.
	CloneLinked, CloneFull time.Duration
	// Create is vzcreate's time from a template file.
	Create time.Duration
	// Destroy, Snapshot, Rollback, DelSnapshot, Template, Migrate, MoveVolume, Backup: their tasks' times.
	Destroy, Snapshot, Rollback, DelSnapshot, Template, Migrate, MoveVolume, Backup time.Duration
	// Resize is the time of a resize of a running container, ResizeStopped of a stopped one (ext4's multi-mount protection).
	Resize, ResizeStopped time.Duration
	// DirtyMount is what the first mount after a rollback to a running container's snapshot takes on top.
	DirtyMount time.Duration
	// Config is the time of a PUT config.
	Config time.Duration
	// LockTimeout is how long a call waits for a file lock.
	LockTimeout time.Duration
	// AuthFailure delays a 401.
	AuthFailure time.Duration
	// TaskStop is what DELETE of a running task takes.
	TaskStop time.Duration
	// StatLoop is the period of the status service: /cluster/resources is up to that old. 0 is always fresh.
	StatLoop time.Duration
	// FirewallLoop is the period of the firewall service: rules bite at most that late. 0 is at once.
	FirewallLoop time.Duration
	// ClusterLockRetry is after how long a writer who found a cluster-wide lock taken asks for it again.
	ClusterLockRetry time.Duration
	// DHCP is the time from a start to a leased address.
	DHCP time.Duration
	// IdleConnection is after how long the server closes an idle connection.
	IdleConnection time.Duration
}

// Real are the times recorded on an idle two-core node.
func Real() *Delays {
	return &Delays{
		Start: 1700 * time.Millisecond, Shutdown: 1600 * time.Millisecond, Stop: 1400 * time.Millisecond,
		CloneLinked: 300 * time.Millisecond, CloneFull: 2100 * time.Millisecond, Create: 3200 * time.Millisecond,
		Destroy: 100 * time.Millisecond, Snapshot: 150 * time.Millisecond, Rollback: 150 * time.Millisecond,
		DelSnapshot: 150 * time.Millisecond, Template: 400 * time.Millisecond, Migrate: 3 * time.Second,
		MoveVolume: time.Second, Backup: 3 * time.Second,
		Resize: 300 * time.Millisecond, ResizeStopped: 22 * time.Second, DirtyMount: 45 * time.Second,
		Config: 20 * time.Millisecond, LockTimeout: 10 * time.Second, AuthFailure: 3 * time.Second,
		TaskStop: 3 * time.Second, StatLoop: 10 * time.Second, FirewallLoop: 10 * time.Second, ClusterLockRetry: time.Second,
		DHCP: 3100 * time.Millisecond, IdleConnection: 5 * time.Second,
	}
}

// Fast are short times that keep the real order of things: a clone still locks its source, a status still lags.
func Fast() *Delays {
	ms := time.Millisecond
	return &Delays{
		Start: 8 * ms, Shutdown: 8 * ms, Stop: 5 * ms, CloneLinked: 8 * ms, CloneFull: 20 * ms, Create: 20 * ms,
		Destroy: 3 * ms, Snapshot: 4 * ms, Rollback: 4 * ms, DelSnapshot: 4 * ms, Template: 5 * ms, Migrate: 20 * ms,
		MoveVolume: 10 * ms, Backup: 20 * ms, Resize: 3 * ms, ResizeStopped: 30 * ms, DirtyMount: 60 * ms,
		LockTimeout: 300 * ms, AuthFailure: 5 * ms, TaskStop: 5 * ms, StatLoop: 50 * ms, FirewallLoop: 50 * ms, ClusterLockRetry: ms,
		DHCP: 10 * ms, IdleConnection: 5 * time.Second,
	}
}
