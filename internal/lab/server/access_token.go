package server

import "strconv"

// view is a token without its secret, which only its creation shows.
func (t *token) view() map[string]any {
	out := map[string]any{"privsep": boolInt(t.PrivSep), "expire": t.Expire}
	if t.Comment != "" {
		out["comment"] = t.Comment
	}
	return out
}

func (s *Server) findToken(c *call) (*user, *token, error) {
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, nil, err
	}
	id := c.params.str("tokenid")
	if t := u.Tokens[id]; t != nil {
		return u, t, nil
	}
	return u, nil, failf("no such token '%s' for user '%s'", id, u.ID)
}

func (s *Server) tokenList(c *call) (any, error) {
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, err
	}
	if views := u.tokenViews(); views != nil {
		return views, nil
	}
	return []any{}, nil
}

func (s *Server) tokenGet(c *call) (any, error) {
	_, t, err := s.findToken(c)
	if err != nil {
		return nil, err
	}
	return t.view(), nil
}

func (s *Server) tokenCreate(c *call) (any, error) {
	u, err := s.findUser(c.params.str("userid"))
	if err != nil {
		return nil, err
	}
	id := c.params.str("tokenid")
	if u.Tokens[id] != nil {
		return nil, paramError("tokenid", "Token already exists.")
	}
	t := &token{ID: id, Secret: randomUUID(), PrivSep: true}
	info := t.apply(c)
	u.addToken(t)
	return map[string]any{"full-tokenid": u.ID + "!" + id, "value": t.Secret, "info": info}, nil
}

func (s *Server) tokenUpdate(c *call) (any, error) {
	_, t, err := s.findToken(c)
	if err != nil {
		return nil, err
	}
	for _, key := range c.params.list("delete") {
		if key == "comment" {
			t.Comment = ""
		}
	}
	return t.apply(c), nil
}

// apply takes over what a request gives and returns the token as the server shows it then: what was given comes back as
// text.
func (t *token) apply(c *call) map[string]any {
	if c.params.has("privsep") {
		t.PrivSep = c.params.flag("privsep")
	}
	if c.params.has("expire") {
		t.Expire, _ = strconv.ParseInt(c.params.str("expire"), 10, 64)
	}
	if c.params.has("comment") {
		t.Comment = c.params.str("comment")
	}
	info := t.view()
	for key := range info {
		if c.params.has(key) {
			info[key] = c.params.str(key)
		}
	}
	return info
}

func (s *Server) tokenDelete(c *call) (any, error) {
	u, t, err := s.findToken(c)
	if err != nil {
		return nil, err
	}
	delete(u.Tokens, t.ID)
	s.dropACL(func(e aclEntry) bool { return e.Kind == "token" && e.Who == u.ID+"!"+t.ID })
	return nil, nil
}
