package egress

import "net/netip"

// Policy is what is wanted of a sandbox's network.
type Policy struct {
	Mode Mode
	// Management are the networks that may reach the sandbox's SSH, our own
	// source address among them.
	Management []netip.Prefix
	// SSHPort is the port that they may reach; 0 means 22.
	SSHPort int
	// Resolvers are the DNS servers that may be asked on port 53. With NAT every
	// public one may be asked as well.
	Resolvers []netip.Addr
	// Allow are exceptions; with Allowlist they are all that is let out.
	Allow []Allow
	// Deny is dropped before anything is allowed, resolvers apart.
	Deny []netip.Prefix
	// Nodes are the cluster nodes' own addresses, closed whatever the mode.
	Nodes []netip.Addr
	// Resolved holds the addresses of the domains in Allow, by name.
	Resolved map[string][]netip.Addr
}

// Allow is one exception.
type Allow struct {
	// To is a network in CIDR form, an address, or a domain.
	To string
	// Ports are destination ports as Proxmox VE writes them, "80,443,8000:8100";
	// empty means all.
	Ports string
	// Protocol is "tcp", "udp", "icmp", …; empty means all, and "tcp" where Ports
	// are given.
	Protocol string
	// Resolve says that To is a domain whose addresses are looked up and pinned.
	Resolve bool
}

// SetScope says where a filter's IP sets are.
type SetScope string

// Scopes of IP sets.
const (
	DatacenterSets SetScope = "dc"
	GuestSets      SetScope = "guest"
)

// Naming says how a filter's IP sets are called.
type Naming struct {
	Scope SetScope
	// Prefix begins the names of the sets: the group's name, or "sbx" in a guest.
	Prefix string
	// Inline writes allowed networks into the rules instead of into sets: for
	// short lists that are used elsewhere.
	Inline bool
}

// Filter is a rendered policy.
type Filter struct {
	// Rules in their order: the first that matches decides.
	Rules []Rule
	// Sets that the rules name, by name.
	Sets []Set
}

// Set is an IP set: networks of both IP versions.
type Set struct {
	Name    string
	Comment string
	// Entries are canonical, sorted and without doubles.
	Entries []netip.Prefix
	// Foreign are members of a set on the server that are no plain networks:
	// aliases, and exceptions ("!10.0.0.1"). No set of ours has any.
	Foreign []string
}

// Problem is something in a policy that can't be done, or must not be.
type Problem struct {
	// Attribute is where it is: "mode", "allow[2].to", "resolvers".
	Attribute string
	Summary   string
	Detail    string
	// Warning marks what stops nothing.
	Warning bool
}
