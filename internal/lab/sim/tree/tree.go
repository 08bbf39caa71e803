// Package tree is a file tree in memory whose copies cost nothing until they change.
//
// A tree is a stack of frozen layers, shared by all trees that were copied from one another, and one writable layer
// on top. Copying freezes the top of the source and puts an empty one on both: a thousand clones of a template share
// its content, a snapshot is a pointer, and a rollback is another. Nothing of a tree is a file of the machine that
// the lab runs on, so there is no path, link or race by which a guest could leave its tree.
//
// The package knows inodes and names only; paths, mounts and permissions are vfs's.
package tree

import (
	"io/fs"
	"maps"
	"sync"
	"syscall"
	"time"
)

// Ino is an inode's number: unique in a tree, kept by its copies.
type Ino uint64

// Root is the inode of a tree's root directory.
const Root Ino = 1

// inodeCost is what an inode counts against a tree's size, as an ext4 block does.
const inodeCost = 4096

// maxDepth bounds the layers that a lookup may have to go through; deeper stacks are merged.
const maxDepth = 6

// Inode is a file, directory, symbolic link or device. Callers get copies and must not change what they refer to.
type Inode struct {
	Ino      Ino
	Mode     fs.FileMode
	UID, GID int
	ModTime  time.Time
	Links    int
	Size     int64  // of a regular file; bytes beyond Data read as zero
	Data     []byte // content of a regular file
	Target   string // of a symbolic link
	Device   string // of a device: "null", "zero", …
	Entries  map[string]Ino

	// Generate makes the content of a synthetic file (/proc) at each opening; it isn't saved.
	Generate func() []byte

	shared bool // Data belongs to a frozen inode too: copy before writing
}

// Tree is a writable file tree, safe for use by many goroutines.
type Tree struct {
	mu    sync.RWMutex
	now   func() time.Time
	lower *layer
	upper map[Ino]*Inode // nil value: removed
	next  Ino
	used  int64
	size  int64 // 0: unlimited
	opens map[Ino]int
	dirty bool
}

// layer is frozen: neither its map nor its inodes change any more.
type layer struct {
	parent *layer
	depth  int
	inodes map[Ino]*Inode
	saved  string // name of the file that holds it, once saved
}

// New makes an empty tree: a root directory of mode 0755 that belongs to root. size limits its content in bytes, 0 is
// no limit.
func New(now func() time.Time, size int64) *Tree {
	t := &Tree{now: now, upper: map[Ino]*Inode{}, next: Root, size: size, opens: map[Ino]int{}}
	t.add(&Inode{Mode: fs.ModeDir | 0o755, Links: 2, Entries: map[string]Ino{}})
	return t
}

// Copy makes a tree with the same content. Both may change afterwards without the other's noticing.
func (t *Tree) Copy() *Tree {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.freeze()
	return &Tree{now: t.now, lower: t.lower, upper: map[Ino]*Inode{}, next: t.next, used: t.used, size: t.size, opens: map[Ino]int{}, dirty: true}
}

// freeze moves the writable layer under a new empty one.
func (t *Tree) freeze() {
	if len(t.upper) == 0 {
		return
	}
	l := &layer{parent: t.lower, inodes: t.upper}
	if t.lower != nil {
		l.depth = t.lower.depth + 1
	}
	if l.depth >= maxDepth {
		l = l.merged()
	}
	t.lower, t.upper, t.dirty = l, map[Ino]*Inode{}, true
}

func (l *layer) merged() *layer {
	var all []*layer
	for p := l; p != nil; p = p.parent {
		all = append(all, p)
	}
	m := map[Ino]*Inode{}
	for i := len(all) - 1; i >= 0; i-- {
		for k, v := range all[i].inodes {
			if v == nil {
				delete(m, k)
			} else {
				m[k] = v
			}
		}
	}
	return &layer{inodes: m}
}

func (t *Tree) get(i Ino) *Inode {
	if n, ok := t.upper[i]; ok {
		return n
	}
	for l := t.lower; l != nil; l = l.parent {
		if n, ok := l.inodes[i]; ok {
			return n
		}
	}
	return nil
}

// own returns the inode for changing: a frozen one is copied up first.
func (t *Tree) own(i Ino) *Inode {
	t.dirty = true
	if n, ok := t.upper[i]; ok {
		return n
	}
	n := t.get(i)
	if n == nil {
		return nil
	}
	c := *n
	c.Entries, c.shared = maps.Clone(n.Entries), true
	t.upper[i] = &c
	return &c
}

func (t *Tree) add(n *Inode) Ino {
	n.Ino = t.next
	n.ModTime = t.now()
	t.next++
	t.used += inodeCost + int64(len(n.Data))
	t.upper[n.Ino] = n
	t.dirty = true
	return n.Ino
}

// drop removes an inode that has neither a name nor a reader.
func (t *Tree) drop(n *Inode) {
	if n.Links > 0 || t.opens[n.Ino] > 0 {
		return
	}
	t.used -= inodeCost + int64(len(n.Data))
	t.dirty = true
	if t.lower == nil {
		delete(t.upper, n.Ino)
		return
	}
	t.upper[n.Ino] = nil
}

func (t *Tree) room(extra int64) error {
	if t.size > 0 && extra > 0 && t.used+extra > t.size {
		return syscall.ENOSPC
	}
	return nil
}

// Resize sets the limit of the content in bytes; content beyond a smaller one stays.
func (t *Tree) Resize(size int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.size, t.dirty = size, true
}

// Usage returns the bytes in use and the limit.
func (t *Tree) Usage() (used, size int64) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.used, t.size
}

// Clear removes all content, as a reboot does to a memory file system.
func (t *Tree) Clear() {
	t.mu.Lock()
	defer t.mu.Unlock()
	root := *t.get(Root)
	root.Entries, root.Links = map[string]Ino{}, 2
	t.lower, t.upper, t.used, t.dirty = nil, map[Ino]*Inode{Root: &root}, inodeCost, true
}

// Dirty reports whether the tree changed since the last Save.
func (t *Tree) Dirty() bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	return t.dirty
}
