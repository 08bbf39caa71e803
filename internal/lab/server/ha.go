package server

import (
	"regexp"
	"strconv"
)

var haSID = regexp.MustCompile(`\A(?:(ct|vm):)?(\d+)\z`)

// routesHA lists the little that the lab has of the high-availability manager: which guests it manages.
func (s *Server) routesHA() {
	audit := perm("/", "Sys.Audit")
	console := perm("/", "Sys.Console")
	text := func(optional bool) paramFact { return paramFact{Type: "string", Optional: optional} }
	number := paramFact{Type: "integer", Optional: true}
	options := map[string]paramFact{
		"sid": text(false), "state": text(true), "group": text(true), "comment": text(true), "type": text(true),
		"max_restart": number, "max_relocate": number, "failback": {Type: "boolean", Optional: true},
		"delete": text(true), "digest": text(true),
	}
	one := map[string]paramFact{"sid": text(false), "purge": {Type: "boolean", Optional: true}}
	s.routeWith("GET", "/cluster/ha/resources", &methodFact{Check: audit, Params: map[string]paramFact{"type": text(true)}}, s.haList)
	s.routeWith("POST", "/cluster/ha/resources", &methodFact{Check: console, Params: options}, s.haCreate)
	s.routeWith("GET", "/cluster/ha/resources/{sid}", &methodFact{Check: audit, Params: one}, s.haGet)
	s.routeWith("PUT", "/cluster/ha/resources/{sid}", &methodFact{Check: console, Params: options}, s.haUpdate)
	s.routeWith("DELETE", "/cluster/ha/resources/{sid}", &methodFact{Check: console, Params: one}, s.haDelete)
}

// haID is the service id of a parameter, and whether there is such a guest.
func (s *Server) haID(c *call) (string, bool) {
	m := haSID.FindStringSubmatch(c.params.str("sid"))
	if m == nil {
		return c.params.str("sid"), false
	}
	vmid, _ := strconv.Atoi(m[2])
	kind := m[1]
	if kind == "" {
		kind = "ct"
	}
	return kind + ":" + m[2], s.st.Guests[vmid] != nil
}

func (r *haResource) view() map[string]any {
	out := map[string]any{"sid": r.SID, "type": r.SID[:2], "state": "started", "digest": digestOf(r.Options)}
	for key, value := range r.Options {
		out[key] = value
	}
	return out
}

func (s *Server) haList(*call) (any, error) {
	out := []map[string]any{}
	for _, sid := range sortedKeys(s.st.HA) {
		out = append(out, s.st.HA[sid].view())
	}
	return out, nil
}

func (s *Server) haGet(c *call) (any, error) {
	sid, _ := s.haID(c)
	if r := s.st.HA[sid]; r != nil {
		return r.view(), nil
	}
	return nil, failf("no such resource '%s'", sid)
}

func (s *Server) haCreate(c *call) (any, error) {
	sid, exists := s.haID(c)
	if s.st.HA[sid] != nil {
		return nil, failf("resource ID '%s' already defined", sid)
	}
	if !exists {
		return nil, failf("resource '%s' does not exist in cluster", sid)
	}
	s.st.HA[sid] = &haResource{SID: sid, Options: map[string]string{}}
	s.applyHA(c, sid)
	return nil, nil
}

func (s *Server) haUpdate(c *call) (any, error) {
	sid, _ := s.haID(c)
	if s.st.HA[sid] == nil {
		return nil, failf("no such resource '%s'", sid)
	}
	s.applyHA(c, sid)
	return nil, nil
}

func (s *Server) applyHA(c *call, sid string) {
	for _, key := range []string{"state", "group", "comment", "max_restart", "max_relocate", "failback"} {
		if c.params.has(key) {
			s.st.HA[sid].Options[key] = c.params.str(key)
		}
	}
	for _, key := range c.params.list("delete") {
		delete(s.st.HA[sid].Options, key)
	}
}

func (s *Server) haDelete(c *call) (any, error) {
	sid, _ := s.haID(c)
	if s.st.HA[sid] == nil {
		return nil, failf("cannot delete service '%s', not HA managed!", sid)
	}
	delete(s.st.HA, sid)
	return nil, nil
}
