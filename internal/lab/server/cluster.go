package server

import (
	"strconv"
	"strings"
)

// version is what the emulated server says it is.
var version = map[string]any{"version": "9.2.11", "release": "9.2", "repoid": "14a22df35955d97d"}

// routesCluster lists the root, /version and the endpoints under /cluster.
func (s *Server) routesCluster() {
	s.routeWith("GET", "/", &methodFact{User: "all"}, index("version", "cluster", "nodes", "storage", "access", "pools"))
	s.route("GET", "/version", func(*call) (any, error) { return version, nil })
	s.route("GET", "/cluster", names("acme", "backup", "backup-info", "bulk-action", "ceph", "config", "firewall", "ha", "jobs", "log",
		"mapping", "metrics", "notifications", "nextid", "options", "qemu", "replication", "resources", "status", "tasks", "sdn"))
	s.route("GET", "/cluster/resources", s.clusterResources)
	s.route("GET", "/cluster/status", s.clusterStatus)
	s.route("GET", "/cluster/tasks", s.clusterTasks)
	s.route("GET", "/cluster/nextid", s.nextID)
	s.route("GET", "/cluster/options", s.clusterOptions)
	s.route("PUT", "/cluster/options", s.clusterOptionsPut)
	s.route("GET", "/cluster/log", s.clusterLog)
	s.route("GET", "/cluster/backup", emptyList)
	s.route("GET", "/cluster/sdn/zones", emptyList)
	s.route("GET", "/cluster/sdn/vnets", emptyList)
	s.routesHA()
}

// names answers with the names of what is below, in the form of /nodes and /cluster.
func names(all ...string) handler {
	out := make([]map[string]any, 0, len(all))
	for _, name := range all {
		out = append(out, map[string]any{"name": name})
	}
	return func(*call) (any, error) { return out, nil }
}

func emptyList(*call) (any, error) { return []any{}, nil }

func (s *Server) clusterStatus(*call) (any, error) {
	out := []map[string]any{}
	if s.st.Cluster != "" {
		online := 0
		for _, n := range s.st.Nodes {
			online += boolInt(!n.Away)
		}
		out = append(out, map[string]any{
			"id": "cluster", "type": "cluster", "name": s.st.Cluster, "nodes": len(s.st.Nodes), "version": len(s.st.Nodes),
			"quorate": boolInt(online*2 > len(s.st.Nodes)),
		})
	}
	for i, n := range s.st.Nodes {
		id := n.ID
		if s.st.Cluster == "" {
			id = 0
		}
		out = append(out, map[string]any{
			"id": "node/" + n.Name, "type": "node", "name": n.Name, "nodeid": id, "ip": n.IP, "level": "",
			"local": boolInt(i == 0), "online": boolInt(!n.Away),
		})
	}
	return out, nil
}

// nextID is the lowest free id, which nobody reserves; with vmid it only says whether that one is free.
func (s *Server) nextID(c *call) (any, error) {
	if c.params.has("vmid") {
		vmid := c.params.num("vmid")
		if s.st.Guests[vmid] != nil {
			return nil, paramError("vmid", "VM %d already exists", vmid)
		}
		return strconv.Itoa(vmid), nil
	}
	for vmid := 100; ; vmid++ {
		if s.st.Guests[vmid] == nil {
			return strconv.Itoa(vmid), nil
		}
	}
}

func (s *Server) clusterOptions(*call) (any, error) {
	out := map[string]any{"mac_prefix": "BC:24:11", "description": "", "allowed-tags": s.tags()}
	for key, value := range s.st.Options {
		out[key] = value
	}
	return out, nil
}

// tags are all that guests carry.
func (s *Server) tags() []string {
	set := map[string]bool{}
	for _, g := range s.st.Guests {
		for _, tag := range splitList(g.Config["tags"]) {
			set[tag] = true
		}
	}
	return sortedKeys(set)
}

func (s *Server) clusterOptionsPut(c *call) (any, error) {
	for _, key := range c.params.list("delete") {
		delete(s.st.Options, key)
	}
	for key, value := range c.params {
		if key != "delete" {
			s.st.Options[key] = value
		}
	}
	return nil, nil
}

// clusterLog is the cluster's log: the starts and ends of tasks.
func (s *Server) clusterLog(c *call) (any, error) {
	limit := 50
	if c.params.has("max") {
		limit = c.params.num("max")
	}
	out := []map[string]any{}
	for i := len(s.st.Tasks) - 1; i >= 0 && len(out) < limit; i-- {
		t := s.st.Tasks[i]
		if !c.may("/nodes/"+t.Node, "Sys.Syslog") && !c.ownTask(t) {
			continue
		}
		message, at := "starting task "+t.UPID, t.Start
		if t.End != 0 {
			message, at = strings.TrimSpace("end task "+t.UPID+" "+t.Exit), t.End
		}
		uid := strconv.Itoa(i + 1)
		out = append(out, map[string]any{
			"id": uid + ":" + t.Node, "uid": uid, "node": t.Node, "pid": t.PID, "pri": 6, "tag": "pvedaemon", "time": at,
			"user": t.User, "msg": message,
		})
	}
	return out, nil
}
