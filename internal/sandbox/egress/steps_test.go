package egress

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
)

// serve does to a list what the server does on a call.
func serve(t *testing.T, list []Rule, s step) []Rule {
	t.Helper()
	list = slices.Clone(list)
	switch s.kind {
	case insertTop:
		return append([]Rule{s.rule}, list...)
	case replaceRule:
		list[s.pos] = s.rule
		return list
	case deleteRule:
		return append(list[:s.pos], list[s.pos+1:]...)
	case moveRule:
		var out []Rule
		for i, r := range list {
			if i == s.before {
				out = append(out, list[s.pos])
			}
			if i != s.pos {
				out = append(out, r)
			}
		}
		if s.before >= len(list) {
			out = append(out, list[s.pos])
		}
		return out
	}
	t.Fatalf("step %v", s)
	return nil
}

func accept(n int) Rule {
	return Rule{Type: Out, Action: Accept, Enabled: true, Proto: "tcp", DPort: fmt.Sprint(n)}
}

func drop(n int) Rule { r := accept(n); r.Action = Drop; return r }

func accepts(numbers ...int) []Rule {
	var out []Rule
	for _, n := range numbers {
		out = append(out, accept(n))
	}
	return out
}

func run(t *testing.T, have, want []Rule) []step {
	t.Helper()
	list := have
	planned := steps(have, want)
	for _, s := range planned {
		list = serve(t, list, s)
	}
	if !slices.Equal(list, want) {
		t.Fatalf("from %v\nwant %v\ngot  %v\nby %v", have, want, list, planned)
	}
	return planned
}

func TestSmallChangesOfAListCostFewCalls(t *testing.T) {
	t.Parallel()
	hundred := make([]Rule, 100)
	for i := range hundred {
		hundred[i] = accept(i)
	}
	changed := slices.Clone(hundred)
	changed[40] = accept(4000)
	for _, c := range []struct {
		name       string
		have, want []Rule
		calls      int
	}{
		{"nothing", hundred, hundred, 0},
		{"a first write", nil, hundred, 100},
		{"one of a hundred changed", hundred, changed, 1},
		{"one removed", hundred, slices.Delete(slices.Clone(hundred), 50, 51), 1},
		{"one added on top", hundred, append(accepts(1000), hundred...), 1},
		{"one added in the middle", hundred, slices.Insert(slices.Clone(hundred), 50, accept(1000)), 2},
		{"one added at the end", hundred, append(slices.Clone(hundred), accept(1000)), 2},
		{"the first moved to the end", accepts(1, 2, 3, 4), accepts(2, 3, 4, 1), 1},
		{"the last moved to the top", accepts(1, 2, 3, 4), accepts(4, 1, 2, 3), 1},
		{"two swapped", accepts(1, 2, 3), accepts(1, 3, 2), 1},
		{"reversed", accepts(1, 2, 3, 4), accepts(4, 3, 2, 1), 3},
		{"all replaced", accepts(1, 2, 3), accepts(4, 5, 6), 3},
		{"all removed", accepts(1, 2, 3), nil, 3},
		{"doubles kept", accepts(1, 1, 2), accepts(1, 2, 1), 1},
		{"a DROP behind ACCEPTs is inserted off, moved, and switched on", accepts(1, 2), append(accepts(1, 2), drop(3)), 3},
	} {
		if got := len(run(t, c.have, c.want)); got != c.calls {
			t.Errorf("%s: %d calls, want %d: %v", c.name, got, c.calls, steps(c.have, c.want))
		}
	}
}

func TestAnyListBecomesAnyOther(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	list := func() []Rule {
		out := make([]Rule, random.IntN(9))
		for i := range out {
			out[i] = accept(random.IntN(7))
			if random.IntN(3) == 0 {
				out[i].Action = Drop
			}
			out[i].Enabled = random.IntN(5) > 0
		}
		return out
	}
	for range 20000 {
		have, want := list(), list()
		if want == nil {
			want = []Rule{}
		}
		planned := steps(have, want)
		got := append([]Rule{}, have...)
		for _, s := range planned {
			got = serve(t, got, s)
		}
		if !slices.Equal(got, want) {
			t.Fatalf("from %v\nwant %v\ngot  %v\nby %v", have, want, got, planned)
		}
	}
}

// While a list is being changed, no ACCEPT stands switched on above a DROP that it
// stands below in the wanted list, unless it did before.
func TestAnACCEPTIsNeverOnAboveADROPThatItBelongsBelow(t *testing.T) {
	t.Parallel()
	have := []Rule{accept(1), drop(2)}
	everything := Rule{Type: Out, Action: Accept, Enabled: true}
	want := []Rule{accept(1), drop(2), everything}
	list := have
	for _, s := range steps(have, want) {
		list = serve(t, list, s)
		if slices.Index(list, everything) >= 0 && slices.Index(list, everything) < slices.Index(list, drop(2)) {
			t.Errorf("after %v everything is open: %v", s, list)
		}
	}
}

func FuzzSteps(f *testing.F) {
	f.Add([]byte{1, 2, 3}, []byte{3, 1, 2})
	f.Fuzz(func(t *testing.T, a, b []byte) {
		if len(a) > 40 || len(b) > 40 {
			return
		}
		have, want := []Rule{}, []Rule{}
		for _, n := range a {
			have = append(have, accept(int(n%16)))
		}
		for _, n := range b {
			want = append(want, accept(int(n%16)))
		}
		list := have
		for _, s := range steps(have, want) {
			list = serve(t, list, s)
		}
		if !slices.Equal(list, want) {
			t.Fatalf("want %v, got %v", want, list)
		}
	})
}

// Lists of addresses are cut where they get too long for one rule, so that one more address moves others from rule to
// rule: what is dropped before and after is dropped at each moment.
func TestAddressesThatMoveBetweenRulesAreNeverInNone(t *testing.T) {
	t.Parallel()
	list := func(action string, dests ...string) []Rule {
		var out []Rule
		for _, d := range dests {
			out = append(out, Rule{Type: Out, Action: action, Enabled: true, Dest: d, Comment: "private"})
		}
		return append(out, Rule{Type: Out, Action: Accept, Enabled: true, Comment: "all else"})
	}
	for name, c := range map[string]struct{ have, want []string }{
		"one more in front": {[]string{"10.0.0.2,10.0.0.3", "10.0.0.4,10.0.0.5", "10.0.0.6"}, []string{"10.0.0.1,10.0.0.2", "10.0.0.3,10.0.0.4", "10.0.0.5,10.0.0.6"}},
		"one less in front": {[]string{"10.0.0.1,10.0.0.2", "10.0.0.3,10.0.0.4", "10.0.0.5,10.0.0.6"}, []string{"10.0.0.2,10.0.0.3", "10.0.0.4,10.0.0.5", "10.0.0.6"}},
		"an exchange":       {[]string{"10.0.0.1,10.0.0.2", "10.0.0.3,10.0.0.4"}, []string{"10.0.0.1,10.0.0.3", "10.0.0.2,10.0.0.4"}},
		"a ring":            {[]string{"10.0.0.1,10.1.0.1", "10.0.0.2,10.1.0.2", "10.0.0.3,10.1.0.3"}, []string{"10.0.0.1,10.1.0.3", "10.0.0.2,10.1.0.1", "10.0.0.3,10.1.0.2"}},
	} {
		for _, action := range []string{Drop, Reject} {
			have, want := list(action, c.have...), list(action, c.want...)
			held := func(rules []Rule, address string) bool {
				return slices.ContainsFunc(rules, func(r Rule) bool { return r.Action == action && holdsItem(r, address) })
			}
			at := have
			planned := steps(have, want)
			for i, s := range planned {
				at = serve(t, at, s)
				for _, r := range have {
					for _, address := range strings.Split(r.Dest, ",") {
						if address != "" && held(want, address) && !held(at, address) {
							t.Errorf("%s: after call %d of %d nothing drops %s: %v", name, i+1, len(planned), address, at)
						}
					}
				}
			}
			if !slices.Equal(at, want) {
				t.Errorf("%s: ends as %v", name, at)
			}
			if len(planned) > len(c.want)+1 {
				t.Errorf("%s: %d calls for %d rules", name, len(planned), len(c.want))
			}
		}
	}
}
