package server

// routesVirtualMachines lists what the lab answers about virtual machines: that it has none.
func (s *Server) routesVirtualMachines() {
	s.route("GET", "/nodes/{node}/qemu", emptyList)
	node := paramFact{Type: "string", Format: "pve-node"}
	vmid := paramFact{Type: "integer", Format: "pve-vmid"}
	allocate := perm("/vms/{vmid}", "VM.Allocate")
	create := &methodFact{Node: true, Check: allocate, Open: true, Params: map[string]paramFact{"node": node, "vmid": vmid}}
	s.routeWith("POST", "/nodes/{node}/qemu", create, s.vmCreate)
	audit := perm("/vms/{vmid}", "VM.Audit")
	one := &methodFact{Node: true, Check: audit, Open: true, Params: map[string]paramFact{"node": node, "vmid": vmid}}
	for _, path := range []string{"config", "status/current", "pending", "snapshot"} {
		s.routeWith("GET", "/nodes/{node}/qemu/{vmid}/"+path, one, func(c *call) (any, error) {
			return nil, failf("Configuration file 'nodes/%s/qemu-server/%d.conf' does not exist", c.node.Name, c.vmid())
		})
	}
}

// vmCreate refuses: an id that is taken as the server does, any other because the lab has no machines.
func (s *Server) vmCreate(c *call) (any, error) {
	if g := s.st.Guests[c.vmid()]; g != nil {
		return nil, failf("unable to create VM %d - CT %d already exists on node '%s'", g.VMID, g.VMID, g.Node)
	}
	return nil, failf("unable to create VM %d - the lab has no virtual machines", c.vmid())
}
