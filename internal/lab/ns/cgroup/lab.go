//go:build linux

package cgroup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

const (
	mount  = "/sys/fs/cgroup"
	prefix = "sandbox-lab-"
)

// controllers are those that a lab uses where there are any.
var controllers = []string{"memory", "pids", "cpu", "freezer"}

// Lab is one lab's part of the cgroup tree. The zero value has none.
type Lab struct {
	name string
	// dirs are the lab's folders by controller. With version 2 it is the same for all.
	dirs map[string]string
	v2   bool
}

// Name makes a name for a lab's folders. The process id, as the host sees it, is in it, so that a later lab can tell what
// was left behind.
func Name(hostPID, number int) string { return fmt.Sprintf("%s%d-%d", prefix, hostPID, number) }

// Open makes a lab's folders. It returns a lab without cgroups, and why, when this user can't make any.
func Open(name string) (*Lab, error) {
	l := &Lab{name: name, dirs: map[string]string{}}
	var problem error // the first is enough: they are all alike
	if _, err := os.Stat(filepath.Join(mount, "cgroup.controllers")); err == nil {
		l.v2 = true
		problem = l.openV2()
	} else {
		problem = l.openV1()
	}
	if len(l.dirs) == 0 {
		return &Lab{}, fmt.Errorf("guests have no limits of memory, processes and CPU: no cgroup is delegated to this user: %w", problem)
	}
	return l, nil
}

func (l *Lab) openV1() error {
	var problem error
	for _, c := range controllers {
		dir := filepath.Join(mount, c, l.name)
		if err := os.Mkdir(dir, 0o755); err == nil { //nolint:gosec // as cgroup folders are
			l.dirs[c] = dir
		} else if problem == nil {
			problem = err
		}
	}
	return problem
}

// openV2 uses the root of the tree where it is ours, else the part that is delegated to this process.
func (l *Lab) openV2() error {
	parent := mount
	if unix.Access(filepath.Join(parent, "cgroup.procs"), unix.W_OK) != nil {
		own, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return err
		}
		parent = filepath.Join(mount, strings.TrimSpace(strings.TrimPrefix(string(own), "0::")))
	}
	dir := filepath.Join(parent, l.name)
	if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // as cgroup folders are
		return err
	}
	// A cgroup hands a controller to its children only if it has no process of its own, unless it is the root; what it
	// doesn't hand down is done without. The freezer needs no handing down.
	l.dirs["freezer"] = dir
	for _, c := range controllers {
		if c == "freezer" {
			continue
		}
		_ = os.WriteFile(filepath.Join(parent, "cgroup.subtree_control"), []byte("+"+c), 0)
		if os.WriteFile(filepath.Join(dir, "cgroup.subtree_control"), []byte("+"+c), 0) == nil {
			l.dirs[c] = dir
		}
	}
	return nil
}

// Has says whether guests can be limited by a controller: "memory", "pids", "cpu", "freezer".
func (l *Lab) Has(controller string) bool { return l.dirs[controller] != "" }

// Close removes the lab's folders; the guests' are gone by then.
func (l *Lab) Close() {
	for _, dir := range l.dirs {
		removeAll(dir)
	}
}

// removeAll removes a cgroup and those in it, where no process is left in them.
func removeAll(dir string) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		if e.IsDir() {
			removeAll(filepath.Join(dir, e.Name()))
		}
	}
	_ = os.Remove(dir)
}

// Sweep removes what labs left behind whose process is gone. A lab cleans up after itself even when the program that
// used it is killed; only one whose supervisor was killed too leaves its folders, which are empty then.
func Sweep(alive func(hostPID int) bool) {
	for _, pattern := range []string{filepath.Join(mount, prefix+"*"), filepath.Join(mount, "*", prefix+"*")} {
		dirs, _ := filepath.Glob(pattern)
		for _, dir := range dirs {
			number, _, _ := strings.Cut(strings.TrimPrefix(filepath.Base(dir), prefix), "-")
			pid, err := strconv.Atoi(number)
			if err == nil && !alive(pid) {
				removeAll(dir)
			}
		}
	}
}

// Alive says whether a process of this pid namespace exists.
func Alive(pid int) bool {
	err := syscall.Kill(pid, 0)
	return err == nil || errors.Is(err, syscall.EPERM)
}
