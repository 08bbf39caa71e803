//go:build unix

package audit

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// write makes files under a folder.
func write(t *testing.T, root string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		name = filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func folder(t *testing.T, root string) *tree {
	t.Helper()
	tree, closer, err := openFolder(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = closer.Close() })
	return tree
}

// A hostile root filesystem: links out of it, loops, pipes without a writer, and names that aren't text.
func TestAHostileFolderIsReadFromItsOwnRootOnly(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, map[string]string{"shadow": "root::1::::::\n", "dir/secret": "x"})
	root := t.TempDir()
	write(t, root, map[string]string{"etc/real": "inside", "usr/bin/x": "", "var/a\nb\xff": "odd"})
	for name, target := range map[string]string{
		"etc/shadow": filepath.Join(outside, "shadow"), "etc/up": "../../../../../../etc/passwd", "etc/loop": "loop", "etc/a": "b", "etc/b": "a",
		"etc/dir": filepath.Join(outside, "dir"), "bin": "usr/bin", "etc/abs": "/etc/real", "etc/self": "/proc/self/root/etc/passwd",
	} {
		if err := os.Symlink(target, filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := syscall.Mkfifo(filepath.Join(root, "etc/pipe"), 0o644); err != nil {
		t.Fatal(err)
	}
	tree := folder(t, root)
	for _, name := range []string{"etc/shadow", "etc/up", "etc/loop", "etc/a", "etc/dir/secret", "etc/pipe", "etc/self", "../" + filepath.Base(outside) + "/shadow"} {
		if content, err := tree.file(name); err == nil {
			t.Errorf("%s was read: %q", name, content)
		}
	}
	// An absolute link means the system's own root.
	if content, err := tree.file("etc/abs"); err != nil || string(content) != "inside" {
		t.Errorf("etc/abs: %q, %v", content, err)
	}
	if _, ok := tree.stat("bin/x"); !ok {
		t.Error("a link to a folder isn't followed")
	}
	if got := tree.under("var"); len(got) != 1 || !utf8.ValidString(printable(got[0].path)) || strings.Contains(printable(got[0].path), "\n") {
		t.Errorf("an odd name: %+v", got)
	}
}

// What was a file when the list was made, and is a pipe or a link out when it is read, doesn't hang and isn't followed.
func TestAFileThatIsSwappedIsNotRead(t *testing.T) {
	t.Parallel()
	outside := t.TempDir()
	write(t, outside, map[string]string{"secret": "x"})
	root := t.TempDir()
	write(t, root, map[string]string{"etc/one": "1", "etc/two": "2", "d/three": "3"})
	tree := folder(t, root)
	for _, name := range []string{"etc/one", "etc/two"} {
		if err := os.Remove(filepath.Join(root, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(syscall.Mkfifo(filepath.Join(root, "etc/one"), 0o644), os.Symlink(filepath.Join(outside, "secret"), filepath.Join(root, "etc/two")),
		os.RemoveAll(filepath.Join(root, "d")), os.Symlink(outside, filepath.Join(root, "d")), os.WriteFile(filepath.Join(outside, "three"), []byte("x"), 0o600)); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for _, name := range []string{"etc/one", "etc/two", "d/three"} {
			if content, err := tree.file(name); err == nil {
				t.Errorf("%s was read: %q", name, content)
			}
		}
	}()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("the audit hangs on a pipe")
	}
}

func TestALargeFileIsntReadWhole(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	write(t, root, map[string]string{"etc/passwd": ""})
	if err := os.Truncate(filepath.Join(root, "etc/passwd"), 1<<40); err != nil { // sparse: it takes no space
		t.Skip("no file of this size here:", err)
	}
	tree := folder(t, root)
	if _, err := tree.file("etc/passwd"); !errors.Is(err, errTooLarge) {
		t.Errorf("a TiB: %v", err)
	}
	r, err := Run(t.Context(), Target{Folder: root}, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if got := finding(t, r, "G2"); got.Status != Unknown {
		t.Errorf("passwords in a TiB: %s", got.Status)
	}
}

func TestAFolderThatIsntThereIsAnError(t *testing.T) {
	t.Parallel()
	if _, err := Run(t.Context(), Target{Folder: filepath.Join(t.TempDir(), "no")}, Options{}); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v", err)
	}
	if _, err := Run(t.Context(), Target{}, Options{}); err == nil {
		t.Error("nothing was audited")
	}
	if _, err := Run(t.Context(), Target{Folder: t.TempDir()}, Options{Profile: "loose"}); err == nil || !strings.Contains(err.Error(), "strict") {
		t.Errorf("a profile that there isn't: %v", err)
	}
}

func TestAnAuditThatIsCutOffGivesNoReport(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Run(ctx, Target{Folder: t.TempDir()}, Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

// scripted is a system that answers each script with what a test wrote down.
type scripted func(s remote.Script) remote.Result

func (f scripted) Run(_ context.Context, s remote.Script) (remote.Result, error) { return f(s), nil }

func TestASystemThatAnswersNonsenseIsUnknownNotPassed(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]string{
		"nothing": "", "noise": strings.Repeat("\xff\x00\x1b[2J", 1000), "a lie about sizes": "f 644 0 0 -1\t/etc/passwd\x00\x00", "half a record": "f 644 0 0 9\t/etc/passwd\x00",
		"a huge number": "f 644 99999999999 0 1\t/etc/passwd\x00\x00", "a path out": "f 644 0 0 1\t/../../etc/passwd\x00\x00",
	} {
		r, err := Run(t.Context(), Target{Runner: scripted(func(remote.Script) remote.Result { return remote.Result{Stdout: []byte(answer)} })}, Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, id := range []string{"G2", "G4", "G12.1", "G13.2", "G9.2", "G19"} {
			if got := finding(t, r, id); got.Status == Passed {
				t.Errorf("%s: %s passed: %v", name, id, got.Evidence)
			}
		}
		if r.Grade != GradeF {
			t.Errorf("%s: %s", name, r.Grade)
		}
	}
}

func FuzzListing(f *testing.F) {
	f.Add([]byte("f 4755 0 0 12\t/usr/bin/su\x00\x00l 777 0 0 7\t/bin\x00usr/bin\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, _ := parseListing(b)
		tree := newTree(context.Background(), list)
		for _, e := range list {
			if strings.HasPrefix(e.path, "/") || strings.Contains("/"+e.path+"/", "/../") {
				t.Errorf("the path %q leads out", e.path)
			}
			tree.resolve(e.path)
			tree.children(e.path)
			_ = e.show()
		}
	})
}

func FuzzSockets(f *testing.F) {
	f.Add("  sl\n 0: 00000000:0016 00000000:0000 0A\n")
	f.Fuzz(func(_ *testing.T, s string) {
		for _, proto := range []string{"tcp", "udp6"} {
			list, _ := parseSockets(proto, s)
			_ = fmt.Sprint(list)
		}
	})
}
