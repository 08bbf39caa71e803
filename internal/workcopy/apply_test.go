//go:build unix

package workcopy

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"testing"
)

func change(path string, old, new version) Changes {
	return Changes{List: []Change{{Path: path, old: old, new: new}}}
}

func text(s string) version { return version{plain, []byte(s)} }

func TestChangesAreOnlyAppliedToWhatTheyWereMadeFrom(t *testing.T) {
	t.Parallel()
	there := files{"a": "1", "d/b": "2", "l@": "a", "dir/x": "x", "outside@": "/tmp", "in@": "d"}
	for name, c := range map[string]struct {
		changes Changes
		kind    error
	}{
		"another content":       {change("a", text("0"), text("2")), ErrNotClean},
		"another mode":          {change("a", version{executable, []byte("1")}, text("2")), ErrNotClean},
		"a link instead":        {change("l", text("1"), text("2")), ErrNotClean},
		"is there already":      {change("a", version{}, text("2")), ErrNotClean},
		"is gone":               {change("none", text("x"), version{}), ErrNotClean},
		"out of the folder":     {change("../x", version{}, text("2")), ErrRefused},
		"absolute":              {change("/tmp/x", version{}, text("2")), ErrRefused},
		"into git's":            {change(".git/hooks/post-checkout", version{}, text("2")), ErrRefused},
		"into git's, by case":   {change("d/.Git/config", version{}, text("2")), ErrRefused},
		"into git's, with HFS":  {change(".g\u200cit/config", version{}, text("2")), ErrRefused},
		"into git's, with NTFS": {change(".git::$INDEX_ALLOCATION/config", version{}, text("2")), ErrRefused},
		"under a link out":      {change("outside/x", version{}, text("2")), ErrRefused},
		"under a link in":       {change("in/x", version{}, text("2")), ErrRefused},
		"a link out":            {change("new", version{}, version{symlink, []byte("../..")}), ErrRefused},
		"a link to git's":       {change("new", version{}, version{symlink, []byte("d/../.git/hooks")}), ErrRefused},
		"NUL":                   {change("a\x00b", version{}, text("2")), ErrRefused},
	} {
		dir := t.TempDir()
		put(t, dir, there)
		// A change that would be fine goes first: it must not be made either.
		all := Changes{List: append([]Change{{Path: "fine", new: text("f")}}, c.changes.List...)}
		if err := Apply(t.Context(), dir, all); !errors.Is(err, c.kind) {
			t.Errorf("%s: %v", name, err)
		}
		if got := content(t, dir); !maps.Equal(got, there) {
			t.Errorf("%s: there is %v", name, got)
		}
	}
}

func TestAFailureInTheMiddleIsUndone(t *testing.T) {
	t.Parallel()
	there := files{"a*": "1", "gone/b": "2", "l@": "a", "full/x": "x"}
	dir := t.TempDir()
	put(t, dir, there)
	changes := Changes{List: []Change{
		{Path: "a", old: version{executable, []byte("1")}, new: text("2")},
		{Path: "full", new: text("a folder that isn't empty is there")},
		{Path: "gone/b", old: text("2")},
		{Path: "l", old: version{symlink, []byte("a")}, new: text("x")},
		{Path: "new/x", new: text("x")},
	}}
	if err := Apply(t.Context(), dir, changes); err == nil {
		t.Fatal("it went through")
	}
	if got := content(t, dir); !maps.Equal(got, there) {
		t.Errorf("there is %v", got)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".sandbox-*")); len(left) != 0 {
		t.Errorf("temporary files stay: %v", left)
	}
	if _, err := os.Stat(filepath.Join(dir, "new")); err == nil {
		t.Error("a new folder stays")
	}
}

func TestApplyingASecondTimeChangesNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put(t, dir, files{"a": "1", "gone": "g"})
	changes := Changes{List: []Change{{Path: "a", old: text("1"), new: text("2")}, {Path: "gone", old: text("g")}, {Path: "new", new: text("n")}}}
	for range 2 {
		if err := Apply(t.Context(), dir, changes); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "new"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Apply(t.Context(), dir, changes); !errors.Is(err, ErrNotClean) {
		t.Errorf("got %v", err)
	}
}

func TestUncommittedChangesOfOnesOwnAreSeenBeforeARun(t *testing.T) {
	t.Parallel()
	needsGit(t)
	top := t.TempDir()
	put(t, top, files{"sub/a": "1", "other/b": "1"})
	if err := CheckClean(t.Context(), top, nil); err != nil {
		t.Errorf("in no repository: %v", err)
	}
	git(t, top, "init", "-q")
	git(t, top, "add", "-A")
	git(t, top, "commit", "-qm", "x")
	put(t, top, files{"sub/terraform.tfstate": "{}", "sub/.terraform/x": "", "sub/run.log": "l", "other/b": "2"})
	if err := CheckClean(t.Context(), top+"/sub", []string{"*.log"}); err != nil {
		t.Errorf("with what is left out, and changes elsewhere: %v", err)
	}
	put(t, top, files{"sub/a": "2"})
	if err := CheckClean(t.Context(), top+"/sub", []string{"*.log"}); !errors.Is(err, ErrNotClean) {
		t.Errorf("got %v", err)
	}
}
