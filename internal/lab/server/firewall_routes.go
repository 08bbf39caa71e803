package server

// routesFirewall lists the firewall's endpoints: of the datacenter, of nodes, of containers.
func (s *Server) routesFirewall() {
	const dc, node, ct = "/cluster/firewall", "/nodes/{node}/firewall", "/nodes/{node}/lxc/{vmid}/firewall"

	s.route("GET", dc, names("groups", "rules", "ipset", "aliases", "options", "macros", "refs"))
	s.route("GET", dc+"/macros", macrosList)
	s.route("GET", dc+"/groups", s.securityGroups)
	s.route("POST", dc+"/groups", fwWrite(fwDatacenter, groupPost))
	s.route("DELETE", dc+"/groups/{group}", fwWrite(fwGroup, groupDelete))
	s.routesRules(dc+"/groups/{group}", fwGroup)
	s.routesRules(dc+"/rules", fwDatacenter)
	s.routesOptions(dc+"/options", fwDatacenter)
	s.routesIPSets(dc+"/ipset", fwDatacenter)
	s.routesAliases(dc+"/aliases", fwDatacenter)
	s.route("GET", dc+"/refs", fwRead(fwDatacenter, refsList))

	s.route("GET", node, names("rules", "options", "log"))
	s.routesRules(node+"/rules", fwNode)
	s.routesOptions(node+"/options", fwNode)
	s.route("GET", node+"/log", firewallLog)

	s.route("GET", ct, names("rules", "aliases", "ipset", "refs", "options"))
	s.routesRules(ct+"/rules", fwGuest)
	s.routesOptions(ct+"/options", fwGuest)
	s.routesIPSets(ct+"/ipset", fwGuest)
	s.routesAliases(ct+"/aliases", fwGuest)
	s.route("GET", ct+"/refs", fwRead(fwGuest, refsList))
	s.route("GET", ct+"/log", firewallLog)
}

func (s *Server) routesRules(path string, scope fwScope) {
	s.route("GET", path, fwRead(scope, ruleList))
	s.route("POST", path, fwWrite(scope, rulePost))
	s.route("GET", path+"/{pos}", fwRead(scope, ruleGet))
	s.route("PUT", path+"/{pos}", fwWrite(scope, rulePut))
	s.route("DELETE", path+"/{pos}", fwWrite(scope, ruleDelete))
}

func (s *Server) routesOptions(path string, scope fwScope) {
	known := firewallOptions(path)
	s.route("GET", path, fwRead(scope, optionsGet(known)))
	s.route("PUT", path, fwWrite(scope, optionsPut(known)))
}

func (s *Server) routesAliases(path string, scope fwScope) {
	s.route("GET", path, fwRead(scope, aliasList))
	s.route("POST", path, fwWrite(scope, aliasPost))
	s.route("GET", path+"/{name}", fwRead(scope, aliasGet))
	s.route("PUT", path+"/{name}", fwWrite(scope, aliasPut))
	s.route("DELETE", path+"/{name}", fwWrite(scope, aliasDelete))
}

func (s *Server) routesIPSets(path string, scope fwScope) {
	s.route("GET", path, fwRead(scope, ipsetList))
	s.route("POST", path, fwWrite(scope, ipsetPost))
	s.route("GET", path+"/{name}", fwRead(scope, ipsetGet))
	s.route("POST", path+"/{name}", fwWrite(scope, ipsetAdd))
	s.route("DELETE", path+"/{name}", fwWrite(scope, ipsetDelete))
	for method, h := range map[string]handler{
		"GET": fwRead(scope, entryGet), "PUT": fwWrite(scope, entryPut), "DELETE": fwWrite(scope, entryDelete),
	} {
		s.route(method, path+"/{name}/{cidr}", h)
		s.routeSlashed(method, path+"/{name}/{cidr}", h)
	}
}

// routeSlashed serves a network whose slash isn't encoded: the server takes …/ipset/NAME/10.0.0.0/8 too.
func (s *Server) routeSlashed(method, template string, h handler) {
	fact := *loadFacts()[method+" "+template]
	fact.Params = map[string]paramFact{}
	for name, f := range loadFacts()[method+" "+template].Params {
		fact.Params[name] = f
	}
	low, high := 0.0, 128.0
	fact.Params["prefix"] = paramFact{Type: "integer", Min: &low, Max: &high}
	s.routeWith(method, template+"/{prefix}", &fact, func(c *call) (any, error) {
		c.params["cidr"] += "/" + c.params["prefix"]
		return h(c)
	})
}
