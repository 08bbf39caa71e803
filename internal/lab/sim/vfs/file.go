package vfs

import (
	"crypto/rand"
	"io"
	"os"
	"sync"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

// File is an open file: reader, writer, seeker, at offsets too. Safe for many goroutines.
type File struct {
	name     string
	place    place
	device   string
	snapshot []byte // content of a synthetic file
	flags    int

	mu     sync.Mutex
	off    int64
	closed bool
}

const accessMode = os.O_RDONLY | os.O_WRONLY | os.O_RDWR

// Open opens or makes a file with os.OpenFile's flags. perm counts when a file is made (the caller has applied the
// umask).
func (f *FS) Open(c Cred, name string, flags int, perm os.FileMode) (*File, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	h, err := f.open(c, name, flags, perm)
	if err != nil {
		return nil, fail("open", name, err)
	}
	return h, nil
}

func (f *FS) open(c Cred, name string, flags int, perm os.FileMode) (*File, error) {
	w, err := f.walk(c, name, flags&os.O_EXCL == 0 || flags&os.O_CREATE == 0)
	if err != nil {
		return nil, err
	}
	made := false
	switch {
	case !w.exists && flags&os.O_CREATE == 0:
		return nil, syscall.ENOENT
	case !w.exists:
		if w.name == "" {
			return nil, syscall.EISDIR
		}
		if err := f.mayChange(c, w.dir); err != nil {
			return nil, err
		}
		n, err := w.dir.tree.Make(w.dir.ino, w.name, tree.Inode{Mode: perm.Perm(), UID: c.UID, GID: c.GID})
		if err != nil {
			return nil, err
		}
		w.place, w.node, made = place{w.dir.tree, n.Ino}, n, true
	case flags&os.O_CREATE != 0 && flags&os.O_EXCL != 0:
		return nil, syscall.EEXIST
	}
	want := Read
	switch flags & accessMode {
	case os.O_WRONLY:
		want = Write
	case os.O_RDWR:
		want = Read | Write
	}
	if w.node.Mode.IsDir() {
		return nil, syscall.EISDIR
	}
	if !made && !permitted(c, w.node, want) {
		return nil, syscall.EACCES
	}
	if want&Write != 0 && w.node.Device == "" && (f.byTree[w.tree].ReadOnly || w.node.Generate != nil) {
		return nil, syscall.EROFS
	}
	h := &File{name: name, place: w.place, device: w.node.Device, flags: flags}
	if w.node.Generate != nil {
		h.snapshot = append([]byte{}, w.node.Generate()...)
		return h, nil
	}
	if w.node.Device == "" && flags&os.O_TRUNC != 0 && !made {
		if err := w.tree.Truncate(w.ino, 0); err != nil {
			return nil, err
		}
	}
	w.tree.Hold(w.ino)
	return h, nil
}

// Read reads on from where the last Read or Write ended.
func (h *File) Read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	n, err := h.readAt(p, h.off)
	h.off += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

// ReadAt reads at an offset.
func (h *File) ReadAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.readAt(p, off)
}

func (h *File) readAt(p []byte, off int64) (int, error) {
	switch {
	case h.closed:
		return 0, os.ErrClosed
	case h.flags&accessMode == os.O_WRONLY:
		return 0, fail("read", h.name, syscall.EBADF)
	case h.snapshot != nil:
		if off >= int64(len(h.snapshot)) {
			return 0, io.EOF
		}
		return copy(p, h.snapshot[off:]), nil
	}
	switch h.device {
	case "":
		return h.place.tree.ReadAt(h.place.ino, p, off)
	case "zero", "full":
		clear(p)
		return len(p), nil
	case "random":
		return rand.Read(p)
	}
	return 0, io.EOF
}

// Write writes on from where the last Read or Write ended, or at the end when opened for appending.
func (h *File) Write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	off := h.off
	if h.flags&os.O_APPEND != 0 {
		off = -1
	}
	end, err := h.writeAt(p, off)
	if err != nil {
		return 0, err
	}
	h.off = end
	return len(p), nil
}

// WriteAt writes at an offset.
func (h *File) WriteAt(p []byte, off int64) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, err := h.writeAt(p, off); err != nil {
		return 0, err
	}
	return len(p), nil
}

func (h *File) writeAt(p []byte, off int64) (int64, error) {
	switch {
	case h.closed:
		return 0, os.ErrClosed
	case h.flags&accessMode == os.O_RDONLY:
		return 0, fail("write", h.name, syscall.EBADF)
	case h.device == "full":
		return 0, fail("write", h.name, syscall.ENOSPC)
	case h.device != "":
		return off + int64(len(p)), nil
	}
	end, err := h.place.tree.WriteAt(h.place.ino, p, off)
	return end, fail("write", h.name, err)
}

// Seek moves the offset.
func (h *File) Seek(off int64, whence int) (int64, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch whence {
	case io.SeekCurrent:
		off += h.off
	case io.SeekEnd:
		n, _ := h.place.tree.Get(h.place.ino)
		off += n.Size
	}
	if off < 0 {
		return h.off, fail("seek", h.name, syscall.EINVAL)
	}
	h.off = off
	return off, nil
}

// Truncate sets the size.
func (h *File) Truncate(size int64) error {
	if h.device != "" {
		return nil
	}
	return fail("truncate", h.name, h.place.tree.Truncate(h.place.ino, size))
}

// Close ends it.
func (h *File) Close() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return os.ErrClosed
	}
	h.closed = true
	if h.snapshot == nil {
		h.place.tree.Release(h.place.ino)
	}
	return nil
}

// ReadFile returns a file's content.
func (f *FS) ReadFile(c Cred, name string) ([]byte, error) {
	h, err := f.Open(c, name, os.O_RDONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = h.Close() }()
	return io.ReadAll(h)
}

// WriteFile makes or replaces a file's content.
func (f *FS) WriteFile(c Cred, name string, data []byte, perm os.FileMode) error {
	h, err := f.Open(c, name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, perm)
	if err != nil {
		return err
	}
	defer func() { _ = h.Close() }()
	_, err = h.Write(data)
	return err
}
