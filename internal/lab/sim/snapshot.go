package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

// snapshot keeps trees as they were.
type snapshot struct {
	name    string
	root    *tree.Tree
	volumes map[string]*tree.Tree
}

func (g *guest) snapshot(name string) *snapshot {
	i := slices.IndexFunc(g.snapshots, func(s *snapshot) bool { return s.name == name })
	if i < 0 {
		return nil
	}
	return g.snapshots[i]
}

func (g *guest) missing(name string) error {
	return engine.Refuse(fmt.Sprintf("snapshot %q of %s", name, g.name()), engine.ErrNotFound)
}

// Snapshot keeps the root and volumes under a name.
func (e *Engine) Snapshot(ctx context.Context, id int, name string, volumes ...string) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.snapshot(name) != nil {
		return engine.Refuse(fmt.Sprintf("snapshot %q of %s", name, g.name()), engine.ErrExists)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	s := &snapshot{name: name, volumes: map[string]*tree.Tree{}}
	for _, v := range volumes {
		if _, attached := g.volumes[v]; !attached {
			return engine.Refuse(fmt.Sprintf("volume %q of %s", v, g.name()), engine.ErrNotFound)
		}
		s.volumes[v] = e.volumes[v].tree.Copy()
	}
	s.root = g.root.Copy()
	g.snapshots = append(g.snapshots, s)
	e.changed()
	return nil
}

// Rollback puts a snapshot's trees back.
func (e *Engine) Rollback(ctx context.Context, id int, name string) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.machine != nil {
		return engine.Refuse(g.name(), engine.ErrRunning)
	}
	s := g.snapshot(name)
	if s == nil {
		return g.missing(name)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	g.root = s.root.Copy()
	for v, t := range s.volumes {
		if _, attached := g.volumes[v]; attached {
			e.volumes[v].tree = t.Copy()
		}
	}
	e.changed()
	return nil
}

// DeleteSnapshot forgets a snapshot.
func (e *Engine) DeleteSnapshot(ctx context.Context, id int, name string) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	s := g.snapshot(name)
	if s == nil {
		return g.missing(name)
	}
	g.snapshots = slices.DeleteFunc(g.snapshots, func(o *snapshot) bool { return o == s })
	e.changed()
	return nil
}
