package sim

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

// store writes an engine's state to a folder: an index, and the trees beside it.
type store struct {
	trees   *tree.Store
	index   string
	changed atomic.Bool
	stop    chan struct{}
	done    sync.WaitGroup

	mu    sync.Mutex // one save at a time
	names map[*tree.Tree]string
}

// index is the file that says what there is. The trees that it names are on disk before it is.
type index struct {
	Version int
	Guests  []savedGuest
	Volumes map[string]savedVolume
	Leases  map[string]netip.Addr
	DHCP    map[string]netip.Prefix
}

type savedGuest struct {
	ID             int
	Root           string
	Config         engine.Config
	Volumes        map[string]engine.Mount
	Snapshots      []savedSnapshot
	SharedHostKeys bool
	Plain          bool `json:",omitempty"`
}

type savedSnapshot struct {
	Name    string
	Root    string
	Volumes map[string]string
}

type savedVolume struct {
	Tree  string
	Guest int
}

// changed notes that the index must be written.
func (e *Engine) changed() {
	if e.store != nil {
		e.store.changed.Store(true)
	}
}

func (e *Engine) openStore() error {
	trees, err := tree.OpenStore(e.options.Folder, e.clock.Now)
	if err != nil {
		return err
	}
	s := &store{trees: trees, index: filepath.Join(e.options.Folder, "guests.json"), stop: make(chan struct{}), names: map[*tree.Tree]string{}}
	if err := e.load(s); err != nil {
		return err
	}
	e.store = s
	every := e.options.SaveEvery
	if every <= 0 {
		every = time.Second
	}
	s.done.Go(func() {
		tick := time.NewTicker(every) // the machine's time: the lab's may jump, the disk doesn't care
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if err := e.Save(); err != nil {
					e.log.Error("simulated guests could not be saved", "error", err)
				}
			case <-s.stop:
				return
			}
		}
	})
	return nil
}

func (e *Engine) closeStore() error {
	close(e.store.stop)
	e.store.done.Wait()
	return e.Save()
}

func (e *Engine) load(s *store) error {
	b, err := os.ReadFile(s.index)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var ix index
	if err := json.Unmarshal(b, &ix); err != nil {
		return err
	}
	load := func(name string) (*tree.Tree, error) {
		t, err := s.trees.Load(name)
		if err == nil {
			s.names[t] = name
		}
		return t, err
	}
	for name, v := range ix.Volumes {
		t, err := load(v.Tree)
		if err != nil {
			return err
		}
		e.volumes[name] = &volume{tree: t, guest: v.Guest}
	}
	for _, sg := range ix.Guests {
		root, err := load(sg.Root)
		if err != nil {
			return err
		}
		g := e.newGuest(sg.ID, root)
		g.config, g.sharedHostKeys, g.plain = sg.Config, sg.SharedHostKeys, sg.Plain
		maps.Copy(g.volumes, sg.Volumes)
		for _, ss := range sg.Snapshots {
			snap := &snapshot{name: ss.Name, volumes: map[string]*tree.Tree{}}
			if snap.root, err = load(ss.Root); err != nil {
				return err
			}
			for v, name := range ss.Volumes {
				if snap.volumes[v], err = load(name); err != nil {
					return err
				}
			}
			g.snapshots = append(g.snapshots, snap)
		}
		e.guests[sg.ID] = g
	}
	maps.Copy(e.network.leases, ix.Leases)
	for bridge, p := range ix.DHCP {
		if _, given := e.network.dhcp[bridge]; !given {
			e.network.dhcp[bridge] = p
		}
	}
	return nil
}

// Save writes what changed since the last time to Options.Folder. The engine does so by itself every
// Options.SaveEvery and when it is closed; a lab calls it to have guests on disk together with its own state.
func (e *Engine) Save() error {
	s := e.store
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	write := s.changed.Swap(false)
	ix, trees := e.collect(s)
	for t, name := range trees {
		if _, saved := s.names[t]; saved && !t.Dirty() {
			continue
		}
		if err := s.trees.Save(name, t); err != nil {
			s.changed.Store(true)
			return err
		}
		if _, saved := s.names[t]; !saved {
			s.names[t], write = name, true
		}
	}
	if !write {
		return nil
	}
	if err := s.writeIndex(ix); err != nil {
		s.changed.Store(true)
		return err
	}
	maps.DeleteFunc(s.names, func(t *tree.Tree, _ string) bool { _, used := trees[t]; return !used })
	return s.trees.Sweep(slices.Collect(maps.Values(trees)))
}

// collect describes all guests and volumes, and names their trees.
func (e *Engine) collect(s *store) (index, map[*tree.Tree]string) {
	trees := map[*tree.Tree]string{}
	name := func(t *tree.Tree) string {
		n := trees[t]
		if n == "" {
			n = s.names[t]
		}
		if n == "" {
			n = tree.NewName()
		}
		trees[t] = n
		return n
	}
	ix := index{Version: 1, Volumes: map[string]savedVolume{}}
	e.mu.Lock()
	all := make([]*guest, 0, len(e.guests))
	for _, g := range e.guests {
		all = append(all, g)
	}
	e.mu.Unlock()
	slices.SortFunc(all, func(a, b *guest) int { return a.id - b.id })
	for _, g := range all {
		g.mu.Lock()
		sg := savedGuest{ID: g.id, Root: name(g.root), Config: g.config, Volumes: maps.Clone(g.volumes), SharedHostKeys: g.sharedHostKeys, Plain: g.plain}
		for _, snap := range g.snapshots {
			ss := savedSnapshot{Name: snap.name, Root: name(snap.root), Volumes: map[string]string{}}
			for v, t := range snap.volumes {
				ss.Volumes[v] = name(t)
			}
			sg.Snapshots = append(sg.Snapshots, ss)
		}
		if !g.destroyed {
			ix.Guests = append(ix.Guests, sg)
		}
		g.mu.Unlock()
	}
	e.mu.Lock()
	for n, v := range e.volumes {
		ix.Volumes[n] = savedVolume{Tree: name(v.tree), Guest: v.guest}
	}
	e.mu.Unlock()
	e.network.mu.Lock()
	ix.Leases, ix.DHCP = maps.Clone(e.network.leases), maps.Clone(e.network.dhcp)
	e.network.mu.Unlock()
	return ix, trees
}

func (s *store) writeIndex(ix index) error {
	b, err := json.MarshalIndent(ix, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.index+".new", b, 0o600); err != nil {
		return err
	}
	return os.Rename(s.index+".new", s.index)
}
