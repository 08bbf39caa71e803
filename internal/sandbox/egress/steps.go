package egress

import (
	"slices"
	"strings"
)

// stepKind is a call that changes a list.
type stepKind int

const (
	// insertTop puts a rule at position 0, the only place where the server does.
	insertTop stepKind = iota
	moveRule
	replaceRule
	deleteRule
)

// step is one call. Positions are those at its time.
type step struct {
	kind   stepKind
	pos    int  // of the rule that is moved, replaced or deleted
	before int  // for moveRule: the position that it goes before
	rule   Rule // for insertTop and replaceRule
}

// slot is a place of the list while it is being changed.
type slot struct {
	rule Rule
	want int // its index in the wanted list, -1 for a rule that goes
	// fixed says that it stays where it is; one that isn't is moved or goes.
	fixed bool
}

// steps plans how have becomes want with few calls: what stands in the right order
// stays, what stands elsewhere is moved, a rule that goes is overwritten by one
// that comes in its place, and only what is left is inserted or deleted.
//
// What is added comes before what is overwritten, and that before what is deleted,
// so that nothing is open or closed in between that is neither before nor after. A
// rule that has to pass others on its way down is inserted switched off, and is
// switched on where it belongs: an ACCEPT on top of the list would open everything
// until it is moved.
func steps(have, want []Rule) []step {
	slots := match(have, want)
	var out []step
	for w := len(want) - 1; w >= 0; w-- {
		at := find(slots, w)
		if at >= 0 && slots[at].fixed {
			continue
		}
		target := len(slots)
		if w+1 < len(want) {
			target = find(slots, w+1)
		}
		switch {
		case at < 0:
			if !slices.ContainsFunc(slots[:target], func(s slot) bool { return s.fixed }) {
				target = 0 // above it is only what goes, or moves later
			}
			out = append(out, insertion(slots, want[w], target)...)
			slots = slices.Insert(slots, target, slot{rule: want[w], want: w, fixed: true})
		default:
			slots[at].fixed = true
			if at+1 != target {
				out = append(out, step{kind: moveRule, pos: at, before: target})
				slots = moved(slots, at, target)
			}
		}
	}
	out = append(out, replacements(slots, want)...)
	for pos := len(slots) - 1; pos >= 0; pos-- {
		if slots[pos].want < 0 {
			out = append(out, step{kind: deleteRule, pos: pos})
		}
	}
	return out
}

// replacements are the calls that overwrite rules where they stand. An address that
// goes from one rule into another of the same kind is in the one before it leaves
// the other, so that what is dropped, or allowed, throughout never is not. Where two
// exchange addresses, one of them holds both for a moment.
func replacements(slots []slot, want []Rule) []step {
	now := make([]Rule, len(slots))
	var pending []int
	for pos, s := range slots {
		now[pos] = s.rule
		if s.want >= 0 && s.rule != want[s.want] {
			pending = append(pending, pos)
		}
	}
	final := func(pos int) Rule { return want[slots[pos].want] }
	var out []step
	put := func(pos int, r Rule) {
		now[pos] = r
		out = append(out, step{kind: replaceRule, pos: pos, rule: r})
	}
	for len(pending) > 0 {
		at := slices.IndexFunc(pending, func(pos int) bool { return !losesTooEarly(now, pending, pos, final) })
		if at < 0 { // all wait for each other
			at = 0
			if both, ok := union(now[pending[0]], final(pending[0])); ok && both != now[pending[0]] {
				put(pending[0], both)
				continue
			}
		}
		put(pending[at], final(pending[at]))
		pending = slices.Delete(pending, at, at+1)
	}
	return out
}

// losesTooEarly says whether overwriting a rule now would take an address out of all
// rules of its kind that another one, which is still to be overwritten, will have.
func losesTooEarly(now []Rule, pending []int, pos int, final func(int) Rule) bool {
	for _, address := range lost(now[pos], final(pos)) {
		coming := false
		for _, other := range pending {
			if other == pos || kindOf(final(other)) != kindOf(now[pos]) {
				continue
			}
			if holdsItem(now[other], address) {
				coming = false
				break
			}
			coming = coming || holdsItem(final(other), address)
		}
		if coming {
			return true
		}
	}
	return false
}

// kindOf is a rule without its destination and comment.
func kindOf(r Rule) Rule {
	r.Dest, r.Comment = "", ""
	return r
}

func holdsItem(r Rule, address string) bool {
	return slices.Contains(strings.Split(r.Dest, ","), address)
}

// lost are the destinations that a rule has and another hasn't.
func lost(from, to Rule) []string {
	if kindOf(from) != kindOf(to) || from.Dest == "" || to.Dest == "" {
		return nil
	}
	return slices.DeleteFunc(strings.Split(from.Dest, ","), func(item string) bool { return holdsItem(to, item) })
}

// union is a rule with the destinations of two, if the server takes it.
func union(a, b Rule) (Rule, bool) {
	items := append(lost(a, b), strings.Split(b.Dest, ",")...)
	both := b
	both.Dest = strings.Join(items, ",")
	plain := !strings.ContainsAny(both.Dest, "+-") // a set or a range stands alone
	return both, plain && len(both.Dest) <= longestList && a.version() == b.version()
}

// insertion are the calls that put a rule before the one at target.
func insertion(slots []slot, rule Rule, target int) []step {
	if target == 0 {
		return []step{{kind: insertTop, rule: rule}}
	}
	move := step{kind: moveRule, pos: 0, before: target + 1}
	if !rule.Enabled || !passes(slots[:target], rule) {
		return []step{{kind: insertTop, rule: rule}, move}
	}
	off := rule
	off.Enabled = false
	return []step{{kind: insertTop, rule: off}, move, {kind: replaceRule, pos: target, rule: rule}}
}

// passes says whether a rule means something else above others than below them.
func passes(above []slot, rule Rule) bool {
	for _, s := range above {
		switch {
		case !s.rule.Enabled:
		case s.rule.Type == Group || rule.Type == Group:
			return true
		case s.rule.Type == rule.Type && (s.rule.Action == Accept) != (rule.Action == Accept):
			return true
		}
	}
	return false
}

func find(slots []slot, want int) int {
	return slices.IndexFunc(slots, func(s slot) bool { return s.want == want })
}

// moved is the list after a move, as the server does it: before the rule that is
// at before now.
func moved[T any](list []T, pos, before int) []T {
	item := list[pos]
	list = slices.Delete(slices.Clone(list), pos, pos+1)
	if before > pos {
		before--
	}
	return slices.Insert(list, min(before, len(list)), item)
}

// match finds for each rule at hand which wanted one it is, or becomes.
func match(have, want []Rule) []slot {
	slots := make([]slot, len(have))
	for i, r := range have {
		slots[i] = slot{rule: r, want: -1}
	}
	anchors := align(len(have), len(want), func(i, j int) int {
		if have[i] == want[j] {
			return 1
		}
		return 0
	})
	taken := make([]bool, len(want))
	for _, a := range anchors {
		slots[a[0]].want, slots[a[0]].fixed, taken[a[1]] = a[1], true, true
	}
	for i := range slots { // the same rule elsewhere: it is moved
		if slots[i].want >= 0 {
			continue
		}
		for j := range want {
			if !taken[j] && want[j] == have[i] {
				slots[i].want, taken[j] = j, true
				break
			}
		}
	}
	overwrite(slots, want, taken, anchors)
	return slots
}

// overwrite pairs, between two anchors, rules that go with rules that come, the
// most alike first.
func overwrite(slots []slot, want []Rule, taken []bool, anchors [][2]int) {
	i0, j0 := 0, 0
	for _, a := range append(anchors, [2]int{len(slots), len(want)}) {
		var free, missing []int
		for i := i0; i < a[0]; i++ {
			if slots[i].want < 0 {
				free = append(free, i)
			}
		}
		for j := j0; j < a[1]; j++ {
			if !taken[j] {
				missing = append(missing, j)
			}
		}
		for _, pair := range align(len(free), len(missing), func(x, y int) int { return 100 + alike(slots[free[x]].rule, want[missing[y]]) }) {
			s := &slots[free[pair[0]]]
			s.want, s.fixed, taken[missing[pair[1]]] = missing[pair[1]], true, true
		}
		i0, j0 = a[0]+1, a[1]+1
	}
}

// alike counts what two rules have in common.
func alike(a, b Rule) int {
	n := 0
	for _, same := range []bool{
		a.Type == b.Type, a.Type == b.Type && a.Action == b.Action, a.Comment == b.Comment && a.Comment != "", a.Dest == b.Dest, a.Source == b.Source,
		a.Proto == b.Proto, a.DPort == b.DPort, a.Macro == b.Macro,
	} {
		if same {
			n++
		}
	}
	return n
}

// align finds the order-preserving pairs with the highest sum of weights; pairs of
// weight 0 aren't made.
func align(n, m int, weight func(i, j int) int) [][2]int {
	best := make([][]int, n+1)
	for i := range best {
		best[i] = make([]int, m+1)
	}
	for i := n - 1; i >= 0; i-- {
		for j := m - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if w := weight(i, j); w > 0 {
				best[i][j] = max(best[i][j], best[i+1][j+1]+w)
			}
		}
	}
	var out [][2]int
	for i, j := 0, 0; i < n && j < m; {
		switch w := weight(i, j); {
		case w > 0 && best[i][j] == best[i+1][j+1]+w:
			out = append(out, [2]int{i, j})
			i, j = i+1, j+1
		case best[i][j] == best[i+1][j]:
			i++
		default:
			j++
		}
	}
	return out
}
