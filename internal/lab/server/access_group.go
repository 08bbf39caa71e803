package server

import "strings"

func (s *Server) groupList(c *call) (any, error) {
	out := []map[string]any{}
	for _, id := range sortedKeys(s.st.Groups) {
		path := "/access/groups/" + id
		if !c.may(path, "Sys.Audit") && !c.may(path, "User.Modify") && !c.may(path, "Group.Allocate") {
			continue
		}
		g := s.st.Groups[id]
		view := map[string]any{"groupid": id, "users": strings.Join(sortedKeys(g.Users), ",")}
		if g.Comment != "" {
			view["comment"] = g.Comment
		}
		out = append(out, view)
	}
	return out, nil
}

func (s *Server) groupGet(c *call) (any, error) {
	id := c.params.str("groupid")
	g := s.st.Groups[id]
	if g == nil {
		return nil, failf("group '%s' does not exist", id)
	}
	view := map[string]any{"members": sortedKeys(g.Users)}
	if g.Comment != "" {
		view["comment"] = g.Comment
	}
	return view, nil
}

func (s *Server) groupCreate(c *call) (any, error) {
	id := c.params.str("groupid")
	if s.st.Groups[id] != nil {
		return nil, failf("create group failed: group '%s' already exists", id)
	}
	s.st.Groups[id] = &group{ID: id, Comment: c.params.str("comment"), Users: map[string]bool{}}
	return nil, nil
}

func (s *Server) groupUpdate(c *call) (any, error) {
	id := c.params.str("groupid")
	g := s.st.Groups[id]
	if g == nil {
		return nil, failf("update group failed: group '%s' does not exist", id)
	}
	if c.params.has("comment") {
		g.Comment = c.params.str("comment")
	}
	return nil, nil
}

func (s *Server) groupDelete(c *call) (any, error) {
	id := c.params.str("groupid")
	if s.st.Groups[id] == nil {
		return nil, failf("delete group failed: group '%s' does not exist", id)
	}
	delete(s.st.Groups, id)
	s.dropACL(func(e aclEntry) bool { return e.Kind == "group" && e.Who == id })
	return nil, nil
}

func (s *Server) roleList(*call) (any, error) {
	out := []map[string]any{}
	for _, id := range sortedKeys(s.st.Roles) {
		r := s.st.Roles[id]
		out = append(out, map[string]any{"roleid": id, "privs": strings.Join(sortedKeys(r.Privs), ","), "special": boolInt(r.Special)})
	}
	return out, nil
}

func (s *Server) roleGet(c *call) (any, error) {
	id := c.params.str("roleid")
	r := s.st.Roles[id]
	if r == nil {
		return nil, failf("role '%s' does not exist", id)
	}
	return flags(r.Privs), nil
}

func (s *Server) roleCreate(c *call) (any, error) {
	id := c.params.str("roleid")
	if s.st.Roles[id] != nil {
		return nil, failf("create role failed: role '%s' already exists", id)
	}
	s.st.Roles[id] = &role{ID: id, Privs: setOf(c.params.list("privs"))}
	return nil, nil
}

func (s *Server) roleUpdate(c *call) (any, error) {
	id := c.params.str("roleid")
	r := s.st.Roles[id]
	switch {
	case r == nil:
		return nil, failf("update role failed: role '%s' does not exist", id)
	case r.Special:
		return nil, failf("auto-generated role '%s' cannot be modified", id)
	}
	if !c.params.flag("append") {
		r.Privs = map[string]bool{}
	}
	for _, privilege := range c.params.list("privs") {
		r.Privs[privilege] = true
	}
	return nil, nil
}

func (s *Server) roleDelete(c *call) (any, error) {
	id := c.params.str("roleid")
	r := s.st.Roles[id]
	switch {
	case r == nil:
		return nil, failf("delete role failed: role '%s' does not exist", id)
	case r.Special:
		return nil, failf("auto-generated role '%s' cannot be deleted", id)
	}
	delete(s.st.Roles, id)
	s.dropACL(func(e aclEntry) bool { return e.Role == id })
	return nil, nil
}

func (s *Server) domainList(*call) (any, error) {
	out := []map[string]any{}
	for _, id := range sortedKeys(s.st.Domains) {
		d := s.st.Domains[id]
		view := map[string]any{"realm": id, "type": d.Type}
		if d.Comment != "" {
			view["comment"] = d.Comment
		}
		out = append(out, view)
	}
	return out, nil
}

func (s *Server) domainGet(c *call) (any, error) {
	id := c.params.str("realm")
	d := s.st.Domains[id]
	if d == nil {
		return nil, failf("domain '%s' does not exist", id)
	}
	return map[string]any{"type": d.Type, "comment": d.Comment, "digest": digestOf(map[string]string{"realm": id, "type": d.Type})}, nil
}
