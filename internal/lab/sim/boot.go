package sim

import (
	"crypto/ed25519"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/wire"
)

const hostKeyFile = "/etc/ssh/ssh_host_ed25519_key"

// boot starts the machine of a stopped guest, which is locked.
func (g *guest) boot() error {
	e := g.engine
	files := vfs.New(&vfs.Mount{Path: "/", Type: "ext4", Source: fmt.Sprintf("/dev/mapper/pve-vm--%d--disk--0", g.id), Tree: g.root})
	id := make([]byte, 16)
	if _, err := io.ReadFull(e.random, id); err != nil {
		return fmt.Errorf("%s: boot id: %w", g.name(), err)
	}
	id[6], id[8] = id[6]&0x0f|0x40, id[8]&0x3f|0x80
	bootID := fmt.Sprintf("%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
	h := &host{network: e.network, id: g.id, listeners: map[int]*wire.Listener{}, local: map[int]bool{}, conns: map[*wire.Conn]bool{}, begun: map[*wire.Conn]bool{}}
	m := machine.Boot(machine.Options{FS: files, Clock: e.clock, Network: h, BootID: bootID, Config: g.config})
	err := errors.Join(mountVirtual(m), g.mountVolumes(files), writeIdentity(files, g.config), writeResolver(files, g.config), e.ensureMachineID(files), g.firstBoot(files))
	if err != nil {
		m.Halt(m.Down)
		return fmt.Errorf("%s doesn't boot: %w", g.name(), err)
	}
	server := &sshServer{engine: e, machine: m, opensAt: m.StartedAt.Add(e.options.BootDelay)}
	h.accept = func(c net.Conn) bool { return server.accept(c) }
	g.machine, g.host = m, h
	e.network.plug(h, g.config.NICs)
	e.changed()
	return nil
}

func (g *guest) mountVolumes(files *vfs.FS) error {
	g.engine.mu.Lock()
	defer g.engine.mu.Unlock()
	for name, at := range g.volumes {
		if err := files.Attach(volumeMount(name, g.engine.volumes[name], at)); err != nil {
			return err
		}
	}
	return nil
}

// mountVirtual mounts what exists only while a machine runs. A tmpfs is a new tree at each boot, so nothing in it
// outlives a stop or gets into a snapshot.
func mountVirtual(m *machine.Machine) error {
	dev, err := deviceTree(m)
	if err != nil {
		return err
	}
	proc, err := procTree(m)
	if err != nil {
		return err
	}
	mounts := []*vfs.Mount{{Path: "/proc", Type: "proc", Source: "proc", Tree: proc, ReadOnly: true}, {Path: "/dev", Type: "devtmpfs", Source: "none", Tree: dev}}
	memory := m.Config().Limits.MemoryBytes
	if memory == 0 {
		memory = 2 << 30
	}
	for _, t := range []struct {
		path string
		mode fs.FileMode
	}{{"/run", 0o755}, {"/tmp", 0o777 | fs.ModeSticky}, {"/dev/shm", 0o777 | fs.ModeSticky}} {
		mem := tree.New(m.Clock.Now, memory/2)
		if err := mem.SetMode(tree.Root, t.mode); err != nil {
			return err
		}
		mounts = append(mounts, &vfs.Mount{Path: t.path, Type: "tmpfs", Source: "tmpfs", Tree: mem})
	}
	for _, mt := range mounts {
		if err := m.FS.Attach(mt); err != nil {
			return err
		}
	}
	return errors.Join(
		m.FS.MkdirAll(vfs.Root, "/run/lock", 0o755),
		m.FS.MkdirAll(vfs.Root, "/run/user/0", 0o700),
		m.FS.WriteFile(vfs.Root, "/run/sshd.pid", []byte("90\n"), 0o644))
}

func deviceTree(m *machine.Machine) (*tree.Tree, error) {
	t := tree.New(m.Clock.Now, 0)
	f := vfs.New(&vfs.Mount{Path: "/", Tree: t})
	var errs []error
	for name, device := range map[string]string{"null": "null", "zero": "zero", "full": "full", "random": "random", "urandom": "random", "tty": "null", "console": "null"} {
		errs = append(errs, f.Device("/"+name, device))
	}
	errs = append(errs, f.Mkdir(vfs.Root, "/shm", 0o777), f.Mkdir(vfs.Root, "/pts", 0o755))
	return t, errors.Join(errs...)
}

// writeIdentity puts name and addresses where Proxmox puts them before a container starts.
func writeIdentity(f *vfs.FS, c engine.Config) error {
	if c.Hostname == "" {
		return nil
	}
	short, _, _ := strings.Cut(c.Hostname, ".")
	var nets strings.Builder
	nets.WriteString("auto lo\niface lo inet loopback\niface lo inet6 loopback\n")
	for _, n := range c.NICs {
		fmt.Fprintf(&nets, "\nauto %s\n", n.Name)
		switch n.IPv4 {
		case "", "manual":
			fmt.Fprintf(&nets, "iface %s inet manual\n", n.Name)
		case "dhcp":
			fmt.Fprintf(&nets, "iface %s inet dhcp\n", n.Name)
		default:
			fmt.Fprintf(&nets, "iface %s inet static\n\taddress %s\n", n.Name, n.IPv4)
			if n.Gateway4 != "" {
				fmt.Fprintf(&nets, "\tgateway %s\n", n.Gateway4)
			}
		}
	}
	return errors.Join(
		f.WriteFile(vfs.Root, "/etc/hostname", []byte(short+"\n"), 0o644),
		f.WriteFile(vfs.Root, "/etc/hosts", []byte("127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\t"+c.Hostname+" "+short+"\n"), 0o644),
		f.MkdirAll(vfs.Root, "/etc/network", 0o755),
		f.WriteFile(vfs.Root, "/etc/network/interfaces", []byte(nets.String()), 0o644))
}

func writeResolver(f *vfs.FS, c engine.Config) error {
	if len(c.DNSServers) == 0 && c.DNSDomain == "" {
		return nil
	}
	text := "# --- BEGIN PVE ---\n"
	if c.DNSDomain != "" {
		text += "search " + c.DNSDomain + "\n"
	}
	for _, s := range c.DNSServers {
		text += "nameserver " + s + "\n"
	}
	return f.WriteFile(vfs.Root, "/etc/resolv.conf", []byte(text+"# --- END PVE ---\n"), 0o644)
}

// firstBoot makes the SSH host key where something does: in the lab's own guests always, as a good template has it; in a
// root that a node unpacked only where an enabled unit calls ssh-keygen.
func (g *guest) firstBoot(f *vfs.FS) error {
	if g.plain && !hasKeyUnit(f) {
		return nil
	}
	return g.engine.ensureHostKey(f)
}

// hasKeyUnit says whether a unit that is enabled runs ssh-keygen.
func hasKeyUnit(f *vfs.FS) bool {
	const units = "/etc/systemd/system"
	list, err := f.ReadDir(vfs.Root, units)
	if err != nil {
		return false
	}
	for _, in := range list {
		if !strings.HasSuffix(in.Name(), ".wants") && !strings.HasSuffix(in.Name(), ".requires") {
			continue
		}
		enabled, err := f.ReadDir(vfs.Root, units+"/"+in.Name())
		if err != nil {
			continue
		}
		for _, unit := range enabled {
			text, err := f.ReadFile(vfs.Root, units+"/"+in.Name()+"/"+unit.Name())
			if err == nil && strings.Contains(string(text), "ssh-keygen") {
				return true
			}
		}
	}
	return false
}

const machineIDFile = "/etc/machine-id"

// ensureMachineID does what systemd does at boot where there is no machine id.
func (e *Engine) ensureMachineID(f *vfs.FS) error {
	if text, err := f.ReadFile(vfs.Root, machineIDFile); err == nil && !noMachineID(string(text)) {
		return nil
	}
	id := make([]byte, 16)
	if _, err := io.ReadFull(e.random, id); err != nil {
		return err
	}
	return f.WriteFile(vfs.Root, machineIDFile, fmt.Appendf(nil, "%x\n", id), 0o444)
}

func noMachineID(text string) bool {
	text = strings.TrimSpace(text)
	return text == "" || text == "uninitialized"
}

// clearMachineID is what the node does to a clone before its first start (pve-container's clear_machine_id): the file
// gets an empty line, unless it is missing or says "uninitialized" and so asks for a first boot.
func clearMachineID(root *tree.Tree) error {
	f := vfs.New(&vfs.Mount{Path: "/", Tree: root})
	text, err := f.ReadFile(vfs.Root, machineIDFile)
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "uninitialized" {
		return nil
	}
	if err != nil {
		return err
	}
	return f.WriteFile(vfs.Root, machineIDFile, []byte("\n"), 0o444)
}

// ensureHostKey makes the SSH host key at the first boot, as a good template has it.
func (e *Engine) ensureHostKey(f *vfs.FS) error {
	if _, err := f.Stat(vfs.Root, hostKeyFile); err == nil {
		return nil
	}
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(e.random, seed); err != nil {
		return err
	}
	key := ed25519.NewKeyFromSeed(seed)
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return err
	}
	public, err := ssh.NewPublicKey(key.Public())
	if err != nil {
		return err
	}
	return errors.Join(
		f.MkdirAll(vfs.Root, path.Dir(hostKeyFile), 0o755),
		f.WriteFile(vfs.Root, hostKeyFile, pem.EncodeToMemory(block), 0o600),
		f.WriteFile(vfs.Root, hostKeyFile+".pub", ssh.MarshalAuthorizedKey(public), 0o644))
}

// dropHostKeys removes host keys from a root, so that the first boot makes new ones.
func dropHostKeys(root *tree.Tree) error {
	f := vfs.New(&vfs.Mount{Path: "/", Tree: root})
	list, err := f.ReadDir(vfs.Root, "/etc/ssh")
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, in := range list {
		if strings.HasPrefix(in.Name(), "ssh_host_") {
			err = errors.Join(err, f.Unlink(vfs.Root, "/etc/ssh/"+in.Name()))
		}
	}
	return err
}
