//go:build linux

package supervisor

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/cgroup"
)

// Supervisor holds the lab. Locks are taken in this order: a guest's, the supervisor's, the network's.
type Supervisor struct {
	opened  chan struct{} // closed when what follows is set up, or couldn't be
	options Open
	idBase  int
	limits  *cgroup.Lab
	network *network
	outside *outside // nil without
	place   place

	mu      sync.Mutex
	guests  map[int]*guest
	records map[int]record
	volumes map[string]*volume
	last    int // number of the newest layer or volume folder
	closed  bool

	images sync.Mutex // one image is unpacked at a time
}

func newSupervisor() *Supervisor {
	return &Supervisor{opened: make(chan struct{}), guests: map[int]*guest{}, records: map[int]record{}, volumes: map[string]*volume{}, limits: &cgroup.Lab{}}
}

// open builds the lab's surroundings and loads what the folder holds.
func (s *Supervisor) open(_ context.Context, o Open) (Opened, error) {
	defer close(s.opened)
	s.options, s.idBase = o, RootIDBase
	if o.UserNamespace {
		s.idBase = UserIDBase
	}
	var err error
	var opened Opened
	if s.place, err = newPlace(o); err != nil {
		return opened, err
	}
	if s.network, err = newNetwork(o.DHCP); err != nil {
		return opened, err
	}
	if err := s.network.listenAsNode(); err != nil {
		return opened, err
	}
	if o.Outside {
		if s.outside, err = s.network.openOutside(); err != nil {
			return opened, err
		}
	}
	limits, err := cgroup.Open(o.Cgroup)
	if err != nil {
		opened.Notes = append(opened.Notes, err.Error())
	}
	s.limits = limits
	s.mu.Lock()
	defer s.mu.Unlock()
	return opened, s.load()
}

// close takes everything down and removes what is temporary. It may be called twice.
func (s *Supervisor) close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	all := make([]*guest, 0, len(s.guests))
	for _, g := range s.guests {
		all = append(all, g)
	}
	s.mu.Unlock()
	var down sync.WaitGroup
	for _, g := range all {
		down.Go(func() {
			g.mu.Lock()
			defer g.mu.Unlock()
			s.down(g)
		})
	}
	down.Wait()
	s.limits.Close()
	if s.options.Temporary {
		// The bind mount of the folder pins it; its content goes from inside, where the guests' ids are ours to remove.
		entries, _ := os.ReadDir(s.place.state)
		for _, e := range entries {
			_ = os.RemoveAll(filepath.Join(s.place.state, e.Name()))
		}
		_ = os.Remove(s.options.Folder)
	}
}

func (s *Supervisor) list() []int {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]int, 0, len(s.guests))
	for id := range s.guests {
		all = append(all, id)
	}
	slices.Sort(all)
	return all
}

// find returns a guest, locked; the caller unlocks it.
func (s *Supervisor) find(ctx context.Context, id int) (*guest, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	s.mu.Lock()
	g, closed := s.guests[id], s.closed
	s.mu.Unlock()
	if closed {
		return nil, engine.Refuse("engine ns", engine.ErrClosed)
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

// free says early that an id is taken; enter has the last word.
func (s *Supervisor) free(ctx context.Context, id int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return engine.Refuse("engine ns", engine.ErrClosed)
	}
	if s.guests[id] != nil {
		return engine.Refuse(engine.Guest(id), engine.ErrExists)
	}
	return nil
}

// enter adds a guest under a free id. A guest that is refused leaves no layer behind.
func (s *Supervisor) enter(g *guest) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var err error
	switch {
	case s.closed:
		err = engine.Refuse("engine ns", engine.ErrClosed)
	case s.guests[g.id] != nil:
		err = engine.Refuse(engine.Guest(g.id), engine.ErrExists)
	default:
		s.guests[g.id] = g
		s.note(g)
		return s.save()
	}
	return errors.Join(err, s.removeLayer(g.root.Upper))
}

// number gives the next free number of a folder.
func (s *Supervisor) number() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	return s.last
}
