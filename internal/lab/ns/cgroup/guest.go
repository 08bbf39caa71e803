//go:build linux

package cgroup

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// maxProcesses bounds a guest as Proxmox' own kernel setting does for a user, so that a fork bomb stays inside.
const maxProcesses = 4096

// cpuPeriod is the kernel's default, in microseconds.
const cpuPeriod = 100000

// Guest is one guest's cgroup.
type Guest struct {
	lab  *Lab
	dirs map[string]string
}

// Guest makes a guest's cgroup and puts a process into it, which must be the only one of the guest so far.
func (l *Lab) Guest(id, pid int) (*Guest, error) {
	g := &Guest{lab: l, dirs: map[string]string{}}
	for c, parent := range l.dirs {
		dir := filepath.Join(parent, strconv.Itoa(id))
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as cgroup folders are
			return nil, err
		}
		if err := os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			return nil, fmt.Errorf("cgroup of guest %d: %w", id, err)
		}
		g.dirs[c] = dir
	}
	return g, nil
}

// Close removes the cgroup of a guest whose processes are gone.
func (g *Guest) Close() {
	if g == nil {
		return
	}
	for _, dir := range g.dirs {
		removeAll(dir)
	}
}

func (g *Guest) write(controller, file, value string) error {
	dir := g.dirs[controller]
	if dir == "" {
		return nil
	}
	return os.WriteFile(filepath.Join(dir, file), []byte(value), 0)
}

// Limit sets the guest's share of the machine.
func (g *Guest) Limit(l engine.Limits) error {
	if g == nil {
		return nil
	}
	if err := g.write("pids", "pids.max", strconv.Itoa(maxProcesses)); err != nil {
		return fmt.Errorf("limit of processes: %w", err)
	}
	if err := g.limitMemory(l); err != nil {
		return fmt.Errorf("limit of memory: %w", err)
	}
	cpus := l.CPU
	if cpus == 0 || (l.Cores > 0 && float64(l.Cores) < cpus) {
		cpus = float64(l.Cores) // cores are a cpuset on Proxmox; here they bound the time, which is the same in sum
	}
	if err := g.limitCPU(cpus); err != nil {
		return fmt.Errorf("limit of CPU: %w", err)
	}
	return nil
}

func (g *Guest) limitMemory(l engine.Limits) error {
	if g.lab.v2 {
		memory, swap := "max", "max"
		if l.MemoryBytes > 0 {
			memory, swap = strconv.FormatInt(l.MemoryBytes, 10), strconv.FormatInt(l.SwapBytes, 10)
		}
		if err := g.write("memory", "memory.max", memory); err != nil {
			return err
		}
		_ = g.write("memory", "memory.swap.max", swap) // kernels without swap accounting have no such file
		return nil
	}
	memory, both := "-1", "-1"
	if l.MemoryBytes > 0 {
		memory, both = strconv.FormatInt(l.MemoryBytes, 10), strconv.FormatInt(l.MemoryBytes+l.SwapBytes, 10)
	}
	// Memory may never be above memory and swap together, so which is written first depends on the direction.
	const memoryFile, bothFile = "memory.limit_in_bytes", "memory.memsw.limit_in_bytes"
	_ = g.write("memory", bothFile, "-1") // absent without swap accounting
	if err := g.write("memory", memoryFile, memory); err != nil {
		return err
	}
	_ = g.write("memory", bothFile, both)
	return nil
}

func (g *Guest) limitCPU(cpus float64) error {
	if g.lab.v2 {
		quota := "max"
		if cpus > 0 {
			quota = strconv.Itoa(int(cpus * cpuPeriod))
		}
		return g.write("cpu", "cpu.max", quota+" "+strconv.Itoa(cpuPeriod))
	}
	quota := "-1"
	if cpus > 0 {
		quota = strconv.Itoa(int(cpus * cpuPeriod))
	}
	return g.write("cpu", "cpu.cfs_quota_us", quota)
}

func (g *Guest) number(controller, file string) int64 {
	if g == nil || g.dirs[controller] == "" {
		return 0
	}
	b, err := os.ReadFile(filepath.Join(g.dirs[controller], file))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// Memory is what the guest uses, in bytes; 0 where nobody counts.
func (g *Guest) Memory() int64 {
	if g != nil && g.lab.v2 {
		return g.number("memory", "memory.current")
	}
	return g.number("memory", "memory.usage_in_bytes")
}

// Processes is how many there are, threads counted; 0 where nobody counts.
func (g *Guest) Processes() int { return int(g.number("pids", "pids.current")) }

// Freeze stops all processes of the guest where they are, until the returned function is called. It reports false where
// there is no freezer.
func (g *Guest) Freeze(ctx context.Context) (thaw func(), frozen bool, err error) {
	if g == nil || g.dirs["freezer"] == "" {
		return func() {}, false, nil
	}
	file, on, off, stateFile, state := "freezer.state", "FROZEN", "THAWED", "freezer.state", "FROZEN"
	if g.lab.v2 {
		file, on, off, stateFile, state = "cgroup.freeze", "1", "0", "cgroup.events", "frozen 1"
	}
	thaw = func() { _ = g.write("freezer", file, off) }
	if err := g.write("freezer", file, on); err != nil {
		return thaw, false, fmt.Errorf("freeze: %w", err)
	}
	for tick := time.Millisecond; ; tick = min(2*tick, 50*time.Millisecond) {
		b, err := os.ReadFile(filepath.Join(g.dirs["freezer"], stateFile))
		if err != nil || strings.Contains(string(b), state) {
			return thaw, true, err
		}
		select {
		case <-time.After(tick):
		case <-ctx.Done():
			thaw()
			return func() {}, false, fmt.Errorf("freeze: %w", ctx.Err())
		}
	}
}
