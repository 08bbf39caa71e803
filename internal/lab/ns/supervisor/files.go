//go:build linux

package supervisor

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

const (
	sshFolder   = "etc/ssh"
	hostKeyFile = sshFolder + "/ssh_host_ed25519_key"
)

// prepareFiles writes into a mounted root what Proxmox writes before a start, and the SSH host key that a good template
// has made at the first boot.
func (s *Supervisor) prepareFiles(root string, g *guest) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	w := &rootWriter{root: r, supervisor: s}
	if g.freshHostKeys {
		if err := w.dropHostKeys(); err != nil {
			return fmt.Errorf("inherited host keys: %w", err)
		}
		g.freshHostKeys = false
	}
	if err := w.ensureHostKey(); err != nil {
		return fmt.Errorf("host key: %w", err)
	}
	if err := w.ensureMachineID(g.freshMachineID); err != nil {
		return fmt.Errorf("machine id: %w", err)
	}
	g.freshMachineID = false
	return w.identity(g.config)
}

// rootWriter writes files of root's into a guest's root. What the guest made of links in there can't lead out.
type rootWriter struct {
	root       *os.Root
	supervisor *Supervisor
}

// write replaces a file as a whole. A link in its place is replaced, not followed.
func (w *rootWriter) write(name, text string, mode fs.FileMode) error {
	if err := w.supervisor.makeFolderIn(w.root, path.Dir(name)); err != nil {
		return err
	}
	half := name + ".lab-new"
	err := errors.Join(
		w.root.WriteFile(half, []byte(text), 0o600),
		w.root.Lchown(half, w.supervisor.idBase, w.supervisor.idBase),
		w.root.Chmod(half, mode),
		w.root.Rename(half, name))
	if err != nil {
		return fmt.Errorf("/%s: %w", name, err)
	}
	return nil
}

func (w *rootWriter) identity(c engine.Config) error {
	if c.Hostname == "" {
		return nil
	}
	short := shortName(c.Hostname)
	var nets strings.Builder
	nets.WriteString("auto lo\niface lo inet loopback\niface lo inet6 loopback\n")
	for _, n := range c.NICs {
		fmt.Fprintf(&nets, "\nauto %s\n", n.Name)
		stanza(&nets, n.Name, "inet", n.IPv4, n.Gateway4)
		if n.IPv6 != "" {
			stanza(&nets, n.Name, "inet6", n.IPv6, n.Gateway6)
		}
	}
	hosts := "127.0.0.1\tlocalhost\n::1\tlocalhost\n127.0.1.1\t" + c.Hostname + " " + short + "\n"
	return errors.Join(
		w.write("etc/hostname", short+"\n", 0o644), w.write("etc/hosts", hosts, 0o644),
		w.write("etc/network/interfaces", nets.String(), 0o644))
}

func stanza(b *strings.Builder, name, family, address, gateway string) {
	switch address {
	case "", "manual":
		fmt.Fprintf(b, "iface %s %s manual\n", name, family)
	case "dhcp", "auto":
		fmt.Fprintf(b, "iface %s %s %s\n", name, family, address)
	default:
		fmt.Fprintf(b, "iface %s %s static\n\taddress %s\n", name, family, address)
		if gateway != "" {
			fmt.Fprintf(b, "\tgateway %s\n", gateway)
		}
	}
}

func shortName(hostname string) string {
	short, _, _ := strings.Cut(hostname, ".")
	return short
}

// writeResolver writes /etc/resolv.conf. A guest without name servers of its own asks the lab's, at its bridge's address.
func (s *Supervisor) writeResolver(root string, c engine.Config) error {
	servers := c.DNSServers
	if len(servers) == 0 {
		servers = s.network.resolvers(c.NICs)
	}
	text := "# --- BEGIN PVE ---\n"
	if c.DNSDomain != "" {
		text += "search " + c.DNSDomain + "\n"
	}
	for _, server := range servers {
		text += "nameserver " + server + "\n"
	}
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return (&rootWriter{root: r, supervisor: s}).write("etc/resolv.conf", text+"# --- END PVE ---\n", 0o644)
}

// dropHostKeys removes the host keys that a clone inherited.
func (w *rootWriter) dropHostKeys() error {
	names, err := fs.ReadDir(w.root.FS(), sshFolder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, n := range names {
		if strings.HasPrefix(n.Name(), "ssh_host_") {
			err = errors.Join(err, w.root.Remove(sshFolder+"/"+n.Name()))
		}
	}
	return err
}

// ensureMachineID does what systemd does at boot where there is no machine id, and before it what the node does to a
// clone, whose id is taken away.
func (w *rootWriter) ensureMachineID(fresh bool) error {
	text, err := fs.ReadFile(w.root.FS(), "etc/machine-id")
	known := strings.TrimSpace(string(text))
	if err == nil && !fresh && known != "" && known != "uninitialized" {
		return nil
	}
	var id [16]byte
	_, _ = rand.Read(id[:]) // never fails
	return w.write("etc/machine-id", fmt.Sprintf("%x\n", id), 0o444)
}

func (w *rootWriter) ensureHostKey() error {
	if _, err := w.root.Lstat(hostKeyFile); err == nil {
		return nil
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		return err
	}
	line, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	return errors.Join(
		w.write(hostKeyFile, string(pem.EncodeToMemory(block)), 0o600),
		w.write(hostKeyFile+".pub", string(ssh.MarshalAuthorizedKey(line)), 0o644))
}
