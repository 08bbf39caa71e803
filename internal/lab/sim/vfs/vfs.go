// Package vfs makes one file system out of a guest's trees: paths, mounts, symbolic links and permissions, as a
// kernel would. All of it is arithmetic on trees in memory; no path of the machine that the lab runs on is ever
// looked up.
package vfs

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
)

// Cred is who asks. UID 0 may do everything.
type Cred struct {
	UID, GID int
	Groups   []int
	PID      int // what /proc/self leads to
}

// Root is the superuser.
var Root = Cred{PID: 1}

func (c Cred) in(gid int) bool { return gid == c.GID || slices.Contains(c.Groups, gid) }

// Access modes for Access and for permission checks.
const (
	Exec  = 1
	Write = 2
	Read  = 4
)

// maxLinks is Linux' limit of symbolic links in one lookup.
const maxLinks = 40

// Mount is a tree in its place.
type Mount struct {
	Path     string
	Type     string // "ext4", "tmpfs", "proc", …
	Source   string
	ReadOnly bool
	Tree     *tree.Tree
}

// FS is a guest's file system.
type FS struct {
	mu     sync.RWMutex
	mounts []*Mount         // in the order of mounting; the first is the root
	over   map[place]*Mount // directory that a mount covers
	at     map[*Mount]place // the reverse
	byTree map[*tree.Tree]*Mount
}

// place is a directory or file: a tree and an inode.
type place struct {
	tree *tree.Tree
	ino  tree.Ino
}

// New makes a file system with its root.
func New(root *Mount) *FS {
	return &FS{mounts: []*Mount{root}, over: map[place]*Mount{}, at: map[*Mount]place{}, byTree: map[*tree.Tree]*Mount{root.Tree: root}}
}

// Attach mounts a tree on a directory, which is made if it is missing.
func (f *FS) Attach(m *Mount) error {
	if err := f.MkdirAll(Root, m.Path, 0o755); err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	w, err := f.walk(Root, m.Path, true)
	if err != nil {
		return fail("mount", m.Path, err)
	}
	if w.ino == tree.Root && f.byTree[w.tree] != f.mounts[0] {
		return fail("mount", m.Path, syscall.EBUSY)
	}
	f.over[w.place], f.at[m], f.byTree[m.Tree] = m, w.place, m
	f.mounts = append(f.mounts, m)
	return nil
}

// Detach unmounts a tree; open files stay usable.
func (f *FS) Detach(t *tree.Tree) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	m := f.byTree[t]
	if m == nil || m == f.mounts[0] {
		return syscall.EINVAL
	}
	delete(f.over, f.at[m])
	delete(f.at, m)
	delete(f.byTree, t)
	f.mounts = slices.DeleteFunc(f.mounts, func(o *Mount) bool { return o == m })
	return nil
}

// Mounts lists what is mounted, in order.
func (f *FS) Mounts() []Mount {
	f.mu.RLock()
	defer f.mu.RUnlock()
	all := make([]Mount, len(f.mounts))
	for i, m := range f.mounts {
		all[i] = *m
	}
	return all
}

// MountOf returns the mount that a path lies on.
func (f *FS) MountOf(c Cred, name string) (Mount, error) {
	f.mu.RLock()
	defer f.mu.RUnlock()
	w, err := f.walk(c, name, true)
	if err != nil {
		return Mount{}, fail("statfs", name, err)
	}
	return *f.byTree[w.tree], nil
}

// found is what a walk ends at.
type found struct {
	place
	node   tree.Inode
	dir    place  // the directory that it is in
	name   string // its name there, "" for a root and for names that end in dots
	path   string // absolute, without links
	exists bool
}

// walk looks a path up. A missing last part isn't an error of walk: exists is false, dir and name say where it would
// be. follow says whether a symbolic link at the end is followed.
func (f *FS) walk(c Cred, name string, follow bool) (found, error) {
	if name == "" {
		return found{}, syscall.ENOENT
	}
	if strings.ContainsRune(name, 0) || len(name) > 4096 {
		return found{}, syscall.EINVAL
	}
	root := place{f.mounts[0].Tree, tree.Root}
	stack := []found{f.enter(root)}
	todo := strings.Split(name, "/")
	mustBeDir := strings.HasSuffix(name, "/")
	links := 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		top := &stack[len(stack)-1]
		if part == "" || part == "." {
			if !top.exists {
				return found{}, syscall.ENOENT
			}
			continue
		}
		if !top.exists {
			return found{}, syscall.ENOENT
		}
		if !top.node.Mode.IsDir() {
			return found{}, syscall.ENOTDIR
		}
		if !permitted(c, top.node, Exec) {
			return found{}, syscall.EACCES
		}
		if part == ".." {
			if len(stack) > 1 {
				stack = stack[:len(stack)-1]
			}
			continue
		}
		n, err := top.tree.Lookup(top.ino, part)
		last := len(slices.DeleteFunc(slices.Clone(todo), func(s string) bool { return s == "" || s == "." })) == 0
		if errors.Is(err, syscall.ENOENT) && last {
			stack = append(stack, found{dir: top.place, name: part, path: path.Join(top.path, part)})
			continue
		}
		if err != nil {
			return found{}, err
		}
		if n.Mode&fs.ModeSymlink != 0 && (!last || follow || mustBeDir) {
			if links++; links > maxLinks {
				return found{}, syscall.ELOOP
			}
			target := linkTarget(c, n)
			if strings.HasPrefix(target, "/") {
				stack = stack[:1]
			}
			todo = append(strings.Split(target, "/"), todo...)
			continue
		}
		next := f.enter(place{top.tree, n.Ino})
		next.dir, next.name, next.path = top.place, part, path.Join(top.path, part)
		stack = append(stack, next)
	}
	w := stack[len(stack)-1]
	if w.exists && mustBeDir && !w.node.Mode.IsDir() {
		return found{}, syscall.ENOTDIR
	}
	return w, nil
}

// enter goes to a place, and into what is mounted over it.
func (f *FS) enter(p place) found {
	for m := f.over[p]; m != nil; m = f.over[p] {
		p = place{m.Tree, tree.Root}
	}
	n, ok := p.tree.Get(p.ino)
	return found{place: p, node: n, exists: ok, path: "/"}
}

// linkTarget reads a link; /proc/self is one that depends on who looks.
func linkTarget(c Cred, n tree.Inode) string {
	if n.Target == selfLink {
		return itoa(c.PID)
	}
	return n.Target
}

// selfLink as the target of a link stands for the asking process' number.
const selfLink = "\x00self"

// SelfLink makes the inode of /proc/self.
func SelfLink() tree.Inode { return tree.Inode{Mode: fs.ModeSymlink | 0o777, Target: selfLink} }

func permitted(c Cred, n tree.Inode, want int) bool {
	perm := int(n.Mode.Perm())
	if c.UID == 0 {
		return want&Exec == 0 || n.Mode.IsDir() || perm&0o111 != 0
	}
	switch {
	case n.UID == c.UID:
		perm >>= 6
	case c.in(n.GID):
		perm >>= 3
	}
	return perm&want == want
}

// mayChange checks that names in a directory can be made or removed by c.
func (f *FS) mayChange(c Cred, dir place) error {
	if f.byTree[dir.tree] != nil && f.byTree[dir.tree].ReadOnly {
		return syscall.EROFS
	}
	n, ok := dir.tree.Get(dir.ino)
	if !ok {
		return syscall.ENOENT
	}
	if !permitted(c, n, Write|Exec) {
		return syscall.EACCES
	}
	return nil
}

// mayRemove checks the sticky bit too, which keeps users from removing each other's files in /tmp.
func (f *FS) mayRemove(c Cred, w found) error {
	if err := f.mayChange(c, w.dir); err != nil {
		return err
	}
	if w.name == "" || f.at[f.byTree[w.tree]] != (place{}) && w.ino == tree.Root {
		return syscall.EBUSY
	}
	d, _ := w.dir.tree.Get(w.dir.ino)
	if d.Mode&fs.ModeSticky != 0 && c.UID != 0 && c.UID != d.UID && c.UID != w.node.UID {
		return syscall.EPERM
	}
	return nil
}
