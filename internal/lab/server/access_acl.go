package server

import "slices"

func (s *Server) aclList(c *call) (any, error) {
	out := []map[string]any{}
	audit := c.may("/access", "Sys.Audit")
	for _, e := range s.st.ACL {
		if !audit && !c.may(e.Path, "Permissions.Modify") {
			continue
		}
		out = append(out, map[string]any{
			"path": e.Path, "type": e.Kind, "ugid": e.Who, "roleid": e.Role, "propagate": boolInt(e.Propagate),
		})
	}
	return out, nil
}

// aclUpdate adds or removes every combination of the roles and the users, groups and tokens given.
func (s *Server) aclUpdate(c *call) (any, error) {
	given := c.params.str("path")
	path := normalPath(given)
	remove := c.params.flag("delete")
	if path == "" || (!remove && !isACLPath(path)) {
		return nil, paramError("path", "invalid ACL path '%s'", given)
	}
	subjects, err := s.aclSubjects(c, remove)
	if err != nil {
		return nil, err
	}
	for _, name := range c.params.list("roles") {
		if s.st.Roles[name] == nil {
			return nil, failf("ACL update failed: role '%s' does not exist", name)
		}
	}
	propagate := !c.params.has("propagate") || c.params.flag("propagate")
	for _, name := range c.params.list("roles") {
		for _, subject := range subjects {
			subject.Path, subject.Role = path, name
			s.dropACL(func(e aclEntry) bool {
				return e.Path == path && e.Kind == subject.Kind && e.Who == subject.Who && e.Role == name
			})
			if !remove {
				subject.Propagate = propagate
				s.st.ACL = append(s.st.ACL, subject)
			}
		}
	}
	return nil, nil
}

// aclSubjects are the users, groups and tokens of a request; when adding, they must exist.
func (s *Server) aclSubjects(c *call, remove bool) ([]aclEntry, error) {
	var out []aclEntry
	for _, id := range c.params.list("users") {
		if s.st.Users[id] == nil && !remove {
			return nil, failf("ACL update failed: user '%s' does not exist", id)
		}
		out = append(out, aclEntry{Kind: "user", Who: id})
	}
	for _, id := range c.params.list("groups") {
		if s.st.Groups[id] == nil && !remove {
			return nil, failf("ACL update failed: group '%s' does not exist", id)
		}
		out = append(out, aclEntry{Kind: "group", Who: id})
	}
	for _, id := range c.params.list("tokens") {
		name, tokenID := splitAuthID(id)
		if u := s.st.Users[name]; !remove && (u == nil || u.Tokens[tokenID] == nil) {
			return nil, failf("ACL update failed: no such token '%s' for user '%s'", tokenID, name)
		}
		out = append(out, aclEntry{Kind: "token", Who: id})
	}
	if len(out) == 0 {
		text := "either 'users', 'groups' or 'tokens' is required."
		return nil, paramErrors(map[string]string{"users": text, "groups": text, "tokens": text})
	}
	return out, nil
}

// dropACL removes the entries that match.
func (s *Server) dropACL(match func(e aclEntry) bool) {
	s.st.ACL = slices.DeleteFunc(s.st.ACL, match)
}
