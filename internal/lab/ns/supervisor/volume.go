//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/filetree"
)

// volume is a folder that outlives guests.
type volume struct {
	Number int // of the folder
	Guest  int // that has it, or 0
	Size   int64
}

func volumeName(v string) string { return fmt.Sprintf("volume %q", v) }

// volumeNamed gives a volume as it is now.
func (s *Supervisor) volumeNamed(name string) (volume, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if v := s.volumes[name]; v != nil {
		return *v, true
	}
	return volume{}, false
}

// newVolumeFolder makes an empty folder that belongs to the guests' root.
func (s *Supervisor) newVolumeFolder() (int, error) {
	n := s.number()
	dir := s.place.volume(n)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // it is a guest's
		return n, err
	}
	return n, os.Lchown(dir, s.idBase, s.idBase)
}

// withVolumes runs f with the supervisor locked and saves what it did.
func (s *Supervisor) withVolumes(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return engine.Refuse("engine ns", engine.ErrClosed)
	}
	if err := f(); err != nil {
		return err
	}
	return s.save()
}

func (s *Supervisor) allocVolume(ctx context.Context, c Size) error {
	n, err := s.newVolumeFolder()
	if err != nil {
		return err
	}
	err = s.withVolumes(ctx, func() error {
		if s.volumes[c.Volume] != nil {
			return engine.Refuse(volumeName(c.Volume), engine.ErrExists)
		}
		s.volumes[c.Volume] = &volume{Number: n, Size: c.Bytes}
		return nil
	})
	if err != nil {
		return errors.Join(err, os.Remove(s.place.volume(n)))
	}
	return nil
}

func (s *Supervisor) copyVolume(ctx context.Context, c Volume) error {
	n, err := s.newVolumeFolder()
	if err != nil {
		return err
	}
	err = s.withVolumes(ctx, func() error { // the folder must not go while it is copied
		from := s.volumes[c.Name]
		switch {
		case from == nil:
			return engine.Refuse(volumeName(c.Name), engine.ErrNotFound)
		case s.volumes[c.To] != nil:
			return engine.Refuse(volumeName(c.To), engine.ErrExists)
		}
		if err := filetree.Copy(ctx, s.place.volume(from.Number), s.place.volume(n)); err != nil {
			return err
		}
		s.volumes[c.To] = &volume{Number: n, Size: from.Size}
		return nil
	})
	if err != nil {
		return errors.Join(err, os.RemoveAll(s.place.volume(n)))
	}
	return nil
}

func (s *Supervisor) renameVolume(ctx context.Context, c Volume) error {
	if c.Name == c.To {
		return nil
	}
	v, ok := s.volumeNamed(c.Name)
	if !ok {
		return engine.Refuse(volumeName(c.Name), engine.ErrNotFound)
	}
	owner := v.Guest
	var g *guest
	if owner != 0 { // guests are locked before the supervisor
		var err error
		if g, err = s.find(ctx, owner); err != nil {
			return err
		}
		defer g.mu.Unlock()
	}
	return s.withVolumes(ctx, func() error {
		v := s.volumes[c.Name]
		switch {
		case v == nil:
			return engine.Refuse(volumeName(c.Name), engine.ErrNotFound)
		case s.volumes[c.To] != nil:
			return engine.Refuse(volumeName(c.To), engine.ErrExists)
		case v.Guest != owner:
			return engine.Refuse(volumeName(c.Name), engine.ErrInUse)
		}
		s.volumes[c.To] = v
		delete(s.volumes, c.Name)
		if g == nil {
			return nil
		}
		g.volumes[c.To] = g.volumes[c.Name]
		delete(g.volumes, c.Name)
		for _, snap := range g.snapshots {
			if n, ok := snap.Volumes[c.Name]; ok {
				snap.Volumes[c.To] = n
				delete(snap.Volumes, c.Name)
			}
		}
		s.note(g)
		return nil
	})
}

func (s *Supervisor) resizeVolume(ctx context.Context, c Size) error {
	return s.withVolumes(ctx, func() error {
		v := s.volumes[c.Volume]
		if v == nil {
			return engine.Refuse(volumeName(c.Volume), engine.ErrNotFound)
		}
		v.Size = c.Bytes
		return nil
	})
}

func (s *Supervisor) attachVolume(ctx context.Context, c Volume) error {
	c.At.Path = path.Clean(c.At.Path)
	if !strings.HasPrefix(c.At.Path, "/") || c.At.Path == "/" {
		return fmt.Errorf("mount point %q: %w", c.At.Path, engine.ErrInvalid)
	}
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	return s.withVolumes(ctx, func() error {
		v := s.volumes[c.Name]
		switch {
		case v == nil:
			return engine.Refuse(volumeName(c.Name), engine.ErrNotFound)
		case v.Guest != 0:
			return engine.Refuse(volumeName(c.Name)+fmt.Sprintf(" by guest %d", v.Guest), engine.ErrInUse)
		}
		for _, m := range g.volumes {
			if m.Path == c.At.Path {
				return engine.Refuse(fmt.Sprintf("path %s in %s", c.At.Path, g.name()), engine.ErrInUse)
			}
		}
		if g.running != nil {
			if err := s.mountVolume(g.running, *v, c.At); err != nil {
				return fmt.Errorf("%s at %s of %s: %w", volumeName(c.Name), c.At.Path, g.name(), err)
			}
		}
		g.volumes[c.Name], v.Guest = c.At, c.ID
		s.note(g)
		return nil
	})
}

// mountVolume mounts a volume in a running guest, making the folder to mount it on.
func (s *Supervisor) mountVolume(r *running, v volume, at engine.Mount) error {
	if err := s.makeFolder(r.root, at.Path); err != nil {
		return err
	}
	return mountInside(r.pid(), s.place.volume(v.Number), at.Path, at.ReadOnly)
}

func (s *Supervisor) detachVolume(ctx context.Context, c Volume) error {
	g, err := s.find(ctx, c.ID)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	return s.withVolumes(ctx, func() error {
		v := s.volumes[c.Name]
		if v == nil || v.Guest != c.ID {
			return engine.Refuse(fmt.Sprintf("%s of %s", volumeName(c.Name), g.name()), engine.ErrNotFound)
		}
		if g.running != nil {
			if err := unmountInside(g.running.pid(), g.volumes[c.Name].Path); err != nil {
				return err
			}
		}
		delete(g.volumes, c.Name)
		v.Guest = 0
		s.note(g)
		return nil
	})
}

func (s *Supervisor) destroyVolume(ctx context.Context, c Volume) error {
	return s.withVolumes(ctx, func() error {
		v := s.volumes[c.Name]
		switch {
		case v == nil:
			return engine.Refuse(volumeName(c.Name), engine.ErrNotFound)
		case v.Guest != 0:
			return engine.Refuse(volumeName(c.Name)+fmt.Sprintf(" by guest %d", v.Guest), engine.ErrInUse)
		}
		delete(s.volumes, c.Name)
		return os.RemoveAll(s.place.volume(v.Number))
	})
}

// makeFolder makes a folder in a guest's root, with its parents, as far as they are missing. Links in the root lead
// nowhere outside of it.
func (s *Supervisor) makeFolder(root, name string) error {
	r, err := os.OpenRoot(root)
	if err != nil {
		return err
	}
	defer func() { _ = r.Close() }()
	return s.makeFolderIn(r, strings.TrimPrefix(name, "/"))
}

func (s *Supervisor) makeFolderIn(r *os.Root, name string) error {
	if name == "." || name == "" {
		return nil
	}
	if info, err := r.Stat(name); err == nil && info.IsDir() {
		return nil
	}
	if err := s.makeFolderIn(r, filepath.Dir(name)); err != nil {
		return err
	}
	if err := r.Mkdir(name, 0o755); err != nil {
		return err
	}
	return r.Lchown(name, s.idBase, s.idBase)
}
