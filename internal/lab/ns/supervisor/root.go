//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/filetree"
)

// rootFS is a root as layers of overlayfs: a base image, frozen layers that any number of roots and snapshots share, and an
// upper one of its own. To copy a stopped root is to freeze its upper layer; only a running one's is really copied.
type rootFS struct {
	Base   string // folder of the image in the cache; empty for imported roots
	Layers []int  // bottom first
	Upper  int
}

// maxLayers is what fits into the mount call's page of options.
const maxLayers = 200

// newLayer makes an empty layer.
func (s *Supervisor) newLayer() (int, error) {
	n := s.number()
	dir := s.place.data(n)
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // it is the guest's root
		return 0, err
	}
	return n, errors.Join(os.Chmod(dir, 0o755), os.Lchown(dir, s.idBase, s.idBase)) //nolint:gosec // it is the guest's root
}

func (s *Supervisor) removeLayer(n int) error {
	if n == 0 {
		return nil
	}
	return os.RemoveAll(s.place.layer(n))
}

// capture returns layers that hold a guest's root as it is now and never change. The guest is locked.
func (s *Supervisor) capture(ctx context.Context, g *guest) ([]int, error) {
	layers := slices.Clone(g.root.Layers)
	entries, err := os.ReadDir(s.place.data(g.root.Upper))
	if err != nil {
		return nil, err
	}
	if len(entries) == 0 {
		return layers, nil
	}
	if len(layers) >= maxLayers {
		return nil, fmt.Errorf("%s: its root has %d layers; this engine stacks no more: %w", g.name(), len(layers), engine.ErrNoSpace)
	}
	top, err := s.newLayer()
	if err != nil {
		return nil, err
	}
	if g.running == nil { // the empty layer becomes the upper one, the former upper one freezes
		if err := os.RemoveAll(s.place.work(g.root.Upper)); err != nil {
			return nil, err
		}
		layers = append(layers, g.root.Upper)
		s.setRoot(g, rootFS{Base: g.root.Base, Layers: slices.Clone(layers), Upper: top})
		return layers, nil
	}
	thaw, err := g.running.freeze(ctx)
	if err != nil {
		return nil, errors.Join(err, s.removeLayer(top))
	}
	err = filetree.Copy(ctx, s.place.data(g.root.Upper), s.place.data(top))
	thaw()
	if err != nil {
		return nil, errors.Join(err, s.removeLayer(top))
	}
	return append(layers, top), nil
}

// setRoot gives a guest, which is locked, another root.
func (s *Supervisor) setRoot(g *guest, r rootFS) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.root, g.used = r, usage{}
	s.note(g)
}

// lowers is the option for overlayfs: top first.
func (s *Supervisor) lowers(r rootFS) string {
	var dirs []string
	for _, n := range slices.Backward(r.Layers) {
		dirs = append(dirs, s.place.data(n))
	}
	if r.Base != "" {
		dirs = append(dirs, filepath.Join(s.place.cache, r.Base))
	}
	return strings.Join(dirs, ":")
}

// mountRoot mounts a guest's root and returns where.
func (s *Supervisor) mountRoot(id int, r rootFS) (string, error) {
	at, work := s.place.root(id), s.place.work(r.Upper)
	// What a former mount left in there would forbid this one.
	if err := os.RemoveAll(work); err != nil {
		return "", err
	}
	for _, dir := range []string{at, work} {
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // guests' users must get through
			return "", err
		}
	}
	options := fmt.Sprintf("lowerdir=%s,upperdir=%s,workdir=%s", s.lowers(r), s.place.data(r.Upper), work)
	if s.options.UserNamespace {
		options += ",userxattr"
	}
	if s.options.Temporary {
		options += ",volatile" // nothing is worth being written out at once
	}
	if err := unix.Mount("overlay", at, "overlay", 0, options); err != nil {
		return "", fmt.Errorf("mount the root of guest %d: %w", id, err)
	}
	return at, nil
}

func (s *Supervisor) unmountRoot(id int) {
	at := s.place.root(id)
	_ = unix.Unmount(at, unix.MNT_DETACH)
	_ = os.Remove(at)
}

// sweepLayers removes the layers that no root and no snapshot uses. The supervisor is locked.
func (s *Supervisor) sweepLayers(candidates ...int) error {
	used := map[int]bool{}
	for _, g := range s.records {
		used[g.Root.Upper] = true
		for _, n := range g.Root.Layers {
			used[n] = true
		}
		for _, snap := range g.Snapshots {
			for _, n := range snap.Layers {
				used[n] = true
			}
		}
	}
	var errs []error
	for _, n := range candidates {
		if !used[n] {
			errs = append(errs, s.removeLayer(n))
		}
	}
	return errors.Join(errs...)
}
