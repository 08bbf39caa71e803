package server

import (
	"fmt"
	"strings"
)

// route is a path template with its methods.
type route struct {
	template string // "/nodes/{node}/lxc/{vmid}"
	segments []string
	methods  map[string]*endpoint
}

// endpoint is a method of a route.
type endpoint struct {
	fact    *methodFact
	handler handler
}

// route registers a handler. Parameters and permission come from the table of facts; a method that isn't in it is a
// programming error and panics.
func (s *Server) route(method, template string, h handler) {
	fact := loadFacts()[method+" "+template]
	if fact == nil {
		panic(fmt.Sprintf("lab: no facts about %s %s", method, template))
	}
	s.routeWith(method, template, fact, h)
}

// routeWith registers a handler with facts of its own: for what the table doesn't have.
func (s *Server) routeWith(method, template string, fact *methodFact, h handler) {
	r := s.routes[template]
	if r == nil {
		r = &route{template: template, segments: segmentsOf(template), methods: map[string]*endpoint{}}
		s.routes[template] = r
		s.routeList = append(s.routeList, r)
	}
	r.methods[method] = &endpoint{fact: fact, handler: h}
}

func segmentsOf(template string) []string {
	if template == "/" {
		return nil
	}
	return strings.Split(template[1:], "/")
}

// findRoute matches a path, already split and decoded. A literal segment wins over a variable one. Values are the
// variables' by name.
func (s *Server) findRoute(segments []string) (*route, map[string]string) {
	var best *route
	var bestValues map[string]string
	bestScore := -1
	for _, r := range s.routeList {
		if len(r.segments) != len(segments) {
			continue
		}
		values, score := map[string]string{}, 0
		for i, want := range r.segments {
			if strings.HasPrefix(want, "{") {
				values[want[1:len(want)-1]] = segments[i]
			} else if want == segments[i] {
				score += 1 << (len(segments) - i)
			} else {
				score = -1
				break
			}
		}
		if score > bestScore {
			best, bestValues, bestScore = r, values, score
		}
	}
	return best, bestValues
}
