package audit

import (
	"fmt"
	"path"
	"strings"
)

var wallChecks = []check{
	{Check: Check{ID: "G14", Title: "No program leaves a core dump", Severity: Low, How: "/etc/security/limits.d and /etc/systemd",
		Remedy: "\"* hard core 0\" in limits.d and Storage=none in coredump.conf.d: a dump holds whatever the program had in memory, keys too."},
		guest: checkCore},
	{Check: Check{ID: "G19", Title: "Root inside is nobody on the node", Severity: Critical, Cap: GradeB, How: "/proc/1/uid_map",
		Remedy: "Make the container anew as an unprivileged one."},
		guest: checkUserNamespace},
	{Check: Check{ID: "G20", Title: "AppArmor confines what runs inside", Severity: High, Cap: GradeB, How: "/proc/self/attr/current",
		Remedy: "Remove lxc.apparmor.profile: unconfined from the container's configuration."},
		guest: checkAppArmor},
	{Check: Check{ID: "G21", Title: "The sandbox knows when its lease ends", Severity: Medium, How: "the lease's script and timer",
		Remedy: "sandbox-harden brings both: a sandbox that nobody renews shuts itself down, also when the machine that made it is gone."},
		guest: checkLease},
	{Check: Check{ID: "G22", Title: "A filter inside lets nothing in but SSH, and the agent can't lift it", Severity: Medium, How: "/etc/sandbox/nftables.conf and its unit; nft in a running system",
		Remedy: "sandbox-harden brings it. It stands behind the server's own firewall, for when that is off."},
		guest: checkFilter},
	{Check: Check{ID: "G23", Title: "The number of processes is limited", Severity: Medium, How: "TasksMax of user slices",
		Remedy: "TasksMax in /etc/systemd/system/user-.slice.d: a fork bomb takes the node's process ids otherwise."},
		guest: checkTasks},
}

func checkCore(g *system) verdict {
	const by = "/etc/security/limits.d and /etc/systemd"
	var found []string
	limited := false
	files := append([]entry{{path: "etc/security/limits.conf"}}, g.children("etc/security/limits.d")...)
	for _, e := range files {
		for _, l := range g.lines(e.path) {
			if strings.Join(strings.Fields(l), " ") == "* hard core 0" {
				limited = true
			}
		}
	}
	if !limited {
		found = append(found, `no "* hard core 0" in /etc/security/limits.d`)
	}
	if g.systemd() {
		none := false
		for _, e := range g.children("etc/systemd/coredump.conf.d") {
			none = none || g.unitHas(e.path, "Storage=none")
		}
		if !none {
			found = append(found, "no Storage=none in /etc/systemd/coredump.conf.d")
		}
	}
	return judge(by, found)
}

func checkUserNamespace(g *system) verdict {
	const by = "/proc/1/uid_map"
	if !g.running {
		return notApplicable("nothing runs in a folder")
	}
	p, ok := g.probes["/proc/1/uid_map"]
	if !ok || p.exit != 0 {
		if p, ok = g.probes["/proc/self/uid_map"]; !ok || p.exit != 0 {
			return unknown(by, "it can't be read")
		}
	}
	mapped := false
	for line := range strings.Lines(p.out) {
		f := strings.Fields(line)
		if len(f) != 3 {
			return unknown(by, "it can't be read")
		}
		mapped = true
		inside, outside, count := f[0], f[1], f[2]
		if inside == "0" && outside == "0" {
			return failed(by, fmt.Sprintf("root inside is root outside (%s %s %s)", inside, outside, count))
		}
	}
	if !mapped {
		return unknown(by, "it is empty")
	}
	return passed(by, strings.Join(strings.Fields(p.out), " "))
}

func checkAppArmor(g *system) verdict {
	const by = "/proc/self/attr/current"
	if !g.running {
		return notApplicable("nothing runs in a folder")
	}
	if p, ok := g.probes["/sys/module/apparmor/parameters/enabled"]; !ok || strings.TrimSpace(p.out) != "Y" {
		return notApplicable("the kernel has no AppArmor")
	}
	p, ok := g.probes["/proc/self/attr/current"]
	label := strings.Trim(p.out, "\x00\n ")
	switch {
	case !ok || p.exit != 0 || label == "":
		return unknown(by, "it can't be read")
	case strings.HasPrefix(label, "unconfined"):
		return failed(by, label)
	case strings.HasSuffix(label, "(complain)"):
		return failed(by, label+": it only complains")
	}
	return passed(by, label)
}

// The lease's parts, see internal/harden.
const (
	leaseScript = "usr/local/lib/sandbox/lease"
	leaseTimer  = "sandbox-lease.timer"
)

func checkLease(g *system) verdict {
	const by = "the lease's script and timer"
	var found []string
	e, ok := g.stat(leaseScript)
	switch {
	case !ok:
		return failed(by, "/"+leaseScript+" is not there")
	case e.uid != 0 || e.perm()&0o022 != 0 || e.perm()&0o100 == 0:
		found = append(found, e.show())
	}
	if !g.systemd() {
		found = append(found, "there is no systemd to run it")
	} else if _, on := g.enabled(leaseTimer); !on {
		found = append(found, leaseTimer+" is not enabled")
	}
	if e, ok := g.stat("etc/sandbox"); ok && (e.uid != 0 || e.perm()&0o022 != 0) {
		found = append(found, e.show()+": the agent could write its own lease")
	}
	return judge(by, found)
}

func checkFilter(g *system) verdict {
	const by = "/etc/sandbox/nftables.conf and its unit; nft in a running system"
	var found []string
	const conf = "etc/sandbox/nftables.conf"
	e, ok := g.stat(conf)
	if !ok {
		return failed(by, "/"+conf+" is not there")
	}
	if e.uid != 0 || e.perm()&0o022 != 0 {
		found = append(found, e.show())
	}
	content := strings.Join(g.lines(conf), "\n")
	if !strings.Contains(content, "hook input") || !strings.Contains(content, "policy drop") {
		found = append(found, "/"+conf+" has no input chain with policy drop")
	}
	if g.systemd() {
		if _, on := g.enabled("sandbox-filter.service"); !on {
			found = append(found, "sandbox-filter.service is not enabled")
		}
	} else {
		found = append(found, "there is no systemd to load it")
	}
	if g.running && g.o.Stage == StageGuest {
		p, ok := g.probes["nft"]
		switch {
		case !ok:
			found = append(found, "nft is not installed")
		case p.exit != 0:
			return unknown(by, "nft can't list the rules: "+lastLine([]byte(p.out), "it said nothing"))
		case !strings.Contains(p.out, "table inet sandbox") || !strings.Contains(p.out, "policy drop"):
			found = append(found, "the running rules lack it")
		}
	}
	return judge(by, found)
}

func checkTasks(g *system) verdict {
	const by = "TasksMax of user slices"
	if !g.systemd() {
		return notApplicable("there is no systemd")
	}
	for _, e := range g.children("etc/systemd/system/user-.slice.d") {
		for _, l := range g.lines(e.path) {
			if v, ok := strings.CutPrefix(l, "TasksMax="); ok && v != "infinity" {
				return passed(by, "/"+e.path+": "+l)
			}
		}
	}
	return failed(by, "no "+path.Join("/etc/systemd/system/user-.slice.d", "*.conf")+" sets it")
}
