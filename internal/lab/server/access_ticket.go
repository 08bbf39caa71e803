package server

import (
	"crypto/subtle"
	"regexp"
	"strings"
)

// routesAccess lists the endpoints under /access.
func (s *Server) routesAccess() {
	s.route("GET", "/access", index("users", "groups", "roles", "acl", "domains", "openid", "tfa", "ticket", "permissions", "password"))
	s.route("POST", "/access/ticket", s.ticketCreate)
	s.route("GET", "/access/ticket", func(*call) (any, error) { return nil, nil })
	s.route("GET", "/access/permissions", s.permissionsGet)
	s.route("PUT", "/access/password", s.passwordPut)
	s.route("GET", "/access/tfa", func(*call) (any, error) { return []any{}, nil })

	s.route("GET", "/access/users", s.userList)
	s.route("POST", "/access/users", s.userCreate)
	s.route("GET", "/access/users/{userid}", s.userGet)
	s.route("PUT", "/access/users/{userid}", s.userUpdate)
	s.route("DELETE", "/access/users/{userid}", s.userDelete)

	s.route("GET", "/access/users/{userid}/token", s.tokenList)
	s.route("GET", "/access/users/{userid}/token/{tokenid}", s.tokenGet)
	s.route("POST", "/access/users/{userid}/token/{tokenid}", s.tokenCreate)
	s.route("PUT", "/access/users/{userid}/token/{tokenid}", s.tokenUpdate)
	s.route("DELETE", "/access/users/{userid}/token/{tokenid}", s.tokenDelete)

	s.route("GET", "/access/groups", s.groupList)
	s.route("POST", "/access/groups", s.groupCreate)
	s.route("GET", "/access/groups/{groupid}", s.groupGet)
	s.route("PUT", "/access/groups/{groupid}", s.groupUpdate)
	s.route("DELETE", "/access/groups/{groupid}", s.groupDelete)

	s.route("GET", "/access/roles", s.roleList)
	s.route("POST", "/access/roles", s.roleCreate)
	s.route("GET", "/access/roles/{roleid}", s.roleGet)
	s.route("PUT", "/access/roles/{roleid}", s.roleUpdate)
	s.route("DELETE", "/access/roles/{roleid}", s.roleDelete)

	s.route("GET", "/access/acl", s.aclList)
	s.route("PUT", "/access/acl", s.aclUpdate)

	s.route("GET", "/access/domains", s.domainList)
	s.route("GET", "/access/domains/{realm}", s.domainGet)
}

// index answers with the names of what is below.
func index(names ...string) handler {
	out := make([]map[string]any, 0, len(names))
	for _, name := range names {
		out = append(out, map[string]any{"subdir": name})
	}
	return func(*call) (any, error) { return out, nil }
}

// ticketCreate is the login by password, or by a ticket as the password to renew it.
func (s *Server) ticketCreate(c *call) (any, error) {
	name := c.params.str("username")
	if realm := c.params.str("realm"); realm != "" && !strings.Contains(name, "@") {
		name += "@" + realm
	}
	u := s.st.Users[name]
	if u == nil || !s.active(u) || !s.passwordIs(u, c.params.str("password")) {
		return nil, &apiError{status: 401, message: "authentication failure"}
	}
	return map[string]any{
		"username": name, "ticket": s.newTicket(name), "CSRFPreventionToken": s.newCSRF(name), "cap": s.capabilities(name),
	}, nil
}

func (s *Server) passwordIs(u *user, given string) bool {
	if strings.HasPrefix(given, "PVE:") {
		who, ok := s.verifyTicket(given)
		return ok && who == u.ID
	}
	return u.Password != "" && subtle.ConstantTimeCompare([]byte(u.Password), []byte(given)) == 1
}

// capabilityAreas say which privileges a login's answer lists for which part of the tree.
var capabilityAreas = map[string]struct {
	path  string
	privs *regexp.Regexp
}{
	"vms":     {"/vms", regexp.MustCompile(`^VM\.|^Permissions\.Modify$`)},
	"access":  {"/access", regexp.MustCompile(`^(User|Group)\.|^Permissions\.Modify$`)},
	"storage": {"/storage", regexp.MustCompile(`^Datastore\.|^Permissions\.Modify$`)},
	"nodes":   {"/nodes", regexp.MustCompile(`^Sys\.|^Permissions\.Modify$`)},
	"sdn":     {"/sdn", regexp.MustCompile(`^SDN\.|^Permissions\.Modify$`)},
	"mapping": {"/mapping", regexp.MustCompile(`^Mapping\.|^Permissions\.Modify$`)},
	"dc":      {"/", regexp.MustCompile(`^(Sys\.Audit|Sys\.Modify|SDN\..*)$`)},
}

// capabilities are what a login's answer says that the user may do anywhere in an area.
func (s *Server) capabilities(who string) map[string]map[string]int {
	out := map[string]map[string]int{}
	for area, spec := range capabilityAreas {
		out[area] = map[string]int{}
		paths := []string{spec.path}
		for _, entry := range s.st.ACL {
			if spec.path != "/" && strings.HasPrefix(entry.Path, spec.path+"/") {
				paths = append(paths, entry.Path)
			}
		}
		for _, path := range paths {
			for privilege := range s.privileges(who, path) {
				if spec.privs.MatchString(privilege) {
					out[area][privilege] = 1
				}
			}
		}
	}
	return out
}

// permissionsGet lists effective privileges: on one path, or on all paths that say something.
func (s *Server) permissionsGet(c *call) (any, error) {
	who := c.authID
	if other := c.params.str("userid"); other != "" && other != c.authID {
		self, _ := splitAuthID(c.authID)
		if name, _ := splitAuthID(other); name != self {
			if err := c.check("/access", "Sys.Audit"); err != nil {
				return nil, err
			}
		}
		who = other
	}
	if given := c.params.str("path"); given != "" {
		path := normalPath(given)
		if path == "" {
			return nil, paramError("path", "invalid ACL path '%s'", given)
		}
		return map[string]any{path: flags(s.privileges(who, path))}, nil
	}
	out := map[string]any{}
	for path := range s.interestingPaths() {
		if privs := s.privileges(who, path); len(privs) > 0 {
			out[path] = flags(privs)
		}
	}
	return out, nil
}

// interestingPaths are the top of the tree and every path with an entry, and those above them.
func (s *Server) interestingPaths() map[string]bool {
	paths := setOf([]string{"/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"})
	for _, entry := range s.st.ACL {
		for _, prefix := range pathPrefixes(entry.Path) {
			paths[prefix] = true
		}
	}
	return paths
}

func flags(set map[string]bool) map[string]int {
	out := map[string]int{}
	for key, value := range set {
		out[key] = boolInt(value)
	}
	return out
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// passwordPut changes a password. It needs a login by password.
func (s *Server) passwordPut(c *call) (any, error) {
	if !c.ticket {
		return nil, forbidden("can't change password using an API token")
	}
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, err
	}
	u.Password = c.params.str("password")
	return nil, nil
}
