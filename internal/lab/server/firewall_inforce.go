package server

import "maps"

// FirewallInForce is what a packet filter has to do now: what the firewall service compiled last, without the guests that
// have moved to another node since, where no round has seen them yet. It is nil while nothing is filtered.
func (s *Server) FirewallInForce() *FirewallModel {
	model := s.FirewallCompiled()
	if model == nil {
		return nil
	}
	s.lock()
	defer s.unlock()
	var kept map[int]FirewallGuest
	for id, g := range model.Guests {
		if now := s.st.Guests[id]; now != nil && now.Node == g.Node {
			continue
		}
		if kept == nil {
			kept = maps.Clone(model.Guests)
		}
		delete(kept, id)
	}
	if kept == nil {
		return model
	}
	copied := *model
	copied.Guests = kept
	return &copied
}
