package sandbox

import (
	"net/netip"
	"time"
)

// Ref is how a caller holds a sandbox: enough to prove that the guest behind
// the id is the one that it means.
type Ref struct {
	VMID  int
	Node  string // a hint; the guest is found when it has moved
	Claim string // 26 characters, made at create, written in the marker
	Owner string // empty means the manager's own
}

// Status is a container's power state in the API's words.
type Status string

// The power states of a container.
const (
	StatusRunning Status = "running"
	StatusStopped Status = "stopped"
	StatusUnknown Status = "unknown" // the list said nothing about it
)

// Sandbox is what the server says about one container, complete enough to fill
// every attribute of its model: nothing in it is copied from a plan.
type Sandbox struct {
	Ref
	Marker *Marker // nil only for guests that Import is about to adopt

	Hostname string
	// Source is read from the marker, or what Import could see.
	Source   Source
	Storage  string // of the root disk
	PoolID   string
	Template bool // the container is itself a template
	// TemplateCurrent says whether the source is still the template, of the
	// same build, that was cloned; false also when it is gone. nil is unknown:
	// not asked for, or made from a file.
	TemplateCurrent *bool

	Cores     *int // nil: all of the node's
	CPULimit  float64
	CPUUnits  int // 0: the server's default
	MemoryMiB int
	SwapMiB   int
	DiskGiB   float64 // root disk; a fraction when the server's size isn't whole
	Nesting   bool

	Tags        []string // without the tag sbx-<owner>
	OwnerTag    bool     // whether the tag sbx-<owner> is there
	Description string   // the user's part
	Protection  bool
	OnBoot      bool
	Startup     *Startup

	Network NetworkState
	DNS     DNS
	// Workspaces are the volumes of workspaces that it has.
	Workspaces []Attached
	// Lease is nil for one without. Its Renew is what stands for it in the marker
	// (RenewMark), its OnExpiry empty: the server doesn't know it.
	Lease     *Lease
	ExpiresAt time.Time // end of the lease, zero without one
	// LeaseLeft is how much of the lease is left by this machine's clock, negative
	// when it is over; meaningless without a lease.
	LeaseLeft time.Duration

	Status Status
	// Uptime is 0 for a stopped container.
	Uptime time.Duration
	// PendingAutostart marks a stopped container with on_boot on a node that
	// is up for less than the startup delays: it will be started by the node,
	// so that it is stopped is no drift.
	PendingAutostart bool
	Lock             string // the server's lock, empty if none

	IPv4 netip.Addr // invalid when unknown or none
	IPv6 netip.Addr

	SSH     *SSH // nil when nothing has connected yet
	Posture Posture
	HA      bool // managed by the high-availability stack

	Digest string // of the configuration that was read

	// RollingBack names the snapshot of a rollback that was begun and isn't
	// finished: parts of the sandbox are as the snapshot had them. Update
	// completes it.
	RollingBack string
}

// NetworkState is what net0 says.
type NetworkState struct {
	Present      bool
	Name         string // of the interface inside, eth0
	Bridge       string
	VLANID       int
	MTU          int
	RateLimitMBs float64
	MACAddress   string
	// IPv4 is "auto" when the address is the one that the range gives to this
	// vmid, else "dhcp", "none" or the CIDR.
	IPv4     string
	IPv4CIDR string // the address in CIDR form whenever it is static
	Gateway  string
	IPv6     string
	Gateway6 string
	Firewall bool
	LinkDown bool
	// Mode is the network mode that the marker says; empty for a container whose
	// firewall was never managed.
	Mode NetworkMode
}

// SSH is how a sandbox was reached.
type SSH struct {
	Username string
	Host     string
	Port     int
	HostKey  string // authorized_keys format
}

// Posture is what bears on a container's isolation. It is read on every
// refresh; some of it can only be repaired by replacement.
type Posture struct {
	Unprivileged bool
	Features     []string   // as in the configuration, e.g. "nesting=1", sorted
	Mounts       []string   // "mp0=…" and the root disk's options when it has any
	Devices      []string   // "dev0=…"
	Raw          [][]string // raw lxc lines, key and value
	Hookscript   string
	// ExtraNICs are interfaces beside net0: a sandbox has one.
	ExtraNICs []string
	// Firewall is the container's own firewall, switches and rules, as lines in
	// their order; nil where the mode leaves it alone.
	Firewall []string
	// Proof says how the firewall was proved in this run, in one of the words
	// beside ProvedProbed; empty where it wasn't looked at.
	Proof string
	// Pending lists the settings that wait for a restart. nil when it wasn't
	// asked for.
	Pending []string
}

// Timings says how long the steps of a creation took.
type Timings struct {
	Clone   time.Duration
	Start   time.Duration
	Address time.Duration
	// Firewall is the wait until the server's rules bit.
	Firewall time.Duration
	SSH      time.Duration
	Total    time.Duration
}

// Warning is something that the user should know and that stops nothing.
type Warning struct {
	Summary string
	Detail  string
}

// Outcome is what Create and Update hand back.
type Outcome struct {
	// Sandbox is what the server says at the end. After an error or a stop it
	// holds what is known, at least the Ref.
	Sandbox  Sandbox
	Warnings []Warning
	Timings  Timings
	// Pinned are the addresses of the domains in Network.Allow that the firewall
	// was written with, by name.
	Pinned map[string][]netip.Addr
	// Unfinished says that the work was stopped from outside (a cancelled
	// context, not a deadline) after the container had come to be. Update
	// finishes it.
	Unfinished bool
}
