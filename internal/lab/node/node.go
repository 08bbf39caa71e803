// Package node is the lab's Proxmox VE node as one sees it over SSH: a simulated machine with just enough systemd to be
// told which ports to listen on, and a Tailscale that only keeps book. A socket unit really listens on this machine and
// really leads to the guest.
package node

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Login is the restricted user of a node that was prepared for sandboxes; its home holds its units.
const (
	Login = "sandbox-node"
	home  = "/var/lib/sandbox-node"
)

// Options say what the node is like.
type Options struct {
	Clock engine.Clock
	// Dial connects to a guest's address, "10.77.0.11:80".
	Dial func(ctx context.Context, address string) (net.Conn, error)
	// Address is the node's own on the guests' bridge.
	Address netip.Prefix
	// Guests are the containers, for pct and /etc/pve/lxc; nil has none.
	Guests Guests
}

// Node is the node's machine. It is made when somebody first logs in.
type Node struct {
	options Options

	start   sync.Once
	machine *sim.Standalone
	failed  error

	ctx  context.Context
	stop context.CancelFunc
	work sync.WaitGroup

	mu        sync.Mutex
	files     map[string]string  // paths that pvesm has told, by volume
	sockets   map[string]*socket // by scope and unit: "root sbx-100007-8080.socket"
	strangers map[string]net.Listener
	taken     map[string]bool // what other programs of this machine were found to listen on
	tailnet   string
	served    map[string]string // port: target
	broken    string            // what tailscale serve says instead of doing it
}

// New makes a node.
func New(o Options) *Node {
	if o.Clock == nil {
		o.Clock = engine.SystemClock{}
	}
	n := &Node{options: o, files: map[string]string{}, sockets: map[string]*socket{}, strangers: map[string]net.Listener{}, taken: map[string]bool{}, served: map[string]string{}}
	n.ctx, n.stop = context.WithCancel(context.Background())
	return n
}

// booted is the machine.
func (n *Node) booted() (*sim.Standalone, error) {
	n.start.Do(func() {
		n.machine, n.failed = sim.NewStandalone(n.options.Clock, "pve", &network{n}, shell.Programs{"systemctl": n.systemctl, "ss": n.ss, "ip": n.ip, "tailscale": n.tailscale, "pct": n.pct, "pvesm": n.pvesm})
		if n.failed == nil {
			n.failed = n.addLogin()
		}
	})
	return n.machine, n.failed
}

func (n *Node) addLogin() error {
	f := n.machine.FS
	var errs []error
	for file, line := range map[string]string{
		"/etc/passwd": Login + ":x:999:999::" + home + ":/bin/sh\n", "/etc/group": Login + ":x:999:\n",
	} {
		text, err := f.ReadFile(vfs.Root, file)
		errs = append(errs, err, f.WriteFile(vfs.Root, file, append(text, line...), 0o644))
	}
	errs = append(errs, f.MkdirAll(vfs.Root, home, 0o755), f.Chown(vfs.Root, home, 999, 999, true))
	return errors.Join(errs...)
}

// Exec runs a command line as a user of the node.
func (n *Node) Exec(ctx context.Context, user, line string, env []string, stdin io.Reader, stdout, stderr io.Writer) (int, error) {
	m, err := n.booted()
	if err != nil {
		return 0, err
	}
	shown, err := n.showConfigs(m)
	if err != nil {
		return 0, err
	}
	code, err := m.Exec(ctx, user, line, env, stdin, stdout, stderr)
	return code, errors.Join(err, n.takeConfigs(m, shown), n.takeFiles(m))
}

// WriteFile puts a file of root's on the node.
func (n *Node) WriteFile(name string, content []byte, mode fs.FileMode) error {
	m, err := n.booted()
	if err != nil {
		return err
	}
	folder := name[:strings.LastIndexByte(name, '/')]
	return errors.Join(m.FS.MkdirAll(vfs.Root, folder, 0o755), m.FS.WriteFile(vfs.Root, name, content, mode))
}

// Units are the files of units that are on the node, with their contents: root's and the login's.
func (n *Node) Units() (map[string]string, error) {
	m, err := n.booted()
	if err != nil {
		return nil, err
	}
	units := map[string]string{}
	for _, folder := range []string{systemUnits, home + userUnits} {
		list, err := m.FS.ReadDir(vfs.Root, folder)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, entry := range list {
			if entry.IsDir() {
				continue
			}
			text, err := m.FS.ReadFile(vfs.Root, folder+"/"+entry.Name())
			if err != nil {
				return nil, err
			}
			units[folder+"/"+entry.Name()] = string(text)
		}
	}
	return units, nil
}

// Occupy has another program of the node listen on a port of 127.0.0.1, any where it is 0, and returns it.
func (n *Node) Occupy(port int) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(n.ctx, "tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.strangers[l.Addr().String()] = l
	return l.Addr().(*net.TCPAddr).Port, nil //nolint:forcetypeassert // a TCP listener's
}

// Vacate ends what Occupy began.
func (n *Node) Vacate(port int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at := fmt.Sprintf("127.0.0.1:%d", port)
	if l := n.strangers[at]; l != nil {
		_ = l.Close()
		delete(n.strangers, at)
	}
}

// Listening are the sockets that units hold open, sorted.
func (n *Node) Listening() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	var all []string
	for _, s := range n.sockets {
		all = append(all, s.address)
	}
	slices.Sort(all)
	return all
}

// Close stops the machine and all that listens.
func (n *Node) Close() {
	n.stop()
	n.mu.Lock()
	for _, s := range n.sockets {
		s.close()
	}
	for _, l := range n.strangers {
		_ = l.Close()
	}
	n.mu.Unlock()
	n.work.Wait()
	n.start.Do(func() { n.failed = errors.New("the node was closed") })
	if n.machine != nil {
		n.machine.Halt(context.Background())
	}
}

// ss lists what listens: it knows -Hltn and nothing else.
func (n *Node) ss(c *shell.Call) int {
	if len(c.Argv) != 2 || c.Argv[1] != "-Hltn" {
		return c.Fail("only -Hltn is simulated")
	}
	n.mu.Lock()
	all := slices.AppendSeq(slices.Collect(maps.Keys(n.strangers)), maps.Keys(n.taken))
	n.mu.Unlock()
	all = append(append(all, "0.0.0.0:22", "*:8006"), n.Listening()...)
	slices.Sort(all)
	for _, address := range all {
		c.Out("LISTEN 0      4096   %22s  0.0.0.0:*\n", address)
	}
	return 0
}

// ip says where packets to an address come from: the node's own, on the guests' bridge.
func (n *Node) ip(c *shell.Call) int {
	if len(c.Argv) != 5 || strings.Join(c.Argv[1:4], " ") != "-4 route get" {
		return c.Fail("only -4 route get is simulated")
	}
	c.Out("%s dev vmbr0 src %s uid 0 \n    cache \n", c.Argv[4], n.options.Address.Addr())
	return 0
}

// network is how the node's programs reach guests.
type network struct{ node *Node }

func (n *network) Dial(ctx context.Context, address string) (net.Conn, error) {
	return n.node.options.Dial(ctx, address)
}

func (n *network) Listen(int) (net.Listener, error) { return nil, syscall.EACCES }

func (n *network) ListenLocal(int) (net.Listener, error) { return nil, syscall.EACCES }

func (n *network) Permits(string, string) (bool, error) { return true, nil }

func (n *network) Sockets() []machine.Socket { return nil }

func (n *network) Interfaces() []engine.Interface {
	return []engine.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []string{"127.0.0.1/8"}}, {Name: "vmbr0", Addresses: []string{n.node.options.Address.String()}}}
}
