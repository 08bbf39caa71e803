//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/filetree"
)

// defaultRootBytes is the size of a root that nobody gave one: 4 GiB, as Proxmox does.
const defaultRootBytes = 4 << 30

// guest is a container.
type guest struct {
	id int

	mu             sync.Mutex
	root           rootFS // changed with the supervisor locked too
	snapshots      []*snapshot
	volumes        map[string]engine.Mount
	config         engine.Config
	size           int64 // of the root, reported only
	sharedHostKeys bool  // clones keep the SSH host keys
	freshHostKeys  bool  // a clone whose inherited keys go at its first start
	freshMachineID bool  // a clone whose inherited machine id goes at its first start
	destroyed      bool
	used           usage

	running *running // nil when stopped
}

func newGuest(id int, root rootFS) *guest {
	return &guest{id: id, root: root, volumes: map[string]engine.Mount{}, size: defaultRootBytes}
}

func (g *guest) name() string { return engine.Guest(g.id) }

func (s *Supervisor) createRoot(ctx context.Context, c CreateRoot) error {
	if err := s.free(ctx, c.ID); err != nil {
		return err
	}
	base, err := s.unpackImage(ctx, c.Image)
	if err != nil {
		return err
	}
	upper, err := s.newLayer()
	if err != nil {
		return err
	}
	if len(c.Spec.AuthorizedKeys) > 0 {
		if err := s.authorize(upper, c.Spec.AuthorizedKeys); err != nil {
			return errors.Join(fmt.Errorf("%s: authorized keys: %w", engine.Guest(c.ID), err), s.removeLayer(upper))
		}
	}
	g := newGuest(c.ID, rootFS{Base: base, Upper: upper})
	g.sharedHostKeys = c.Spec.SharedHostKeys || c.Spec.Plain
	if c.Spec.Bytes > 0 {
		g.size = c.Spec.Bytes
	}
	return s.enter(g)
}

// authorize writes root's authorized_keys into a new layer.
func (s *Supervisor) authorize(layer int, keys []string) error {
	dir := filepath.Join(s.place.data(layer), "root")
	ssh := filepath.Join(dir, ".ssh")
	file := filepath.Join(ssh, "authorized_keys")
	if err := os.MkdirAll(ssh, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(file, []byte(strings.Join(keys, "\n")+"\n"), 0o600); err != nil {
		return err
	}
	var errs []error
	for _, name := range []string{dir, ssh, file} {
		errs = append(errs, os.Lchown(name, s.idBase, s.idBase))
	}
	return errors.Join(errs...)
}

// unpackImage gives an image's folder in the cache, unpacking it if no lab with the same owners has done so before.
func (s *Supervisor) unpackImage(ctx context.Context, i Image) (string, error) {
	s.images.Lock()
	defer s.images.Unlock()
	name := fmt.Sprintf("%s-%d", i.Key, s.idBase)
	dir := filepath.Join(s.place.cache, name)
	if _, err := os.Stat(dir); err == nil {
		return name, nil
	}
	f, err := os.Open(filepath.Join(s.place.cache, i.Tar))
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	half, err := os.MkdirTemp(s.place.cache, "unpack-")
	if err != nil {
		return "", err
	}
	defer func() { _ = os.RemoveAll(half) }()
	if err := filetree.Unpack(ctx, f, half, s.idBase); err != nil {
		return "", fmt.Errorf("image %s: %w", i.Key, err)
	}
	if err := os.Rename(half, dir); err != nil {
		if _, there := os.Stat(dir); there == nil {
			return name, nil // another lab was faster
		}
		return "", err
	}
	return name, nil
}

func (s *Supervisor) clone(ctx context.Context, c engine.CloneSpec) error {
	if err := s.free(ctx, c.To); err != nil {
		return err
	}
	from, err := s.find(ctx, c.From)
	if err != nil {
		return err
	}
	defer from.mu.Unlock() // held to the end: what the clone stands on must not be swept before it is known
	layers, err := s.layersOf(ctx, from, c.Snapshot)
	if err != nil {
		return err
	}
	upper, err := s.newLayer()
	if err != nil {
		return err
	}
	g := newGuest(c.To, rootFS{Base: from.root.Base, Layers: layers, Upper: upper})
	g.size, g.sharedHostKeys = from.size, from.sharedHostKeys
	g.freshHostKeys = !from.sharedHostKeys && !s.options.SharedHostKeys
	g.freshMachineID = true
	return s.enter(g)
}

// layersOf are those of a guest, which is locked, or of a snapshot of it.
func (s *Supervisor) layersOf(ctx context.Context, g *guest, name string) ([]int, error) {
	if name == "" {
		return s.capture(ctx, g)
	}
	snap := g.kept(name)
	if snap == nil {
		return nil, g.missing(name)
	}
	return slices.Clone(snap.Layers), nil
}

func (s *Supervisor) configure(ctx context.Context, c Configure) error {
	if err := checkConfig(c.Config); err != nil {
		return fmt.Errorf("%s: %w", engine.Guest(c.ID), err)
	}
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if r := g.running; r != nil {
		if err := s.network.plug(r.host, c.Config.NICs); err != nil {
			return fmt.Errorf("%s: %w", g.name(), err)
		}
		if err := errors.Join(r.limits.Limit(c.Config.Limits), s.writeResolver(r.root, c.Config)); err != nil {
			return fmt.Errorf("%s: %w", g.name(), err)
		}
		s.network.named(r.host, c.Config)
	}
	g.config = c.Config
	return s.saved(g)
}

func (s *Supervisor) inspect(ctx context.Context, id int) (Status, error) {
	g, err := s.find(ctx, id)
	if err != nil {
		return Status{}, err
	}
	defer g.mu.Unlock()
	status := Status{Status: engine.Status{Volumes: maps.Clone(g.volumes), RootSize: g.size, RootBytes: s.usage(g)}}
	for _, snap := range g.snapshots {
		status.Snapshots = append(status.Snapshots, snap.Name)
	}
	if r := g.running; r != nil {
		status.Running, status.BootID, status.Age = true, r.bootID, time.Since(r.startedAt)
		status.Processes, status.MemoryBytes = r.processes(ctx), r.limits.Memory()
	}
	return status, nil
}

// usage is a root's size on disk as it was counted last. To count it means to walk the tree.
type usage struct {
	bytes   int64
	counted time.Time
}

// usageAge is how old a count may be: the API's lists ask for it all the time.
const usageAge = 5 * time.Second

func (s *Supervisor) usage(g *guest) int64 {
	if time.Since(g.used.counted) > usageAge {
		sum := filetree.Size(s.place.data(g.root.Upper))
		for _, n := range g.root.Layers {
			sum += filetree.Size(s.place.data(n))
		}
		g.used = usage{bytes: sum, counted: time.Now()}
	}
	return g.used.bytes
}

func (s *Supervisor) resizeRoot(ctx context.Context, c Size) error {
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	g.size = c.Bytes
	return s.saved(g)
}

func (s *Supervisor) destroy(ctx context.Context, id int) error {
	g, err := s.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	if g.running != nil {
		return engine.Refuse(g.name(), engine.ErrRunning)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for name := range g.volumes {
		if v := s.volumes[name]; v != nil {
			v.Guest = 0
		}
	}
	g.destroyed = true
	delete(s.guests, id)
	delete(s.records, id)
	layers := append(slices.Clone(g.root.Layers), g.root.Upper)
	var errs []error
	for _, snap := range g.snapshots {
		layers = append(layers, snap.Layers...)
		for _, n := range snap.Volumes {
			errs = append(errs, os.RemoveAll(s.place.volume(n)))
		}
	}
	_ = os.Remove(s.place.console(id))
	return errors.Join(append(errs, s.save(), s.sweepLayers(layers...))...)
}
