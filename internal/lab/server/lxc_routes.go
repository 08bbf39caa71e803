package server

// routesLXC lists the container endpoints. The guests' firewall has a list of its own.
func (s *Server) routesLXC() {
	const ct = "/nodes/{node}/lxc/{vmid}"
	s.route("GET", "/nodes/{node}/lxc", s.lxcList)
	s.route("POST", "/nodes/{node}/lxc", s.lxcCreate)
	s.route("GET", ct, s.lxcIndex)
	s.route("DELETE", ct, s.lxcDestroy)

	s.route("GET", ct+"/config", s.lxcConfigGet)
	s.route("PUT", ct+"/config", s.lxcConfigPut)
	s.route("GET", ct+"/pending", s.lxcPending)
	s.route("GET", ct+"/feature", s.lxcFeature)
	s.route("GET", ct+"/interfaces", s.lxcInterfaces)

	s.route("GET", ct+"/status", s.lxcStatusIndex)
	s.route("GET", ct+"/status/current", s.lxcStatusCurrent)
	s.route("POST", ct+"/status/start", s.lxcStart)
	s.route("POST", ct+"/status/stop", s.lxcStop)
	s.route("POST", ct+"/status/shutdown", s.lxcShutdown)
	s.route("POST", ct+"/status/reboot", s.lxcReboot)
	s.route("POST", ct+"/status/suspend", s.lxcSuspend)
	s.route("POST", ct+"/status/resume", s.lxcResume)

	s.route("POST", ct+"/clone", s.lxcClone)
	s.route("POST", ct+"/template", s.lxcTemplate)
	s.route("PUT", ct+"/resize", s.lxcResize)
	s.route("POST", ct+"/move_volume", s.lxcMoveVolume)
	s.route("GET", ct+"/migrate", s.lxcMigratePreconditions)
	s.route("POST", ct+"/migrate", s.lxcMigrate)

	s.route("GET", ct+"/snapshot", s.lxcSnapshots)
	s.route("POST", ct+"/snapshot", s.lxcSnapshotCreate)
	s.route("GET", ct+"/snapshot/{snapname}", s.lxcSnapshotIndex)
	s.route("DELETE", ct+"/snapshot/{snapname}", s.lxcSnapshotDelete)
	s.route("GET", ct+"/snapshot/{snapname}/config", s.lxcSnapshotConfig)
	s.route("PUT", ct+"/snapshot/{snapname}/config", s.lxcSnapshotUpdate)
	s.route("POST", ct+"/snapshot/{snapname}/rollback", s.lxcRollback)

	s.route("GET", ct+"/rrddata", s.lxcRRDData)
	s.route("POST", ct+"/termproxy", s.lxcConsole)
	s.route("POST", ct+"/vncproxy", s.lxcConsole)

	s.route("POST", "/nodes/{node}/vzdump", s.vzdump)
	s.route("GET", "/nodes/{node}/vzdump/defaults", s.vzdumpDefaults)
	s.route("GET", "/nodes/{node}/vzdump/extractconfig", s.vzdumpExtractConfig)
}
