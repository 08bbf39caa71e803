package pve

import (
	"net/http"
	"sync"
	"time"
)

// serverClock remembers by how much the server's clock is ahead of the client's,
// from the Date that every answer carries: no privilege is needed to see it.
type serverClock struct {
	mu     sync.Mutex
	known  bool
	ahead  time.Duration
	within time.Duration
	last   time.Time // the Date of the last answer
}

// note takes the Date of an answer to a request that was sent at sent and
// answered at got. Of several answers the quickest tells the most.
func (s *serverClock) note(h http.Header, sent, got time.Time) {
	date, err := http.ParseTime(h.Get("Date"))
	if err != nil || got.Before(sent) {
		return
	}
	// The header has whole seconds, so the server's time was up to a second later.
	middle := sent.Add(got.Sub(sent) / 2)
	within := time.Second/2 + got.Sub(sent)/2
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last = date
	if !s.known || within <= s.within {
		s.known, s.ahead, s.within = true, date.Add(time.Second/2).Sub(middle), within
	}
}

// ClockDifference is by how much the server's clock is ahead of the client's
// (negative: behind), and how far off that may be. It is known after the first
// answer that carried a Date; the node that answered is meant, not the one that
// a call was passed on to.
func (c *Client) ClockDifference() (ahead, within time.Duration, known bool) {
	s := &c.transport.clock
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ahead, s.within, s.known
}

// ServerTime is the Date of the server's last answer, to a second; zero when none
// carried one. Unlike ClockDifference it doesn't rest on the client's clock, which
// may have jumped since.
func (c *Client) ServerTime() time.Time {
	s := &c.transport.clock
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.last
}
