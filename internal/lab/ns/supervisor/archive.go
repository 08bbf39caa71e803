//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/filetree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// export packs a root as it is at the call: what the guest does meanwhile changes nothing of it.
func (s *Supervisor) export(ctx context.Context, c *wire.Call) (any, error) {
	var a Archive
	if err := c.Args(&a); err != nil {
		return nil, err
	}
	if len(c.Files) != 1 {
		return nil, errors.New("export needs a stream")
	}
	g, err := s.find(ctx, a.ID)
	if err != nil {
		return nil, err
	}
	layers, err := s.layersOf(ctx, g, a.Snapshot)
	base := g.root.Base
	g.mu.Unlock()
	if err != nil {
		return nil, err
	}
	// An image that is only read needs an upper layer all the same, as one lower alone can't be mounted.
	upper, err := s.newLayer()
	if err != nil {
		return nil, err
	}
	id := -upper // no guest's
	dir, err := s.mountRoot(id, rootFS{Base: base, Layers: layers, Upper: upper})
	if err == nil {
		err = filetree.Pack(ctx, dir, s.idBase, c.Files[0])
		s.unmountRoot(id)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err = errors.Join(err, s.removeLayer(upper), s.sweepLayers(layers...)); err != nil {
		return nil, fmt.Errorf("%s: export: %w", g.name(), err)
	}
	return struct{}{}, nil
}

// importRoot makes a guest of a tar stream, which becomes the lowest layer.
func (s *Supervisor) importRoot(ctx context.Context, c *wire.Call) (any, error) {
	var a Archive
	if err := c.Args(&a); err != nil {
		return nil, err
	}
	if len(c.Files) != 1 {
		return nil, errors.New("import needs a stream")
	}
	if err := s.free(ctx, a.ID); err != nil {
		return nil, err
	}
	layer, err := s.newLayer()
	if err != nil {
		return nil, err
	}
	if err := filetree.Unpack(ctx, c.Files[0], s.place.data(layer), s.idBase); err != nil {
		return nil, errors.Join(fmt.Errorf("%s: import: %w", engine.Guest(a.ID), err), s.removeLayer(layer))
	}
	upper, err := s.newLayer()
	if err != nil {
		return nil, errors.Join(err, s.removeLayer(layer))
	}
	if err := s.enter(newGuest(a.ID, rootFS{Layers: []int{layer}, Upper: upper})); err != nil {
		return nil, errors.Join(err, s.removeLayer(layer))
	}
	return struct{}{}, nil
}

// removeStray removes what a lab left half-done: layers and volumes that the index doesn't know.
func (s *Supervisor) removeStray() error {
	var errs []error
	known := map[string]bool{}
	for _, g := range s.records {
		for _, n := range append([]int{g.Root.Upper}, g.Root.Layers...) {
			known[s.place.layer(n)] = true
		}
		for _, snap := range g.Snapshots {
			for _, n := range snap.Layers {
				known[s.place.layer(n)] = true
			}
			for _, n := range snap.Volumes {
				known[s.place.volume(n)] = true
			}
		}
	}
	for _, v := range s.volumes {
		known[s.place.volume(v.Number)] = true
	}
	for _, kind := range []string{filepath.Dir(s.place.layer(0)), filepath.Dir(s.place.volume(0))} {
		entries, err := os.ReadDir(kind)
		if err != nil && !errors.Is(err, unix.ENOENT) {
			errs = append(errs, err)
		}
		for _, e := range entries {
			if name := filepath.Join(kind, e.Name()); !known[name] {
				errs = append(errs, os.RemoveAll(name))
			}
		}
	}
	return errors.Join(errs...)
}
