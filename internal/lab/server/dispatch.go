package server

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
)

// answer is what goes back on the wire.
type answer struct {
	status      int
	reason      string
	contentType string
	body        []byte
	delay       delay // before it is sent
	drop        bool  // close the connection without it
}

const jsonType = "application/json;charset=UTF-8"

// serveAPI answers a request to /api2/json.
func (s *Server) serveAPI(req *http.Request, body []byte) *answer {
	rawPath := strings.TrimPrefix(req.URL.EscapedPath(), "/api2/json")
	segments, path := splitPath(rawPath)

	s.lock()
	defer s.unlock()
	c := &call{s: s, ctx: s.ctx, method: req.Method, path: path}
	data, err := s.handle(c, req, segments, body)
	if err != nil {
		a := s.errorAnswer(asAPIError(err))
		return a
	}
	return dataAnswer(data)
}

// handle runs the steps of a request in the server's order: body, login, route, permission, node, parameters, handler.
func (s *Server) handle(c *call, req *http.Request, segments []string, body []byte) (any, error) {
	given, err := decodeParams(req, body)
	if err != nil {
		return nil, err
	}
	if err := s.authenticate(c, req); err != nil {
		return nil, err
	}
	r, values := s.findRoute(segments)
	if r == nil || r.methods[c.method] == nil {
		return nil, notImplemented(c.method, c.path)
	}
	c.route = r
	end := r.methods[c.method]
	for name, value := range values {
		if other, ok := given[name]; ok && other != value {
			return nil, paramError(name, "duplicate parameter (already defined in URI) with conflicting values!")
		}
		given[name] = value
	}
	c.params = given
	if err := c.checkFact(end.fact); err != nil {
		return nil, err
	}
	if err := s.resolveNode(c, end.fact, values); err != nil {
		return nil, err
	}
	if err := checkParams(end.fact, given); err != nil {
		return nil, err
	}
	data, err := end.handler(c)
	if err == nil && c.method != http.MethodGet {
		s.dirty()
	}
	return data, err
}

// resolveNode finds the node that answers. A node that is away is a 595, one that the cluster hasn't a failed look-up.
func (s *Server) resolveNode(c *call, fact *methodFact, values map[string]string) error {
	c.node = s.st.Nodes[0]
	name, ok := values["node"]
	if !ok || name == "localhost" {
		return nil
	}
	if n := s.findNode(name); n != nil {
		c.node = n
		if n.Away {
			return &apiError{status: 595, message: "No route to host", bare: true, raw: new(string)}
		}
		return nil
	}
	if !fact.Node {
		return nil
	}
	why := "Temporary failure in name resolution"
	if !nodeName.MatchString(name) {
		why = "Name or service not known"
	}
	return failf("hostname lookup '%s' failed - failed to get address info for: %s: %s", name, name, why)
}

// findNode finds a node by name.
func (s *Server) findNode(name string) *node {
	for _, n := range s.st.Nodes {
		if n.Name == name {
			return n
		}
	}
	return nil
}

// splitPath decodes a path's segments one by one, since ids may have a slash inside.
func splitPath(raw string) ([]string, string) {
	var segments []string
	for _, part := range strings.Split(raw, "/") {
		if part == "" {
			continue
		}
		decoded, err := url.PathUnescape(part)
		if err != nil {
			decoded = part
		}
		segments = append(segments, decoded)
	}
	return segments, "/" + strings.Join(segments, "/")
}

// dataAnswer is the success envelope.
func dataAnswer(data any) *answer {
	envelope := map[string]any{"data": data}
	if l, ok := data.(listing); ok {
		envelope["data"] = l.data
		if l.total > 0 { // the server leaves out a total of nothing
			envelope["total"] = l.total
		}
	}
	body, err := encodeJSON(envelope)
	if err != nil {
		return &answer{status: 500, reason: "lab: " + err.Error()}
	}
	return &answer{status: 200, reason: "OK", contentType: jsonType, body: body}
}

// errorAnswer is an error's answer.
func (s *Server) errorAnswer(e *apiError) *answer {
	a := &answer{status: e.status, reason: oneLine(e.message), contentType: jsonType}
	if e.status == http.StatusUnauthorized {
		a.delay = s.delays().AuthFailure
	}
	if e.raw != nil {
		a.body, a.contentType = []byte(*e.raw), "text/plain"
		return a
	}
	message := e.message
	if !e.bare {
		message = strings.TrimRight(message, "\n") + "\n"
	}
	envelope := map[string]any{"data": nil, "message": message}
	if len(e.errors) > 0 {
		envelope["errors"] = e.errors
	}
	a.body, _ = encodeJSON(envelope)
	return a
}

func encodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(b.String(), "\n")), nil
}

// oneLine makes a message fit for the status line.
func oneLine(message string) string {
	return strings.ReplaceAll(strings.TrimRight(message, "\n"), "\n", " ")
}
