package server

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
)

// routesNetwork lists the network endpoints of a node.
func (s *Server) routesNetwork() {
	s.route("GET", "/nodes/{node}/network", s.networkList)
	s.route("POST", "/nodes/{node}/network", s.networkCreate)
	s.route("PUT", "/nodes/{node}/network", s.networkApply)
	s.route("DELETE", "/nodes/{node}/network", s.networkRevert)
	s.route("GET", "/nodes/{node}/network/{iface}", s.networkGet)
	s.route("DELETE", "/nodes/{node}/network/{iface}", s.networkDelete)
}

// interfaces are those of a node in the order of their priority: its bridge, then what was made by the API.
func (n *node) interfaces() []map[string]any {
	return append([]map[string]any{{
		"iface": "vmbr0", "type": "bridge", "active": 1, "autostart": 1, "method": "static", "method6": "manual",
		"families": []string{"inet"}, "address": n.IP, "netmask": "24", "cidr": n.IP + "/24", "bridge_ports": "", "bridge_stp": "off",
		"bridge_fd": "0", "priority": 3,
	}}, n.Network...)
}

func (s *Server) networkList(c *call) (any, error) {
	kind := c.params.str("type")
	out := []map[string]any{}
	for _, iface := range c.node.interfaces() {
		is := fmt.Sprint(iface["type"])
		bridge := is == "bridge" || is == "OVSBridge"
		if kind == "" || kind == is || (bridge && (kind == "any_bridge" || kind == "any_local_bridge" || kind == "include_sdn")) {
			out = append(out, iface)
		}
	}
	return out, nil
}

func (s *Server) networkGet(c *call) (any, error) {
	for _, iface := range c.node.interfaces() {
		if iface["iface"] == c.params.str("iface") {
			view := map[string]any{}
			for key, value := range iface {
				if key != "iface" {
					view[key] = value
				}
			}
			return view, nil
		}
	}
	return nil, paramError("iface", "interface does not exist")
}

// networkCreate adds an interface, which is pending until it is applied.
func (s *Server) networkCreate(c *call) (any, error) {
	name := c.params.str("iface")
	for _, iface := range c.node.interfaces() {
		if iface["iface"] == name {
			return nil, paramError("iface", "interface already exists")
		}
	}
	view := map[string]any{
		"iface": name, "type": c.params.str("type"), "method": "manual", "method6": "manual", "families": []string{"inet"},
		"priority": 4 + len(c.node.Network),
	}
	if c.params.str("type") == "bridge" {
		view["bridge_ports"], view["bridge_stp"], view["bridge_fd"] = c.params.str("bridge_ports"), "off", "0"
	}
	if c.params.flag("autostart") {
		view["autostart"] = 1
	}
	if cidr := c.params.str("cidr"); cidr != "" {
		view["cidr"], view["method"] = cidr, "static"
	}
	c.node.Network = append(c.node.Network, view)
	return nil, nil
}

// networkDelete takes an interface away, at once: that a deleted one works on until the change is applied isn't modelled.
func (s *Server) networkDelete(c *call) (any, error) {
	name := c.params.str("iface")
	before := len(c.node.Network)
	c.node.Network = slices.DeleteFunc(c.node.Network, func(iface map[string]any) bool { return iface["iface"] == name })
	if len(c.node.Network) == before {
		return nil, paramError("iface", "interface does not exist")
	}
	c.node.Bridges = slices.DeleteFunc(c.node.Bridges, func(bridge string) bool { return bridge == name })
	return nil, nil
}

// networkApply makes pending interfaces real: bridges can be used from then on.
func (s *Server) networkApply(c *call) (any, error) {
	return c.startTask("srvreload", "networking", func(t *task) error {
		for _, iface := range c.node.Network {
			iface["active"] = 1
			if name := fmt.Sprint(iface["iface"]); iface["type"] == "bridge" && !slices.Contains(c.node.Bridges, name) {
				c.node.Bridges = append(c.node.Bridges, name)
			}
		}
		return nil
	})
}

// networkRevert drops what is pending.
func (s *Server) networkRevert(c *call) (any, error) {
	c.node.Network = slices.DeleteFunc(c.node.Network, func(iface map[string]any) bool { return iface["active"] == nil })
	return nil, nil
}

// hostOf is the host and port of an address.
func hostOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	if u.Port() == "" {
		return u.Host + map[string]string{"https": ":443"}[u.Scheme] + strings.Repeat(":80", boolInt(u.Scheme == "http"))
	}
	return u.Host
}
