package tree

import (
	"errors"
	"io/fs"
	"syscall"
	"testing"
	"time"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, tr *Tree, name, text string) Ino {
	t.Helper()
	n, err := tr.Lookup(Root, name)
	if err != nil {
		n, err = tr.Make(Root, name, Inode{Mode: 0o644})
		must(t, err)
	}
	must(t, tr.Truncate(n.Ino, 0))
	_, err = tr.WriteAt(n.Ino, []byte(text), 0)
	must(t, err)
	return n.Ino
}

func read(t *testing.T, tr *Tree, name string) string {
	t.Helper()
	n, err := tr.Lookup(Root, name)
	if err != nil {
		return "-"
	}
	b := make([]byte, 100)
	k, _ := tr.ReadAt(n.Ino, b, 0)
	return string(b[:k])
}

func TestCopiesChangeWithoutEachOther(t *testing.T) {
	t.Parallel()
	a := New(time.Now, 0)
	write(t, a, "f", "one")
	b := a.Copy()
	write(t, a, "f", "two")
	c := b.Copy()
	must(t, b.Unlink(Root, "f", false))
	write(t, c, "f", "three, longer")
	for _, k := range []struct {
		name string
		tree *Tree
		want string
	}{{"source", a, "two"}, {"copy", b, "-"}, {"copy of the copy", c, "three, longer"}} {
		if got := read(t, k.tree, "f"); got != k.want {
			t.Errorf("%s: %q, want %q", k.name, got, k.want)
		}
	}
}

func TestManySnapshotsStayCorrectWhenLayersAreMerged(t *testing.T) {
	t.Parallel()
	a := New(time.Now, 0)
	var kept []*Tree
	for i := range 30 {
		write(t, a, "f", string(rune('a'+i)))
		if i%3 == 0 {
			write(t, a, "gone", "x")
		} else if i%3 == 1 {
			must(t, a.Unlink(Root, "gone", false))
		}
		kept = append(kept, a.Copy())
	}
	for i, k := range kept {
		if got := read(t, k, "f"); got != string(rune('a'+i)) {
			t.Errorf("snapshot %d: %q", i, got)
		}
		if _, err := k.Lookup(Root, "gone"); (err == nil) != (i%3 == 0) {
			t.Errorf("snapshot %d: file that was there at every third: %v", i, err)
		}
	}
	if a.lower.depth > maxDepth {
		t.Errorf("%d layers", a.lower.depth)
	}
}

func TestSizeLimitsContentAndUnlinkedFilesLiveWhileOpen(t *testing.T) {
	t.Parallel()
	a := New(time.Now, 3*inodeCost)
	i := write(t, a, "f", "abc")
	if _, err := a.WriteAt(i, make([]byte, 2*inodeCost), 0); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("write beyond the size: %v", err)
	}
	before, _ := a.Usage()
	a.Hold(i)
	must(t, a.Unlink(Root, "f", false))
	b := make([]byte, 3)
	if n, err := a.ReadAt(i, b, 0); n != 3 || err != nil {
		t.Errorf("open file: %d %v", n, err)
	}
	a.Release(i)
	if after, _ := a.Usage(); after != before-inodeCost-3 {
		t.Errorf("usage %d, was %d", after, before)
	}
}

func TestRenameRefusesWhatRenameRefuses(t *testing.T) {
	t.Parallel()
	a := New(time.Now, 0)
	d, err := a.Make(Root, "d", Inode{Mode: fs.ModeDir | 0o755})
	must(t, err)
	sub, err := a.Make(d.Ino, "sub", Inode{Mode: fs.ModeDir | 0o755})
	must(t, err)
	write(t, a, "f", "x")
	for _, k := range []struct {
		from Ino
		name string
		to   Ino
		as   string
		want error
	}{
		{Root, "d", sub.Ino, "d", syscall.EINVAL},
		{Root, "f", Root, "d", syscall.EISDIR},
		{Root, "d", Root, "f", syscall.ENOTDIR},
		{Root, "none", Root, "x", syscall.ENOENT},
		{d.Ino, "sub", Root, "d", syscall.ENOTEMPTY},
		{d.Ino, "sub", Root, "moved", nil},
	} {
		if err := a.Rename(k.from, k.name, k.to, k.as); err != k.want { //nolint:errorlint // exact errno
			t.Errorf("%s to %s: %v, want %v", k.name, k.as, err, k.want)
		}
	}
}

func TestStoreSharesLayersAndSweepsWhatIsNotNeeded(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s, err := OpenStore(dir, time.Now)
	must(t, err)
	a := New(time.Now, 0)
	write(t, a, "f", "base")
	b := a.Copy()
	write(t, b, "g", "b")
	must(t, s.Save("tree-a", a))
	must(t, s.Save("tree-b", b))
	must(t, s.Save("tree-c", b.Copy()))
	must(t, s.Sweep([]string{"tree-b"}))
	s, err = OpenStore(dir, time.Now)
	must(t, err)
	if _, err := s.Load("tree-a"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("swept tree: %v", err)
	}
	back, err := s.Load("tree-b")
	must(t, err)
	if read(t, back, "f") != "base" || read(t, back, "g") != "b" {
		t.Errorf("loaded: %q %q", read(t, back, "f"), read(t, back, "g"))
	}
	used, _ := b.Usage()
	if got, _ := back.Usage(); got != used {
		t.Errorf("usage %d, was %d", got, used)
	}
}
