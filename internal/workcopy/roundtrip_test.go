//go:build unix

package workcopy

import (
	"context"
	"errors"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

func send(t testing.TB, p Place, dir string, exclude ...string) Sent {
	t.Helper()
	sent, err := Send(t.Context(), p, Source{Dir: dir, Exclude: exclude})
	if err != nil {
		t.Fatal(err)
	}
	return sent
}

func collect(t testing.TB, p Place) Changes {
	t.Helper()
	c, err := Collect(t.Context(), p, NewIgnore(nil), Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestASourceFolderGoesInAndItsChangesComeOut(t *testing.T) {
	t.Parallel()
	needsGit(t)
	before := files{
		"a.txt": "one\ntwo\nthree\n", "run.sh*": "#!/bin/sh\n", "deep/er/b.txt": "b", "no end": "x\ny", "empty": "", "gone.txt": "bye\n", "gone/x": "x\n", "link@": "a.txt", "to-link": "text\n",
		"bin": "a\x00b", "é \"q\".txt": "quoted\n", "mode": "m\n", ".gitignore": "*.log\nout/\n", "kept.log.txt": "k\n", "turned/into/file": "f\n", "swap": "s\n", "-dash": "d\n",
	}
	source := t.TempDir()
	put(t, source, before)
	put(t, source, files{".git/config": "[core]\n", "node_modules/x/index.js": "x", "build.log": "l", "out/x": "o", "terraform.tfstate": "{}"})
	p, l := newPlace(t)
	sent := send(t, p, source)
	if got := content(t, p.Dir); !maps.Equal(got, before) {
		t.Fatalf("in the guest is %s", got.names())
	}
	if sent.Files != len(before) || l.calls != 1 {
		t.Errorf("sent %+v in %d calls", sent, l.calls)
	}
	if c := collect(t, p); len(c.List) != 0 || len(c.LeftOut) != 0 || len(c.Patch()) != 0 {
		t.Errorf("nothing was done, and there are changes: %+v", c)
	}

	after := maps.Clone(before)
	for _, name := range []string{"gone.txt", "gone/x", "to-link", "mode", "turned/into/file", "swap"} {
		delete(after, name)
		if err := os.Remove(filepath.Join(p.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.RemoveAll(filepath.Join(p.Dir, "turned")); err != nil {
		t.Fatal(err)
	}
	changed := files{
		"a.txt": "one\n2\nthree\nfour", "no end": "x\ny\n", "empty": "no more\n", "to-link@": "deep/er/b.txt", "bin": "\x00" + strings.Repeat("xyz", 1000), "é \"q\".txt": "other\n",
		"mode*": "m\n", "new/dir/file name": "n\n", "new-empty": "", "turned": "a file\n", "link@": "deep", "tab\tname": "t\n", "swap/inner": "i\n", "-dash": "e\n", "big.txt": strings.Repeat("line\n", 1000),
	}
	put(t, p.Dir, changed)
	maps.Copy(after, changed)
	put(t, p.Dir, files{"made.log": "ignored", "out/y": "ignored", "node_modules/y.js": "ignored", ".venv/x": "ignored"})
	c := collect(t, p)
	if len(c.LeftOut) != 0 {
		t.Errorf("left out: %v", c.LeftOut)
	}

	t.Run("as a patch that git takes", func(t *testing.T) {
		target := t.TempDir()
		put(t, target, before)
		git(t, target, "init", "-q")
		patch := filepath.Join(t.TempDir(), "p")
		if err := os.WriteFile(patch, c.Patch(), 0o600); err != nil {
			t.Fatal(err)
		}
		git(t, target, "apply", "--whitespace=nowarn", patch)
		if got := content(t, target); !maps.Equal(got, after) {
			t.Errorf("after the patch there is %q", got)
		}
	})
	t.Run("with git's numbers", func(t *testing.T) {
		a, b := t.TempDir(), ""
		put(t, a, before)
		git(t, a, "init", "-q")
		git(t, a, "add", "-A")
		git(t, a, "commit", "-qm", "x")
		_ = b
		if err := Apply(t.Context(), a, c); err != nil {
			t.Fatal(err)
		}
		git(t, a, "add", "-A")
		want := git(t, a, "diff", "--cached", "--no-renames", "--shortstat")
		if got := c.Stat().String(); got != want {
			t.Errorf("%s; git says %s", got, want)
		}
		if got := content(t, a); !maps.Equal(got, after) {
			t.Errorf("after applying there is %q", got)
		}
	})
	t.Run("with git's own bytes for text", func(t *testing.T) {
		for _, change := range c.List {
			if change.Path != "a.txt" {
				continue
			}
			want := "diff --git a/a.txt b/a.txt\nindex " + blobName(change.old) + ".." + blobName(change.new) + " 100644\n" +
				"--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,4 @@\n one\n-two\n+2\n three\n+four\n\\ No newline at end of file\n"
			if got := string((Changes{List: []Change{change}}).Patch()); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
		}
	})
}

func TestAFolderThatNoRunFilledIsLeftAlone(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	put(t, source, files{"a": "1"})
	p, _ := newPlace(t)
	put(t, p.Dir, files{"precious": "x"})
	if _, err := Send(t.Context(), p, Source{Dir: source}); !errors.Is(err, ErrOccupied) || !strings.Contains(err.Error(), "precious") {
		t.Errorf("got %v", err)
	}
	if got := content(t, p.Dir); !maps.Equal(got, files{"precious": "x"}) {
		t.Errorf("there is %v", got)
	}
}

func TestAnotherRunBeginsAfreshAndKeepsCheckpoints(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	put(t, source, files{"a": "1"})
	p, _ := newPlace(t)
	send(t, p, source)
	put(t, p.Dir, files{"a": "2", "left/behind": "x", ".hidden": "x", Checkpoints + "/before/a": "1"})
	if err := os.Chmod(filepath.Join(p.Dir, "left"), 0o500); err != nil {
		t.Fatal(err)
	}
	send(t, p, source)
	if got := content(t, p.Dir); !maps.Equal(got, files{"a": "1"}) {
		t.Errorf("there is %v", got)
	}
	if _, err := os.Stat(filepath.Join(p.Dir, Checkpoints, "before", "a")); err != nil {
		t.Error(err)
	}
	if c := collect(t, p); len(c.List) != 0 {
		t.Errorf("changes: %+v", c)
	}
}

func TestLinksThatLeaveTheSourceFolderAreRefused(t *testing.T) {
	t.Parallel()
	for name, link := range map[string]files{
		"absolute":           {"l@": "/etc/passwd"},
		"out":                {"deep/l@": "../../x"},
		"out by another":     {"d1/d2/x": "", "m@": "d1/d2", "l@": "m/../../../y"},
		"into git's":         {"l@": ".git/config"},
		"into git's by case": {"l@": ".GIT/config"},
	} {
		source := t.TempDir()
		put(t, source, link)
		p, l := newPlace(t)
		if _, err := Send(t.Context(), p, Source{Dir: source}); !errors.Is(err, ErrRefused) || l.calls != 0 {
			t.Errorf("%s: %v, after %d calls", name, err, l.calls)
		}
	}
}

func TestWhatAHostileGuestLeavesIsNotTaken(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	put(t, source, files{"a": "1", "sub/x": "x"})
	p, _ := newPlace(t)
	send(t, p, source)
	put(t, p.Dir, files{
		"good": "g", "out@": "../../etc", "abs@": "/etc/passwd", "hooks@": ".git/hooks", ".git/config": "[core]\nfsmonitor=touch /tmp/pwned\n", "nested/.git/config": "x", "nested/ok": "n",
		".GIT/config": "x", "git~1": "x", "back\\slash": "x", "Sub@": "sub", "new\nline": "n",
	})
	if err := errors.Join(
		syscall.Mkfifo(filepath.Join(p.Dir, "pipe"), 0o600),
		os.WriteFile(filepath.Join(p.Dir, "suid"), nil, 0o600), os.Chmod(filepath.Join(p.Dir, "suid"), 0o4755|os.ModeSetuid),
		os.WriteFile(filepath.Join(p.Dir, "sparse"), nil, 0o600), os.Truncate(filepath.Join(p.Dir, "sparse"), 1<<40),
		os.WriteFile(filepath.Join(p.Dir, "bad\xffname"), nil, 0o600),
	); err != nil {
		t.Fatal(err)
	}
	c := collect(t, p)
	var got []string
	for _, change := range c.List {
		got = append(got, change.Kind()+" "+change.Path)
	}
	if want := "added Sub|added good|added nested/ok|added new\nline"; strings.Join(got, "|") != want {
		t.Errorf("taken: %q", strings.Join(got, "|"))
	}
	left := map[string]string{}
	for _, l := range c.LeftOut {
		left[l.Path] = l.Reason
	}
	for _, name := range []string{"out", "abs", "hooks", ".GIT/config", "git~1", "back\\slash", "pipe", "suid", "sparse", "bad\xffname"} {
		if left[name] == "" {
			t.Errorf("%q isn't told as left out", name)
		}
	}
}

// A file that grows or turns into something else between the listing and the fetch.
func TestAFileThatIsSwappedUnderTheFetchIsRefused(t *testing.T) {
	t.Parallel()
	for name, swap := range map[string]func(name string) error{
		"grows":         func(name string) error { return os.Truncate(name, 1<<40) },
		"becomes a dev": func(name string) error { return errors.Join(os.Remove(name), syscall.Mkfifo(name, 0o600)) },
		"gets setuid":   func(name string) error { return os.Chmod(name, 0o755|os.ModeSetuid) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source := t.TempDir()
			put(t, source, files{"a": "1"})
			p, l := newPlace(t)
			send(t, p, source)
			put(t, p.Dir, files{"new": "n"})
			l.before = func(cmd guest.Command) {
				if strings.Contains(cmd.Script, "tar -cf") {
					if err := swap(filepath.Join(p.Dir, "new")); err != nil {
						t.Error(err)
					}
				}
			}
			if c, err := Collect(t.Context(), p, NewIgnore(nil), Limits{}); !errors.Is(err, ErrRefused) {
				t.Errorf("got %+v, %v", c, err)
			}
		})
	}
}

func TestTooMuchChangeIsRefusedWithARemedy(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	p, _ := newPlace(t)
	send(t, p, source)
	for name, limits := range map[string]Limits{"files": {Files: 2}, "bytes": {Total: 100}} {
		put(t, p.Dir, files{"a": strings.Repeat("x", 50), "b": strings.Repeat("y", 50), "c": strings.Repeat("z", 50)})
		_, err := Collect(t.Context(), p, NewIgnore(nil), limits)
		if !errors.Is(err, ErrRefused) || !strings.Contains(err.Error(), "exclude") {
			t.Errorf("%s: %v", name, err)
		}
	}
	c, err := Collect(t.Context(), p, NewIgnore(nil), Limits{File: 10})
	if err != nil || len(c.List) != 0 || len(c.LeftOut) != 3 {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestLargeFilesAreComparedWithoutBeingFetched(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	put(t, source, files{"same": strings.Repeat("x", 50), "other": strings.Repeat("x", 50), "gone": strings.Repeat("x", 50), "small": strings.Repeat("x", 50)})
	p, _ := newPlace(t)
	send(t, p, source)
	put(t, p.Dir, files{"other": strings.Repeat("y", 50), "small": "s"})
	if err := os.Remove(filepath.Join(p.Dir, "gone")); err != nil {
		t.Fatal(err)
	}
	c, err := Collect(t.Context(), p, NewIgnore(nil), Limits{File: 10})
	var left []string
	for _, l := range c.LeftOut {
		left = append(left, l.Path)
	}
	if err != nil || len(c.List) != 0 || strings.Join(left, " ") != "gone other small" {
		t.Errorf("%+v, %v", c, err)
	}
}

func TestAMissingProgramIsNamed(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	put(t, source, files{"a": "1"})
	p, l := newPlace(t)
	l.path = t.TempDir()
	_, err := Send(t.Context(), p, Source{Dir: source})
	var missing *MissingTool
	if !errors.As(err, &missing) || missing.Tool != "tar" || missing.Here {
		t.Errorf("got %v", err)
	}
}

func TestAnInterruptedSendLeavesNoGoroutineAndSaysSo(t *testing.T) {
	t.Parallel()
	source := t.TempDir()
	put(t, source, files{"a": strings.Repeat("x", 1<<20)})
	p, l := newPlace(t)
	ctx, cancel := context.WithCancel(t.Context())
	l.before = func(guest.Command) { cancel() }
	var cancelled *guest.CancelledError
	if _, err := Send(ctx, p, Source{Dir: source}); !errors.As(err, &cancelled) {
		t.Errorf("got %v", err)
	}
}
