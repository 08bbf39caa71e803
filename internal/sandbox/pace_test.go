package sandbox

import (
	"testing"
	"time"
)

// However long they take, the looks come closer to the end, also when that changes.
func TestThePaceOfTasksIsLearned(t *testing.T) {
	t.Parallel()
	const look = 25 * time.Millisecond // a poll and its pause
	var p paces
	if got := p.about("clone"); got != 0 {
		t.Fatalf("before the first: %s", got)
	}
	for _, takes := range []time.Duration{300 * time.Millisecond, 3 * time.Second, 100 * time.Millisecond} {
		var late time.Duration
		for range 60 {
			about := p.about("clone")
			seen, looks := about+look, 1
			for seen < takes {
				seen, looks = seen+look, looks+1
			}
			late = seen - takes
			p.took("clone", about, seen, looks)
		}
		if late > 2*look {
			t.Errorf("tasks of %s are seen %s late", takes, late)
		}
		if about := p.about("clone"); about > takes || about < takes/2 {
			t.Errorf("tasks of %s are first looked at after %s", takes, about)
		}
	}
	if got := p.about("another kind"); got != 0 {
		t.Errorf("another kind: %s", got)
	}
}
