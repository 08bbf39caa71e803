package server

import (
	"slices"
	"strings"
)

func (s *Server) storageDigest() string {
	all := map[string]string{}
	for id, st := range s.st.Storages {
		all[id] = st.Type + st.Path + strings.Join(st.Content, ",") + strings.Join(st.Nodes, ",")
	}
	return digestOf(all)
}

func (s *Server) storageConfig(st *storage) map[string]any {
	view := map[string]any{
		"storage": st.ID, "type": st.Type, "path": st.Path, "content": strings.Join(st.Content, ","), "digest": s.storageDigest(),
	}
	if len(st.Nodes) > 0 {
		view["nodes"] = strings.Join(st.Nodes, ",")
	}
	if st.Shared {
		view["shared"] = 1
	}
	if st.Disable {
		view["disable"] = 1
	}
	for key, value := range st.Extra {
		view[key] = value
	}
	return view
}

func (s *Server) storageConfigList(c *call) (any, error) {
	out := []map[string]any{}
	for _, id := range sortedKeys(s.st.Storages) {
		st := s.st.Storages[id]
		if (c.maySeeStorage(id) || c.may("/storage/"+id, "Datastore.Allocate")) && (!c.params.has("type") || c.params.str("type") == st.Type) {
			out = append(out, s.storageConfig(st))
		}
	}
	return out, nil
}

func (s *Server) storageConfigGet(c *call) (any, error) {
	st := s.st.Storages[c.params.str("storage")]
	if st == nil {
		return nil, failf("storage '%s' does not exist", c.params.str("storage"))
	}
	return s.storageConfig(st), nil
}

// storageConfigCreate adds a storage of a kind that the lab can have.
func (s *Server) storageConfigCreate(c *call) (any, error) {
	id, kind := c.params.str("storage"), c.params.str("type")
	switch {
	case s.st.Storages[id] != nil:
		return nil, failf("create storage failed: storage ID '%s' already defined", id)
	case kind == "zfspool" && c.params.str("pool") == "":
		return nil, paramError("pool", "property is missing and it is not optional")
	case kind != "dir" && kind != "btrfs" && kind != "zfspool":
		return nil, failf("create storage failed: the lab has no storage of type '%s'", kind)
	case kind != "zfspool" && c.params.str("path") == "":
		return nil, paramError("path", "property is missing and it is not optional")
	}
	st := &storage{ID: id, Type: kind, Path: c.params.str("path"), Content: []string{"images", "rootdir"}, Total: 100 << 30, Extra: map[string]string{}}
	applyStorage(c, st)
	s.st.Storages[id] = st
	return map[string]any{"storage": id, "type": kind}, nil
}

func applyStorage(c *call, st *storage) {
	if c.params.has("content") {
		st.Content = c.params.list("content")
	}
	if c.params.has("nodes") {
		st.Nodes = c.params.list("nodes")
	}
	if c.params.has("shared") {
		st.Shared = c.params.flag("shared")
	}
	if c.params.has("disable") {
		st.Disable = c.params.flag("disable")
	}
	if slices.Contains(c.params.list("delete"), "nodes") {
		st.Nodes = nil
	}
}

func (s *Server) storageConfigUpdate(c *call) (any, error) {
	st := s.st.Storages[c.params.str("storage")]
	if st == nil {
		return nil, failf("update storage failed: storage '%s' does not exist", c.params.str("storage"))
	}
	if err := checkDigest(c.params.str("digest"), s.storageDigest()); err != nil {
		return nil, err
	}
	applyStorage(c, st)
	return map[string]any{"storage": st.ID, "type": st.Type}, nil
}

func (s *Server) storageConfigDelete(c *call) (any, error) {
	id := c.params.str("storage")
	if s.st.Storages[id] == nil {
		return nil, failf("delete storage failed: storage '%s' does not exist", id)
	}
	delete(s.st.Storages, id)
	s.dropACL(func(e aclEntry) bool { return e.Path == "/storage/"+id })
	return nil, nil
}
