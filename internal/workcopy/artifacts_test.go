//go:build unix

package workcopy

import (
	"archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

func bringOut(t *testing.T, p Place, wanted ...Wanted) ([]Brought, map[string]string) {
	t.Helper()
	brought, left, err := BringOut(t.Context(), p, wanted)
	if err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, l := range left {
		reasons[l.Path] = l.Reason
	}
	return brought, reasons
}

func TestArtifactsAreBroughtOutByPattern(t *testing.T) {
	t.Parallel()
	p, _ := newPlace(t)
	put(t, p.Dir, files{"report.json": "{}", "dist/a.js": "a", "dist/deep/b.js": "b", "dist/c.css": "c", "bin/tool*": "#!", "node_modules/x.js": "n", "-odd name": "o"})
	for name, c := range map[string]struct {
		wanted Wanted
		want   files
	}{
		"one file to a path":    {Wanted{Pattern: "report.json", Destination: "x/r.json"}, files{"x/r.json": "{}"}},
		"one file to a folder":  {Wanted{Pattern: "report.json", Destination: "x/"}, files{"x/report.json": "{}"}},
		"a folder":              {Wanted{Pattern: "dist/", Destination: "x"}, files{"x/dist/a.js": "a", "x/dist/deep/b.js": "b", "x/dist/c.css": "c"}},
		"a pattern":             {Wanted{Pattern: "dist/**/*.js", Destination: "x"}, files{"x/dist/a.js": "a", "x/dist/deep/b.js": "b"}},
		"a name anywhere":       {Wanted{Pattern: "**/*.js", Destination: "x"}, files{"x/dist/a.js": "a", "x/dist/deep/b.js": "b", "x/node_modules/x.js": "n"}},
		"an executable":         {Wanted{Pattern: "bin/*", Destination: "x"}, files{"x/bin/tool*": "#!"}},
		"a name like an option": {Wanted{Pattern: "-odd name", Destination: "x/"}, files{"x/-odd name": "o"}},
	} {
		out := t.TempDir()
		c.wanted.Destination = out + "/" + c.wanted.Destination
		brought, left := bringOut(t, p, c.wanted)
		if got := content(t, out); !maps.Equal(got, c.want) || len(left) != 0 {
			t.Errorf("%s: %v, left out %v", name, got, left)
		}
		for _, b := range brought {
			text, err := os.ReadFile(b.Destination)
			if err != nil || fmt.Sprintf("%x", sha256.Sum256(text)) != b.SHA256 || int64(len(text)) != b.Size {
				t.Errorf("%s: %+v, %v", name, b, err)
			}
		}
	}
}

func TestWhatIsNoPlainFileStaysInTheGuestAndIsTold(t *testing.T) {
	t.Parallel()
	p, _ := newPlace(t)
	put(t, p.Dir, files{"out/good": "g", "out/link@": "/etc/shadow", "out/dir@": "/etc", "secret@": "/etc", ".git/config": "x", "out/.git/config": "x"})
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(p.Dir, "out/pipe"), 0o600),
		os.WriteFile(filepath.Join(p.Dir, "out/suid"), []byte("s"), 0o600), os.Chmod(filepath.Join(p.Dir, "out/suid"), 0o755|os.ModeSetuid),
		os.WriteFile(filepath.Join(p.Dir, "out/sparse"), nil, 0o600), os.Truncate(filepath.Join(p.Dir, "out/sparse"), 1<<40),
		os.WriteFile(filepath.Join(p.Dir, "out/..\\..\\x"), []byte("w"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
	out := t.TempDir()
	brought, left := bringOut(t, p, Wanted{Pattern: "out/**", Destination: out}, Wanted{Pattern: "secret/shadow", Destination: out}, Wanted{Pattern: "secret", Destination: out}, Wanted{Pattern: "none", Destination: out})
	if got := content(t, out); !maps.Equal(got, files{"out/good": "g"}) || len(brought) != 1 {
		t.Errorf("brought %v, %v", got, brought)
	}
	var names []string
	for name := range left {
		names = append(names, name)
	}
	slices.Sort(names)
	if got, want := strings.Join(names, " "), `none out/..\..\x out/dir out/link out/pipe out/sparse out/suid secret`; !strings.Contains(got, "none") || got != want && got != want+" secret/shadow" {
		t.Errorf("left out %s", got)
	}
	for _, bad := range []string{"/etc/passwd", "../x", "a/../../x", "a\x00b", ".git/config", "", "."} {
		if _, _, err := BringOut(t.Context(), p, []Wanted{{Pattern: bad, Destination: out}}); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestArtifactsHaveALimitTogether(t *testing.T) {
	t.Parallel()
	p, _ := newPlace(t)
	put(t, p.Dir, files{"a": strings.Repeat("x", 60), "b": strings.Repeat("x", 60), "c": strings.Repeat("x", 200)})
	out := t.TempDir()
	brought, left := bringOut(t, p, Wanted{Pattern: "*", Destination: out, MaxBytes: 100})
	if len(brought) != 1 || len(left) != 2 || !strings.Contains(left["b"], "together") || !strings.Contains(left["c"], "larger") {
		t.Errorf("%v, %v", brought, left)
	}
	if n := len(content(t, out)); n != 1 {
		t.Errorf("%d files are there", n)
	}
}

func TestTwoNamesForOneDestinationAreTold(t *testing.T) {
	t.Parallel()
	p, _ := newPlace(t)
	put(t, p.Dir, files{"out/README": "1", "out/readme": "2"})
	out := t.TempDir()
	if brought, left := bringOut(t, p, Wanted{Pattern: "out", Destination: out}); len(brought) != 1 || len(left) != 1 {
		t.Errorf("%v, %v", brought, left)
	}
}

// hostile answers every request for files with a stream of its own making.
type hostile struct {
	*local
	headers []tar.Header
	body    string
	garbage []byte
}

func (h *hostile) Exec(ctx context.Context, cmd guest.Command) (guest.Result, error) {
	if !strings.Contains(cmd.Script, "tar -cf") {
		return h.local.Exec(ctx, cmd)
	}
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, header := range h.headers {
		if header.Typeflag == tar.TypeReg {
			header.Size = max(header.Size, int64(len(h.body)))
		}
		_ = w.WriteHeader(&header)
		if header.Typeflag == tar.TypeReg {
			_, _ = w.Write([]byte(h.body))
		}
	}
	_ = w.Flush()
	_, _ = cmd.Stdout.Write(append(b.Bytes(), h.garbage...))
	return guest.Result{}, nil
}

// sparse is a file of one byte that says that it has a terabyte, as GNU tar writes one in its format 1.0.
func sparse(t *testing.T) []byte {
	t.Helper()
	var records []byte
	for _, r := range [][2]string{{"GNU.sparse.major", "1"}, {"GNU.sparse.minor", "0"}, {"GNU.sparse.name", "./a"}, {"GNU.sparse.realsize", "1099511627776"}} {
		length := len(r[0]) + len(r[1]) + 3
		length += len(fmt.Sprint(length + len(fmt.Sprint(length))))
		records = fmt.Appendf(records, "%d %s=%s\n", length, r[0], r[1])
	}
	body := append([]byte("1\n0\n1\n"), make([]byte, 512-6)...)
	body = append(body, 'x')
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	// An ordinary file first; its type is then that of an extended header, with a checksum to match.
	for _, part := range []struct {
		name string
		data []byte
		kind byte
	}{{"PaxHeaders/a", records, 'x'}, {"GNUSparseFile.0/a", body, '0'}} {
		at := b.Len()
		if err := errors.Join(w.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: part.name, Mode: 0o644, Size: int64(len(part.data)), Format: tar.FormatUSTAR}), func() error { _, err := w.Write(part.data); return err }(), w.Flush()); err != nil {
			t.Fatal(err)
		}
		header := b.Bytes()[at : at+512]
		header[156] = part.kind
		copy(header[148:156], "        ")
		sum := 0
		for _, c := range header {
			sum += int(c)
		}
		copy(header[148:156], fmt.Sprintf("%06o\x00 ", sum))
	}
	if h, err := tar.NewReader(bytes.NewReader(b.Bytes())).Next(); err != nil || h.Size != 1<<40 || h.Name != "./a" {
		t.Fatalf("the stream isn't what it is meant to be: %+v, %v", h, err)
	}
	return b.Bytes()
}

func TestAStreamThatTheGuestMadeUpIsRefused(t *testing.T) {
	t.Parallel()
	file := func(name string) tar.Header { return tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: 0o644} }
	for name, h := range map[string]*hostile{
		"another name":         {headers: []tar.Header{file("./b")}},
		"a name outside":       {headers: []tar.Header{file("../../a")}},
		"an absolute name":     {headers: []tar.Header{file("/a")}},
		"twice":                {headers: []tar.Header{file("./a"), file("./a")}},
		"a link":               {headers: []tar.Header{{Typeflag: tar.TypeSymlink, Name: "./a", Linkname: "/etc/passwd"}}},
		"a hard link":          {headers: []tar.Header{{Typeflag: tar.TypeLink, Name: "./a", Linkname: "/etc/passwd"}}},
		"a device":             {headers: []tar.Header{{Typeflag: tar.TypeChar, Name: "./a", Devmajor: 1}}},
		"a folder":             {headers: []tar.Header{{Typeflag: tar.TypeDir, Name: "./a"}}},
		"setuid":               {headers: []tar.Header{{Typeflag: tar.TypeReg, Name: "./a", Mode: 0o4755}}},
		"a huge size":          {headers: []tar.Header{{Typeflag: tar.TypeReg, Name: "./a", Size: 1 << 50, Format: tar.FormatGNU}}},
		"a sparse bomb":        {garbage: sparse(t)},
		"an end in the middle": {headers: []tar.Header{{Typeflag: tar.TypeReg, Name: "./a", Size: 5000}}, body: "x"},
		"garbage":              {garbage: bytes.Repeat([]byte("garbage!"), 1024)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, l := newPlace(t)
			h.local = l
			p.Guest = h
			put(t, p.Dir, files{"a": "1"})
			out := t.TempDir()
			brought, _, err := BringOut(t.Context(), p, []Wanted{{Pattern: "a", Destination: out + "/x/"}})
			if err == nil {
				t.Errorf("brought %v", brought)
			}
			if got := content(t, out); name != "twice" && len(got) != 0 {
				t.Errorf("there is %v", got)
			}
		})
	}
}

func TestACheckpointIsACopyThatCanBeGoneBackTo(t *testing.T) {
	t.Parallel()
	p, _ := newPlace(t)
	at := files{"a": "1", "d/b*": "2", "l@": "a", ".hidden": "h", ".gitignore": "x\n"}
	put(t, p.Dir, at)
	put(t, p.Dir, files{".git/HEAD": "ref: refs/heads/x\n"})
	for range 2 { // a second one of the same name replaces the first
		place, err := MakeCheckpoint(t.Context(), p, "before")
		if err != nil || place != p.Dir+"/.checkpoints/before" {
			t.Fatalf("%s, %v", place, err)
		}
	}
	// In place: a hard link would take the copy along.
	f, err := os.OpenFile(filepath.Join(p.Dir, "a"), os.O_WRONLY|os.O_TRUNC, 0)
	if err != nil {
		t.Fatal(err)
	}
	_, err = f.WriteString("changed")
	if err := errors.Join(err, f.Close(), os.Remove(filepath.Join(p.Dir, "l")), os.RemoveAll(filepath.Join(p.Dir, ".git"))); err != nil {
		t.Fatal(err)
	}
	put(t, p.Dir, files{"new/x": "x"})
	for range 2 {
		if err := RestoreCheckpoint(t.Context(), p, "before"); err != nil {
			t.Fatal(err)
		}
		if got := content(t, p.Dir); !maps.Equal(got, at) {
			t.Errorf("there is %v", got)
		}
	}
	if _, err := os.Stat(filepath.Join(p.Dir, ".git/HEAD")); err != nil {
		t.Error(err)
	}
	if err := RestoreCheckpoint(t.Context(), p, "none"); !errors.Is(err, ErrRefused) {
		t.Errorf("got %v", err)
	}
	if got := content(t, p.Dir); !maps.Equal(got, at) {
		t.Errorf("after a checkpoint that isn't there: %v", got)
	}
	for _, bad := range []string{"", "../x", ".new", "a/b"} {
		if _, err := MakeCheckpoint(t.Context(), p, bad); !errors.Is(err, ErrRefused) {
			t.Errorf("%q: %v", bad, err)
		}
	}
}
