package placement

import (
	"fmt"
	"math"
)

// Limits bound a pool, the members that are claimed included. nil leaves a resource without a limit.
type Limits struct {
	Members   *int
	Cores     *float64
	MemoryMiB *int64
	DiskGiB   *float64
}

// Empty says whether there is no limit at all.
func (l Limits) Empty() bool {
	return l.Members == nil && l.Cores == nil && l.MemoryMiB == nil && l.DiskGiB == nil
}

// Use is what a pool has.
type Use struct {
	Members int
	Shape   Shape // of all together
}

// Add counts one sandbox more.
func (u Use) Add(s Shape) Use {
	return Use{Members: u.Members + 1, Shape: Shape{
		Cores: u.Shape.Cores + s.Cores, MemoryMiB: u.Shape.MemoryMiB + s.MemoryMiB, DiskGiB: u.Shape.DiskGiB + s.DiskGiB,
	}}
}

// Excess is a limit that would be exceeded.
type Excess struct {
	Limit string // "members", "cores", "memory" or "disk"
	Need  float64
	Have  float64
	Unit  string // after a number; empty for none
}

// String says it in a sentence's middle: "memory: 2048 MiB are needed, 512 MiB more than the limit of 1536 MiB".
func (e Excess) String() string {
	n := func(v float64) string {
		text := fmt.Sprintf("%g", math.Round(v*100)/100)
		if e.Unit != "" {
			text += " " + e.Unit
		}
		return text
	}
	return fmt.Sprintf("%s: %s would be in use, %s more than the limit of %s", e.Limit, n(e.Need), n(e.Need-e.Have), n(e.Have))
}

// Exceeded lists the limits that a use is over.
func (l Limits) Exceeded(u Use) []Excess {
	var out []Excess
	check := func(name string, need, have float64, unit string) {
		if need > have {
			out = append(out, Excess{Limit: name, Need: need, Have: have, Unit: unit})
		}
	}
	if l.Members != nil {
		check("members", float64(u.Members), float64(*l.Members), "")
	}
	if l.Cores != nil {
		check("cores", u.Shape.Cores, *l.Cores, "")
	}
	if l.MemoryMiB != nil {
		check("memory", float64(u.Shape.MemoryMiB), float64(*l.MemoryMiB), "MiB")
	}
	if l.DiskGiB != nil {
		check("disk", u.Shape.DiskGiB, *l.DiskGiB, "GiB")
	}
	return out
}

// Headroom is how many sandboxes of a shape fit beside a use; -1 where no limit bounds it.
func (l Limits) Headroom(u Use, s Shape) int {
	room := math.Inf(1)
	bound := func(limit, used, each float64) {
		if each > 0 {
			room = min(room, max(0, math.Floor((limit-used)/each+1e-9)))
		}
	}
	if l.Members != nil {
		bound(float64(*l.Members), float64(u.Members), 1)
	}
	if l.Cores != nil {
		bound(*l.Cores, u.Shape.Cores, s.Cores)
	}
	if l.MemoryMiB != nil {
		bound(float64(*l.MemoryMiB), float64(u.Shape.MemoryMiB), float64(s.MemoryMiB))
	}
	if l.DiskGiB != nil {
		bound(*l.DiskGiB, u.Shape.DiskGiB, s.DiskGiB)
	}
	if math.IsInf(room, 1) {
		return -1
	}
	return int(room)
}
