// Package lab runs a Proxmox VE of its own: an API server that behaves like the real one, simulated or real guests, and one SSH
// node that leads to them. It listens on 127.0.0.1 only, needs no privileges and touches nothing outside its folder.
//
//	l, err := lab.Start(ctx, lab.Options{})
//	defer l.Close()
//	fmt.Println(l.ProviderBlock())
package lab

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/node"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

// Delays are the times that things take.
type Delays = server.Delays

// Fast are short times for tests, in the real order of things.
func Fast() Delays { return *server.Fast() }

// Real are the times recorded on an idle two-core node.
func Real() Delays { return *server.Real() }

// Facts about every lab.
const (
	TemplateID   = 9000
	TemplateFile = "local:vztmpl/debian-12-mini_12.12-1_amd64.tar.gz"
	Storage      = "local-btrfs"
	Bridge       = "vmbr0"
	Pool         = "labpool"
	// SSHUser logs in on the SSH node; GuestUser in the guests.
	SSHUser   = "jump"
	GuestUser = "root"
	adminUser = "admin@pve"
)

// Addresses that a lab's guests may have: static ones by the provider's range, leased ones above them.
var (
	AddressCIDR    = netip.MustParsePrefix("10.77.0.0/16")
	AddressFirst   = netip.MustParseAddr("10.77.1.0")
	AddressGateway = netip.MustParseAddr("10.77.0.1")
	leased         = netip.MustParsePrefix("10.77.192.0/18")
)

// VMIDFirst and VMIDLast are a range of ids for guests that the address range covers.
const (
	VMIDFirst = 100000
	VMIDLast  = 109999
	// CrowdFirst is the first id of Options.Crowd.
	CrowdFirst = 200000
)

// Options say what a lab is like. The zero value is one node, fast, kept nowhere.
type Options struct {
	// Nodes is the number of nodes; 0 means 1. The template is on the first.
	Nodes int
	// Dir keeps everything, so that the lab survives a restart. Guests are down after one, as after a power cut.
	Dir string
	// Delays are the times that things take; the zero value means Fast.
	Delays Delays
	// Engine runs the guests; nil makes one of EngineName, which Close ends.
	Engine engine.Engine
	// EngineName is EngineSim (if empty) or EngineNS.
	EngineName string
	// Image is the base image of the template, one of the engine's: with EngineNS "tiny" (if empty) or "debian-12".
	Image string
	// SharedHostKeys makes clones keep the template's SSH host keys, as careless templates do. For engines of EngineName.
	SharedHostKeys bool
	// Outside puts the rest of the world behind the node: every address answers and remembers who asked, see Lab.Contacts.
	// For EngineNS.
	Outside bool
	// TemplateFiles are further container template files on the storage "local": "debian-12-standard_12.12-1_amd64.tar.zst" is a whole
	// Debian where the engine has one.
	TemplateFiles []string
	// Crowd is a number of stopped containers of somebody else on the first node, from CrowdFirst on: a cluster that isn't
	// ours alone. There is nothing in them.
	Crowd int
	// Listen is the API's address; 127.0.0.1 and a free port if empty. A lab that comes back from Dir takes a new port.
	Listen string
	// Log gets what goes on; nil discards it.
	Log *slog.Logger
}

// Lab is a running lab.
type Lab struct {
	server  *server.Server
	engine  engine.Engine
	own     bool // the engine is ours to close
	node    *sshnode.Node
	machine *node.Node
	keys    keys
	control *control.Client
	settle  time.Duration

	stopFilter context.CancelFunc
	filtering  sync.WaitGroup
	rounds     atomic.Int64 // of the firewall service that the packet filter has taken over
	unfiltered error        // why the firewall wasn't in force, once it wasn't
}

// Start starts a lab. It runs until Close, or until ctx ends (then Close still frees what it holds).
func Start(ctx context.Context, o Options) (*Lab, error) {
	if o.Delays == (Delays{}) {
		o.Delays = Fast()
	}
	l := &Lab{engine: o.Engine, settle: o.Delays.FirewallLoop + max(o.Delays.FirewallLoop/10, 100*time.Millisecond)}
	if err := l.start(ctx, o); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

func (l *Lab) start(ctx context.Context, o Options) (err error) {
	if l.keys, err = loadKeys(o.Dir); err != nil {
		return err
	}
	clock := &clock{}
	if l.engine == nil {
		l.own = true
		if l.engine, err = newEngine(o, clock); err != nil {
			return err
		}
	}
	l.server, err = server.Start(ctx, server.Options{
		Nodes: o.Nodes, Dir: subfolder(o.Dir, "cluster"), Delays: &o.Delays, Engine: l.engine, Log: o.Log, Listen: o.Listen,
		Secret: l.keys.Secret, Seed: func(d *server.Seeder) error { return l.seed(ctx, d, o) },
	})
	if err != nil {
		return err
	}
	clock.server.Store(l.server)
	if to, ok := l.engine.(ruleTaker); ok {
		filterCtx, stop := context.WithCancel(context.WithoutCancel(ctx))
		l.stopFilter = stop
		l.filtering.Go(func() {
			l.filterLoop(filterCtx, to, func(err error) {
				l.unfiltered = fmt.Errorf("the lab's firewall was not in force: %w", err)
				if o.Log != nil {
					o.Log.Error(l.unfiltered.Error())
				}
			})
		})
	}
	l.machine = node.New(node.Options{Clock: clock, Dial: l.engine.Dial, Address: netip.PrefixFrom(AddressGateway, AddressCIDR.Bits()), Guests: guests{l.engine, l.server}})
	l.node, err = sshnode.Start(sshnode.Options{
		Dial: l.engine.Dial, AuthorizedKeys: []string{l.keys.authorized()}, HostKey: l.keys.node(), Exec: l.machine.Exec,
	})
	if err != nil {
		return err
	}
	l.control, err = control.New(l.server.URL(), l.server.Secret(), l.server.CertPEM())
	return err
}

// guests are the containers as the node has them.
type guests struct {
	engine.Engine
	server *server.Server
}

func (g guests) ConfigFiles() map[int]string { return g.server.ConfigFiles() }

func (g guests) VolumePath(volid string) (string, bool, error) { return g.server.VolumePath(volid) }

func (g guests) MoveFile(from, to string) error { return g.server.MoveFile(from, to) }

func (g guests) WriteConfigFile(vmid int, text string) error {
	return g.server.WriteConfigFile(vmid, text)
}

func subfolder(dir, name string) string {
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, name)
}

// Close stops everything and saves what Options.Dir keeps. It tells if the packet filter of real containers refused what
// the firewall's configuration says: whatever was tested then was tested without it.
func (l *Lab) Close() error {
	var errs []error
	if l.stopFilter != nil {
		l.stopFilter()
		l.filtering.Wait()
		errs = append(errs, l.unfiltered)
	}
	if l.control != nil {
		l.control.Close()
	}
	if l.node != nil {
		errs = append(errs, l.node.Close())
	}
	if l.machine != nil {
		l.machine.Close()
	}
	if l.server != nil {
		errs = append(errs, l.server.Close())
	}
	if l.own && l.engine != nil {
		errs = append(errs, l.engine.Close())
	}
	return errors.Join(errs...)
}

// Endpoint is the API's address, "https://127.0.0.1:40113".
func (l *Lab) Endpoint() string { return l.server.URL() }

// Fingerprint is the SHA-256 of the API's certificate, "AB:CD:…".
func (l *Lab) Fingerprint() string { return l.server.Fingerprint() }

// CAPEM is the API's certificate in PEM form; it is its own authority.
func (l *Lab) CAPEM() string { return l.server.CertPEM() }

// Token is an API token with all rights, "admin@pve!lab=…".
func (l *Lab) Token() string { return adminUser + "!lab=" + l.keys.Token }

// Username and Password are a login with all rights.
func (l *Lab) Username() string { return adminUser }

// Password goes with Username.
func (l *Lab) Password() string { return l.keys.Password }

// RootPassword is root@pam's: the only login that may do what tokens never may.
func (l *Lab) RootPassword() string { return l.keys.Password }

// Nodes are the nodes' names. The template is on the first.
func (l *Lab) Nodes() []string { return l.server.NodeNames() }

// PrivateKey is the key that the template trusts for root, in OpenSSH's PEM form. The SSH node trusts it too.
func (l *Lab) PrivateKey() string { return l.keys.Private }

// PublicKey is its line for authorized_keys.
func (l *Lab) PublicKey() string { return l.keys.authorized() }

// SSHHost and SSHPort are where the SSH node listens.
func (l *Lab) SSHHost() string {
	host, _, _ := net.SplitHostPort(l.node.Address())
	return host
}

// SSHPort goes with SSHHost.
func (l *Lab) SSHPort() int {
	_, port, _ := net.SplitHostPort(l.node.Address())
	n, _ := strconv.Atoi(port)
	return n
}

// SSHHostKey is the SSH node's key as in known_hosts: "ssh-ed25519 AAAA…".
func (l *Lab) SSHHostKey() string {
	line := string(ssh.MarshalAuthorizedKey(l.node.HostKey()))
	return line[:len(line)-1]
}

// Node is the node's machine behind the SSH node: its units, its ports, its Tailscale.
func (l *Lab) Node() *node.Node { return l.machine }

// SSHNode is the SSH server itself: more keys, and its faults.
func (l *Lab) SSHNode() *sshnode.Node { return l.node }

// FirewallSettle is how long after a write this lab's firewall has surely compiled it: for the provider's firewall_settle.
func (l *Lab) FirewallSettle() time.Duration { return l.settle }

// Management is where the guests see connections through the SSH node come from: for the provider's management_cidrs.
func (l *Lab) Management() netip.Prefix {
	return netip.PrefixFrom(AddressGateway, AddressGateway.BitLen())
}

// Contacts are the connections and datagrams of guests that have left the lab (Options.Outside), oldest first.
func (l *Lab) Contacts(ctx context.Context) ([]engine.Contact, error) {
	o, ok := l.engine.(engine.Outside)
	if !ok {
		return nil, fmt.Errorf("engine %s has no outside", l.engine.Name())
	}
	return o.Contacts(ctx)
}

// Engine is what runs the guests, for a look inside without the API.
func (l *Lab) Engine() engine.Engine { return l.engine }

// Control is the client of the control API: faults, time, requests.
func (l *Lab) Control() *control.Client { return l.control }

// Secret is the control API's, for a client in another process.
func (l *Lab) Secret() string { return l.server.Secret() }

// ProviderBlock is a provider block for this lab, ready to be put into a configuration. It names the owner "lab".
func (l *Lab) ProviderBlock() string {
	return fmt.Sprintf(`provider "sandbox" {
  endpoint    = %q
  api_token   = %q
  fingerprint = %q
  owner       = "lab"

  nodes       = [%q]
  template_id = %d
  storage     = %q
  bridge      = %q

  vmid_range = { first = %d, last = %d }
  address_range = {
    cidr    = %q
    first   = %q
    gateway = %q
  }

  management_cidrs = [%q]
  firewall_settle  = %q

  guest_ssh = {
    username    = %q
    private_key = <<-EOT
%s    EOT
    proxy_jump = {
      host     = %q
      port     = %d
      username = %q
      host_key = %q
    }
  }
}
`, l.Endpoint(), l.Token(), l.Fingerprint(), l.Nodes()[0], TemplateID, Storage, Bridge, VMIDFirst, VMIDLast,
		AddressCIDR, AddressFirst, AddressGateway, l.Management(), l.FirewallSettle(), GuestUser, indent(l.PrivateKey(), "    "),
		l.SSHHost(), l.SSHPort(), SSHUser, l.SSHHostKey())
}
