//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/filetree"
)

// snapshot keeps a root as frozen layers, and copies of volumes.
type snapshot struct {
	Name    string
	Layers  []int
	Volumes map[string]int // volume's name → folder of the copy
}

func (g *guest) kept(name string) *snapshot {
	i := slices.IndexFunc(g.snapshots, func(s *snapshot) bool { return s.Name == name })
	if i < 0 {
		return nil
	}
	return g.snapshots[i]
}

func (g *guest) missing(name string) error {
	return engine.Refuse(fmt.Sprintf("snapshot %q of %s", name, g.name()), engine.ErrNotFound)
}

func (s *Supervisor) snapshot(ctx context.Context, c Snapshot) error {
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.kept(c.Name) != nil {
		return engine.Refuse(fmt.Sprintf("snapshot %q of %s", c.Name, g.name()), engine.ErrExists)
	}
	for _, v := range c.Volumes {
		if _, attached := g.volumes[v]; !attached {
			return engine.Refuse(fmt.Sprintf("volume %q of %s", v, g.name()), engine.ErrNotFound)
		}
	}
	thaw, err := g.running.freeze(ctx)
	if err != nil {
		return fmt.Errorf("%s: %w", g.name(), err)
	}
	defer thaw()
	snap := &snapshot{Name: c.Name, Volumes: map[string]int{}}
	for _, v := range c.Volumes {
		kept, ok := s.volumeNamed(v)
		if !ok {
			return errors.Join(engine.Refuse(volumeName(v), engine.ErrNotFound), s.forget(snap))
		}
		n, err := s.copyOf(ctx, kept.Number)
		if err != nil {
			return errors.Join(err, s.forget(snap))
		}
		snap.Volumes[v] = n
	}
	if snap.Layers, err = s.capture(ctx, g); err != nil {
		return errors.Join(err, s.forget(snap))
	}
	g.snapshots = append(g.snapshots, snap)
	return s.saved(g)
}

// copyOf copies a volume's folder into a new one.
func (s *Supervisor) copyOf(ctx context.Context, number int) (int, error) {
	n, err := s.newVolumeFolder()
	if err == nil {
		err = filetree.Copy(ctx, s.place.volume(number), s.place.volume(n))
	}
	if err != nil {
		return 0, errors.Join(err, os.RemoveAll(s.place.volume(n)))
	}
	return n, nil
}

// forget removes a snapshot's copies of volumes.
func (s *Supervisor) forget(snap *snapshot) error {
	var errs []error
	for _, n := range snap.Volumes {
		errs = append(errs, os.RemoveAll(s.place.volume(n)))
	}
	return errors.Join(errs...)
}

func (s *Supervisor) rollback(ctx context.Context, c Snapshot) error {
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.running != nil {
		return engine.Refuse(g.name(), engine.ErrRunning)
	}
	snap := g.kept(c.Name)
	if snap == nil {
		return g.missing(c.Name)
	}
	copies := map[string]int{}
	for v, n := range snap.Volumes {
		if _, attached := g.volumes[v]; !attached {
			continue
		}
		if copies[v], err = s.copyOf(ctx, n); err != nil {
			return err
		}
	}
	upper, err := s.newLayer()
	if err != nil {
		return err
	}
	former := append(slices.Clone(g.root.Layers), g.root.Upper)
	s.setRoot(g, rootFS{Base: g.root.Base, Layers: slices.Clone(snap.Layers), Upper: upper})
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for v, n := range copies {
		errs = append(errs, os.RemoveAll(s.place.volume(s.volumes[v].Number)))
		s.volumes[v].Number = n
	}
	s.note(g)
	return errors.Join(append(errs, s.save(), s.sweepLayers(former...))...)
}

func (s *Supervisor) deleteSnapshot(ctx context.Context, c Snapshot) error {
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	snap := g.kept(c.Name)
	if snap == nil {
		return g.missing(c.Name)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	g.snapshots = slices.DeleteFunc(g.snapshots, func(o *snapshot) bool { return o == snap })
	s.note(g)
	return errors.Join(s.forget(snap), s.save(), s.sweepLayers(snap.Layers...))
}
