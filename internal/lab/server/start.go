package server

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Start starts a server. It serves until Close or until ctx ends.
func Start(ctx context.Context, opt Options) (*Server, error) {
	opt = withDefaults(opt)
	s := &Server{
		opt: opt, log: opt.Log, engine: opt.Engine, routes: map[string]*route{}, changed: make(chan struct{}),
		fileLocks: map[string]bool{}, faults: newFaults(), requests: newRequestLog(), conns: map[net.Conn]bool{},
		initialDelays: *opt.Delays,
	}
	s.ctx, s.stop = context.WithCancel(ctx)
	s.registerRoutes()
	if err := s.prepare(); err != nil {
		s.stop()
		return nil, err
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", opt.Listen)
	if err != nil {
		s.stop()
		return nil, fmt.Errorf("lab: listen on %s: %w", opt.Listen, err)
	}
	s.listener = listener
	if filter, ok := s.engine.(engine.PacketFilter); ok {
		filter.SetFilter(s.judge)
	}
	s.workers.Add(4)
	go s.firewallLoop()
	go s.acceptLoop()
	go s.statLoop()
	go s.saveLoop()
	context.AfterFunc(s.ctx, s.shut)
	return s, nil
}

func withDefaults(opt Options) Options {
	if opt.Nodes <= 0 {
		opt.Nodes = 1
	}
	if opt.Delays == nil {
		opt.Delays = Fast()
	}
	copied := *opt.Delays
	opt.Delays = &copied
	if opt.Secret == "" {
		opt.Secret = randomHex(16)
	}
	if opt.Log == nil {
		opt.Log = slog.New(slog.DiscardHandler)
	}
	if opt.Listen == "" {
		opt.Listen = "127.0.0.1:0"
	}
	return opt
}

// prepare loads the state, or makes and seeds a new one, and the certificate.
func (s *Server) prepare() error {
	s.lock()
	defer s.unlock()
	loaded, err := s.load()
	if err != nil {
		return err
	}
	if !loaded {
		s.st = newState(s.opt.Nodes, time.Now())
		names := []string{}
		for _, n := range s.st.Nodes {
			names = append(names, n.Name)
		}
		if s.cert, err = newCertificate(names); err != nil {
			return fmt.Errorf("lab: certificate: %w", err)
		}
		if s.opt.Seed != nil {
			if err := s.opt.Seed(&Seeder{s: s}); err != nil {
				return fmt.Errorf("lab: seed: %w", err)
			}
		}
		s.dirty()
	}
	s.tlsConf, err = s.cert.config()
	return err
}

// shut closes the listener and every connection.
func (s *Server) shut() {
	_ = s.listener.Close()
	s.lock()
	defer s.unlock()
	for conn := range s.conns {
		_ = conn.Close()
	}
}

// Close stops serving, ends running tasks, and saves the state. The engine stays open: it is its maker's.
func (s *Server) Close() error {
	s.stop()
	s.workers.Wait()
	s.lock()
	defer s.unlock()
	if err := s.save(); err != nil && !errors.Is(err, errNoDir) {
		return err
	}
	return nil
}

// Addr is the address that it listens on, "127.0.0.1:40113".
func (s *Server) Addr() string { return s.listener.Addr().String() }

// URL is the API's base, "https://127.0.0.1:40113".
func (s *Server) URL() string { return "https://" + s.Addr() }

// Fingerprint is the certificate's SHA-256, "AB:CD:…".
func (s *Server) Fingerprint() string { return s.cert.fingerprint() }

// CertPEM is the certificate, which is its own authority.
func (s *Server) CertPEM() string { return string(s.cert.CertPEM) }

// Secret guards the control API.
func (s *Server) Secret() string { return s.opt.Secret }

// NodeNames are the cluster's nodes, the one that is asked first.
func (s *Server) NodeNames() []string {
	s.lock()
	defer s.unlock()
	var out []string
	for _, n := range s.st.Nodes {
		out = append(out, n.Name)
	}
	return out
}

func randomHex(n int) string {
	b := make([]byte, n)
	if _, err := rand.Read(b); err != nil {
		panic(err) // crypto/rand never fails on supported systems
	}
	return hex.EncodeToString(b)
}

// randomUUID is a token's secret: a random UUID.
func randomUUID() string {
	h := randomHex(16)
	return h[:8] + "-" + h[8:12] + "-4" + h[13:16] + "-a" + h[17:20] + "-" + h[20:]
}
