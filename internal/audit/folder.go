package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
)

// notWalked are folders whose content is the kernel's, or lives in memory.
var notWalked = map[string]bool{"proc": true, "sys": true, "dev": true, "run": true}

// openFolder indexes a root filesystem in a folder. Its files may belong to
// shifted ids, as those of an unprivileged container do on its node: the owner of
// the root is taken for root.
func openFolder(ctx context.Context, dir string) (*tree, io.Closer, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, nil, fmt.Errorf("audit: %w", err)
	}
	w := &walker{ctx: ctx, root: root}
	if err := w.walk("."); err != nil && !errors.Is(err, errTooMany) {
		return nil, nil, errors.Join(fmt.Errorf("audit: %w", err), root.Close())
	}
	t := newTree(ctx, w.list)
	if w.full {
		t.partial = fmt.Sprintf("there are more than %d files", maxEntries)
	} else if w.skipped != nil {
		t.partial = w.skipped.Error()
	}
	t.fetch = func(ctx context.Context, paths []string, limit int) (map[string][]byte, error) {
		out := make(map[string][]byte, len(paths))
		for _, p := range paths {
			if err := context.Cause(ctx); err != nil {
				return nil, err
			}
			if content, err := readRegular(root, p, limit); err == nil {
				out[p] = content
			}
		}
		return out, nil
	}
	return t, root, nil
}

var errTooMany = errors.New("too many files")

type walker struct {
	ctx     context.Context
	root    *os.Root
	list    []entry
	base    owner // of the root
	full    bool
	skipped error
}

func (w *walker) walk(dir string) error {
	if err := context.Cause(w.ctx); err != nil {
		return err
	}
	if dir == "." {
		info, err := w.root.Lstat(".")
		if err != nil {
			return err
		}
		w.base = ownerOf(info)
		w.list = append(w.list, w.entry(".", info))
	}
	f, err := w.root.Open(dir)
	if err != nil {
		w.skipped = fmt.Errorf("/%s can't be read: %w", dir, plain(err))
		return nil
	}
	defer func() { _ = f.Close() }() // read only
	var folders []string
	for {
		// In portions: one folder may hold more names than fit into memory.
		infos, err := f.Readdir(1000)
		for _, info := range infos {
			if len(w.list) >= maxEntries {
				w.full = true
				return errTooMany
			}
			name := path.Join(dir, info.Name())
			e := w.entry(name, info)
			w.list = append(w.list, e)
			if e.mode.IsDir() && (dir != "." || !notWalked[name]) && ownerOf(info).device == w.base.device && len(name) < maxNameSize {
				folders = append(folders, name)
			}
		}
		if errors.Is(err, io.EOF) || len(infos) == 0 {
			break
		}
		if err != nil {
			w.skipped = fmt.Errorf("/%s can't be read: %w", dir, plain(err))
			break
		}
	}
	for _, name := range folders {
		if err := w.walk(name); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) entry(name string, info fs.FileInfo) entry {
	o := ownerOf(info)
	e := entry{path: name, mode: info.Mode(), uid: o.uid - w.base.uid, gid: o.gid - w.base.gid, size: info.Size()}
	if e.mode&fs.ModeSymlink != 0 {
		e.target, _ = w.root.Readlink(name)
	}
	return e
}

// plain is the error without the path that os puts before it.
func plain(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// readRegular reads a regular file. It doesn't wait for a writer of what has
// become a pipe, and os.Root keeps it inside.
func readRegular(root *os.Root, name string, limit int) ([]byte, error) {
	f, err := root.OpenFile(name, os.O_RDONLY|openNonblock, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }() // read only
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fs.ErrNotExist
	}
	buf := make([]byte, 0, min(info.Size()+1, int64(limit)))
	for len(buf) < limit {
		if len(buf) == cap(buf) {
			buf = append(buf, 0)[:len(buf)]
		}
		n, err := f.Read(buf[len(buf):min(cap(buf), limit)])
		buf = buf[:len(buf)+n]
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	return buf, nil
}
