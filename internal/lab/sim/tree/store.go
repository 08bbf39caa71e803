package tree

import (
	"crypto/rand"
	"encoding/gob"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"
)

// Store keeps trees in a folder. Layers are written once and shared there as they are in memory.
type Store struct {
	dir string
	now func() time.Time

	mu      sync.Mutex
	layers  map[string]*layer
	parents map[string]string // file → file of the layer below, as it is on disk
}

// file is what one layer or one tree's top looks like on disk.
type file struct {
	Parent  string // file of the layer below
	Inodes  map[Ino]*Inode
	Removed []Ino
	Next    Ino
	Used    int64
	Size    int64
}

// OpenStore uses a folder, which is made if it is missing. Only the user may read it: trees hold keys.
func OpenStore(dir string, now func() time.Time) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return &Store{dir: dir, now: now, layers: map[string]*layer{}, parents: map[string]string{}}, nil
}

// NewName makes a name for a tree that hasn't been saved.
func NewName() string {
	b := make([]byte, 8)
	_, _ = rand.Read(b) // never fails
	return "tree-" + hex.EncodeToString(b)
}

// Save writes a tree under a name, whole or not at all.
func (s *Store) Save(name string, t *Tree) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	t.mu.Lock()
	f := file{Next: t.next, Used: t.used, Size: t.size}
	f.fill(t.upper)
	for _, n := range f.Inodes { // written after the lock is given back, so nothing of it may change meanwhile
		n.shared = true
	}
	for i, n := range f.Inodes {
		c := *n
		if n.Entries != nil {
			c.Entries = make(map[string]Ino, len(n.Entries))
			for k, v := range n.Entries {
				c.Entries[k] = v
			}
		}
		f.Inodes[i] = &c
	}
	lower := t.lower
	t.dirty = false
	t.mu.Unlock()
	parent, err := s.saveLayer(lower)
	if err == nil {
		f.Parent = parent
		err = s.write(name, &f)
	}
	if err != nil {
		t.mu.Lock()
		t.dirty = true
		t.mu.Unlock()
	}
	return err
}

func (f *file) fill(m map[Ino]*Inode) {
	f.Inodes = make(map[Ino]*Inode, len(m))
	for i, n := range m {
		if n == nil {
			f.Removed = append(f.Removed, i)
			continue
		}
		f.Inodes[i] = n
	}
}

func (s *Store) saveLayer(l *layer) (string, error) {
	if l == nil {
		return "", nil
	}
	if l.saved != "" && s.layers[l.saved] == l {
		return l.saved, nil
	}
	parent, err := s.saveLayer(l.parent)
	if err != nil {
		return "", err
	}
	f := file{Parent: parent}
	f.fill(l.inodes)
	name := strings.Replace(NewName(), "tree-", "layer-", 1)
	if err := s.write(name, &f); err != nil {
		return "", err
	}
	l.saved = name
	s.layers[name] = l
	return name, nil
}

func (s *Store) write(name string, f *file) error {
	tmp, err := os.CreateTemp(s.dir, "new-*")
	if err != nil {
		return err
	}
	err = errors.Join(gob.NewEncoder(tmp).Encode(f), tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(s.dir, name))
	}
	if err != nil {
		_ = os.Remove(tmp.Name())
		return err
	}
	s.parents[name] = f.Parent
	return nil
}

func (s *Store) read(name string) (*file, error) {
	r, err := os.Open(filepath.Join(s.dir, filepath.Base(name)))
	if err != nil {
		return nil, err
	}
	defer func() { _ = r.Close() }()
	var f file
	if err := gob.NewDecoder(r).Decode(&f); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	s.parents[name] = f.Parent
	for _, n := range f.Inodes {
		if n.Mode.IsDir() && n.Entries == nil { // gob leaves empty maps out
			n.Entries = map[string]Ino{}
		}
	}
	return &f, nil
}

func (f *file) inodes() map[Ino]*Inode {
	m := f.Inodes
	if m == nil {
		m = map[Ino]*Inode{}
	}
	for _, i := range f.Removed {
		m[i] = nil
	}
	return m
}

// Load reads a tree.
func (s *Store) Load(name string) (*Tree, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f, err := s.read(name)
	if err != nil {
		return nil, err
	}
	lower, err := s.loadLayer(f.Parent)
	if err != nil {
		return nil, err
	}
	t := &Tree{now: s.now, lower: lower, upper: f.inodes(), next: f.Next, used: f.Used, size: f.Size, opens: map[Ino]int{}}
	if t.get(Root) == nil {
		return nil, fmt.Errorf("%s: no root directory", name)
	}
	return t, nil
}

func (s *Store) loadLayer(name string) (*layer, error) {
	if name == "" {
		return nil, nil
	}
	if l := s.layers[name]; l != nil {
		return l, nil
	}
	f, err := s.read(name)
	if err != nil {
		return nil, err
	}
	parent, err := s.loadLayer(f.Parent)
	if err != nil {
		return nil, err
	}
	l := &layer{parent: parent, inodes: f.inodes(), saved: name}
	if parent != nil {
		l.depth = parent.depth + 1
	}
	s.layers[name] = l
	return l, nil
}

// Sweep removes the files that none of the named trees needs, by what is on disk: memory may be ahead of it.
func (s *Store) Sweep(names []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	keep := map[string]bool{}
	for _, name := range names {
		for ; name != "" && !keep[name]; name = s.parents[name] {
			keep[name] = true
		}
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return err
	}
	var errs []error
	for _, e := range entries {
		name := e.Name()
		ours := strings.HasPrefix(name, "tree-") || strings.HasPrefix(name, "layer-") || strings.HasPrefix(name, "new-")
		if ours && !keep[name] {
			errs = append(errs, os.Remove(filepath.Join(s.dir, name)))
			delete(s.layers, name)
			delete(s.parents, name)
		}
	}
	return errors.Join(errs...)
}
