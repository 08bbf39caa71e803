// Package nftrules makes nftables rules of the firewall model that the lab's API holds, for engines whose guests are on real
// bridges. It follows what Proxmox' own compiler does where a guest can tell: the order of rules, the switches, what is
// let through before them, and that a guest's rules aren't about traffic to the node itself.
//
// Guests' rules are in a table of the bridge family. A packet from a guest is judged when it comes in, before it is known
// where it goes; a packet to a guest is judged there too if it comes from another one, by its hardware address, and again
// (or, from the node, for the first time) on its way out of the bridge. What is to be rejected is marked, and rejected
// where the kernel can, which is when IP forwards it; on the way out a reject is silent.
package nftrules

import (
	"encoding/hex"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/server"
)

// The names of what the engine defines before it loads the rules: sets of addresses.
const (
	NodeAddresses4 = "node4" // the node's own
	NodeAddresses6 = "node6"
	LocalNetwork4  = "local4" // the networks that the node itself is on
	LocalNetwork6  = "local6"
)

// The marks of packets: the number of the node that the packet is at, and two bits.
const (
	markNode     = "0x0000ffff"
	markTracked  = "0x80000000" // belongs to a connection that was let pass
	markRejected = "0x40000000" // to be rejected
)

// The kernel takes bridged frames through the IP hooks at priority 0 of the bridge's hooks, at -1 when it forwards them.
const (
	beforeIP = -300
	afterIP  = 10
)

const rejected = "meta mark & " + markRejected + " != 0"

// Table is the name of the tables, one of family bridge, one of family inet.
const Table = "sandbox_lab"

// PortName is the name of the bridge's port that belongs to the interface with a hardware address. Engines name them so,
// and rules refer to ports that may not exist yet.
func PortName(mac string) (string, error) {
	address, err := net.ParseMAC(mac)
	if err != nil || len(address) != 6 {
		return "", fmt.Errorf("hardware address %q", mac)
	}
	return "v" + hex.EncodeToString(address), nil
}

// Ruleset is the text of `nft -f` that replaces whatever rules there were at once. A nil model has no rules: everything
// passes.
func Ruleset(model *server.FirewallModel) string {
	var b strings.Builder
	for _, family := range []string{"bridge", "inet"} {
		fmt.Fprintf(&b, "table %[1]s %[2]s\ndelete table %[1]s %[2]s\n", family, Table)
	}
	if model == nil || !model.Datacenter.Enable {
		return b.String()
	}
	b.WriteString(bridgeTable(model))
	b.WriteString(inetTable(model))
	return b.String()
}

// nic is an interface that is to be filtered, or only told apart.
type nic struct {
	guest int
	key   string // "net0"
	port  string
	mac   string
	node  int // mark
	of    server.FirewallGuest
	is    server.FirewallInterface
}

// filtered says whether the guest's rules are about the interface.
func (n nic) filtered() bool { return n.of.Enable && n.is.Firewall }

// nics lists all guests' interfaces in a fixed order, so that equal models give equal texts.
func nics(model *server.FirewallModel) []nic {
	marks := nodeMarks(model)
	var all []nic
	for _, id := range slices.Sorted(maps.Keys(model.Guests)) {
		g := model.Guests[id]
		for _, key := range slices.Sorted(maps.Keys(g.Interfaces)) {
			i := g.Interfaces[key]
			if port, err := PortName(i.MAC); err == nil {
				all = append(all, nic{guest: id, key: key, port: port, mac: strings.ToLower(i.MAC), node: marks[g.Node], of: g, is: i})
			}
		}
	}
	return all
}

// nodeMarks numbers the nodes. The mark that a packet gets where it comes in tells the rules of which node it meets.
func nodeMarks(model *server.FirewallModel) map[string]int {
	marks := map[string]int{}
	for i, name := range slices.Sorted(maps.Keys(model.Nodes)) {
		marks[name] = i + 1
	}
	return marks
}

// writer collects the rules of one table.
type writer struct {
	chains strings.Builder
	sets   *sets
}

// chain adds a chain.
func (w *writer) chain(name string, rules []string) {
	fmt.Fprintf(&w.chains, "\tchain %s {\n", name)
	for _, r := range rules {
		fmt.Fprintf(&w.chains, "\t\t%s\n", r)
	}
	w.chains.WriteString("\t}\n")
}

func (w *writer) table(family string) string {
	return fmt.Sprintf("table %s %s {\n%s%s}\n", family, Table, w.sets.text(), w.chains.String())
}
