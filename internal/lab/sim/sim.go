// Package sim is the engine whose guests are simulated: file trees in memory, an SSH server that exists while somebody
// is connected, and programs written in Go. It needs no privilege and runs on any operating system; a thousand idle
// guests cost a few megabytes. What it can't do is run a program that nobody wrote for it.
package sim

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"log/slog"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/command"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

// Options change how the engine behaves; the zero value is fine.
type Options struct {
	// Folder keeps the state between runs. Empty: everything is in memory.
	Folder string
	// SaveEvery is how often changes inside guests are written to Folder; 0 means a second.
	SaveEvery time.Duration
	// Clock is the lab's time; nil is the machine's.
	Clock engine.Clock
	// Random makes boot ids and host keys; nil is crypto/rand.
	Random io.Reader
	// BootDelay is the time from Start until SSH answers.
	BootDelay time.Duration
	// SharedHostKeys makes clones keep their source's SSH host keys, as careless templates do.
	SharedHostKeys bool
	// DHCP are the ranges of bridges that serve addresses; others get one of their own on first use.
	DHCP map[string]netip.Prefix
	// Log is for what goes wrong inside; nil discards.
	Log *slog.Logger
}

// defaultRootBytes is the size of a root that nobody gave one: 4 GiB, as Proxmox does.
const defaultRootBytes = 4 << 30

// Engine implements engine.Engine.
type Engine struct {
	options  Options
	clock    engine.Clock
	random   io.Reader
	log      *slog.Logger
	programs shell.Programs
	network  *network
	store    *store

	mu      sync.Mutex
	guests  map[int]*guest
	volumes map[string]*volume
	images  map[string]*tree.Tree // built on first use
	closed  bool
}

var _ engine.Engine = (*Engine)(nil)

// New makes an engine, with the guests and volumes of Options.Folder, all of them stopped.
func New(o Options) (*Engine, error) {
	e := &Engine{options: o, clock: o.Clock, random: o.Random, log: o.Log, programs: command.All(),
		guests: map[int]*guest{}, volumes: map[string]*volume{}, images: map[string]*tree.Tree{}}
	if e.clock == nil {
		e.clock = engine.SystemClock{}
	}
	if e.random == nil {
		e.random = rand.Reader
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	e.network = newNetwork(e.clock, o.DHCP)
	if o.Folder != "" {
		if err := e.openStore(); err != nil {
			return nil, fmt.Errorf("state of the simulated guests in %s: %w", o.Folder, err)
		}
	}
	return e, nil
}

// Name is "sim".
func (e *Engine) Name() string { return "sim" }

// List returns the ids of all guests, ascending.
func (e *Engine) List() []int {
	e.mu.Lock()
	defer e.mu.Unlock()
	ids := make([]int, 0, len(e.guests))
	for id := range e.guests {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// Close stops all guests, saves what there is to save and frees the rest.
func (e *Engine) Close() error {
	e.mu.Lock()
	if e.closed {
		e.mu.Unlock()
		return nil
	}
	e.closed = true
	all := make([]*guest, 0, len(e.guests))
	for _, g := range e.guests {
		all = append(all, g)
	}
	e.mu.Unlock()
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, g := range all {
		g.mu.Lock()
		g.down(ctx)
		g.mu.Unlock()
	}
	if e.store != nil {
		return e.closeStore()
	}
	return nil
}

// find returns a guest, locked; the caller unlocks it.
func (e *Engine) find(ctx context.Context, id int) (*guest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	e.mu.Lock()
	g, closed := e.guests[id], e.closed
	e.mu.Unlock()
	if closed {
		return nil, engine.Refuse("engine sim", engine.ErrClosed)
	}
	if g == nil {
		return nil, engine.Refuse(engine.Guest(id), engine.ErrNotFound)
	}
	g.mu.Lock()
	if g.destroyed {
		g.mu.Unlock()
		return nil, engine.Refuse(engine.Guest(id), engine.ErrNotFound)
	}
	return g, nil
}

// enter adds a guest under a free id.
func (e *Engine) enter(g *guest) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return engine.Refuse("engine sim", engine.ErrClosed)
	}
	if _, taken := e.guests[g.id]; taken {
		return engine.Refuse(engine.Guest(g.id), engine.ErrExists)
	}
	e.guests[g.id] = g
	e.changed()
	return nil
}

// free says early that an id is taken; enter has the last word.
func (e *Engine) free(ctx context.Context, id int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return engine.Refuse("engine sim", engine.ErrClosed)
	}
	if _, taken := e.guests[id]; taken {
		return engine.Refuse(engine.Guest(id), engine.ErrExists)
	}
	return nil
}
