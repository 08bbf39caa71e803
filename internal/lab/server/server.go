package server

import (
	"context"
	"crypto/tls"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// Server is a running emulator.
type Server struct {
	opt    Options
	log    *slog.Logger
	engine engine.Engine

	ctx     context.Context
	stop    context.CancelFunc
	workers sync.WaitGroup // tasks, connections and service loops

	listener net.Listener
	cert     certificate
	tlsConf  *tls.Config

	routes    map[string]*route
	routeList []*route

	mu        sync.Mutex // the state lock: guards everything below
	changed   chan struct{}
	st        *state
	fileLocks map[string]bool
	jump      atomic.Int64 // nanoseconds; read without the lock
	faults    *faults
	firewall  compiledFirewall // has its own lock
	requests  *requestLog
	unsaved   bool
	// initialDelays are those that the server started with, to which a reset goes back.
	initialDelays Delays
	conns         map[net.Conn]bool
	blobs         map[string][]byte // what backups hold, in a lab that keeps nothing on disk
}

// registerRoutes calls every file's list of endpoints.
func (s *Server) registerRoutes() {
	s.routesAccess()
	s.routesCluster()
	s.routesNodes()
	s.routesTasks()
	s.routesStorage()
	s.routesPools()
	s.routesLXC()
	s.routesFirewall()
}

// dirty marks the state as changed, to be saved.
func (s *Server) dirty() { s.unsaved = true }

// Engine is the engine that the guests live in; nil if there is none.
func (s *Server) Engine() engine.Engine { return s.engine }
