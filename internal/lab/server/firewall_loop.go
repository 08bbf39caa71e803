package server

import (
	"sync/atomic"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// compiledFirewall is what the firewall service has made of the configuration in its last round. Between a write and the
// next round the old rules count, and a guest that was made meanwhile has none: that window is real.
type compiledFirewall struct {
	model  atomic.Pointer[FirewallModel]
	rounds atomic.Int64
}

// firewallLoop is the firewall service: every Delays.FirewallLoop it compiles what is written by then. A period that is
// longer than the lab lives is a service that never runs.
func (s *Server) firewallLoop() {
	defer s.workers.Done()
	const look = 20 * time.Millisecond
	last := time.Time{}
	for s.ctx.Err() == nil {
		s.lock()
		now, period := s.now(), s.delays().FirewallLoop
		s.unlock()
		if now.Sub(last) >= period {
			last = now
			s.compileFirewall()
		}
		s.wait(min(max(period, time.Millisecond), look))
	}
}

// compileFirewall is one round of the firewall service.
func (s *Server) compileFirewall() {
	model := s.Firewall()
	if !model.Datacenter.Enable {
		model = nil
	}
	s.firewall.model.Store(model)
	s.firewall.rounds.Add(1)
}

// FirewallRounds counts the rounds of the firewall service.
func (s *Server) FirewallRounds() int64 { return s.firewall.rounds.Load() }

// FirewallCompiled is the model that the firewall service has made effective; nil while the datacenter's switch is off.
func (s *Server) FirewallCompiled() *FirewallModel { return s.firewall.model.Load() }

// judge decides about a connection between guests by what is compiled. Only guests that the last round has seen on the
// node where they are now are filtered.
func (s *Server) judge(c engine.Connection) engine.Verdict {
	model := s.FirewallCompiled()
	if model == nil {
		return engine.Accepted
	}
	for _, end := range []struct {
		id        int
		mac       string
		direction string
	}{{c.From, c.FromMAC, "out"}, {c.To, c.ToMAC, "in"}} {
		g, known := model.Guests[end.id]
		if end.id == 0 || !known || !g.Enable || !s.onNode(end.id, g.Node) {
			continue
		}
		if verdict := g.verdict(c, end.mac, end.direction); verdict != engine.Accepted {
			return verdict
		}
	}
	return engine.Accepted
}

// onNode says whether a guest is on a node.
func (s *Server) onNode(vmid int, node string) bool {
	s.lock()
	defer s.unlock()
	g := s.st.Guests[vmid]
	return g != nil && g.Node == node
}
