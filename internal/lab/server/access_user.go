package server

import (
	"sort"
	"strconv"
	"strings"
)

// findUser finds an account, with the server's complaints.
func (s *Server) findUser(id string) (*user, error) {
	if _, err := userRealm(id); err != nil {
		return nil, err
	}
	if u := s.st.Users[id]; u != nil {
		return u, nil
	}
	return nil, failf("no such user ('%s')", id)
}

func (u *user) addToken(t *token) {
	if u.Tokens == nil {
		u.Tokens = map[string]*token{}
	}
	u.Tokens[t.ID] = t
}

// userView is what lists and single answers share. Unset texts are left out.
func (u *user) view() map[string]any {
	out := map[string]any{"enable": boolInt(u.Enable), "expire": u.Expire}
	for key, value := range map[string]string{
		"comment": u.Comment, "email": u.Email, "firstname": u.FirstName, "lastname": u.LastName, "keys": u.Keys,
	} {
		if value != "" {
			out[key] = value
		}
	}
	return out
}

func (s *Server) userList(c *call) (any, error) {
	ids := make([]string, 0, len(s.st.Users))
	for id := range s.st.Users {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	out := []map[string]any{}
	self, _ := splitAuthID(c.authID)
	all := c.may("/access/groups", "User.Modify") || c.may("/access/groups", "Sys.Audit")
	for _, id := range ids {
		u := s.st.Users[id]
		if !all && id != self && !s.manages(c, id) {
			continue
		}
		if c.params.has("enabled") && c.params.flag("enabled") != u.Enable {
			continue
		}
		view := u.view()
		view["userid"] = id
		view["realm-type"] = s.realmType(id)
		if c.params.flag("full") {
			view["groups"] = strings.Join(s.groupsOf(id), ",")
			view["tokens"] = u.tokenViews()
		}
		out = append(out, view)
	}
	return out, nil
}

// manages says whether the caller has rights on a group of the user.
func (s *Server) manages(c *call, id string) bool {
	for _, name := range s.groupsOf(id) {
		if c.may("/access/groups/"+name, "User.Modify") || c.may("/access/groups/"+name, "Sys.Audit") {
			return true
		}
	}
	return false
}

func (s *Server) realmType(id string) string {
	if realm, err := userRealm(id); err == nil && s.st.Domains[realm] != nil {
		return s.st.Domains[realm].Type
	}
	return ""
}

// groupsOf are the names of a user's groups, sorted.
func (s *Server) groupsOf(id string) []string {
	out := []string{}
	for name, g := range s.st.Groups {
		if g.Users[id] {
			out = append(out, name)
		}
	}
	sort.Strings(out)
	return out
}

// tokenViews is nil without tokens, as in the server's lists.
func (u *user) tokenViews() any {
	if len(u.Tokens) == 0 {
		return nil
	}
	ids := make([]string, 0, len(u.Tokens))
	for id := range u.Tokens {
		ids = append(ids, id)
	}
	sort.Strings(ids)
	out := []map[string]any{}
	for _, id := range ids {
		view := u.Tokens[id].view()
		view["tokenid"] = id
		out = append(out, view)
	}
	return out
}

func (s *Server) userGet(c *call) (any, error) {
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, err
	}
	view := u.view()
	view["groups"] = s.groupsOf(u.ID)
	view["tokens"] = nil
	if len(u.Tokens) > 0 {
		tokens := map[string]any{}
		for id, t := range u.Tokens {
			tokens[id] = t.view()
		}
		view["tokens"] = tokens
	}
	return view, nil
}

func (s *Server) userCreate(c *call) (any, error) {
	id := c.params.str("userid")
	realm, err := userRealm(id)
	if err != nil {
		return nil, err
	}
	switch {
	case s.st.Users[id] != nil:
		return nil, failf("create user failed: user '%s' already exists", id)
	case s.st.Domains[realm] == nil:
		return nil, failf("create user failed: domain '%s' does not exist", realm)
	}
	u := &user{ID: id, Enable: true, Tokens: map[string]*token{}, Password: c.params.str("password")}
	if err := s.applyUser(c, u); err != nil {
		return nil, err
	}
	s.st.Users[id] = u
	return nil, nil
}

func (s *Server) userUpdate(c *call) (any, error) {
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, err
	}
	return nil, s.applyUser(c, u)
}

// applyUser takes over the fields that a request gives.
func (s *Server) applyUser(c *call, u *user) error {
	for _, name := range c.params.list("groups") {
		if s.st.Groups[name] == nil {
			return failf("no such group '%s'", name)
		}
	}
	for key, field := range map[string]*string{
		"comment": &u.Comment, "email": &u.Email, "firstname": &u.FirstName, "lastname": &u.LastName, "keys": &u.Keys,
	} {
		if c.params.has(key) {
			*field = c.params.str(key)
		}
	}
	if c.params.has("enable") {
		u.Enable = c.params.flag("enable")
	}
	if c.params.has("expire") {
		u.Expire, _ = strconv.ParseInt(c.params.str("expire"), 10, 64)
	}
	if c.params.has("groups") {
		if !c.params.flag("append") {
			for _, g := range s.st.Groups {
				delete(g.Users, u.ID)
			}
		}
		for _, name := range c.params.list("groups") {
			s.st.Groups[name].Users[u.ID] = true
		}
	}
	return nil
}

func (s *Server) userDelete(c *call) (any, error) {
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, err
	}
	if self, _ := splitAuthID(c.authID); self == u.ID {
		return nil, failf("delete user failed: User '%s' can't delete himself", u.ID) // as sibling checks do
	}
	delete(s.st.Users, u.ID)
	for _, g := range s.st.Groups {
		delete(g.Users, u.ID)
	}
	s.dropACL(func(e aclEntry) bool {
		name, _ := splitAuthID(e.Who)
		return e.Kind != "group" && name == u.ID
	})
	return nil, nil
}
