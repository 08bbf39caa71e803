package server

import "time"

// lxcRRDData has a point a minute for the last hour, without values: the lab measures nothing over time.
func (s *Server) lxcRRDData(c *call) (any, error) {
	if _, err := c.guest(); err != nil {
		return nil, err
	}
	step := map[string]time.Duration{
		"hour": time.Minute, "day": 30 * time.Minute, "week": 3 * time.Hour, "month": 12 * time.Hour, "year": 7 * 24 * time.Hour,
	}[c.params.str("timeframe")]
	const points = 70
	first := s.now().Truncate(step).Add(-(points - 1) * step)
	out := make([]map[string]any, 0, points)
	for i := range points {
		out = append(out, map[string]any{"time": first.Add(time.Duration(i) * step).Unix()})
	}
	return out, nil
}

// lxcConsole is the answer of every console proxy: the lab has no terminals, and says it as a node does on which the
// proxy's program doesn't come up.
func (s *Server) lxcConsole(c *call) (any, error) {
	if _, err := c.guest(); err != nil {
		return nil, err
	}
	return nil, failf("Timeout while waiting for port '5900' to get ready!")
}
