package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

// Limits of what is read of a system.
const (
	maxEntries  = 1_000_000
	maxFile     = 1 << 20 // bytes of a file that is looked at
	maxLinks    = 40
	maxNameSize = 4096
)

// entry is a file, folder or link as the walk found it; its path has no leading
// slash, and that of the root is ".".
type entry struct {
	path     string
	mode     fs.FileMode
	uid, gid uint32
	size     int64
	target   string // of a link
}

func (e entry) perm() fs.FileMode { return e.mode.Perm() }

// show is the entry as a line of evidence.
func (e entry) show() string {
	return fmt.Sprintf("/%s %04o %d:%d", e.path, unixMode(e.mode), e.uid, e.gid)
}

func unixMode(m fs.FileMode) uint32 {
	n := uint32(m.Perm())
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if m&flag != 0 {
			n |= bit
		}
	}
	return n
}

// fileMode is the mode that Unix's type letter (as find and ls write it) and permission bits mean.
func fileMode(letter byte, bits uint32) fs.FileMode {
	m := fs.FileMode(bits & 0o777)
	for bit, flag := range map[uint32]fs.FileMode{0o4000: fs.ModeSetuid, 0o2000: fs.ModeSetgid, 0o1000: fs.ModeSticky} {
		if bits&bit != 0 {
			m |= flag
		}
	}
	return m | map[byte]fs.FileMode{'f': 0, 'd': fs.ModeDir, 'l': fs.ModeSymlink, 'p': fs.ModeNamedPipe, 's': fs.ModeSocket, 'b': fs.ModeDevice, 'c': fs.ModeDevice | fs.ModeCharDevice}[letter]
}

// tree is a system's files: an index of all names, and a way to read.
type tree struct {
	ctx   context.Context // of the one audit that it is made for
	list  []entry         // sorted by path
	index map[string]int32
	// partial says why the index isn't the whole; empty when it is.
	partial string
	// fetch reads regular files, each at most limit bytes, from paths without
	// links in them. What can't be read is left out.
	fetch func(ctx context.Context, paths []string, limit int) (map[string][]byte, error)
	read  map[string][]byte
}

func newTree(ctx context.Context, list []entry) *tree {
	slices.SortFunc(list, func(a, b entry) int { return cmp.Compare(a.path, b.path) })
	t := &tree{ctx: ctx, list: list, index: make(map[string]int32, len(list)), read: map[string][]byte{}}
	for i, e := range list {
		t.index[e.path] = int32(i)
	}
	return t
}

func clean(name string) string {
	name = strings.TrimPrefix(path.Clean("/"+name), "/")
	if name == "" {
		return "."
	}
	return name
}

// lstat finds an entry by its very name; links on the way are followed, inside.
func (t *tree) lstat(name string) (entry, bool) {
	dir, base := path.Split(clean(name))
	real, ok := t.resolve(dir)
	if !ok {
		return entry{}, false
	}
	i, ok := t.index[clean(path.Join(real, base))]
	if !ok {
		return entry{}, false
	}
	return t.list[i], true
}

// stat finds what a name leads to.
func (t *tree) stat(name string) (entry, bool) {
	real, ok := t.resolve(name)
	if !ok {
		return entry{}, false
	}
	return t.list[t.index[real]], true
}

// resolve is the path without links that a name leads to. A link can't lead out:
// its target is taken from the tree's own root, as it is for who lives in it.
func (t *tree) resolve(name string) (string, bool) {
	todo := strings.Split(clean(name), "/")
	at, links := ".", 0
	for len(todo) > 0 {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			at = clean(path.Dir("/" + at))
			continue
		}
		next := clean(path.Join(at, part))
		i, ok := t.index[next]
		if !ok {
			return "", false
		}
		e := t.list[i]
		if e.mode&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		if links++; links > maxLinks {
			return "", false
		}
		if strings.HasPrefix(e.target, "/") {
			at = "."
		}
		todo = append(strings.Split(e.target, "/"), todo...)
	}
	_, ok := t.index[at]
	return at, ok
}

// children lists what is directly in a folder.
func (t *tree) children(dir string) []entry {
	real, ok := t.resolve(dir)
	if !ok {
		return nil
	}
	prefix := real + "/"
	if real == "." {
		prefix = ""
	}
	var out []entry
	for _, e := range t.under(dir) {
		if rest := strings.TrimPrefix(e.path, prefix); !strings.Contains(rest, "/") {
			out = append(out, e)
		}
	}
	return out
}

// under lists everything below a folder.
func (t *tree) under(dir string) []entry {
	real, ok := t.resolve(dir)
	if !ok {
		return nil
	}
	if real == "." {
		return t.list
	}
	prefix := real + "/"
	from, _ := slices.BinarySearchFunc(t.list, prefix, func(e entry, p string) int { return cmp.Compare(e.path, p) })
	to := from
	for to < len(t.list) && strings.HasPrefix(t.list[to].path, prefix) {
		to++
	}
	return t.list[from:to]
}

var errTooLarge = errors.New("it is larger than what is read")

// file reads a small file; fs.ErrNotExist when there is none, or it is no file.
func (t *tree) file(name string) ([]byte, error) {
	e, ok := t.stat(name)
	if !ok || !e.mode.IsRegular() {
		return nil, fs.ErrNotExist
	}
	if content, ok := t.read[e.path]; ok {
		if content == nil {
			return nil, fmt.Errorf("/%s can't be read", e.path)
		}
		return content, nil
	}
	if e.size > maxFile {
		return nil, fmt.Errorf("/%s: %w", e.path, errTooLarge)
	}
	if err := t.load([]string{e.path}); err != nil {
		return nil, err
	}
	if content := t.read[e.path]; content != nil {
		return content, nil
	}
	return nil, fmt.Errorf("/%s can't be read", e.path)
}

// load reads files ahead, all in one go.
func (t *tree) load(names []string) error {
	var want []string
	for _, n := range names {
		e, ok := t.stat(n)
		if !ok || !e.mode.IsRegular() || e.size > maxFile {
			continue
		}
		if _, have := t.read[e.path]; !have {
			want = append(want, e.path)
		}
	}
	slices.Sort(want)
	if want = slices.Compact(want); len(want) == 0 {
		return nil
	}
	got, err := t.fetch(t.ctx, want, maxFile)
	if err != nil {
		return err
	}
	for _, p := range want {
		t.read[p] = got[p] // nil: can't be read
		if content, ok := got[p]; ok && content == nil {
			t.read[p] = []byte{}
		}
	}
	return nil
}

// lines are a file's without blanks and comments; nil when it can't be read.
func (t *tree) lines(name string) []string {
	content, err := t.file(name)
	if err != nil {
		return nil
	}
	var out []string
	for line := range strings.Lines(string(content)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			out = append(out, line)
		}
	}
	return out
}
