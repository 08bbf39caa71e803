package tree

import (
	"io/fs"
	"maps"
	"slices"
	"syscall"
)

// Get returns an inode; ok is false when it doesn't exist (any more).
func (t *Tree) Get(i Ino) (n Inode, ok bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	p := t.get(i)
	if p == nil {
		return Inode{}, false
	}
	n = *p
	n.Entries = nil
	return n, true
}

// Lookup finds a name in a directory.
func (t *Tree) Lookup(dir Ino, name string) (Inode, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	d := t.get(dir)
	if d == nil {
		return Inode{}, syscall.ENOENT
	}
	if !d.Mode.IsDir() {
		return Inode{}, syscall.ENOTDIR
	}
	i, ok := d.Entries[name]
	if !ok {
		return Inode{}, syscall.ENOENT
	}
	n := *t.get(i)
	n.Entries = nil
	return n, nil
}

// List returns the names in a directory, sorted.
func (t *Tree) List(dir Ino) ([]string, error) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	d := t.get(dir)
	if d == nil {
		return nil, syscall.ENOENT
	}
	if !d.Mode.IsDir() {
		return nil, syscall.ENOTDIR
	}
	return slices.Sorted(maps.Keys(d.Entries)), nil
}

// Make puts a new inode (type, mode, owner and, for links and devices, target as in n) into a directory under a name
// that is free.
func (t *Tree) Make(dir Ino, name string, n Inode) (Inode, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.free(dir, name); err != nil {
		return Inode{}, err
	}
	if err := t.room(inodeCost + int64(len(n.Data))); err != nil {
		return Inode{}, err
	}
	n.Links, n.Entries, n.shared, n.Size = 1, nil, false, int64(len(n.Data))
	if n.Mode.IsDir() {
		n.Links, n.Entries = 2, map[string]Ino{}
	}
	made := n
	i := t.add(&made)
	d := t.own(dir)
	d.Entries[name], d.ModTime = i, t.now()
	if n.Mode.IsDir() {
		d.Links++
	}
	return made, nil
}

// free says whether a name can be put into a directory.
func (t *Tree) free(dir Ino, name string) error {
	d := t.get(dir)
	switch {
	case d == nil || d.Links == 0:
		return syscall.ENOENT
	case !d.Mode.IsDir():
		return syscall.ENOTDIR
	case len(name) > 255:
		return syscall.ENAMETOOLONG
	}
	if _, taken := d.Entries[name]; taken {
		return syscall.EEXIST
	}
	return nil
}

// Link gives an inode that isn't a directory one more name.
func (t *Tree) Link(i, dir Ino, name string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.free(dir, name); err != nil {
		return err
	}
	n := t.get(i)
	switch {
	case n == nil:
		return syscall.ENOENT
	case n.Mode.IsDir():
		return syscall.EPERM
	}
	t.own(i).Links++
	d := t.own(dir)
	d.Entries[name], d.ModTime = i, t.now()
	return nil
}

// Unlink removes a name. rmdir says whether it must be an (empty) directory or must not be one.
func (t *Tree) Unlink(dir Ino, name string, rmdir bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	d := t.get(dir)
	if d == nil {
		return syscall.ENOENT
	}
	i, ok := d.Entries[name]
	if !ok {
		return syscall.ENOENT
	}
	n := t.get(i)
	switch {
	case n.Mode.IsDir() && !rmdir:
		return syscall.EISDIR
	case !n.Mode.IsDir() && rmdir:
		return syscall.ENOTDIR
	case rmdir && len(n.Entries) > 0:
		return syscall.ENOTEMPTY
	}
	t.unname(dir, name, i)
	return nil
}

func (t *Tree) unname(dir Ino, name string, i Ino) {
	d := t.own(dir)
	delete(d.Entries, name)
	d.ModTime = t.now()
	n := t.own(i)
	n.Links--
	if n.Mode.IsDir() {
		n.Links = 0
		d.Links--
	}
	t.drop(n)
}

// Rename moves a name, replacing what has the new one as rename(2) does: a file by a file, an empty directory by a
// directory.
func (t *Tree) Rename(from Ino, name string, to Ino, newName string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	fd, td := t.get(from), t.get(to)
	if fd == nil || td == nil {
		return syscall.ENOENT
	}
	i, ok := fd.Entries[name]
	if !ok {
		return syscall.ENOENT
	}
	n := t.get(i)
	if n.Mode.IsDir() && t.within(to, i) {
		return syscall.EINVAL
	}
	if old, taken := td.Entries[newName]; taken {
		if old == i {
			return nil
		}
		o := t.get(old)
		switch {
		case o.Mode.IsDir() && !n.Mode.IsDir():
			return syscall.EISDIR
		case !o.Mode.IsDir() && n.Mode.IsDir():
			return syscall.ENOTDIR
		case len(o.Entries) > 0:
			return syscall.ENOTEMPTY
		}
		t.unname(to, newName, old)
	}
	f := t.own(from)
	delete(f.Entries, name)
	d := t.own(to)
	d.Entries[newName] = i
	f.ModTime, d.ModTime = t.now(), t.now()
	if n.Mode.IsDir() {
		f.Links--
		d.Links++
	}
	return nil
}

// within reports whether dir is top or lies below it.
func (t *Tree) within(dir, top Ino) bool {
	if dir == top {
		return true
	}
	for _, i := range t.get(top).Entries {
		if n := t.get(i); n.Mode.IsDir() && t.within(dir, i) {
			return true
		}
	}
	return false
}

// SetMode replaces the permission bits, set-id and sticky bits included.
func (t *Tree) SetMode(i Ino, mode fs.FileMode) error {
	const bits = fs.ModePerm | fs.ModeSetuid | fs.ModeSetgid | fs.ModeSticky
	return t.change(i, func(n *Inode) { n.Mode = n.Mode&^bits | mode&bits })
}

// SetOwner replaces user and group; -1 leaves one as it is.
func (t *Tree) SetOwner(i Ino, uid, gid int) error {
	return t.change(i, func(n *Inode) {
		if uid >= 0 {
			n.UID = uid
		}
		if gid >= 0 {
			n.GID = gid
		}
	})
}

func (t *Tree) change(i Ino, f func(*Inode)) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := t.own(i)
	if n == nil {
		return syscall.ENOENT
	}
	f(n)
	return nil
}
