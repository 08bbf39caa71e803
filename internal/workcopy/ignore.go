package workcopy

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Names of ours in a working folder. They are in no patch and no artifact.
const (
	// Checkpoints is the folder that copies of the working folder are kept in.
	Checkpoints = ".checkpoints"
	// markFile says that a working folder was filled by this package, and may be emptied by it.
	markFile = ".sandbox-copy"
)

// never are names that are left out whatever is configured.
var never = []string{".git", Checkpoints, markFile}

// DefaultExcludes are what is left out of a working copy unless an exclude brings it back ("!node_modules"): what is
// made anew from the rest, and states of Terraform, which hold secrets.
var DefaultExcludes = []string{
	"node_modules/", ".venv/", "venv/", "__pycache__/", ".pytest_cache/", ".mypy_cache/", ".ruff_cache/", ".tox/", ".nox/", ".cache/", ".npm/", ".gradle/",
	".turbo/", ".parcel-cache/", ".next/cache/", ".DS_Store", ".terraform/", "*.tfstate", "*.tfstate.*", ".terraform.tfstate.lock.info",
}

// rule is one line of a .gitignore file.
type rule struct {
	pattern  string
	include  bool // "!": takes out of what earlier rules ignore
	dirOnly  bool // "name/"
	anchored bool // matches the path from the file's folder on, not a name anywhere below it
}

// parseRule reads one line; ok is false for blank lines and comments.
func parseRule(line string) (r rule, ok bool) {
	line = strings.TrimSuffix(line, "\r")
	if strings.HasPrefix(line, "#") {
		return rule{}, false
	}
	line = trimTrailing(line)
	if strings.HasPrefix(line, "!") {
		r.include, line = true, line[1:]
	}
	if strings.HasSuffix(line, "/") {
		r.dirOnly, line = true, line[:len(line)-1]
	}
	if line == "" {
		return rule{}, false
	}
	r.anchored = strings.Contains(line, "/")
	r.pattern = strings.TrimPrefix(line, "/")
	return r, true
}

// trimTrailing removes blanks at the end that no backslash protects.
func trimTrailing(line string) string {
	end := 0
	for i := 0; i < len(line); i++ {
		switch {
		case line[i] == '\\' && i+1 < len(line):
			i++
			end = i + 1
		case line[i] != ' ':
			end = i + 1
		}
	}
	return line[:end]
}

func (r rule) matches(rel string, dir bool) bool {
	if r.dirOnly && !dir {
		return false
	}
	if r.anchored {
		return wildmatch(r.pattern, rel)
	}
	return wildmatch(r.pattern, path.Base(rel))
}

func parseRules(text string) []rule {
	var rules []rule
	for line := range strings.SplitSeq(strings.TrimPrefix(text, "\ufeff"), "\n") {
		if r, ok := parseRule(line); ok {
			rules = append(rules, r)
		}
	}
	return rules
}

// Ignore decides which files of a tree belong to a working copy: names that never do, then exclude patterns, then the
// .gitignore files from the deepest up, then DefaultExcludes. The last rule of a file that matches decides, as in git.
type Ignore struct {
	exclude []rule
	// prefix is where the tree lies below the folder that rules of an enclosing repository are written for.
	prefix string
	files  map[string][]rule // by folder, relative to the repository's top; "" is the top
	info   []rule            // .git/info/exclude
	preset []rule
}

// NewIgnore makes an Ignore that knows no .gitignore file yet. Patterns of exclude are written as in .gitignore.
func NewIgnore(exclude []string) *Ignore {
	return &Ignore{exclude: parseRules(strings.Join(exclude, "\n")), files: map[string][]rule{}, preset: parseRules(strings.Join(DefaultExcludes, "\n"))}
}

// Around returns an Ignore for the folder dir on this machine that also knows what an enclosing repository says of
// it: .gitignore files of the folders above, up to the one with .git, and that one's info/exclude.
func Around(dir string, exclude []string) (*Ignore, error) {
	ig := NewIgnore(exclude)
	abs, err := filepath.Abs(dir)
	if err != nil {
		return nil, err
	}
	top := abs
	for {
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil {
			break
		}
		above := filepath.Dir(top)
		if above == top {
			return ig, nil // no repository
		}
		top = above
	}
	rel, err := filepath.Rel(top, abs)
	if err != nil {
		return nil, err
	}
	if rel = filepath.ToSlash(rel); rel != "." {
		ig.prefix = rel
	}
	for at := ig.prefix; at != ""; {
		if at = path.Dir(at); at == "." {
			at = ""
		}
		text, err := readIfThere(filepath.Join(top, filepath.FromSlash(at), ".gitignore"))
		if err != nil {
			return nil, err
		}
		ig.files[at] = parseRules(text)
	}
	// In a linked working tree or a submodule .git is a file, and info lies elsewhere.
	text, err := readIfThere(filepath.Join(top, ".git", "info", "exclude"))
	if err != nil {
		return nil, err
	}
	ig.info = parseRules(text)
	return ig, nil
}

func readIfThere(name string) (string, error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) || err == nil && !info.Mode().IsRegular() {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	text, err := os.ReadFile(name)
	return string(text), err
}

// Add takes in the .gitignore file of a folder of the tree; "" is the tree's top.
func (ig *Ignore) Add(folder, text string) {
	ig.files[path.Join(ig.prefix, folder)] = parseRules(text)
}

// Ignored says whether a path of the tree is left out. The folders above it must have been asked about before: what
// lies in one that is left out is left out.
func (ig *Ignore) Ignored(rel string, dir bool) bool {
	if slices.Contains(never, path.Base(rel)) {
		return true
	}
	if decided, out := decide(ig.exclude, rel, dir); decided {
		return out
	}
	full := path.Join(ig.prefix, rel)
	for at := path.Dir(full); ; at = path.Dir(at) {
		if at == "." {
			at = ""
		}
		if decided, out := decide(ig.files[at], strings.TrimPrefix(strings.TrimPrefix(full, at), "/"), dir); decided {
			return out
		}
		if at == "" {
			break
		}
	}
	if decided, out := decide(ig.info, full, dir); decided {
		return out
	}
	_, out := decide(ig.preset, rel, dir)
	return out
}

// IgnoredBelow is Ignored for a path whose folders weren't asked about.
func (ig *Ignore) IgnoredBelow(rel string, dir bool) bool {
	for i := 0; i < len(rel); i++ {
		if rel[i] == '/' && ig.Ignored(rel[:i], true) {
			return true
		}
	}
	return ig.Ignored(rel, dir)
}

func decide(rules []rule, rel string, dir bool) (decided, out bool) {
	for i := len(rules) - 1; i >= 0; i-- {
		if rules[i].matches(rel, dir) {
			return true, !rules[i].include
		}
	}
	return false, false
}

// pruned are the names of folders that a walk of the guest's tree needn't enter: those that never belong, and the
// presets that no exclude brings back.
func (ig *Ignore) pruned() []string {
	names := slices.Clone(never)
	for _, r := range ig.preset {
		if r.dirOnly && !r.anchored && !r.include && !ig.mayInclude(r.pattern) {
			names = append(names, r.pattern)
		}
	}
	return names
}

// mayInclude says whether any rule could bring a preset back; with one that isn't sure, the walk enters.
func (ig *Ignore) mayInclude(string) bool {
	for _, r := range ig.exclude {
		if r.include {
			return true
		}
	}
	return false
}

// never says whether a path lies in, or is, what no working copy holds.
func (ig *Ignore) never(rel string) bool {
	for part := range strings.SplitSeq(rel, "/") {
		if slices.Contains(never, part) {
			return true
		}
	}
	return false
}
