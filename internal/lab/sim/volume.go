package sim

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// volume is a file tree that outlives guests.
type volume struct {
	tree  *tree.Tree
	guest int // that has it, or 0
}

func volumeName(v string) string { return fmt.Sprintf("volume %q", v) }

// withVolumes runs f with the engine locked.
func (e *Engine) withVolumes(ctx context.Context, f func() error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closed {
		return engine.Refuse("engine sim", engine.ErrClosed)
	}
	if err := f(); err != nil {
		return err
	}
	e.changed()
	return nil
}

// AllocVolume makes an empty volume.
func (e *Engine) AllocVolume(ctx context.Context, name string, bytes int64) error {
	return e.withVolumes(ctx, func() error {
		if e.volumes[name] != nil {
			return engine.Refuse(volumeName(name), engine.ErrExists)
		}
		e.volumes[name] = &volume{tree: tree.New(e.clock.Now, bytes)}
		return nil
	})
}

// CopyVolume copies a volume's content.
func (e *Engine) CopyVolume(ctx context.Context, from, to string) error {
	return e.withVolumes(ctx, func() error {
		switch {
		case e.volumes[from] == nil:
			return engine.Refuse(volumeName(from), engine.ErrNotFound)
		case e.volumes[to] != nil:
			return engine.Refuse(volumeName(to), engine.ErrExists)
		}
		e.volumes[to] = &volume{tree: e.volumes[from].tree.Copy()}
		return nil
	})
}

// RenameVolume gives a volume another name.
func (e *Engine) RenameVolume(ctx context.Context, from, to string) error {
	if from == to {
		return nil
	}
	var owner int
	if err := e.withVolumes(ctx, func() error {
		if e.volumes[from] == nil {
			return engine.Refuse(volumeName(from), engine.ErrNotFound)
		}
		owner = e.volumes[from].guest
		return nil
	}); err != nil {
		return err
	}
	var g *guest
	if owner != 0 { // guests are locked before the engine
		var err error
		if g, err = e.find(ctx, owner); err != nil {
			return err
		}
		defer g.mu.Unlock()
	}
	return e.withVolumes(ctx, func() error {
		v := e.volumes[from]
		switch {
		case v == nil:
			return engine.Refuse(volumeName(from), engine.ErrNotFound)
		case e.volumes[to] != nil:
			return engine.Refuse(volumeName(to), engine.ErrExists)
		case v.guest != owner:
			return engine.Refuse(volumeName(from), engine.ErrInUse)
		}
		e.volumes[to] = v
		delete(e.volumes, from)
		if g == nil {
			return nil
		}
		g.volumes[to] = g.volumes[from]
		delete(g.volumes, from)
		for _, s := range g.snapshots {
			if t := s.volumes[from]; t != nil {
				s.volumes[to] = t
				delete(s.volumes, from)
			}
		}
		return nil
	})
}

// ResizeVolume sets a volume's size.
func (e *Engine) ResizeVolume(ctx context.Context, name string, bytes int64) error {
	return e.withVolumes(ctx, func() error {
		if e.volumes[name] == nil {
			return engine.Refuse(volumeName(name), engine.ErrNotFound)
		}
		e.volumes[name].tree.Resize(bytes)
		return nil
	})
}

// AttachVolume mounts a volume in a guest.
func (e *Engine) AttachVolume(ctx context.Context, id int, name string, at engine.Mount) error {
	at.Path = path.Clean(at.Path)
	if !strings.HasPrefix(at.Path, "/") || at.Path == "/" {
		return fmt.Errorf("mount point %q: %w", at.Path, engine.ErrInvalid)
	}
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	return e.withVolumes(ctx, func() error {
		v := e.volumes[name]
		switch {
		case v == nil:
			return engine.Refuse(volumeName(name), engine.ErrNotFound)
		case v.guest != 0:
			return engine.Refuse(volumeName(name)+fmt.Sprintf(" by guest %d", v.guest), engine.ErrInUse)
		}
		for _, m := range g.volumes {
			if m.Path == at.Path {
				return engine.Refuse(fmt.Sprintf("path %s in %s", at.Path, g.name()), engine.ErrInUse)
			}
		}
		if g.machine != nil {
			if err := g.machine.FS.Attach(volumeMount(name, v, at)); err != nil {
				return err
			}
		}
		g.volumes[name], v.guest = at, id
		return nil
	})
}

func volumeMount(name string, v *volume, at engine.Mount) *vfs.Mount {
	return &vfs.Mount{Path: at.Path, Type: "ext4", Source: "/dev/mapper/" + strings.ReplaceAll(name, "/", "-"), ReadOnly: at.ReadOnly, Tree: v.tree}
}

// DetachVolume unmounts a volume.
func (e *Engine) DetachVolume(ctx context.Context, id int, name string) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	defer g.mu.Unlock()
	return e.withVolumes(ctx, func() error {
		v := e.volumes[name]
		if v == nil || v.guest != id {
			return engine.Refuse(fmt.Sprintf("%s of %s", volumeName(name), g.name()), engine.ErrNotFound)
		}
		if g.machine != nil {
			if err := g.machine.FS.Detach(v.tree); err != nil {
				return err
			}
		}
		delete(g.volumes, name)
		v.guest = 0
		return nil
	})
}

// DestroyVolume removes a detached volume.
func (e *Engine) DestroyVolume(ctx context.Context, name string) error {
	return e.withVolumes(ctx, func() error {
		v := e.volumes[name]
		switch {
		case v == nil:
			return engine.Refuse(volumeName(name), engine.ErrNotFound)
		case v.guest != 0:
			return engine.Refuse(volumeName(name)+fmt.Sprintf(" by guest %d", v.guest), engine.ErrInUse)
		}
		delete(e.volumes, name)
		return nil
	})
}
