//go:build unix

package workcopy

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"
)

// A guest chooses what is compared: no content may take long.
func TestNoContentTakesLongToCompare(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(3, 4))
	lines := func(n, of int) version {
		var b strings.Builder
		for range n {
			fmt.Fprintf(&b, "%d\n", random.IntN(of))
		}
		return text(b.String())
	}
	for name, c := range map[string]Change{
		"unlike":           {Path: "x", old: lines(30_000, 1<<30), new: lines(30_000, 1<<30)},
		"few kinds":        {Path: "x", old: lines(50_000, 2), new: lines(50_000, 2)},
		"blank lines":      {Path: "x", old: text(strings.Repeat("\n", textMost/8)), new: text(strings.Repeat("\n", textMost/8) + "x")},
		"one endless line": {Path: "x", old: text(strings.Repeat("a", textMost)), new: text(strings.Repeat("b", textMost))},
	} {
		began := time.Now()
		n := len((Changes{List: []Change{c}}).Patch())
		t.Logf("%s: %d bytes in %s", name, n, time.Since(began))
		if took := time.Since(began); took > 20*time.Second {
			t.Errorf("%s: %s", name, took)
		}
	}
}
