package tree

import (
	"io"
	"slices"
	"syscall"
	"time"
)

// SetTime sets the modification time.
func (t *Tree) SetTime(i Ino, at time.Time) error {
	return t.change(i, func(n *Inode) { n.ModTime = at })
}

// Hold keeps an inode's content alive while a file is open, also when its last name goes. Each call needs a Release.
func (t *Tree) Hold(i Ino) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.opens[i]++
}

// Release ends a Hold.
func (t *Tree) Release(i Ino) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.opens[i]--; t.opens[i] > 0 {
		return
	}
	delete(t.opens, i)
	if n := t.get(i); n != nil {
		t.drop(n)
	}
}

// ReadAt reads from a regular file like io.ReaderAt.
func (t *Tree) ReadAt(i Ino, p []byte, off int64) (int, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	n := t.get(i)
	if n == nil {
		return 0, syscall.ESTALE
	}
	if off < 0 {
		return 0, syscall.EINVAL
	}
	if off >= n.Size {
		return 0, io.EOF
	}
	want := min(int64(len(p)), n.Size-off)
	got := 0
	if off < int64(len(n.Data)) {
		got = copy(p[:want], n.Data[off:])
	}
	clear(p[got:want]) // a hole
	if want < int64(len(p)) {
		return int(want), io.EOF
	}
	return int(want), nil
}

// WriteAt writes to a regular file; off < 0 appends. It returns the offset after the bytes written.
func (t *Tree) WriteAt(i Ino, p []byte, off int64) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.get(i)
	if n == nil {
		return 0, syscall.ESTALE
	}
	if off < 0 {
		off = n.Size
	}
	end := off + int64(len(p))
	if err := t.room(end - int64(len(n.Data))); err != nil {
		return off, err
	}
	n = t.own(i)
	if n.shared {
		n.Data, n.shared = slices.Clone(n.Data), false
	}
	if grow := end - int64(len(n.Data)); grow > 0 {
		n.Data = append(n.Data, make([]byte, grow)...)
		t.used += grow
	}
	copy(n.Data[off:], p)
	n.Size, n.ModTime = max(n.Size, end), t.now()
	return end, nil
}

// Truncate cuts a regular file or extends it with a hole.
func (t *Tree) Truncate(i Ino, size int64) error {
	if size < 0 {
		return syscall.EINVAL
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.own(i)
	if n == nil {
		return syscall.ESTALE
	}
	if have := int64(len(n.Data)); size < have {
		t.used -= have - size
		n.Data = slices.Clip(n.Data[:size])
		n.shared = true // the backing array may be a frozen inode's
	}
	n.Size, n.ModTime = size, t.now()
	return nil
}
