// Package machine is a guest while it runs: its file system, processes, units, users and network as programs inside
// see them. A guest that is stopped has no machine; the next boot makes a new one.
package machine

import (
	"context"
	"net"
	"net/netip"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Network is how a machine's programs reach others and are reached.
type Network interface {
	// Dial connects from the machine to an address, "10.77.0.12:80".
	Dial(ctx context.Context, address string) (net.Conn, error)
	// Listen waits for connections to one of the machine's TCP ports; EADDRINUSE if taken.
	Listen(port int) (net.Listener, error)
	// ListenLocal is Listen on the loopback only, which nobody else reaches; on a free port where it is 0.
	ListenLocal(port int) (net.Listener, error)
	// Permits says whether the packet filter lets a packet of a protocol ("tcp", "udp") to an address pass.
	Permits(protocol, address string) (bool, error)
	// Interfaces are lo and the NICs.
	Interfaces() []engine.Interface
	// Sockets are the TCP sockets.
	Sockets() []Socket
}

// Socket is a TCP socket: a connection's end, or one that listens, which has no remote end.
type Socket struct{ Local, Remote netip.AddrPort }

// Machine is a booted guest.
type Machine struct {
	FS        *vfs.FS
	Clock     engine.Clock
	Network   Network
	BootID    string
	StartedAt time.Time

	// Down ends when the machine is stopped or killed.
	Down context.Context
	halt context.CancelCauseFunc

	mu        sync.Mutex
	hostname  string
	config    engine.Config
	processes map[int]*Process
	nextPID   int
	units     map[string]bool // systemd units by full name: active or not
	running   sync.WaitGroup
	watch     func(p *Process, alive bool)
}

// KernelRelease is what uname -r says.
const KernelRelease = "6.8.12-9-pve"

// Options are what a boot decides.
type Options struct {
	FS      *vfs.FS
	Clock   engine.Clock
	Network Network
	BootID  string
	Config  engine.Config
}

// Boot makes a machine with init as process 1.
func Boot(o Options) *Machine {
	m := &Machine{FS: o.FS, Clock: o.Clock, Network: o.Network, BootID: o.BootID, StartedAt: o.Clock.Now(),
		hostname: o.Config.Hostname, config: o.Config, processes: map[int]*Process{}, nextPID: 1,
		units: map[string]bool{"ssh.service": true, "multi-user.target": true, "network-online.target": true}}
	m.Down, m.halt = context.WithCancelCause(context.Background())
	m.Spawn(m.Down, Spawn{Cred: vfs.Root, Argv: []string{"/sbin/init"}})
	m.nextPID = 100
	return m
}

// Halt ends every process and waits until the last has gone, or for the context.
func (m *Machine) Halt(ctx context.Context) {
	m.halt(Killed(SIGKILL))
	gone := make(chan struct{})
	go func() {
		m.running.Wait()
		close(gone)
	}()
	select {
	case <-gone:
	case <-ctx.Done():
	}
}

// Hostname is the name as the kernel has it.
func (m *Machine) Hostname() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.hostname
}

// SetHostname changes it until the next boot.
func (m *Machine) SetHostname(name string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.hostname = name
}

// Config is the guest's configuration; Configure replaces it while it runs.
func (m *Machine) Config() engine.Config {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.config
}

// Configure replaces the configuration; the kernel's host name stays until the next boot.
func (m *Machine) Configure(c engine.Config) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.config = c
}

// Uptime is the time since boot on the lab's clock.
func (m *Machine) Uptime() time.Duration { return m.Clock.Now().Sub(m.StartedAt) }

// Unit says whether a systemd unit is active, and whether it is known at all.
func (m *Machine) Unit(name string) (active, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	active, known = m.units[name]
	return
}

// SetUnit makes a unit active or inactive.
func (m *Machine) SetUnit(name string, active bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.units[name] = active
}

// MemoryUsed is a plausible figure: what an idle Debian uses, a little per process, and what the memory file systems
// hold.
func (m *Machine) MemoryUsed() int64 {
	m.mu.Lock()
	used := int64(24<<20) + int64(len(m.processes))*(1<<20)
	m.mu.Unlock()
	for _, mt := range m.FS.Mounts() {
		if mt.Type == "tmpfs" {
			n, _ := mt.Tree.Usage()
			used += n
		}
	}
	if limit := m.Config().Limits.MemoryBytes; limit > 0 {
		used = min(used, limit)
	}
	return used
}

// Memory is the guest's share in bytes; what a small machine has where there is no limit.
func (m *Machine) Memory() int64 {
	if n := m.Config().Limits.MemoryBytes; n > 0 {
		return n
	}
	return 2 << 30
}

// Cores is the number of processors that programs see.
func (m *Machine) Cores() int { return max(1, m.Config().Limits.Cores) }

// Watch has f called for each process that starts or ends, at once for those that run.
func (m *Machine) Watch(f func(p *Process, alive bool)) {
	m.mu.Lock()
	m.watch = f
	m.mu.Unlock()
	for _, p := range m.Processes() {
		f(p, true)
	}
}
