package command

import (
	"errors"
	"fmt"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// find knows the tests that scripts use: -name, -iname, -path, -type, -maxdepth, -mindepth, -user, -perm, -size, -newer,
// -empty, -links, the actions -print, -print0, -prune, -delete and -exec … \;, and !, -o, -a and parentheses.
func find(c *shell.Call) int {
	var roots []string
	args := c.Argv[1:]
	for len(args) > 0 && !strings.HasPrefix(args[0], "-") && args[0] != "!" && args[0] != "(" {
		roots, args = append(roots, args[0]), args[1:]
	}
	if len(roots) == 0 {
		roots = []string{"."}
	}
	q := &finder{c: c, max: 1 << 20, args: args}
	expression, err := q.parse()
	if err != nil {
		return c.Fail("%v", err)
	}
	if !q.acts {
		tests := expression
		expression = func(f *visited) bool { return !tests(f) || print("\n")(q, f) }
	}
	q.expression = expression
	return each(roots, func(r string) int { return q.walk(r, 0) })
}

// visited is one name that find looks at.
type visited struct {
	name  string
	info  *vfs.Info
	prune bool
}

// predicate is a test or an action; it says whether what follows in its row is looked at.
type predicate func(f *visited) bool

type finder struct {
	c          *shell.Call
	min, max   int
	args       []string // not parsed yet
	acts       bool     // an action is given, so that -print isn't meant
	depthFirst bool
	status     int
	expression predicate
}

func (q *finder) next() (string, bool) {
	if len(q.args) == 0 {
		return "", false
	}
	a := q.args[0]
	q.args = q.args[1:]
	return a, true
}

func (q *finder) parse() (predicate, error) {
	p, err := q.either()
	if err == nil && len(q.args) > 0 {
		err = errors.New("you have too many ')'")
	}
	return p, err
}

// either is rows with -o between them.
func (q *finder) either() (predicate, error) {
	p, err := q.row()
	for err == nil && len(q.args) > 0 && (q.args[0] == "-o" || q.args[0] == "-or") {
		q.args = q.args[1:]
		first := p
		var second predicate
		if second, err = q.row(); err == nil {
			p = func(f *visited) bool { return first(f) || second(f) }
		}
	}
	return p, err
}

// row is tests and actions in a row, which end at the first that fails.
func (q *finder) row() (predicate, error) {
	p := predicate(func(*visited) bool { return true })
	for len(q.args) > 0 && q.args[0] != "-o" && q.args[0] != "-or" && q.args[0] != ")" {
		if q.args[0] == "-a" || q.args[0] == "-and" {
			q.args = q.args[1:]
			continue
		}
		one, err := q.one()
		if err != nil {
			return nil, err
		}
		before := p
		p = func(f *visited) bool { return before(f) && one(f) }
	}
	return p, nil
}

func (q *finder) one() (predicate, error) {
	a, ok := q.next()
	switch {
	case !ok:
		return nil, errors.New("expected an expression")
	case a == "!" || a == "-not":
		p, err := q.one()
		return func(f *visited) bool { return !p(f) }, err
	case a == "(":
		p, err := q.either()
		if end, _ := q.next(); err == nil && end != ")" {
			err = errors.New("expected ')'")
		}
		return p, err
	}
	if action, err := q.action(a); action != nil || err != nil {
		q.acts = q.acts || a != "-prune"
		return action, err
	}
	return q.test(a)
}

func print(end string) func(*finder, *visited) bool {
	return func(q *finder, f *visited) bool {
		q.c.Out("%s%s", f.name, end)
		return true
	}
}

// action is nil for what is none.
func (q *finder) action(a string) (predicate, error) {
	c := q.c
	switch a {
	case "-print":
		return func(f *visited) bool { return print("\n")(q, f) }, nil
	case "-print0":
		return func(f *visited) bool { return print("\x00")(q, f) }, nil
	case "-prune":
		return func(f *visited) bool { f.prune = true; return true }, nil
	case "-delete":
		q.depthFirst = true
		return func(f *visited) bool {
			remove := c.Machine.FS.Unlink
			if f.info.IsDir() {
				remove = c.Machine.FS.Rmdir
			}
			if err := remove(c.Cred, c.Path(f.name)); err != nil {
				q.status = c.Fail("cannot delete '%s': %s", f.name, message(err))
				return false
			}
			return true
		}, nil
	case "-exec":
		end := slices.IndexFunc(q.args, func(s string) bool { return s == ";" || s == "+" })
		if end < 0 {
			return nil, errors.New("missing argument to '-exec'")
		}
		command := q.args[:end]
		q.args = q.args[end+1:]
		return func(f *visited) bool {
			argv := slices.Clone(command)
			for i := range argv {
				argv[i] = strings.ReplaceAll(argv[i], "{}", f.name)
			}
			return c.Again(argv) == 0
		}, nil
	}
	return nil, nil
}

func (q *finder) test(a string) (predicate, error) {
	c := q.c
	always := func(*visited) bool { return true }
	switch a {
	case "-xdev", "-mount":
		return always, nil
	case "-empty":
		return func(f *visited) bool {
			if f.info.IsDir() {
				l, err := c.Machine.FS.ReadDir(c.Cred, c.Path(f.name))
				return err == nil && len(l) == 0
			}
			return f.info.Size() == 0
		}, nil
	}
	known := []string{"-name", "-iname", "-path", "-type", "-maxdepth", "-mindepth", "-user", "-perm", "-size", "-newer", "-links"}
	if !slices.Contains(known, a) {
		return nil, fmt.Errorf("unknown predicate '%s'", a)
	}
	v, ok := q.next()
	if !ok {
		return nil, fmt.Errorf("missing argument to '%s'", a)
	}
	switch a {
	case "-name":
		re := glob(v)
		return func(f *visited) bool { return re.MatchString(path.Base(f.name)) }, nil
	case "-iname":
		re := glob(strings.ToLower(v))
		return func(f *visited) bool { return re.MatchString(strings.ToLower(path.Base(f.name))) }, nil
	case "-path":
		re := glob(v)
		return func(f *visited) bool { return re.MatchString(f.name) }, nil
	case "-type":
		return func(f *visited) bool {
			return strings.Contains(v, strings.Replace(modeString(f.info.Mode())[:1], "-", "f", 1))
		}, nil
	case "-maxdepth":
		_, err := fmt.Sscan(v, &q.max)
		return always, wrap(a, err)
	case "-mindepth":
		_, err := fmt.Sscan(v, &q.min)
		return always, wrap(a, err)
	case "-user":
		uid, _, ok := findOwner(c, v)
		if !ok {
			return nil, fmt.Errorf("'%s' is not the name of a known user", v)
		}
		return func(f *visited) bool { u, _ := f.info.Owner(); return u == uid }, nil
	case "-perm":
		return permTest(v)
	case "-size":
		return sizeTest(v)
	case "-links":
		n, err := strconv.ParseUint(v, 10, 32)
		return func(f *visited) bool { return uint64(f.info.Links()) == n }, wrap(a, err)
	}
	ref, err := c.Machine.FS.Stat(c.Cred, c.Path(v)) // -newer
	if err != nil {
		return nil, fmt.Errorf("'%s': %s", v, message(err))
	}
	return func(f *visited) bool { return f.info.ModTime().After(ref.ModTime()) }, nil
}

func wrap(name string, err error) error {
	if err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

func permTest(v string) (predicate, error) {
	var want int
	exact := !strings.HasPrefix(v, "-") && !strings.HasPrefix(v, "/")
	if _, err := fmt.Sscanf(strings.TrimLeft(v, "-/"), "%o", &want); err != nil {
		return nil, wrap("-perm", err)
	}
	return func(f *visited) bool {
		m := octal(f.info.Mode())
		return exact && m == want || v[0] == '-' && m&want == want || v[0] == '/' && m&want != 0
	}, nil
}

// sizeTest reads +10k: more than ten units, each begun one counted whole.
func sizeTest(v string) (predicate, error) {
	units := map[byte]int64{'c': 1, 'w': 2, 'b': 512, 'k': 1 << 10, 'M': 1 << 20, 'G': 1 << 30}
	number, unit := strings.TrimLeft(v, "+-"), int64(512)
	if number != "" && units[number[len(number)-1]] != 0 {
		unit, number = units[number[len(number)-1]], number[:len(number)-1]
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("invalid argument '%s' to -size", v)
	}
	return func(f *visited) bool {
		has := (f.info.Size() + unit - 1) / unit
		return v[0] == '+' && has > n || v[0] == '-' && has < n || v[0] != '+' && v[0] != '-' && has == n
	}, nil
}

func glob(pattern string) *regexp.Regexp {
	s := regexp.QuoteMeta(pattern)
	s = strings.NewReplacer(`\*`, ".*", `\?`, ".", `\[`, "[", `\]`, "]", `\^`, "^").Replace(s)
	re, err := regexp.Compile("(?s)^" + s + "$")
	if err != nil {
		re = regexp.MustCompile("^" + regexp.QuoteMeta(pattern) + "$")
	}
	return re
}

func (q *finder) walk(name string, depth int) int {
	c := q.c
	in, err := c.Machine.FS.Lstat(c.Cred, c.Path(name))
	if err != nil {
		return c.Fail("'%s': %s", name, message(err))
	}
	status := 0
	f := &visited{name: name, info: in}
	visit := func() {
		if depth >= q.min {
			q.expression(f)
		}
	}
	if !q.depthFirst {
		visit()
	}
	if in.IsDir() && depth < q.max && !f.prune && c.Err() == nil {
		list, err := c.Machine.FS.ReadDir(c.Cred, c.Path(name))
		if err != nil {
			status = c.Fail("'%s': %s", name, message(err))
		}
		for _, e := range list {
			sub := name + "/" + e.Name()
			if name == "/" {
				sub = "/" + e.Name()
			}
			status = max(status, q.walk(sub, depth+1))
		}
	}
	if q.depthFirst {
		visit()
	}
	return max(status, q.status)
}
