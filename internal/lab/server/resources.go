package server

import (
	"fmt"
	"sort"
	"strings"
)

// guestResource is a guest as /cluster/resources shows it: what the status service last saw of it, and before that nothing
// but where it is.
func (s *Server) guestResource(g *guest) map[string]any {
	view := map[string]any{
		"id": fmt.Sprintf("lxc/%d", g.VMID), "type": "lxc", "vmid": g.VMID, "node": g.Node, "status": "unknown",
	}
	if p := s.guestPool(g.VMID); p != nil {
		view["pool"] = p.ID
	}
	for _, key := range []string{"tags", "lock"} {
		if value := g.Config[key]; value != "" {
			view[key] = value
		}
	}
	if ha := s.st.HA[fmt.Sprintf("ct:%d", g.VMID)]; ha != nil {
		view["hastate"] = "started"
	}
	seen := g.stat
	if s.delays().StatLoop == 0 {
		fresh := s.guestStatus(g)
		seen = &fresh
	}
	if n := s.findNode(g.Node); seen == nil || n == nil || n.Away {
		return view
	}
	for key, value := range map[string]any{
		"status": seen.Status, "name": seen.Name, "template": boolInt(seen.Template), "maxmem": seen.MaxMem, "maxdisk": seen.MaxDisk,
		"maxcpu": seen.MaxCPU, "mem": seen.Mem, "memhost": 0, "disk": seen.Disk, "cpu": seen.CPU, "uptime": seen.Uptime,
		"netin": seen.NetIn, "netout": seen.NetOut, "diskread": seen.DiskRead, "diskwrite": seen.DiskWrite,
	} {
		view[key] = value
	}
	return view
}

// storageResource is a storage of a node as /cluster/resources shows it.
func (s *Server) storageResource(st *storage, n *node) map[string]any {
	view := map[string]any{
		"id": fmt.Sprintf("storage/%s/%s", n.Name, st.ID), "type": "storage", "storage": st.ID, "node": n.Name, "plugintype": st.Type,
		"content": strings.Join(st.Content, ","), "shared": boolInt(st.Shared), "status": "available",
		"maxdisk": st.Total, "disk": s.storageUsed(st, n.Name),
	}
	if n.Away {
		view["status"] = "unknown"
		delete(view, "maxdisk")
		delete(view, "disk")
	}
	return view
}

// nodeResource is a node. Without the right to audit it, only that it is there.
func (s *Server) nodeResource(c *call, n *node) map[string]any {
	view := map[string]any{"id": "node/" + n.Name, "type": "node", "node": n.Name, "status": "online", "level": ""}
	if n.Away {
		view["status"] = "offline"
	} else if c.may("/nodes/"+n.Name, "Sys.Audit") {
		view["cpu"], view["maxcpu"] = 0.02, n.MaxCPU
		view["mem"], view["maxmem"] = s.memoryUsed(n), n.MaxMem
		view["disk"], view["maxdisk"] = n.MaxDisk/6, n.MaxDisk
		view["uptime"] = int64(s.now().Sub(n.Boot).Seconds())
	}
	return view
}

// memoryUsed is what a node and its running guests use, in bytes.
func (s *Server) memoryUsed(n *node) int64 {
	used := int64(1687453696)
	for _, g := range s.st.Guests {
		if g.Node == n.Name && g.Running && g.stat != nil {
			used += g.stat.Mem
		}
	}
	return min(used, n.MaxMem)
}

// clusterResources lists everything that the caller may see.
func (s *Server) clusterResources(c *call) (any, error) {
	kind := c.params.str("type")
	out := []map[string]any{}
	if kind == "" {
		for _, id := range sortedKeys(s.st.Pools) {
			if c.may("/pool/"+id, "Pool.Audit") {
				out = append(out, map[string]any{"id": "/pool/" + id, "pool": id, "type": "pool"})
			}
		}
	}
	if kind == "" || kind == "vm" {
		for _, vmid := range s.guestIDs() {
			if c.may(fmt.Sprintf("/vms/%d", vmid), "VM.Audit") {
				out = append(out, s.guestResource(s.st.Guests[vmid]))
			}
		}
	}
	if kind == "" || kind == "node" {
		for _, n := range s.st.Nodes {
			view := s.nodeResource(c, n)
			if !n.Away {
				view["cgroup-mode"] = 2
			}
			out = append(out, view)
		}
	}
	if kind == "" || kind == "storage" {
		for _, id := range sortedKeys(s.st.Storages) {
			if !c.may("/storage/"+id, "Datastore.Audit") && !c.may("/storage/"+id, "Datastore.AllocateSpace") {
				continue
			}
			for _, n := range s.nodesOf(s.st.Storages[id]) {
				out = append(out, s.storageResource(s.st.Storages[id], n))
			}
		}
	}
	if (kind == "" || kind == "sdn") && (c.may("/sdn/zones/localnetwork", "SDN.Audit") || c.may("/sdn/zones/localnetwork", "SDN.Use")) {
		for _, n := range s.st.Nodes {
			out = append(out, map[string]any{
				"id": "network/" + n.Name + "/zone/localnetwork", "network": "localnetwork", "network-type": "zone", "node": n.Name,
				"status": "ok", "type": "network",
			})
		}
	}
	return out, nil
}

// guestIDs are the ids of all guests, sorted.
func (s *Server) guestIDs() []int {
	out := make([]int, 0, len(s.st.Guests))
	for vmid := range s.st.Guests {
		out = append(out, vmid)
	}
	sort.Ints(out)
	return out
}
