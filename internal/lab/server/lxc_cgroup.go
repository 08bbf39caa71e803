package server

import (
	"slices"
	"strings"
)

// allControllers are the cgroup v2 controllers of an ordinary node's kernel (Linux, admin-guide/cgroup-v2).
var allControllers = []string{"cpu", "cpuset", "hugetlb", "io", "memory", "misc", "pids", "rdma"}

// limitCgroup is what starting a container does with its raw lxc.cgroup2.* lines: a line whose file isn't there, because
// no such controller is, ends the start. The log's text and line numbers are those that LXC wrote on the recording node.
func (t *task) limitCgroup(g *guest) error {
	controllers := t.s.opt.Controllers
	if controllers == nil {
		controllers = allControllers
	}
	for _, line := range g.Raw {
		file, found := strings.CutPrefix(line[0], "lxc.cgroup2.")
		if !found {
			continue
		}
		controller, _, _ := strings.Cut(file, ".")
		// "cgroup" is every group's own, "devices" a program that LXC loads.
		if controller == "cgroup" || controller == "devices" || slices.Contains(controllers, controller) {
			continue
		}
		t.logf("cgfsng_setup_limits: 3536 No such file or directory - Failed to set %q to %q", file, line[1])
		t.logf("lxc_spawn: 1822 Failed to setup cgroup limits for container \"%d\"", g.VMID)
		t.logf("__lxc_start: 2119 Failed to spawn container \"%d\"", g.VMID)
		return failf("startup for container '%d' failed", g.VMID)
	}
	return nil
}
