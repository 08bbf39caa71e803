package server

import (
	"maps"
	"time"
)

// FirewallModel is the firewall's configuration in force, resolved so far that packets can be judged by it or a packet
// filter be made of it: only rules that are on, in their order, with groups, macros, sets, aliases and names of services
// replaced by what they mean. It is a copy: it stays as it is.
//
// What a real node makes of it, and when: proxmox's service compiles everything every Delays.FirewallLoop, if the
// datacenter's switch is on. A guest is filtered only if its own switch is on, and only on interfaces with firewall=1. What
// it sends to the node itself isn't the matter of its rules but of the node's.
type FirewallModel struct {
	// Changes counts the writes of all files since the lab was made; with an equal count nothing was written. Guests that
	// come, go and get other interfaces aren't all counted.
	Changes    uint64
	Datacenter FirewallDatacenter
	// Nodes by name; Guests by id, those without a file of their own too.
	Nodes  map[string]FirewallNode
	Guests map[int]FirewallGuest
}

// FirewallDatacenter is the level of the whole cluster.
type FirewallDatacenter struct {
	// Enable is the switch of everything. By default it is off.
	Enable bool
	// PolicyIn (DROP), PolicyOut and PolicyForward (ACCEPT) are about the nodes' own traffic.
	PolicyIn, PolicyOut, PolicyForward string
	FirewallFile
}

// FirewallNode is a node's level: the traffic of the node itself, from guests too. The datacenter's rules come after it.
type FirewallNode struct {
	// Enable is on by default.
	Enable bool
	// NDP lets neighbour discovery pass; on by default.
	NDP bool
	FirewallFile
}

// FirewallGuest is a container's level.
type FirewallGuest struct {
	Node    string
	Running bool
	// Enable is off by default.
	Enable bool
	// PolicyIn (DROP) and PolicyOut (ACCEPT) are what happens to packets that no rule is about.
	PolicyIn, PolicyOut string
	// DHCP lets address requests pass, NDP (on by default) neighbour discovery, RAdv sending router advertisements.
	DHCP, NDP, RAdv bool
	// Interfaces by their key in the configuration, "net0".
	Interfaces map[string]FirewallInterface
	FirewallFile
}

// FirewallInterface is a container's network interface as the firewall sees it.
type FirewallInterface struct {
	// Firewall says that the interface is filtered at all; LinkDown that nothing passes.
	Firewall, LinkDown bool
	Bridge, MAC        string
	VLAN               int // 0 without
	// MACFilter drops what the guest sends from another hardware address.
	MACFilter bool
	// IPFilter drops what the guest sends from another address than these; nil without.
	IPFilter *FirewallAddresses
}

// FirewallFile is what the levels have in common.
type FirewallFile struct {
	// Written is the file's last write: for a clone's copy its making, zero for what was never written.
	Written time.Time
	// Options are those that are set, as in the file; defaults aren't.
	Options map[string]string
	// Rules are in force in their order; Skipped those that the server ignores, with the reason.
	Rules   []FirewallRule
	Skipped []string
	// Sets by name: "management" and "blacklist" of the datacenter have a meaning of their own.
	Sets map[string]*FirewallAddresses
}

// Firewall is the configuration in force now.
func (s *Server) Firewall() *FirewallModel {
	s.lock()
	defer s.unlock()
	dc := s.st.Firewall
	level := &fwLevel{
		s: s, env: "cluster", options: made(&dc.Options), rules: &dc.Rules, ipsets: made(&dc.IPSets), aliases: made(&dc.Aliases),
	}
	model := &FirewallModel{
		Changes: dc.Changes, Nodes: map[string]FirewallNode{}, Guests: map[int]FirewallGuest{},
		Datacenter: FirewallDatacenter{
			Enable:   level.options["enable"] != "" && !isZero(level.options["enable"]),
			PolicyIn: level.option("policy_in", "DROP"), PolicyOut: level.option("policy_out", "ACCEPT"),
			PolicyForward: level.option("policy_forward", "ACCEPT"), FirewallFile: level.compiled("cluster"),
		},
	}
	for _, n := range s.st.Nodes {
		model.Nodes[n.Name] = s.nodeModel(n)
	}
	for vmid, g := range s.st.Guests {
		model.Guests[vmid] = s.guestModel(g)
	}
	return model
}

func (s *Server) nodeModel(n *node) FirewallNode {
	f := n.Firewall
	if f == nil {
		f = &nodeFirewall{}
	}
	level := &fwLevel{s: s, env: "host", options: f.Options, rules: &f.Rules}
	return FirewallNode{Enable: level.on("enable", true), NDP: level.on("ndp", true), FirewallFile: level.compiled("host-" + n.Name)}
}

func (s *Server) guestModel(g *guest) FirewallGuest {
	f := s.guestFirewallOf(g.VMID)
	if f == nil {
		f = &guestFirewall{}
	}
	level := s.guestFirewallLevel(f)
	out := FirewallGuest{
		Node: g.Node, Running: g.Running, Enable: level.on("enable", false),
		PolicyIn: level.option("policy_in", "DROP"), PolicyOut: level.option("policy_out", "ACCEPT"),
		DHCP: level.on("dhcp", false), NDP: level.on("ndp", true), RAdv: level.on("radv", false),
		Interfaces: map[string]FirewallInterface{}, FirewallFile: level.compiled(guestFile(g.VMID)),
	}
	if out.Written.IsZero() && !f.empty() { // a clone's copy, or a restored container's
		out.Written = g.Created
	}
	for _, key := range optionsOf(g.Config, "net") {
		out.Interfaces[key] = level.interfaceModel(key, g.Config[key])
	}
	return out
}

// compiled resolves a file.
func (l *fwLevel) compiled(file string) FirewallFile {
	out := FirewallFile{Written: l.s.st.Firewall.Written[file], Options: maps.Clone(l.options), Sets: map[string]*FirewallAddresses{}}
	for name, set := range l.ipsets {
		out.Sets[name] = &FirewallAddresses{Text: "+" + name, Spans: l.setSpans(set)}
	}
	out.Rules, out.Skipped = l.compiledRules()
	return out
}

// option is an option's value, or what it is by default.
func (l *fwLevel) option(name, byDefault string) string {
	if value := l.options[name]; value != "" {
		return value
	}
	return byDefault
}

// on is a switch.
func (l *fwLevel) on(name string, byDefault bool) bool {
	value, set := l.options[name]
	if !set {
		return byDefault
	}
	return value == "1"
}
