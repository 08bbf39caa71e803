package placement_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// node is one with room for anything.
func node(name string, free int64) placement.Node {
	return placement.Node{Name: name, Cores: 8, MemoryMiB: 16384, FreeMemoryMiB: free, Storage: "data", StorageFreeGiB: 100}
}

var small = placement.Shape{Cores: 1, MemoryMiB: 512, DiskGiB: 4}

func TestSpreadTakesTheNodeWithTheFewestMembersThenTheMostFreeMemory(t *testing.T) {
	t.Parallel()
	a, b, c := node("a", 1000), node("b", 9000), node("c", 5000)
	a.Members = 2
	got := placement.Place([]placement.Node{a, b, c}, small, 4, placement.Spread, placement.DefaultRatios)
	if want := []string{"b", "c", "b", "c"}; !slices.Equal(got.Nodes, want) || got.Missed != 0 {
		t.Errorf("placed on %v, want %v", got.Nodes, want)
	}
}

func TestPackFillsTheNodeThatHasMembersAlready(t *testing.T) {
	t.Parallel()
	a, b := node("a", 9000), node("b", 5000)
	b.Members, b.Promised.MemoryMiB = 1, 15000
	got := placement.Place([]placement.Node{a, b}, small, 4, placement.Pack, placement.DefaultRatios)
	if want := map[string]int{"b": 2, "a": 2}; !maps.Equal(got.Counts(), want) {
		t.Errorf("placed as %v, want %v", got.Counts(), want)
	}
}

func TestANodeThatCantBeUsedIsNoCandidate(t *testing.T) {
	t.Parallel()
	away := node("away", 90000)
	away.Unusable = "it is offline"
	got := placement.Place([]placement.Node{away, node("here", 100)}, small, 2, placement.Spread, placement.DefaultRatios)
	if want := []string{"here", "here"}; !slices.Equal(got.Nodes, want) {
		t.Errorf("placed on %v", got.Nodes)
	}
	if got := placement.Usable([]placement.Node{away}); len(got) != 0 {
		t.Errorf("usable: %v", got)
	}
}

func TestWhatWouldBeExceededIsToldByNodeResourceAndAmount(t *testing.T) {
	t.Parallel()
	n := node("a", 9000)
	n.Promised = placement.Shape{Cores: 120, MemoryMiB: 15360}
	got := placement.Place([]placement.Node{n}, small, 5, placement.Spread, placement.DefaultRatios)
	if len(got.Nodes) != 2 || got.Missed != 3 || len(got.Short) != 1 {
		t.Fatalf("placed %+v", got)
	}
	// 16,384 MiB less what is promised and the two that fit leaves nothing for three of 512.
	if s := got.Short[0]; s.Node != "a" || s.Resource != placement.Memory || s.Need != 1536 || s.Have != 0 || s.Over() != 1536 || s.Ratio != 1 {
		t.Errorf("short of %+v", s)
	}
	got = placement.Place([]placement.Node{n}, small, 5, placement.Spread, placement.Ratios{Memory: 2})
	if got.Missed != 0 {
		t.Errorf("with an explicit ratio %+v", got)
	}
}

func TestASharedStorageCountsOnceAndALocalOneForEachNode(t *testing.T) {
	t.Parallel()
	disk := placement.Shape{DiskGiB: 60}
	for shared, want := range map[bool]int{true: 1, false: 2} {
		a, b := node("a", 1), node("b", 1)
		a.Shared, b.Shared = shared, shared
		got := placement.Place([]placement.Node{a, b}, disk, 4, placement.Spread, placement.Ratios{Disk: 1})
		if len(got.Nodes) != want {
			t.Errorf("shared %v: placed %v, want %d", shared, got.Nodes, want)
		}
		if got.Short[0].Storage != "data" || got.Short[0].Resource != placement.Disk {
			t.Errorf("shared %v: short of %+v", shared, got.Short)
		}
	}
}

func TestWhatIsNotKnownOfANodeIsNotChecked(t *testing.T) {
	t.Parallel()
	blind := placement.Node{Name: "a", StorageFreeGiB: -1}
	if got := placement.Place([]placement.Node{blind}, small, 3, placement.Spread, placement.DefaultRatios); got.Missed != 0 {
		t.Errorf("%+v", got)
	}
}

func TestLimitsTellWhatIsExceededAndWhatIsLeft(t *testing.T) {
	t.Parallel()
	members, memory := 4, int64(1600)
	l := placement.Limits{Members: &members, MemoryMiB: &memory}
	var use placement.Use
	for range 5 {
		use = use.Add(small)
	}
	got := l.Exceeded(use)
	if len(got) != 2 || got[0].String() != "members: 5 would be in use, 1 more than the limit of 4" ||
		got[1].String() != "memory: 2560 MiB would be in use, 960 MiB more than the limit of 1600 MiB" {
		t.Errorf("exceeded: %v", got)
	}
	for n, want := range map[int]int{0: 3, 2: 1, 3: 0, 9: 0} {
		var use placement.Use
		for range n {
			use = use.Add(small)
		}
		if got := l.Headroom(use, small); got != want {
			t.Errorf("beside %d there is room for %d, want %d", n, got, want)
		}
	}
	if got := (placement.Limits{}).Headroom(use, small); got != -1 {
		t.Errorf("without limits there is room for %d", got)
	}
}
