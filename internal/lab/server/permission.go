package server

import (
	"fmt"
	"regexp"
	"sort"
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

// checkFact applies the permission expression that the API documents for a method.
func (c *call) checkFact(fact *methodFact) error {
	if c.root() || fact.User == "world" || fact.User == "all" || len(fact.Check) == 0 {
		if len(fact.Check) == 0 && fact.User == "" && !c.root() && !fact.isIndex() {
			return forbidden("user != root@pam")
		}
		return nil
	}
	return c.evaluate(fact.Check)
}

// isIndex: a method without any permission entry is open to every login in the parts that the lab serves.
func (m *methodFact) isIndex() bool { return false }

// evaluate walks an expression like ["and", ["perm", "/vms/{vmid}", ["VM.Clone"]], …].
func (c *call) evaluate(check []any) error {
	switch check[0] {
	case "and":
		for _, sub := range check[1:] {
			if err := c.evaluate(sub.([]any)); err != nil {
				return err
			}
		}
		return nil
	case "or":
		for _, sub := range check[1:] {
			if c.evaluate(sub.([]any)) == nil {
				return nil
			}
		}
		return forbidden("")
	case "perm":
		return c.evaluatePerm(check)
	case "perm-modify":
		return c.checkModify(c.params.str("path"))
	case "userid-param":
		return c.checkUserParam(check[1].(string))
	case "userid-group":
		return c.checkUserGroup(check[1].([]any), check[2:])
	}
	return forbidden(fmt.Sprint(check[0]))
}

func (c *call) evaluatePerm(check []any) error {
	options := map[string]any{}
	for i := 3; i+1 < len(check); i += 2 {
		options[fmt.Sprint(check[i])] = check[i+1]
	}
	if need, ok := options["require_param"].(string); ok && !c.params.has(need) {
		return forbidden("")
	}
	path := normalPath(c.expand(check[1].(string)))
	var wanted []string
	for _, privilege := range check[2].([]any) {
		wanted = append(wanted, privilege.(string))
	}
	if path == "" { // a name that isn't one leaves the server without a path
		return forbidden(", " + strings.Join(wanted, "|"))
	}
	if any, ok := options["any"]; ok && fmt.Sprint(any) == "1" {
		return c.checkAny(path, wanted...)
	}
	return c.check(path, wanted...)
}

// expand puts parameters into a path of a permission expression.
func (c *call) expand(template string) string {
	for name, value := range c.params {
		template = strings.ReplaceAll(template, "{"+name+"}", value)
	}
	return unknownVariable.ReplaceAllString(template, "")
}

var unknownVariable = regexp.MustCompile(`\{[^{}]*\}`)

// allPrivileges of the roles, sorted.
func (s *Server) allPrivileges() []string {
	var out []string
	for privilege := range s.st.Roles["Administrator"].Privs {
		out = append(out, privilege)
	}
	sort.Strings(out)
	return out
}
