package vfs

import (
	"errors"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

func itoa(n int) string { return strconv.Itoa(n) }

func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	var already *fs.PathError
	if errors.As(err, &already) {
		return err
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// existing walks to something that must be there.
func (f *FS) existing(c Cred, name string, follow bool) (found, error) {
	w, err := f.walk(c, name, follow)
	if err == nil && !w.exists {
		err = syscall.ENOENT
	}
	return w, err
}

// Stat describes a file, Lstat the link itself.
func (f *FS) Stat(c Cred, name string) (*Info, error) { return f.stat(c, name, true) }

// Lstat is Stat without following a link at the end.
func (f *FS) Lstat(c Cred, name string) (*Info, error) { return f.stat(c, name, false) }

func (f *FS) stat(c Cred, name string, follow bool) (*Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.existing(c, name, follow)
	if err != nil {
		return nil, fail("stat", name, err)
	}
	base := w.name
	if base == "" {
		base = path.Base(name)
	}
	return &Info{name: base, node: w.node, target: linkTarget(c, w.node)}, nil
}

// ReadDir lists a directory, sorted by name.
func (f *FS) ReadDir(c Cred, name string) ([]*Info, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.existing(c, name, true)
	if err == nil && !w.node.Mode.IsDir() {
		err = syscall.ENOTDIR
	}
	if err == nil && !permitted(c, w.node, Read) {
		err = syscall.EACCES
	}
	if err != nil {
		return nil, fail("open", name, err)
	}
	names, err := w.tree.List(w.ino)
	if err != nil {
		return nil, fail("open", name, err)
	}
	list := make([]*Info, 0, len(names))
	for _, n := range names {
		in, err := w.tree.Lookup(w.ino, n)
		if err != nil {
			continue // removed meanwhile
		}
		in = f.enter(place{w.tree, in.Ino}).node
		list = append(list, &Info{name: n, node: in, target: linkTarget(c, in)})
	}
	return list, nil
}

// Access checks whether c may read, write or execute a file.
func (f *FS) Access(c Cred, name string, want int) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.existing(c, name, true)
	if err == nil && !permitted(c, w.node, want) {
		err = syscall.EACCES
	}
	if err == nil && want&Write != 0 && f.byTree[w.tree].ReadOnly {
		err = syscall.EROFS
	}
	return fail("access", name, err)
}

// make creates an inode at a name that is free.
func (f *FS) make(c Cred, op, name string, n tree.Inode) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.walk(c, name, false)
	if err == nil && w.exists {
		err = syscall.EEXIST
	}
	if err == nil {
		err = f.mayChange(c, w.dir)
	}
	if err == nil {
		n.UID, n.GID = c.UID, c.GID
		if d, ok := w.dir.tree.Get(w.dir.ino); ok && d.Mode&fs.ModeSetgid != 0 {
			n.GID = d.GID
		}
		_, err = w.dir.tree.Make(w.dir.ino, w.name, n)
	}
	return fail(op, name, err)
}

// Mkdir makes a directory.
func (f *FS) Mkdir(c Cred, name string, perm fs.FileMode) error {
	return f.make(c, "mkdir", strings.TrimRight(name, "/"), tree.Inode{Mode: fs.ModeDir | perm&fs.ModePerm})
}

// MkdirAll makes a directory and its parents as far as they are missing.
func (f *FS) MkdirAll(c Cred, name string, perm fs.FileMode) error {
	at := "/"
	for part := range strings.SplitSeq(name, "/") {
		if part == "" {
			continue
		}
		at = path.Join(at, part)
		if part == ".." || part == "." {
			continue
		}
		if err := f.Mkdir(c, at, perm); err != nil {
			if in, serr := f.Stat(c, at); serr != nil || !in.IsDir() {
				return err
			}
		}
	}
	return nil
}

// Symlink makes a symbolic link; the target is not looked at.
func (f *FS) Symlink(c Cred, target, name string) error {
	return f.make(c, "symlink", name, tree.Inode{Mode: fs.ModeSymlink | 0o777, Target: target})
}

// Device makes a device that Open knows by name.
func (f *FS) Device(name, device string) error {
	return f.make(Root, "mknod", name, tree.Inode{Mode: fs.ModeDevice | fs.ModeCharDevice | 0o666, Device: device})
}

// Synthetic makes a file as its inode says, owner and generator included.
func (f *FS) Synthetic(name string, n tree.Inode) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.walk(Root, name, false)
	if err == nil && w.exists {
		err = syscall.EEXIST
	}
	if err == nil {
		_, err = w.dir.tree.Make(w.dir.ino, w.name, n)
	}
	return fail("mknod", name, err)
}

// Readlink reads a symbolic link.
func (f *FS) Readlink(c Cred, name string) (string, error) {
	in, err := f.Lstat(c, name)
	if err != nil {
		return "", err
	}
	if in.node.Mode&fs.ModeSymlink == 0 {
		return "", fail("readlink", name, syscall.EINVAL)
	}
	return in.target, nil
}

// RealPath returns the absolute path without links. The last part may be missing.
func (f *FS) RealPath(c Cred, name string) (string, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.walk(c, name, true)
	return w.path, fail("realpath", name, err)
}

// Link makes a hard link.
func (f *FS) Link(c Cred, old, name string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	o, err := f.existing(c, old, false)
	var w found
	if err == nil {
		w, err = f.walk(c, name, false)
	}
	if err == nil && w.exists {
		err = syscall.EEXIST
	}
	if err == nil && w.dir.tree != o.tree {
		err = syscall.EXDEV
	}
	if err == nil {
		err = f.mayChange(c, w.dir)
	}
	if err == nil {
		err = o.tree.Link(o.ino, w.dir.ino, w.name)
	}
	return fail("link", name, err)
}

// Unlink removes a file, Rmdir an empty directory.
func (f *FS) Unlink(c Cred, name string) error { return f.remove(c, "unlink", name, false) }

// Rmdir removes an empty directory.
func (f *FS) Rmdir(c Cred, name string) error { return f.remove(c, "rmdir", name, true) }

func (f *FS) remove(c Cred, op, name string, dir bool) error {
	if dir {
		name = strings.TrimRight(name, "/")
	}
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.existing(c, name, false)
	if err == nil {
		err = f.mayRemove(c, w)
	}
	if err == nil {
		err = w.dir.tree.Unlink(w.dir.ino, w.name, dir)
	}
	return fail(op, name, err)
}

// RemoveAll removes a file or a directory with all that is in it; nothing there is fine.
func (f *FS) RemoveAll(c Cred, name string) error {
	in, err := f.Lstat(c, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if !in.IsDir() {
		return f.Unlink(c, name)
	}
	list, err := f.ReadDir(c, name)
	if err != nil {
		return err
	}
	for _, e := range list {
		if err := f.RemoveAll(c, path.Join(name, e.Name())); err != nil {
			return err
		}
	}
	return f.Rmdir(c, name)
}

// Rename moves a name within one mount, replacing a file that has the new one.
func (f *FS) Rename(c Cred, old, name string) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	o, err := f.existing(c, strings.TrimRight(old, "/"), false)
	if err == nil {
		err = f.mayRemove(c, o)
	}
	var w found
	if err == nil {
		w, err = f.walk(c, strings.TrimRight(name, "/"), false)
	}
	if err == nil && w.exists {
		err = f.mayRemove(c, w)
	}
	if err == nil && !w.exists {
		err = f.mayChange(c, w.dir)
	}
	if err == nil && w.dir.tree != o.dir.tree {
		err = syscall.EXDEV
	}
	if err == nil {
		err = o.dir.tree.Rename(o.dir.ino, o.name, w.dir.ino, w.name)
	}
	return fail("rename", old, err)
}

// owned walks to a file whose attributes c may change.
func (f *FS) owned(c Cred, name string, follow bool) (found, error) {
	w, err := f.existing(c, name, follow)
	if err == nil && f.byTree[w.tree].ReadOnly {
		err = syscall.EROFS
	}
	if err == nil && c.UID != 0 && c.UID != w.node.UID {
		err = syscall.EPERM
	}
	return w, err
}

// Chmod sets permission bits.
func (f *FS) Chmod(c Cred, name string, mode fs.FileMode) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.owned(c, name, true)
	if err == nil {
		err = w.tree.SetMode(w.ino, mode)
	}
	return fail("chmod", name, err)
}

// Chown sets user and group, -1 leaves one as it is. Only root gives files away.
func (f *FS) Chown(c Cred, name string, uid, gid int, follow bool) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.owned(c, name, follow)
	if err == nil && c.UID != 0 && (uid >= 0 && uid != c.UID || gid >= 0 && !c.in(gid)) {
		err = syscall.EPERM
	}
	if err == nil {
		err = w.tree.SetOwner(w.ino, uid, gid)
	}
	return fail("chown", name, err)
}

// Chtimes sets the modification time.
func (f *FS) Chtimes(c Cred, name string, at time.Time) error {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.owned(c, name, true)
	if err == nil {
		err = w.tree.SetTime(w.ino, at)
	}
	return fail("chtimes", name, err)
}

// Truncate sets a file's size.
func (f *FS) Truncate(c Cred, name string, size int64) error {
	h, err := f.Open(c, name, syscall.O_WRONLY, 0)
	if err != nil {
		return err
	}
	return errors.Join(h.Truncate(size), h.Close())
}
