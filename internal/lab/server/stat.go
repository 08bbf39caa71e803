package server

import "time"

// statLoop is the status service: now and then it looks at every guest, and /cluster/resources shows what it last saw.
func (s *Server) statLoop() {
	defer s.workers.Done()
	for {
		s.lock()
		s.statRound()
		period := s.delays().StatLoop
		s.unlock()
		s.wait(max(period, 20*time.Millisecond))
		if s.ctx.Err() != nil {
			return
		}
	}
}

// statRound looks at every guest.
func (s *Server) statRound() {
	for _, g := range s.st.Guests {
		if n := s.findNode(g.Node); n == nil || n.Away {
			continue
		}
		seen := s.guestStatus(g)
		g.stat = &seen
	}
}
