package server

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// defaultRootSize is what the status shows of a container that has no root yet.
const defaultRootSize = 4 << 30

// lxcList lists the node's containers that the caller may see.
func (s *Server) lxcList(c *call) (any, error) {
	out := []map[string]any{}
	for _, vmid := range slices.Sorted(maps.Keys(s.st.Guests)) {
		g := s.st.Guests[vmid]
		if g != nil && g.Node == c.node.Name && c.may(fmt.Sprintf("/vms/%d", vmid), "VM.Audit") {
			out = append(out, s.statusLine(g))
		}
	}
	return out, nil
}

func (s *Server) lxcIndex(c *call) (any, error) {
	if _, err := c.guest(); err != nil {
		return nil, err
	}
	return subdirs("config", "pending", "status", "vncproxy", "termproxy", "vncwebsocket", "spiceproxy", "migrate",
		"clone", "rrd", "rrddata", "firewall", "snapshot", "resize", "interfaces"), nil
}

func (s *Server) lxcStatusIndex(c *call) (any, error) {
	if _, err := c.guest(); err != nil {
		return nil, err
	}
	return subdirs("current", "start", "stop", "shutdown", "migrate"), nil
}

func subdirs(names ...string) []map[string]any {
	out := make([]map[string]any, 0, len(names))
	for _, name := range names {
		out = append(out, map[string]any{"subdir": name})
	}
	return out
}

// lxcStatusCurrent is fresh, unlike /cluster/resources.
func (s *Server) lxcStatusCurrent(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	out := s.statusLine(g)
	ha := map[string]any{"managed": 0}
	if s.st.HA[fmt.Sprintf("ct:%d", g.VMID)] != nil {
		ha = map[string]any{"managed": 1, "state": nil}
	}
	out["ha"] = ha
	return out, nil
}

// statusLine is a container's line in the list.
func (s *Server) statusLine(g *guest) map[string]any {
	stat := s.guestStatus(g)
	out := map[string]any{
		"vmid": g.VMID, "type": "lxc", "name": stat.Name, "status": stat.Status,
		"cpu": stat.CPU, "cpus": stat.MaxCPU, "mem": stat.Mem, "maxmem": stat.MaxMem, "disk": stat.Disk,
		"maxdisk": stat.MaxDisk, "swap": 0, "maxswap": g.megabytes("swap", 0), "uptime": stat.Uptime,
		"netin": stat.NetIn, "netout": stat.NetOut, "diskread": 0, "diskwrite": 0,
	}
	if tags := g.Config["tags"]; tags != "" {
		out["tags"] = tags
	}
	if lock := g.Config["lock"]; lock != "" {
		out["lock"] = lock
	}
	if stat.Template {
		out["template"] = 1
	}
	if g.hasInit() {
		out["pid"] = g.PID
		for _, resource := range []string{"cpu", "io", "memory"} {
			out["pressure"+resource+"some"] = "0.00"
			out["pressure"+resource+"full"] = "0.00"
		}
	}
	return out
}

// usableBytes is what an ext4 file system of a size offers: its tables take some.
func usableBytes(size int64) int64 {
	if size < 1<<30 {
		return size * 95 / 100
	}
	return 1020702720 + (size-1<<30)/(1<<20)*(1<<20)*1019670528/(1<<30)
}

// lxcInterfaces is what the guest's own tools say. Nil for a container that doesn't run, or isn't there at all.
func (s *Server) lxcInterfaces(c *call) (any, error) {
	g, err := c.guest()
	if err != nil || !g.hasInit() {
		return nil, nil //nolint:nilerr // the server answers 200 with null
	}
	var seen []engine.Interface
	vmid, leaseAt := g.VMID, g.StartedAt.Add(s.delays().DHCP)
	dynamic := dynamicNICs(g.Config)
	err = s.inEngine(c.ctx, func(ctx context.Context, e engine.Engine) (err error) {
		seen, err = e.Interfaces(ctx, vmid)
		return err
	})
	if err != nil {
		return nil, nil //nolint:nilerr // it went down meanwhile
	}
	waiting := s.now().Before(leaseAt)
	out := []map[string]any{}
	for _, iface := range seen {
		out = append(out, interfaceAnswer(iface, waiting && dynamic[strings.ToLower(iface.MAC)]))
	}
	return out, nil
}

// dynamicNICs are the hardware addresses whose IPv4 address comes from DHCP, which takes its time.
func dynamicNICs(config map[string]string) map[string]bool {
	macs := map[string]bool{}
	for _, key := range optionsOf(config, "net") {
		if net := parseNet(config[key]); net["ip"] == "dhcp" {
			macs[strings.ToLower(net["hwaddr"])] = true
		}
	}
	return macs
}

func interfaceAnswer(iface engine.Interface, withoutIPv4 bool) map[string]any {
	out := map[string]any{"name": iface.Name, "hwaddr": iface.MAC, "hardware-address": iface.MAC}
	addresses := []map[string]any{}
	for _, cidr := range iface.Addresses {
		address, prefix, _ := strings.Cut(cidr, "/")
		kind := "inet"
		if strings.Contains(address, ":") {
			kind = "inet6"
		} else if withoutIPv4 {
			continue
		}
		if _, seen := out[kind]; !seen {
			out[kind] = cidr
		}
		addresses = append(addresses, map[string]any{"ip-address": address, "prefix": prefix, "ip-address-type": kind})
	}
	out["ip-addresses"] = addresses
	return out
}
