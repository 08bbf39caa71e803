package sandbox

import (
	"net/netip"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Defaults of the provider block.
const (
	// DefaultFirstVMID and DefaultLastVMID bound the ids that sandboxes are
	// given when the configuration names no range.
	DefaultFirstVMID = 100000
	DefaultLastVMID  = 109999

	// MinVMID and MaxVMID are Proxmox VE's own limits for a guest's id.
	MinVMID = 100
	MaxVMID = 999999999

	// DefaultMaxClones is how many clones may be under way at once per storage.
	DefaultMaxClones = 8

	// DefaultFirewallSettle is a second more than the period of Proxmox VE's
	// firewall service, which compiles rules every 10 s.
	DefaultFirewallSettle = 11 * time.Second

	// DefaultCreateTimeout bounds a creation whose context has no deadline. It
	// also decides the `until` of the marker.
	DefaultCreateTimeout = 20 * time.Minute
)

// VMIDRange is an inclusive range of guest ids.
type VMIDRange struct {
	First int
	Last  int
}

// Contains says whether vmid lies in the range.
func (r VMIDRange) Contains(vmid int) bool { return vmid >= r.First && vmid <= r.Last }

// Size is the number of ids in the range.
func (r VMIDRange) Size() int { return r.Last - r.First + 1 }

// AddressRange gives every vmid an IPv4 address of its own: the address is
// First + (vmid - VMIDs.First), unique because the vmid is.
type AddressRange struct {
	CIDR    netip.Prefix // the bridge's network, e.g. 10.10.0.0/16
	First   netip.Addr   // the address of the first vmid of the range
	Gateway netip.Addr   // the guests' default gateway; invalid means none
}

// Settings are the provider block's facts that the domain needs. The zero
// value of an optional field means its documented default.
type Settings struct {
	// Owner is the namespace of the ownership marker. Required for any write.
	Owner string
	// VMIDs is where ids are taken from. Zero means DefaultFirstVMID to
	// DefaultLastVMID.
	VMIDs VMIDRange
	// Addresses serves ipv4 = "auto"; nil refuses it.
	Addresses *AddressRange
	// Adopt lets Import write our marker on a guest that has none.
	Adopt bool

	// Nodes limits placement to these nodes; empty means every online node.
	Nodes []string
	// TemplateID, PoolID, Storage and Bridge are used where a Spec leaves them
	// out.
	TemplateID int
	PoolID     string
	Storage    string
	Bridge     string

	// Guest is how containers are reached over SSH.
	Guest guest.Config
	// Node is how nodes are reached over SSH; nil means that they aren't.
	Node *NodeAccess

	// Management are the networks that may reach the sandboxes' SSH. Where the
	// guests are reached directly, our own address is added.
	Management []netip.Prefix
	// FirewallSettle is how long after a write the server's firewall rules are
	// trusted to bite; zero means DefaultFirewallSettle.
	FirewallSettle time.Duration

	// MaxClones is how many clones may be under way at once per storage; zero
	// means DefaultMaxClones. Per template it is always one: the server locks
	// the source of a clone for as long as the clone takes.
	MaxClones int
}

func (s Settings) withDefaults() Settings {
	if s.VMIDs == (VMIDRange{}) {
		s.VMIDs = VMIDRange{First: DefaultFirstVMID, Last: DefaultLastVMID}
	}
	if s.FirewallSettle == 0 {
		s.FirewallSettle = DefaultFirewallSettle
	}
	if s.MaxClones == 0 {
		s.MaxClones = DefaultMaxClones
	}
	return s
}
