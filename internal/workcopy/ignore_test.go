//go:build unix

package workcopy

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// checkIgnore asks git itself.
func checkIgnore(t *testing.T, dir string, paths []string) map[string]bool {
	t.Helper()
	c := exec.Command("git", "check-ignore", "--no-index", "-z", "--stdin")
	c.Dir = dir
	c.Stdin = strings.NewReader(strings.ReplaceAll(strings.Join(paths, "\x00")+"\x00", "/\x00", "\x00"))
	out, _ := c.Output() // exit 1: none is ignored
	ignored := map[string]bool{}
	for name := range strings.SplitSeq(string(out), "\x00") {
		ignored[name], ignored[name+"/"] = true, true
	}
	return ignored
}

// TestIgnoringAgreesWithGit builds .gitignore files from the pieces that rules are made of, and asks git.
func TestIgnoringAgreesWithGit(t *testing.T) {
	t.Parallel()
	needsGit(t)
	random := rand.New(rand.NewPCG(1, 2))
	pieces := []string{"a", "b", "ab", "*", "**", "?", "a*", "*b", "[ab]", "[!a]", "[^b]", "[a-c]x", "[[:alpha:]]", `\*`, `a\b`, "a**b", "c.txt", "*.txt", "[", `\`, "a b", "[]a]", "[!]]", "é"}
	names := []string{"a", "b", "ab", "aXb", "*", "c.txt", "x", "bx", "]", "[", "a b", "é", "abb"}
	for round := range 12 {
		dir := t.TempDir()
		git(t, dir, "init", "-q")
		var text strings.Builder
		for range 1 + random.IntN(8) {
			var parts []string
			for range 1 + random.IntN(3) {
				parts = append(parts, pieces[random.IntN(len(pieces))])
			}
			line := strings.Join(parts, "/")
			switch random.IntN(6) {
			case 0:
				line = "/" + line
			case 1:
				line += "/"
			case 2:
				line = "!" + line
			case 3:
				line += "  "
			}
			text.WriteString(line + "\n")
		}
		below := pieces[random.IntN(len(pieces))] + "\n!" + pieces[random.IntN(len(pieces))] + "\n"
		put(t, dir, files{".gitignore": text.String(), "a/.gitignore": below})
		var paths []string
		for range 150 {
			var parts []string
			for range 1 + random.IntN(4) {
				parts = append(parts, names[random.IntN(len(names))])
			}
			p := strings.Join(parts, "/")
			full := filepath.Join(dir, p)
			if _, err := os.Lstat(full); err == nil || os.MkdirAll(filepath.Dir(full), 0o755) != nil {
				continue // it is there, or has a file above it
			}
			if random.IntN(3) == 0 {
				p += "/"
				if err := os.Mkdir(full, 0o755); err != nil {
					t.Fatal(err)
				}
			} else {
				if err := os.WriteFile(full, nil, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			paths = append(paths, p)
		}
		want := checkIgnore(t, dir, paths)
		ig := NewIgnore(nil)
		ig.preset = nil
		ig.Add("", text.String())
		ig.Add("a", below)
		for _, p := range paths {
			if got := ig.IgnoredBelow(strings.TrimSuffix(p, "/"), strings.HasSuffix(p, "/")); got != want[p] {
				t.Errorf("round %d: %q is ignored: %t, git says %t, by\n%s--- a/.gitignore\n%s", round, p, got, want[p], text.String(), below)
			}
		}
		if t.Failed() {
			return
		}
	}
}

func TestWhatIsLeftOutByDefaultCanBeBroughtBackAndGitNever(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		exclude string
		path    string
		dir     bool
		want    bool
	}{
		{"", "node_modules", true, true},
		{"", "deep/.venv", true, true},
		{"", "terraform.tfstate", false, true},
		{"", "a.go", false, false},
		{"!node_modules/", "node_modules", true, false},
		{"*.go", "x/a.go", false, true},
		{"!.git", ".git", true, true},
		{"!.checkpoints", ".checkpoints", true, true},
	} {
		if got := NewIgnore([]string{c.exclude}).Ignored(c.path, c.dir); got != c.want {
			t.Errorf("exclude %q: %s is left out: %t", c.exclude, c.path, got)
		}
	}
}

func TestAFolderOfARepositoryIsAlsoIgnoredByTheFilesAboveIt(t *testing.T) {
	t.Parallel()
	needsGit(t)
	top := t.TempDir()
	git(t, top, "init", "-q")
	put(t, top, files{".gitignore": "*.log\nservices/foo/out\n", "services/.gitignore": "tmp\n", "services/foo/a.go": "x", ".git/info/exclude": "private\n"})
	ig, err := Around(filepath.Join(top, "services", "foo"), nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]bool{"x/a.log": true, "out": true, "x/out": false, "tmp": true, "private": true, "a.go": false} {
		if got := ig.IgnoredBelow(name, false); got != want {
			t.Errorf("%s: %t", name, got)
		}
	}
}

func FuzzWildmatchEnds(f *testing.F) {
	f.Add("a/**/b[!x]*", "a/b/c")
	f.Add("[[:", "x")
	f.Fuzz(func(_ *testing.T, pattern, name string) {
		if len(pattern) < 40 && len(name) < 40 {
			_ = fmt.Sprint(wildmatch(pattern, name)) // no panic, an end
		}
	})
}
