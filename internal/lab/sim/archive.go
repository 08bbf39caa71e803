package sim

import (
	"archive/tar"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// Export writes a root as a tar stream. It is taken as it is at the call: a guest that goes on running changes
// nothing of it.
func (e *Engine) Export(ctx context.Context, id int, snapshot string, w io.Writer) error {
	g, err := e.find(ctx, id)
	if err != nil {
		return err
	}
	source := g.root
	if snapshot != "" {
		s := g.snapshot(snapshot)
		if s == nil {
			g.mu.Unlock()
			return g.missing(snapshot)
		}
		source = s.root
	}
	root := source.Copy()
	g.mu.Unlock()
	out := tar.NewWriter(w)
	x := &exporter{fs: vfs.New(&vfs.Mount{Path: "/", Tree: root}), out: out, seen: map[uint64]string{}}
	if err := errors.Join(x.add(ctx, "/"), out.Close()); err != nil {
		return fmt.Errorf("%s: export: %w", g.name(), err)
	}
	return nil
}

type exporter struct {
	fs   *vfs.FS
	out  *tar.Writer
	seen map[uint64]string // inodes with several names
}

func (x *exporter) add(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	in, err := x.fs.Lstat(vfs.Root, name)
	if err != nil {
		return err
	}
	target := ""
	if in.Mode()&fs.ModeSymlink != 0 {
		if target, err = x.fs.Readlink(vfs.Root, name); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(in, target)
	if err != nil {
		return err
	}
	h.Name, h.Format = "."+name, tar.FormatPAX
	h.Uid, h.Gid = in.Owner()
	h.Uname, h.Gname = "", ""
	if !in.IsDir() && in.Links() > 1 {
		if first := x.seen[in.Ino()]; first != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		} else {
			x.seen[in.Ino()] = h.Name
		}
	}
	if err := x.out.WriteHeader(h); err != nil {
		return err
	}
	switch {
	case h.Typeflag == tar.TypeReg:
		b, err := x.fs.ReadFile(vfs.Root, name)
		if err != nil {
			return err
		}
		_, err = x.out.Write(b)
		return err
	case in.IsDir():
		entries, err := x.fs.ReadDir(vfs.Root, name)
		if err != nil {
			return err
		}
		for _, e := range entries {
			if err := x.add(ctx, path.Join(name, e.Name())); err != nil {
				return err
			}
		}
	}
	return nil
}

// Import makes a guest from a tar stream.
func (e *Engine) Import(ctx context.Context, id int, r io.Reader) error {
	if err := e.free(ctx, id); err != nil {
		return err
	}
	root := tree.New(e.clock.Now, 0)
	f := vfs.New(&vfs.Mount{Path: "/", Tree: root})
	in := tar.NewReader(r)
	for {
		h, err := in.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil {
			err = importEntry(f, h, in)
		}
		if err != nil {
			return fmt.Errorf("%s: import: %w", engine.Guest(id), err)
		}
	}
	root.Resize(defaultRootBytes)
	return e.enter(e.newGuest(id, root))
}

func importEntry(f *vfs.FS, h *tar.Header, content io.Reader) error {
	name := path.Clean("/" + h.Name)
	in := h.FileInfo()
	if name != "/" {
		if err := f.MkdirAll(vfs.Root, path.Dir(name), 0o755); err != nil {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := f.MkdirAll(vfs.Root, name, 0o755); err != nil {
			return err
		}
	case tar.TypeReg:
		b, err := io.ReadAll(content)
		if err == nil {
			err = f.WriteFile(vfs.Root, name, b, 0o600)
		}
		if err != nil {
			return err
		}
	case tar.TypeSymlink:
		if err := f.Symlink(vfs.Root, h.Linkname, name); err != nil {
			return err
		}
		return f.Chown(vfs.Root, name, h.Uid, h.Gid, false)
	case tar.TypeLink:
		return f.Link(vfs.Root, path.Clean("/"+strings.TrimPrefix(h.Linkname, ".")), name)
	default: // devices: /dev is not a root's in a container
		return nil
	}
	return errors.Join(f.Chown(vfs.Root, name, h.Uid, h.Gid, true), f.Chmod(vfs.Root, name, in.Mode()), f.Chtimes(vfs.Root, name, h.ModTime))
}
