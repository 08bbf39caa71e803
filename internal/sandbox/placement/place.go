package placement

import (
	"cmp"
	"slices"
)

// Strategy says which of the nodes that have room is taken.
type Strategy string

// The strategies.
const (
	// Spread takes the node with the fewest members, and of those the one with the most free memory.
	Spread Strategy = "spread"
	// Pack takes the node with the most members, and of those the one with the least free memory, so that other nodes
	// stay empty.
	Pack Strategy = "pack"
)

// Strategies lists them.
func Strategies() []string { return []string{string(Spread), string(Pack)} }

// Shape is what one sandbox may use.
type Shape struct {
	Cores     float64 // cores' worth of CPU time
	MemoryMiB int64
	DiskGiB   float64 // size of its root disk
}

// times is the need of n sandboxes.
func (s Shape) times(n int) Shape {
	return Shape{Cores: s.Cores * float64(n), MemoryMiB: s.MemoryMiB * int64(n), DiskGiB: s.DiskGiB * float64(n)}
}

// Ratios say how much more may be promised than there is. 0 leaves a resource unchecked.
type Ratios struct {
	Cores  float64 // of the node's cores, over what running guests may use
	Memory float64 // of the node's memory, over what running guests may use
	Disk   float64 // of the storage's free space, over the new disks' sizes
}

// DefaultRatios are what counts where nobody says otherwise. Memory that isn't there is found missing by the kernel's
// OOM killer, so none is promised twice; idle agents use little CPU time, and a linked clone begins with no data of its
// own.
var DefaultRatios = Ratios{Cores: 16, Memory: 1, Disk: 4}

// Node is a node as a placement sees it.
type Node struct {
	Name string
	// Unusable says why nothing can be placed here ("it is offline"); empty where something can.
	Unusable string

	Cores     float64 // of the node; 0 where it isn't known
	MemoryMiB int64   // of the node; 0 where it isn't known
	// FreeMemoryMiB is what nobody uses at the moment, for choosing.
	FreeMemoryMiB int64
	// Promised is what the guests that run may use.
	Promised Shape
	// Members are the pool's that are there.
	Members int

	// Storage is where the disks go, and StorageFreeGiB its free space; negative where it isn't known. A shared storage
	// has one name on all nodes and counts once.
	Storage        string
	Shared         bool
	StorageFreeGiB float64
}

func (n Node) storageKey() string {
	if n.Shared {
		return n.Storage
	}
	return n.Name + "/" + n.Storage
}

// Resource is what runs short.
type Resource string

// The resources.
const (
	Cores  Resource = "cores"
	Memory Resource = "memory"
	Disk   Resource = "disk"
)

// Shortfall says what would be exceeded, where, and by how much.
type Shortfall struct {
	Node     string
	Resource Resource
	Storage  string  // of a Disk
	Need     float64 // of the members that found no place on this node, beside what is promised: cores, MiB or GiB
	Have     float64 // what may still be promised
	Ratio    float64 // that Have was reckoned with
}

// Over is by how much the need exceeds what there is.
func (s Shortfall) Over() float64 { return s.Need - s.Have }

// Placement is the answer: a node for each that has found one, and why the others haven't.
type Placement struct {
	Nodes  []string
	Missed int
	Short  []Shortfall
}

// Place places n sandboxes of one shape, one after another, each knowing of those before. Shortfalls are told for
// each usable node, for all that found no place, as if each node were to take them.
func Place(nodes []Node, shape Shape, n int, strategy Strategy, ratios Ratios) Placement {
	room := make([]Node, 0, len(nodes))
	for _, node := range nodes {
		if node.Unusable == "" {
			room = append(room, node)
		}
	}
	taken := map[string]float64{} // GiB by storage
	var out Placement
	for range n {
		at := choose(room, shape, strategy, ratios, taken)
		if at < 0 {
			break
		}
		node := &room[at]
		out.Nodes = append(out.Nodes, node.Name)
		node.Members++
		node.Promised.Cores += shape.Cores
		node.Promised.MemoryMiB += shape.MemoryMiB
		node.FreeMemoryMiB -= shape.MemoryMiB
		taken[node.storageKey()] += shape.DiskGiB
	}
	out.Missed = n - len(out.Nodes)
	if out.Missed > 0 {
		for _, node := range room {
			out.Short = append(out.Short, short(node, shape.times(out.Missed), ratios, taken)...)
		}
	}
	return out
}

// choose is the index of the node that takes the next one; -1 where none has room.
func choose(nodes []Node, shape Shape, strategy Strategy, ratios Ratios, taken map[string]float64) int {
	best := -1
	for i, node := range nodes {
		if len(short(node, shape, ratios, taken)) > 0 {
			continue
		}
		if best < 0 || better(node, nodes[best], strategy) {
			best = i
		}
	}
	return best
}

func better(a, b Node, strategy Strategy) bool {
	order := cmp.Or(cmp.Compare(a.Members, b.Members), -cmp.Compare(a.FreeMemoryMiB, b.FreeMemoryMiB))
	if strategy == Pack {
		order = -order
	}
	return cmp.Or(order, cmp.Compare(a.Name, b.Name)) < 0
}

// short is what a need would exceed on a node. What isn't known of a node is not checked.
func short(node Node, need Shape, ratios Ratios, taken map[string]float64) []Shortfall {
	var out []Shortfall
	check := func(r Resource, need, have, ratio float64, storage string) {
		if need > have {
			out = append(out, Shortfall{Node: node.Name, Resource: r, Storage: storage, Need: need, Have: have, Ratio: ratio})
		}
	}
	if node.Cores > 0 && ratios.Cores > 0 {
		check(Cores, need.Cores, max(0, node.Cores*ratios.Cores-node.Promised.Cores), ratios.Cores, "")
	}
	if node.MemoryMiB > 0 && ratios.Memory > 0 {
		check(Memory, float64(need.MemoryMiB), max(0, float64(node.MemoryMiB)*ratios.Memory-float64(node.Promised.MemoryMiB)), ratios.Memory, "")
	}
	if node.StorageFreeGiB >= 0 && ratios.Disk > 0 {
		check(Disk, need.DiskGiB, max(0, node.StorageFreeGiB*ratios.Disk-taken[node.storageKey()]), ratios.Disk, node.Storage)
	}
	return out
}

// Counts says how many of a placement go to each node, by name.
func (p Placement) Counts() map[string]int {
	out := map[string]int{}
	for _, name := range p.Nodes {
		out[name]++
	}
	return out
}

// Usable lists the names of the nodes where something can be placed, sorted.
func Usable(nodes []Node) []string {
	var out []string
	for _, n := range nodes {
		if n.Unusable == "" {
			out = append(out, n.Name)
		}
	}
	slices.Sort(out)
	return out
}
