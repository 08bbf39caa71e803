package server

import (
	"net/http"
	"strings"
	"time"
)

// serveRequest answers one request, with the faults that the control API ordered for it.
func (s *Server) serveRequest(req *http.Request, body []byte, conn int) *answer {
	path := req.URL.EscapedPath()
	switch {
	case strings.HasPrefix(path, controlPrefix):
		return s.serveControl(req, body)
	case path == "/api2/json" || strings.HasPrefix(path, "/api2/json/"):
	default:
		return &answer{status: 501, reason: "no such file '" + req.URL.Path + "'", contentType: "text/plain"}
	}
	segments, plain := splitPath(strings.TrimPrefix(path, "/api2/json"))
	entry := RequestEntry{Method: req.Method, Path: plain, Conn: conn, At: time.Now()}
	if r, _ := s.findRoute(segments); r != nil {
		entry.Template = r.template
	}
	n := s.requests.begin(entry)
	a, kind := s.serveFaulted(req, body, plain)
	if a.delay > 0 {
		s.wait(a.delay)
	}
	s.requests.end(n, func(e *RequestEntry) {
		e.FaultedBy = kind
		if !a.drop {
			e.Status, e.Reason = a.status, a.reason
		}
	})
	return a
}

// serveFaulted meets the faults in order: what comes before the execution, the execution, what comes after it.
func (s *Server) serveFaulted(req *http.Request, body []byte, path string) (*answer, string) {
	var after []*fault
	kind := ""
	for _, f := range s.faults.hits(req.Method, path) {
		kind = f.Fault.Kind
		switch kind {
		case FaultStatus:
			return injected(f.Fault), kind
		case FaultDropBefore:
			return &answer{drop: true}, kind
		case FaultLatency:
			s.wait(f.Fault.Delay)
		case FaultHold:
			s.faults.hold(f, s.ctx.Done())
		case FaultHoldDrop:
			s.faults.hold(f, s.ctx.Done())
			return &answer{drop: true}, kind
		default:
			after = append(after, f)
		}
	}
	a := s.serveAPI(req, body)
	for _, f := range after {
		switch f.Fault.Kind {
		case FaultStatusAfter:
			a = injected(f.Fault)
		case FaultDropAfter:
			a = &answer{drop: true}
		case FaultHoldAfter:
			s.faults.hold(f, s.ctx.Done())
		}
	}
	return a, kind
}

// injected is the answer that a fault orders.
func injected(f Fault) *answer {
	if f.Body != nil {
		return &answer{status: f.Status, reason: f.Reason, contentType: "text/plain", body: []byte(*f.Body)}
	}
	body, _ := encodeJSON(map[string]any{"data": nil, "message": f.Reason + "\n"})
	return &answer{status: f.Status, reason: f.Reason, contentType: jsonType, body: body}
}

// wait sleeps, without the state lock, until the server closes.
func (s *Server) wait(d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-s.ctx.Done():
	}
}
