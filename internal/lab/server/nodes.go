package server

import "fmt"

// routesNodes lists the node endpoints other than containers, storage, tasks and firewall.
func (s *Server) routesNodes() {
	s.route("GET", "/nodes", s.nodeList)
	s.route("GET", "/nodes/{node}", names("aplinfo", "apt", "capabilities", "ceph", "certificates", "config", "disks", "dns", "firewall",
		"hardware", "hosts", "journal", "lxc", "migrateall", "netstat", "network", "qemu", "query-oci-repo-tags", "query-url-metadata",
		"replication", "report", "rrd", "rrddata", "scan", "sdn", "services", "spiceshell", "startall", "status", "stopall", "storage",
		"subscription", "suspendall", "syslog", "tasks", "termproxy", "time", "version", "vncshell", "vzdump", "wakeonlan"))
	s.route("GET", "/nodes/{node}/status", s.nodeStatus)
	s.route("GET", "/nodes/{node}/version", func(*call) (any, error) { return version, nil })
	s.routesVirtualMachines()
	s.route("GET", "/nodes/{node}/aplinfo", emptyList)
	s.route("POST", "/nodes/{node}/aplinfo", func(*call) (any, error) {
		return nil, paramError("template", "no such template")
	})
	s.route("GET", "/nodes/{node}/query-url-metadata", func(c *call) (any, error) {
		return nil, failf("invalid server response: '500 Can't connect to %s (Connection refused)'", hostOf(c.params.str("url")))
	})
	audit := perm("/nodes/{node}", "Sys.Audit")
	node := map[string]paramFact{"node": {Type: "string", Format: "pve-node"}}
	s.routeWith("GET", "/nodes/{node}/time", &methodFact{Check: audit, Params: node, Node: true}, s.nodeTime)
	s.routeWith("GET", "/nodes/{node}/dns", &methodFact{Check: audit, Params: node, Node: true}, func(*call) (any, error) {
		return map[string]any{"search": "lab.test", "dns1": "10.10.10.1"}, nil
	})
	s.routesNetwork()
}

func (s *Server) nodeList(c *call) (any, error) {
	out := []map[string]any{}
	for _, n := range s.st.Nodes {
		view := s.nodeResource(c, n)
		view["ssl_fingerprint"] = s.cert.fingerprint()
		out = append(out, view)
	}
	return out, nil
}

func (s *Server) nodeTime(*call) (any, error) {
	now := s.now().Unix()
	return map[string]any{"time": now, "localtime": now, "timezone": "Etc/UTC"}, nil
}

func (s *Server) nodeStatus(c *call) (any, error) {
	n := c.node
	used := s.memoryUsed(n)
	kernel := map[string]any{"sysname": "Linux", "release": "6.17.2-1-pve", "version": "#1 SMP PREEMPT_DYNAMIC", "machine": "x86_64"}
	return map[string]any{
		"uptime": int64(s.now().Sub(n.Boot).Seconds()), "idle": 0, "wait": 0, "cpu": 0.02,
		"loadavg":        []string{"0.10", "0.12", "0.09"},
		"kversion":       fmt.Sprintf("Linux %s %s", kernel["release"], kernel["version"]),
		"current-kernel": kernel, "boot-info": map[string]any{"mode": "legacy-bios"},
		"pveversion": fmt.Sprintf("pve-manager/%s/%s", version["version"], version["repoid"]),
		"cpuinfo": map[string]any{
			"cpus": n.MaxCPU, "cores": n.MaxCPU, "sockets": 1, "model": "Emulated Processor", "mhz": "2100.000", "user_hz": 100,
			"flags": "fpu vme de pse", "hvm": "", "vendor": "GenuineIntel", "family": "6",
		},
		"memory": map[string]any{"total": n.MaxMem, "used": used, "free": n.MaxMem - used, "available": n.MaxMem - used},
		"swap":   map[string]any{"total": 0, "used": 0, "free": 0},
		"rootfs": map[string]any{"total": n.MaxDisk, "used": n.MaxDisk / 6, "free": n.MaxDisk / 6 * 5, "avail": n.MaxDisk / 5},
		"ksm":    map[string]any{"shared": 0},
	}, nil
}
