package conformance

import (
	"fmt"
	"reflect"
	"sort"
	"strings"
)

// comparison collects the differences of one exchange, and what of the recording corresponds to what of the lab.
type comparison struct {
	diffs   []string
	history bool // the list holds what happened before the recording: only the entries' shape counts
	learned map[string]string
}

func (c *comparison) differ(path, format string, args ...any) {
	c.diffs = append(c.diffs, fmt.Sprintf("%s: ", path)+fmt.Sprintf(format, args...))
}

// value compares a value at a path; want is the recording's.
func (c *comparison) value(path, key string, want, got any) {
	if reflect.TypeOf(want) != reflect.TypeOf(got) {
		c.differ(path, "is %s, recorded %s", show(got), show(want))
		return
	}
	switch w := want.(type) {
	case map[string]any:
		g, _ := got.(map[string]any)
		c.object(path, w, g)
	case []any:
		g, _ := got.([]any)
		c.list(path, key, w, g)
	case string:
		g, _ := got.(string)
		c.text(path, key, w, g)
	default:
		if !measured[key] && !reflect.DeepEqual(want, got) {
			c.differ(path, "is %s, recorded %s", show(got), show(want))
		}
	}
}

// text compares strings by their kinds and learns which recorded value is which of the lab's.
func (c *comparison) text(path, key, want, got string) {
	if measured[key] {
		return
	}
	if sets[key] {
		want, got = sorted(want), sorted(got)
	}
	if normal(want) != normal(got) {
		c.differ(path, "is %s, recorded %s", show(got), show(want))
		return
	}
	c.learn(want, got)
}

// learn notes which recorded value is which of the lab's, by two texts of one form.
func (c *comparison) learn(want, got string) {
	for _, k := range kinds {
		wants, gots := k.pattern.FindAllString(want, -1), k.pattern.FindAllString(got, -1)
		for i := range wants {
			if i < len(gots) && c.learned != nil {
				c.learned[wants[i]] = gots[i]
			}
		}
	}
}

func (c *comparison) object(path string, want, got map[string]any) {
	for _, key := range keysOf(want, got) {
		w, inWant := want[key]
		g, inGot := got[key]
		switch {
		case key == "total" && c.history:
		case !inGot:
			c.differ(path, "lacks %q, recorded %s", key, show(w))
		case !inWant:
			c.differ(path, "has %q = %s, which isn't recorded", key, show(g))
		case measured[key] && sameShape(w, g):
		case key == "size" && isBackup(want) && sameShape(w, g):
			// How much the recorded container held is that container's.
		case machine[key] && isObject(w) && sameShape(w, g):
		case key == "maxdisk" && want["status"] == "running":
			// What is left of a mounted file system is the recording node's.
		default:
			c.value(path+"."+key, key, w, g)
		}
	}
}

// list compares in order; where that fails, lists of objects are compared without an order, since the server's come out of
// hashes.
func (c *comparison) list(path, key string, want, got []any) {
	if c.history {
		c.shapes(path, want, got)
		return
	}
	if len(want) != len(got) {
		c.differ(path, "has %d entries, recorded %d: %s, recorded %s", len(got), len(want), show(got), show(want))
		return
	}
	left := append([]any(nil), got...)
	for i, w := range want {
		best, bestDiffs := -1, []string(nil)
		for j, g := range left {
			try := comparison{learned: map[string]string{}}
			try.value(fmt.Sprintf("%s[%d]", path, i), key, w, g)
			if best < 0 || len(try.diffs) < len(bestDiffs) {
				best, bestDiffs = j, try.diffs
			}
			if len(bestDiffs) == 0 {
				break
			}
		}
		final := comparison{learned: c.learned}
		final.value(fmt.Sprintf("%s[%d]", path, i), key, w, left[best])
		c.diffs = append(c.diffs, final.diffs...)
		left = append(left[:best:best], left[best+1:]...)
	}
}

// shapes compares the keys of the entries of two lists.
func (c *comparison) shapes(path string, want, got []any) {
	known := map[string]bool{}
	for _, w := range want {
		if object, ok := w.(map[string]any); ok {
			for key := range object {
				known[key] = true
			}
		}
	}
	for _, g := range got {
		object, ok := g.(map[string]any)
		for key := range object {
			if !known[key] && len(want) > 0 {
				c.differ(path, "has %q, which no recorded entry has", key)
			}
		}
		if !ok && len(want) > 0 {
			if _, isObject := want[0].(map[string]any); isObject {
				c.differ(path, "has %s, recorded objects", show(g))
			}
		}
	}
}

// sameShape says whether two measured values are of one type, with the same keys inside.
func sameShape(want, got any) bool {
	w, isObject := want.(map[string]any)
	if !isObject {
		return reflect.TypeOf(want) == reflect.TypeOf(got) || isScalar(want) && isScalar(got)
	}
	g, ok := got.(map[string]any)
	if !ok || len(w) != len(g) {
		return false
	}
	for key := range w {
		if _, ok := g[key]; !ok {
			return false
		}
	}
	return true
}

// isBackup says whether an object describes a backup on a storage.
func isBackup(object map[string]any) bool {
	file, _ := object["path"].(string)
	return object["content"] == "backup" || strings.Contains(file, "/vzdump-")
}

func isObject(v any) bool {
	_, ok := v.(map[string]any)
	return ok
}

// isScalar: the server gives measured values now as numbers, now as text.
func isScalar(v any) bool {
	switch v.(type) {
	case string, float64:
		return true
	}
	return false
}

func keysOf(maps ...map[string]any) []string {
	set := map[string]bool{}
	for _, m := range maps {
		for key := range m {
			set[key] = true
		}
	}
	out := make([]string, 0, len(set))
	for key := range set {
		out = append(out, key)
	}
	sort.Strings(out)
	return out
}

func sorted(list string) string {
	parts := strings.Split(list, ",")
	sort.Strings(parts)
	return strings.Join(parts, ",")
}

func show(v any) string {
	text := fmt.Sprintf("%v", v)
	if s, ok := v.(string); ok {
		text = fmt.Sprintf("%q", s)
	}
	if len(text) > 300 {
		text = text[:300] + "…"
	}
	return text
}
