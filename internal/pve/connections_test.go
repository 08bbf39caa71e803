package pve

import (
	"net/http"
	"sync"
	"testing"
	"time"
)

func TestTwoHundredReadersShareFewConnections(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		time.Sleep(time.Millisecond) // the server's work, so that requests overlap
		data(w, map[string]any{"digest": "x", "hostname": "h"})
	})
	c, _ := testClient(t, s.URL)
	var wg sync.WaitGroup
	for i := range 200 {
		wg.Go(func() {
			if _, err := c.LXCConfig(t.Context(), "pve1", 100+i); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) != 200 {
		t.Errorf("%d requests for 200 reads", len(s.requests))
	}
	if s.conns > DefaultMaxInFlight {
		t.Errorf("%d connections were opened, want at most %d", s.conns, DefaultMaxInFlight)
	}
	if s.peak > DefaultMaxInFlight || s.peak < 2 {
		t.Errorf("%d requests in flight at one time, want 2 to %d", s.peak, DefaultMaxInFlight)
	}
}

func TestTheBoundOfRequestsInFlightIsConfigurable(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, []any{}) })
	c, _ := testClient(t, s.URL, func(cfg *Config) { cfg.MaxInFlight = 1 })
	var wg sync.WaitGroup
	for range 30 {
		wg.Go(func() {
			if _, err := c.Nodes(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if s.peak != 1 || s.conns != 1 {
		t.Errorf("%d in flight over %d connections, want 1 and 1", s.peak, s.conns)
	}
}

func TestConnectionsGoBeforeTheServerClosesThem(t *testing.T) {
	t.Parallel()
	c, _ := testClient(t, "https://pve.example.org:8006")
	const serverKeepsIdle = 5 * time.Second
	tp := c.transport.base
	if tp.IdleConnTimeout <= 0 || tp.IdleConnTimeout >= serverKeepsIdle {
		t.Errorf("idle connections are kept for %s, the server keeps them for %s", tp.IdleConnTimeout, serverKeepsIdle)
	}
	if tp.MaxIdleConnsPerHost != DefaultMaxInFlight || tp.MaxIdleConns < tp.MaxIdleConnsPerHost {
		t.Errorf("%d idle connections for %d requests in flight", tp.MaxIdleConnsPerHost, DefaultMaxInFlight)
	}
}
