package server

import (
	"regexp"
	"strconv"
	"strings"
)

// privileges are those of a user or token on a path, with whether each one propagates to paths below. A token with
// privilege separation has what both it and its user have. A guest and a storage have their pool's on top.
func (s *Server) privileges(authID, path string) map[string]bool {
	name, tokenID := splitAuthID(authID)
	if tokenID == "" {
		return s.effective("user", name, path)
	}
	u := s.st.Users[name]
	if u == nil || u.Tokens[tokenID] == nil {
		return nil
	}
	own := s.effective("user", name, path)
	if !u.Tokens[tokenID].PrivSep {
		return own
	}
	both := map[string]bool{}
	for privilege, propagate := range s.effective("token", authID, path) {
		if _, ok := own[privilege]; ok {
			both[privilege] = propagate
		}
	}
	return both
}

// effective are the privileges on a path and, for members of a pool, those on the pool.
func (s *Server) effective(kind, who, path string) map[string]bool {
	out := map[string]bool{}
	roles := s.rolesOn(kind, who, path)
	if _, none := roles["NoAccess"]; none {
		return out
	}
	s.addPrivileges(out, roles)
	if p := s.poolOf(path); p != nil {
		fromPool := s.rolesOn(kind, who, "/pool/"+p.ID)
		if _, none := fromPool["NoAccess"]; !none {
			s.addPrivileges(out, fromPool)
		}
	}
	return out
}

func (s *Server) addPrivileges(out map[string]bool, roles map[string]bool) {
	for name, propagate := range roles {
		if r := s.st.Roles[name]; r != nil {
			for privilege := range r.Privs {
				out[privilege] = out[privilege] || propagate
			}
		}
	}
}

// rolesOn walks down the path: entries of a deeper level replace those from above, a user's own replace its groups'.
func (s *Server) rolesOn(kind, who, path string) map[string]bool {
	if kind == "user" && who == rootUser {
		return map[string]bool{"Administrator": true}
	}
	roles := map[string]bool{}
	for _, prefix := range pathPrefixes(path) {
		own, byGroup := map[string]bool{}, map[string]bool{}
		for _, entry := range s.st.ACL {
			if entry.Path != prefix || (prefix != path && !entry.Propagate) {
				continue
			}
			switch {
			case entry.Kind == kind && entry.Who == who:
				own[entry.Role] = entry.Propagate
			case entry.Kind == "group" && kind == "user" && s.inGroup(entry.Who, who):
				byGroup[entry.Role] = entry.Propagate
			}
		}
		if len(own) > 0 {
			roles = own
		} else if len(byGroup) > 0 {
			roles = byGroup
		}
	}
	return roles
}

func (s *Server) inGroup(name, who string) bool {
	g := s.st.Groups[name]
	return g != nil && g.Users[who]
}

// pathPrefixes are "/", "/a", "/a/b" of "/a/b".
func pathPrefixes(path string) []string {
	out := []string{"/"}
	if path == "/" {
		return out
	}
	for i := 1; i < len(path); i++ {
		if path[i] == '/' {
			out = append(out, path[:i])
		}
	}
	return append(out, path)
}

// poolOf is the pool of a guest's or storage's path.
func (s *Server) poolOf(path string) *pool {
	if id, ok := strings.CutPrefix(path, "/vms/"); ok {
		if vmid, err := strconv.Atoi(id); err == nil {
			return s.guestPool(vmid)
		}
	}
	if id, ok := strings.CutPrefix(path, "/storage/"); ok {
		for _, p := range s.st.Pools {
			if p.Storages[id] {
				return p
			}
		}
	}
	return nil
}

// checkFact applies the permission expression that the API documents for a method. Without one, only root may.
func (c *call) checkFact(fact *methodFact) error {
	switch {
	case c.root() || fact.User == "world" || fact.User == "all":
		return nil
	case fact.Check == nil:
		return forbidden("user != root@pam")
	}
	return c.evaluate(fact.Check)
}

func (c *call) evaluate(p *permExpr) error {
	switch p.op {
	case "and":
		for i := range p.parts {
			if err := c.evaluate(&p.parts[i]); err != nil {
				return err
			}
		}
		return nil
	case "or":
		for i := range p.parts {
			if c.evaluate(&p.parts[i]) == nil {
				return nil
			}
		}
		return forbidden("")
	case "perm":
		return c.evaluatePerm(p)
	case "perm-modify":
		return c.checkModify(c.params.str("path"))
	case "userid-param":
		return c.checkUserParam(p.path)
	case "userid-group":
		return c.checkUserGroup(p)
	}
	return forbidden(p.op)
}

func (c *call) evaluatePerm(p *permExpr) error {
	if p.needs != "" && !c.params.has(p.needs) {
		return forbidden("")
	}
	path := normalPath(c.expand(p.path))
	switch {
	case path == "": // a name that isn't one leaves the server without a path
		return forbidden(", " + strings.Join(p.privs, "|"))
	case p.oneOf:
		return c.checkAny(path, p.privs...)
	}
	return c.check(path, p.privs...)
}

// expand puts parameters into a path of a permission expression.
func (c *call) expand(template string) string {
	for name, value := range c.params {
		template = strings.ReplaceAll(template, "{"+name+"}", value)
	}
	return unknownVariable.ReplaceAllString(template, "")
}

var unknownVariable = regexp.MustCompile(`\{[^{}]*\}`)
