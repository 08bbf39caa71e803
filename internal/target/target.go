// Package target describes a Proxmox VE that the provider is pointed at, as plain facts, and writes them in the two
// forms that the provider reads: a provider block and SANDBOX_* variables. Tests, demo and bench share it.
package target

import (
	"net/netip"
	"os"
	"time"
)

// Target is a server and the part of it that may be used.
type Target struct {
	Endpoint    string // https://host:port
	APIToken    string // user@realm!name=uuid; or Username and Password
	Username    string
	Password    string
	Fingerprint string // SHA-256 of the server's certificate, when it is pinned
	CAFile      string
	Insecure    bool

	Owner        string
	Nodes        []string // at least one; the template is on the first
	TemplateID   int      // carries SSH.PublicKey
	TemplateFile string   // volid of a container template, storage:vztmpl/name
	Storage      string   // for root disks
	Backups      string   // storage for backups
	Bridge       string
	VMIDs        VMIDRange
	Addresses    AddressRange
	SSH          SSH

	// Management are the networks that guests see us come from; FirewallSettle is how long the server's firewall
	// takes to put a write into force, 0 for the provider's default.
	Management     []netip.Prefix
	FirewallSettle time.Duration
}

// VMIDRange is what containers take their ids from, both ends included.
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

// ProxyJump is the host that guests are reached through, with the guests' key.
type ProxyJump struct {
	Host     string
	Port     int
	Username string
	HostKey  string // authorized_keys form, "ssh-ed25519 AAAA…"
}

// Node is the node that has the template.
func (t *Target) Node() string { return t.Nodes[0] }

// VMID is the nth id of the range, counted from 0.
func (t *Target) VMID(n int) int { return t.VMIDs.First + n }

// PrivateKey is the content of the private key's file.
func (t *Target) PrivateKey() (string, error) {
	content, err := os.ReadFile(t.SSH.PrivateKeyFile)
	return string(content), err
}
