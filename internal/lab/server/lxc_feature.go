package server

// lxcFeature says whether the container can be snapshotted, cloned or copied as it is, or as a snapshot of it was.
func (s *Server) lxcFeature(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	config := g.Config
	if name := c.params.str("snapname"); name != "" {
		snap, err := g.snapshotNamed(name)
		if err != nil {
			return nil, err
		}
		config = snap.Config
	}
	has := 0
	if s.hasFeature(g, config, c.params.str("feature"), c.params.str("snapname") != "") {
		has = 1
	}
	return map[string]any{"hasFeature": has}, nil
}

func (s *Server) hasFeature(g *guest, config map[string]string, feature string, ofSnapshot bool) bool {
	for _, key := range mountKeys(config) {
		mount := parseMount(key, config[key])
		st := s.st.Storages[storageOf(mount.volid())]
		switch {
		case mount.kind() != "volume":
			return false
		case feature == "snapshot" && !canSnapshot(st):
			return false
		case feature == "clone" && !canLink(st):
			return false
		case feature == "copy" && ofSnapshot && !canSnapshot(st):
			return false
		}
	}
	return feature != "snapshot" || !g.isTemplate()
}
