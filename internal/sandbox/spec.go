package sandbox

import (
	"maps"
	"net/netip"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// Spec is what a user wants of one sandbox. It is complete: what it leaves nil
// stays as the source (template or server default) has it, and everything else
// is written, also when it equals the source's value, because a clone copies
// settings such as protection or on_boot from its template.
type Spec struct {
	Hostname string // RFC 1123 DNS name; also the container's name in lists
	Source   Source
	// FullClone copies the template's volumes instead of linking to them.
	FullClone bool
	// Storage takes the root disk of a full clone or of a create from a file.
	// A linked clone is always on its template's storage.
	Storage string
	// NodeName is where the container is wanted; empty leaves it where it
	// comes to be (the template's node).
	NodeName string
	// VMID is the wanted id; 0 means the next free one of the range.
	VMID   int
	PoolID string // a Proxmox pool; empty means none

	Cores     *int
	CPULimit  *float64 // cores' worth of CPU time, 0 = unlimited
	CPUUnits  *int
	MemoryMiB *int
	SwapMiB   *int
	DiskGiB   *int // root disk; grows only
	Nesting   *bool

	Tags        []string // the user's; the tag sbx-<owner> is added by this package
	Description string   // the user's text; the marker is added by this package
	Protection  bool
	OnBoot      bool
	Startup     *Startup
	Started     bool

	Network Network
	DNS     *DNS // nil leaves what the source has

	// AuthorizedKeys are lines in authorized_keys format. nil leaves the
	// guest's file alone; an empty list leaves only the provider's own key.
	AuthorizedKeys []string

	// Workspaces are the workspaces that it is to have, and no others.
	Workspaces []Attachment

	// Lease says how long it may live; nil means without end.
	Lease *Lease

	// AllowRisks are named exceptions from the policy (risks.go).
	AllowRisks []Risk

	// WaitFor says when a creation, a start or a restart counts as done.
	WaitFor WaitFor
	// RestartWhenNeeded restarts the container when a change needs it.
	RestartWhenNeeded bool
	// SnapshotBeforeUpdate takes a snapshot before an update that restarts the
	// container or changes one of its volumes.
	SnapshotBeforeUpdate bool

	// as says what it is made as; the zero value is an ordinary sandbox.
	as role
}

// role is what the marker says of a guest beside its owner: that it is a pool's
// member, or was one.
type role struct {
	kind       Kind // empty means KindContainer
	pool       string
	generation string
}

// Source is where a container's root file system comes from: exactly one of
// the three is set.
type Source struct {
	TemplateID     int    // vmid of a container template, cloned
	TemplateFileID string // volume id of a container template file, e.g. "local:vztmpl/debian-13.tar.zst"
	RestoreFrom    string // volume id of a container's backup, e.g. "local:backup/vzdump-lxc-100012-….tar.zst"
}

// IsClone says whether the source is cloned (as opposed to unpacked).
func (s Source) IsClone() bool { return s.TemplateFileID == "" && s.RestoreFrom == "" }

func (s Source) count() int {
	n := 0
	for _, set := range []bool{s.TemplateID != 0, s.TemplateFileID != "", s.RestoreFrom != ""} {
		if set {
			n++
		}
	}
	return n
}

func (s Source) empty() bool { return s == Source{} }

// Startup is the order and the pauses of starting and stopping with the node.
type Startup struct {
	Order        *int // lower starts first
	UpDelaySec   *int // pause after this guest's start
	DownDelaySec *int // how long its shutdown may take
}

// Values of Network.IPv4 and Network.IPv6 that aren't an address.
const (
	AddressAuto   = "auto"   // IPv4: from the address range. IPv6: SLAAC
	AddressDHCP   = "dhcp"   // the guest asks
	AddressNone   = "none"   // no address of this family
	AddressManual = "manual" // the guest's own business; what Proxmox VE says for "none" too
)

// Network is the container's one interface, eth0 on net0.
type Network struct {
	Bridge       string
	VLANID       int     // 0 = untagged
	MTU          int     // bytes, 0 = the bridge's
	RateLimitMBs float64 // MB/s, 0 = unlimited
	MACAddress   string  // empty keeps the one that the server made
	IPv4         string  // "auto", "dhcp", "none" or a CIDR; empty leaves the source's
	Gateway      string  // of a static IPv4; with "auto", empty takes the address range's
	IPv6         string  // "auto", "dhcp", "none" or a CIDR; empty leaves the source's

	// Pinned are the addresses of the domains in Allow, by name; one that isn't in
	// it is looked up.
	Pinned map[string][]netip.Addr

	// Mode is what the sandbox may reach; empty means DefaultMode.
	Mode NetworkMode
	// FirewallGroup is a security group of the datacenter that holds the mode's
	// rules; empty writes them to the container's own firewall.
	FirewallGroup string
	// Allow are exceptions from the mode.
	Allow []egress.Allow
	// Proof says how sure the wall must be; empty means ProofGuarded.
	Proof Proof
	// Canaries are listeners, "address:port", that are tried from inside: those
	// that the mode forbids must not be reached.
	Canaries []string

	// held keeps the link down until the rules bite.
	held bool
}

// DNS is what the guest's resolver is told.
type DNS struct {
	Servers []string // addresses
	Domain  string   // search domain
}

// WaitFor says what a start is waited for.
type WaitFor string

// What a start can be waited for.
const (
	WaitForSSH     WaitFor = "ssh"     // a login over SSH succeeds (the default)
	WaitForAddress WaitFor = "address" // the server or the spec knows an address
	WaitForNone    WaitFor = "none"    // the start task has ended
)

// Clone returns a deep copy.
func (s Spec) Clone() Spec {
	c := s
	c.Cores = clonePtr(s.Cores)
	c.CPULimit = clonePtr(s.CPULimit)
	c.CPUUnits = clonePtr(s.CPUUnits)
	c.MemoryMiB = clonePtr(s.MemoryMiB)
	c.SwapMiB = clonePtr(s.SwapMiB)
	c.DiskGiB = clonePtr(s.DiskGiB)
	c.Nesting = clonePtr(s.Nesting)
	c.Tags = slices.Clone(s.Tags)
	c.AuthorizedKeys = slices.Clone(s.AuthorizedKeys)
	c.Workspaces = slices.Clone(s.Workspaces)
	c.Lease = clonePtr(s.Lease)
	c.AllowRisks = slices.Clone(s.AllowRisks)
	c.Network.Allow = slices.Clone(s.Network.Allow)
	c.Network.Pinned = maps.Clone(s.Network.Pinned)
	c.Network.Canaries = slices.Clone(s.Network.Canaries)
	if s.Startup != nil {
		c.Startup = &Startup{Order: clonePtr(s.Startup.Order), UpDelaySec: clonePtr(s.Startup.UpDelaySec), DownDelaySec: clonePtr(s.Startup.DownDelaySec)}
	}
	if s.DNS != nil {
		c.DNS = &DNS{Servers: slices.Clone(s.DNS.Servers), Domain: s.DNS.Domain}
	}
	return c
}

func clonePtr[T any](p *T) *T {
	if p == nil {
		return nil
	}
	v := *p
	return &v
}
