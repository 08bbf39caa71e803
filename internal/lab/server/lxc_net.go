package server

import (
	"crypto/rand"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// macPrefix is the vendor part of the addresses that the server makes.
const macPrefix = "BC:24:11"

// parseNet reads "name=eth0,bridge=vmbr0,…".
func parseNet(value string) map[string]string {
	net, err := parsePropertyString(propertyKeys("POST", "/nodes/{node}/lxc", "net[n]"), value)
	if err != nil {
		return map[string]string{}
	}
	return net
}

// printProperties writes a property string in the server's order: the given keys first, the rest sorted. A first key
// that is bare is written without its name.
func printProperties(values map[string]string, bare string, first ...string) string {
	var parts []string
	done := map[string]bool{}
	if bare != "" {
		parts, done[bare] = append(parts, values[bare]), true
	}
	for _, key := range append(first, slices.Sorted(maps.Keys(values))...) {
		if value, ok := values[key]; ok && !done[key] {
			parts, done[key] = append(parts, key+"="+value), true
		}
	}
	return strings.Join(parts, ",")
}

// completeNet is an interface as the server stores it: with an address of its own, the type, in the server's order.
func (s *Server) completeNet(value string) string {
	net := parseNet(value)
	if net["hwaddr"] == "" {
		net["hwaddr"] = s.newMAC()
	}
	net["type"] = "veth"
	return printProperties(net, "", "name")
}

// freshNet is an interface's copy for a clone: everything but the address.
func (s *Server) freshNet(value string) string {
	net := parseNet(value)
	delete(net, "hwaddr")
	return s.completeNet(printProperties(net, "", "name"))
}

// newMAC makes an address that no container of the cluster has.
func (s *Server) newMAC() string {
	for {
		var b [3]byte
		_, _ = rand.Read(b[:]) // never fails
		mac := fmt.Sprintf("%s:%02X:%02X:%02X", macPrefix, b[0], b[1], b[2])
		if !s.macTaken(mac) {
			return mac
		}
	}
}

func (s *Server) macTaken(mac string) bool {
	for _, g := range s.st.Guests {
		for key, value := range g.Config {
			if kind, ok := splitNumbered(key); ok && kind == "net" && strings.Contains(strings.ToUpper(value), mac) {
				return true
			}
		}
	}
	return false
}

// optionsOf are the options of a numbered kind ("net") that are set, by number.
func optionsOf(config map[string]string, kind string) []string {
	var keys []string
	for key := range config {
		if k, ok := splitNumbered(key); ok && k == kind {
			keys = append(keys, key)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return optionNumber(a) - optionNumber(b) })
	return keys
}

// optionNumber is 3 for net3.
func optionNumber(key string) int {
	n := 0
	for _, digit := range strings.TrimLeft(key, "abcdefghijklmnopqrstuvwxyz") {
		n = n*10 + int(digit-'0')
	}
	return n
}

// checkBridges refuses a configuration whose bridges the node doesn't have. The server looks at them when it writes the
// container's own configuration: at a start, and after a PUT has stored the new values.
func (s *Server) checkBridges(node string, config map[string]string) error {
	for _, key := range optionsOf(config, "net") {
		if bridge := parseNet(config[key])["bridge"]; bridge != "" && !s.bridgeExists(node, bridge) {
			return failf("bridge '%s' does not exist", bridge)
		}
	}
	return nil
}

func (s *Server) bridgeExists(node, bridge string) bool {
	if _, ok := s.st.VNets[bridge]; ok {
		return true
	}
	for _, n := range s.st.Nodes {
		if n.Name == node {
			return slices.Contains(n.Bridges, bridge)
		}
	}
	return false
}

// checkBridgeAccess demands the right to use an interface's bridge, and its VLAN.
func (c *call) checkBridgeAccess(value string) error {
	net := parseNet(value)
	if net["bridge"] == "" {
		return nil
	}
	path := "/sdn/zones/localnetwork/" + net["bridge"]
	if net["tag"] != "" {
		path += "/" + net["tag"]
	}
	return c.check(path, "SDN.Use")
}

// checkUplinks refuses to give a running container an interface with a VLAN on a bridge that has no physical interface: the
// VLAN's own bridge is made on one. What is so already stays. Nothing of such a change is stored.
func (s *Server) checkUplinks(g *guest, options map[string]string) error {
	refused := map[string]string{}
	for _, key := range optionsOf(options, "net") {
		net, before := parseNet(options[key]), parseNet(g.Config[key])
		bridge, tag := net["bridge"], net["tag"]
		if tag == "" || bridge == "" || (tag == before["tag"] && bridge == before["bridge"]) || s.hasUplink(g.Node, bridge) {
			continue
		}
		refused[key] = fmt.Sprintf("unable to hotplug %s: no physical interface on bridge '%s'\n\n", key, bridge)
	}
	if len(refused) > 0 {
		return paramErrors(refused)
	}
	return nil
}

// hasUplink says whether a node's bridge has a physical interface, a network of the whole cluster's has.
func (s *Server) hasUplink(node, bridge string) bool {
	if _, ok := s.st.VNets[bridge]; ok {
		return true
	}
	n := s.findNode(node)
	return n != nil && slices.ContainsFunc(n.interfaces(), func(iface map[string]any) bool {
		ports, _ := iface["bridge_ports"].(string)
		return iface["iface"] == bridge && ports != ""
	})
}
