package acctest

import (
	"net/netip"
	"testing"
)

// Environment is a Proxmox VE that a test may use, and the part of it that is this test's own.
type Environment struct {
	Endpoint    string // https://host:port
	APIToken    string // user@realm!name=uuid; or Username and Password
	Username    string
	Password    string
	Fingerprint string // SHA-256 of the server's certificate, when it is pinned
	CAFile      string
	Insecure    bool

	Owner        string   // of this test alone
	Nodes        []string // at least one; the template is on the first
	TemplateID   int      // carries SSH.PublicKey
	TemplateFile string   // volid of a container template, storage:vztmpl/name
	Storage      string   // for root disks
	Bridge       string
	VMIDs        VMIDRange
	Addresses    AddressRange
	SSH          SSH

	// Lab is the lab behind all this, nil on a real server. Tests that use it call NeedsLab first.
	Lab *Lab
}

// VMIDRange is what the test's containers take their ids from, both ends included.
type VMIDRange struct{ First, Last int }

// AddressRange is what ipv4 = "auto" takes addresses from: First goes with the first vmid of the range.
type AddressRange struct {
	CIDR    netip.Prefix
	First   netip.Addr
	Gateway netip.Addr // the zero Addr for none
}

// SSH is how guests are reached.
type SSH struct {
	Username       string
	PrivateKeyFile string // OpenSSH format, readable by its owner only
	PublicKey      string // authorized_keys line
	ProxyJump      *ProxyJump
}

// ProxyJump is the host that guests are reached through.
type ProxyJump struct {
	Host     string
	Port     int
	Username string
	HostKey  string // authorized_keys form, "ssh-ed25519 AAAA…"
}

// Node is the node that has the template.
func (e *Environment) Node() string { return e.Nodes[0] }

// VMID is the nth id of the test's range, counted from 0, for tests that name an id themselves.
func (e *Environment) VMID(n int) int { return e.VMIDs.First + n }

// New prepares an Environment for one test and cleans up after it. Options shape the lab and have no effect on a real
// server, so a test that depends on one says so by NeedsLab or NeedsNodes.
func New(t testing.TB, options ...Option) *Environment {
	t.Helper()
	prepareCommandLine(t)
	var env *Environment
	if real() {
		env = fromVariables(t)
		takeRange(t, env)
	} else {
		env = startLab(t, options)
	}
	env.Owner = newOwner()
	t.Cleanup(func() { sweep(t, env) })
	return env
}
