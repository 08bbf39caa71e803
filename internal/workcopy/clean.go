package workcopy

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// CheckClean refuses a folder of this machine whose repository has changes that aren't committed: what a run changes
// couldn't be told from them afterwards. New files that are left out of a working copy (exclude, DefaultExcludes) don't count. It is the user's own repository, so git is asked as the user would. A folder in no
// repository is clean, and so is any where there is no git.
func CheckClean(ctx context.Context, dir string, exclude []string) error {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	for at := abs; ; at = filepath.Dir(at) {
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			break
		}
		if at == filepath.Dir(at) {
			return nil
		}
	}
	if _, err := exec.LookPath("git"); err != nil {
		return nil //nolint:nilerr // what was sent is compared all the same, before anything is applied
	}
	c := exec.CommandContext(ctx, "git", "--no-optional-locks", "status", "--porcelain", "-z", "--no-renames", "--untracked-files=normal", "--ignore-submodules=all", "--", ".")
	c.Dir = abs
	c.Env = append(os.Environ(), "LC_ALL=C")
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	if err := c.Run(); err != nil {
		return fmt.Errorf("git status in %s: %w: %s", dir, ErrGit, lastLines(stderr.Bytes()))
	}
	ignore := NewIgnore(exclude)
	var lines []string
	for line := range strings.SplitSeq(stdout.String(), "\x00") {
		name, isNew := strings.CutPrefix(line, "?? ")
		if line != "" && !(isNew && ignore.IgnoredBelow(strings.TrimSuffix(name, "/"), strings.HasSuffix(name, "/"))) {
			lines = append(lines, line)
		}
	}
	if len(lines) > 0 {
		more := ""
		if len(lines) > 5 {
			lines, more = lines[:5], fmt.Sprintf("\n … and %d more", len(lines)-5)
		}
		return fmt.Errorf("%s has changes that aren't committed, which those of the run could not be told from: commit or stash them:\n%s%s\n%w", dir, strings.Join(lines, "\n"), more, ErrNotClean)
	}
	return nil
}
