package workcopy

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"slices"
	"strings"
)

// version is what a path is like on one side of a change.
type version struct {
	mode    mode
	content []byte // a link's is its target
}

func (v version) equal(o version) bool { return v.mode == o.mode && bytes.Equal(v.content, o.content) }

// Change is one path that a run left otherwise than it found it.
type Change struct {
	Path     string
	old, new version
}

// Kind is "added", "changed" or "removed".
func (c Change) Kind() string {
	switch {
	case c.old.mode == absent:
		return "added"
	case c.new.mode == absent:
		return "removed"
	}
	return "changed"
}

// LeftOut is a path that isn't among the changes although it is not as it was, and why.
type LeftOut struct{ Path, Reason string }

// Changes are what a run did to its working folder. Every path in it was checked: it lies in the folder, isn't git's, and
// is a plain file, an executable one, or a link that stays in the folder.
type Changes struct {
	// List is sorted by path.
	List    []Change
	LeftOut []LeftOut
}

// Limits bound what is taken out of a guest, in bytes; 0 stands for the default.
type Limits struct {
	File  int64 // of one changed file, default 10 MiB
	Total int64 // of all of them, old and new, default 64 MiB
	Files int   // changed files, default 10,000
}

func (l Limits) withDefaults() Limits {
	if l.File == 0 {
		l.File = 10 << 20
	}
	if l.Total == 0 {
		l.Total = 64 << 20
	}
	if l.Files == 0 {
		l.Files = 10_000
	}
	return l
}

const verbCollect = "collect the changes"

// Collect compares the working folder with what it was like at first. New files that are ignored aren't changes; files
// that were there at first are, whatever a .gitignore says.
func Collect(ctx context.Context, p Place, ignore *Ignore, limits Limits) (Changes, error) {
	if err := p.check(); err != nil {
		return Changes{}, err
	}
	limits = limits.withDefaults()
	before, err := p.list(ctx, verbCollect, p.base(), limits.File, nil, "")
	if err != nil {
		return Changes{}, err
	}
	// A repository may hold folders of names that are left out by default.
	tracked := map[string]bool{}
	for name := range before {
		for part := range strings.SplitSeq(name, "/") {
			tracked[part] = true
		}
	}
	prune := slices.DeleteFunc(ignore.pruned(), func(name string) bool { return tracked[name] && !slices.Contains(never, name) })
	after, err := p.list(ctx, verbCollect, p.Dir, limits.File, prune, "")
	if err != nil {
		return Changes{}, err
	}
	c := &collector{place: p, limits: limits, before: before, after: after, old: map[string]version{}, new: map[string]version{}}
	if err := c.ignore(ctx, ignore); err != nil {
		return Changes{}, err
	}
	if err := c.compare(ctx); err != nil {
		return Changes{}, err
	}
	return c.changes(), nil
}

type collector struct {
	place         Place
	limits        Limits
	before, after listing
	left          []LeftOut
	total         int64
	old, new      map[string]version
}

func (c *collector) leave(path, format string, a ...any) {
	c.left = append(c.left, LeftOut{path, fmt.Sprintf(format, a...)})
}

// ignore drops names that are no part of the working copy.
func (c *collector) ignore(ctx context.Context, ignore *Ignore) error {
	var rules []string
	for name, k := range c.after {
		if (name == ".gitignore" || strings.HasSuffix(name, "/.gitignore")) && (k == kindFile || k == kindExec) {
			rules = append(rules, name)
		}
	}
	slices.Sort(rules)
	err := c.place.fetch(ctx, verbCollect, c.place.Dir, rules, c.limits.File, func(m member) error {
		text, err := io.ReadAll(io.LimitReader(m.content, 1<<20))
		ignore.Add(strings.TrimSuffix(strings.TrimSuffix(m.name, ".gitignore"), "/"), string(text))
		return err
	})
	if err != nil {
		return err
	}
	for name, k := range c.after {
		if _, was := c.before[name]; !was && ignore.IgnoredBelow(name, false) {
			delete(c.after, name)
			continue
		}
		if err := checkName(name); err != nil {
			c.leave(name, "%v", err)
			delete(c.after, name)
			delete(c.before, name)
			continue
		}
		switch k {
		case kindSpecial:
			c.leave(name, "it is a pipe, socket or device")
		case kindBig:
			if c.before[name] == kindBig {
				continue // compared in the guest
			}
			c.leave(name, "it is larger than %d bytes", c.limits.File)
		case kindSetID:
			c.leave(name, "it is setuid or setgid")
		default:
			continue
		}
		delete(c.after, name)
		delete(c.before, name)
	}
	for name := range c.before {
		// What was sent under a name that isn't taken back stays as it is.
		if checkName(name) != nil || ignore.never(name) {
			delete(c.before, name)
		}
	}
	return nil
}

// big leaves out what was too large to be told, where it isn't as it was.
func (c *collector) big(ctx context.Context) error {
	var ask []string
	for name, k := range c.before {
		switch now, still := c.after[name]; {
		case k != kindBig:
			continue
		case !still:
			c.leave(name, "it is removed, and had more than %d bytes", c.limits.File)
		case now != kindBig:
			c.leave(name, "it is changed, and had more than %d bytes", c.limits.File)
		default:
			ask = append(ask, name)
		}
		delete(c.before, name)
		delete(c.after, name)
	}
	slices.Sort(ask)
	changed, err := c.place.differing(ctx, verbCollect, ask)
	for _, name := range changed {
		c.leave(name, "it is changed, and larger than %d bytes", c.limits.File)
	}
	return err
}

// compare fetches what differs.
func (c *collector) compare(ctx context.Context) error {
	if err := c.big(ctx); err != nil {
		return err
	}
	both := func(name string, k kind) bool { o, ok := c.before[name]; return ok && isFile(o) && isFile(k) }
	var ask []string
	for name, k := range c.after {
		if both(name, k) {
			ask = append(ask, name)
		}
	}
	slices.Sort(ask)
	was, err := c.place.hashes(ctx, verbCollect, c.place.base(), ask)
	if err != nil {
		return err
	}
	is, err := c.place.hashes(ctx, verbCollect, c.place.Dir, ask)
	if err != nil {
		return err
	}
	same := func(name string) bool {
		return was[name] != "" && was[name] == is[name] && c.before[name] == c.after[name]
	}
	var fromOld, fromNew []string
	for name := range c.before {
		if o, still := c.after[name]; !still || !both(name, o) || !same(name) {
			fromOld = append(fromOld, name)
		}
	}
	for name, k := range c.after {
		if !both(name, k) || !same(name) {
			fromNew = append(fromNew, name)
		}
	}
	slices.Sort(fromOld)
	slices.Sort(fromNew)
	if len(fromOld) > c.limits.Files || len(fromNew) > c.limits.Files {
		return fmt.Errorf("unable to %s: %w; exclude what is made by the build (exclude, .gitignore)", verbCollect,
			refused("%d files changed, more than the %d that may", max(len(fromOld), len(fromNew)), c.limits.Files))
	}
	if err := c.take(ctx, c.place.base(), fromOld, c.old); err != nil {
		return err
	}
	return c.take(ctx, c.place.Dir, fromNew, c.new)
}

func isFile(k kind) bool { return k == kindFile || k == kindExec }

func (c *collector) take(ctx context.Context, dir string, names []string, into map[string]version) error {
	return c.place.fetch(ctx, verbCollect, dir, names, c.limits.File, func(m member) error {
		if c.total += m.size; c.total > c.limits.Total {
			return fmt.Errorf("%w; exclude what is made by the build (exclude, .gitignore)", refused("the changed files have more than %d bytes together", c.limits.Total))
		}
		if m.mode == symlink {
			into[m.name] = version{symlink, []byte(m.target)}
			return nil
		}
		content, err := io.ReadAll(m.content)
		if err != nil {
			return err
		}
		into[m.name] = version{m.mode, content}
		return nil
	})
}

// changes puts both sides together and checks what is new.
func (c *collector) changes() Changes {
	result := Changes{LeftOut: c.left}
	names := map[string]bool{}
	for name := range c.old {
		names[name] = true
	}
	for name := range c.new {
		names[name] = true
	}
	for name := range names {
		change := Change{Path: name, old: c.old[name], new: c.new[name]}
		if change.old.equal(change.new) {
			continue
		}
		if change.new.mode == symlink {
			if err := checkLink(name, string(change.new.content)); err != nil {
				result.LeftOut = append(result.LeftOut, LeftOut{name, err.Error()})
				continue
			}
		}
		result.List = append(result.List, change)
	}
	slices.SortFunc(result.List, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
	slices.SortFunc(result.LeftOut, func(a, b LeftOut) int { return strings.Compare(a.Path, b.Path) })
	result.dropUnderLinks()
	return result
}

// dropUnderLinks leaves out files whose folder is a link in the end: written, they would land where the link leads.
func (c *Changes) dropUnderLinks() {
	links := map[string]bool{}
	for _, change := range c.List {
		if change.new.mode == symlink {
			links[change.Path] = true
		}
	}
	c.List = slices.DeleteFunc(c.List, func(change Change) bool {
		for i, b := range []byte(change.Path) {
			if b == '/' && links[change.Path[:i]] && change.new.mode != absent {
				c.LeftOut = append(c.LeftOut, LeftOut{change.Path, "its folder is a link"})
				return true
			}
		}
		return false
	})
}

// SHA256 is a hash in hex.
func SHA256(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// Holding returns the paths whose new content or name is one that hit says of: with a secret that must not get out.
func (c Changes) Holding(hit func(text string) bool) []string {
	var paths []string
	for _, change := range c.List {
		if hit(string(change.new.content)) || hit(change.Path) {
			paths = append(paths, change.Path)
		}
	}
	return paths
}
