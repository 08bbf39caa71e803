package audit

import (
	"fmt"
	"slices"
	"strings"
)

const byAPI = "the configuration on the server"

var containerChecks = []check{
	{Check: Check{ID: "C1", Title: "The container is unprivileged", Severity: Critical, Cap: GradeB, How: byAPI,
		Remedy: "Make it anew as an unprivileged one; a container can't be changed. Root in a privileged container is root on the node, and LXC's authors call that not safe at all."},
		container: func(c *Container, _ Options) verdict {
			if !c.Unprivileged {
				return failed(byAPI, "unprivileged is not set: root inside is root on the node")
			}
			return passed(byAPI, "unprivileged: 1")
		}},
	{Check: Check{ID: "C2.1", Title: "No raw line loosens the container", Severity: High, Cap: GradeB, How: byAPI,
		Remedy: "Remove the line from /etc/pve/lxc/<vmid>.conf on the node, or from the template; only root there can. A profile of your own replaces the one that Proxmox VE generates."},
		container: func(c *Container, _ Options) verdict {
			var found []string
			for _, line := range c.Raw {
				if why := loosens(line[0], line[1]); why != "" {
					found = append(found, fmt.Sprintf("%s: %s (%s)", line[0], line[1], why))
				}
			}
			return judge(byAPI, found, fmt.Sprintf("%d raw lines", len(c.Raw)))
		}},
	{Check: Check{ID: "C2.2", Title: "No folder or device of the node is inside", Severity: High, Cap: GradeB, How: byAPI,
		Remedy: "Take the mount point or device out; share files by a workspace or over SSH instead."},
		container: func(c *Container, _ Options) verdict {
			var found []string
			for _, m := range c.Mounts {
				if strings.HasPrefix(m.Source, "/") {
					found = append(found, fmt.Sprintf("%s mounts the node's %s on %s", m.Slot, m.Source, m.Path))
				}
			}
			for _, d := range c.Devices {
				found = append(found, "device "+d)
			}
			return judge(byAPI, found)
		}},
	{Check: Check{ID: "C2.3", Title: "No hookscript runs on the node", Severity: Medium, How: byAPI,
		Remedy: "Take the hookscript out; it runs as root on the node whenever the container starts or stops."},
		container: func(c *Container, _ Options) verdict {
			if c.Hookscript != "" {
				return failed(byAPI, "hookscript "+c.Hookscript)
			}
			return passed(byAPI)
		}},
	{Check: Check{ID: "C3", Title: "No feature beyond the profile's is on", Severity: High, How: byAPI,
		Remedy: "Switch the feature off, or choose the profile that needs it: strict has none, standard nesting, docker nesting and keyctl. mount, fuse and mknod are in none."},
		container: checkFeatures},
	{Check: Check{ID: "C4", Title: "It doesn't start with its node; a template stays a template", Severity: Low, How: byAPI,
		Remedy: "Set onboot to 0. Convert what sandboxes are cloned from into a template, so that nobody starts it by mistake."},
		container: func(c *Container, o Options) verdict {
			var found []string
			if c.OnBoot && (c.Template || o.Stage == StageTemplate) {
				found = append(found, "onboot: 1 in a template: every clone would start with the node")
			}
			if o.Stage == StageTemplate && !c.Template {
				found = append(found, "it is not converted into a template")
			}
			return judge(byAPI, found)
		}},
	{Check: Check{ID: "C5", Title: "CPU, memory and swap are limited", Severity: Medium, How: byAPI,
		Remedy: "Set cores or cpulimit, memory, and swap (0 is a limit too)."},
		container: func(c *Container, _ Options) verdict {
			var found []string
			if c.Cores == nil && c.CPULimit == 0 {
				found = append(found, "neither cores nor cpulimit: all cores of the node")
			}
			if c.MemoryMiB == nil {
				found = append(found, "memory isn't set: the server's default counts")
			}
			if c.SwapMiB == nil {
				found = append(found, "swap isn't set: the server's default counts")
			}
			return judge(byAPI, found)
		}},
	{Check: Check{ID: "C6.1", Title: "The firewall's flag is on at every interface", Severity: High, How: byAPI,
		Remedy: "Set firewall=1 on the interface: without it no rule counts, and nothing says so."},
		container: func(c *Container, _ Options) verdict {
			if len(c.Interfaces) == 0 {
				return notApplicable("there is no interface")
			}
			var found []string
			for _, i := range c.Interfaces {
				if !i.Firewall {
					found = append(found, fmt.Sprintf("%s on %s has no firewall=1", i.Slot, i.Bridge))
				}
			}
			return judge(byAPI, found)
		}},
	{Check: Check{ID: "C6.2", Title: "The container's firewall is on and lets nothing in by default", Severity: High, How: "the firewall's options on the server",
		Remedy: "Give the sandbox a network mode other than unmanaged, and switch the datacenter's firewall on (sandbox_datacenter_firewall)."},
		container: checkFirewall},
	{Check: Check{ID: "C7", Title: "The root disk has a size, and a template no snapshots", Severity: Low, How: byAPI,
		Remedy: "Give the root disk a size; delete a template's snapshots."},
		container: func(c *Container, o Options) verdict {
			var found []string
			if c.DiskGiB == 0 {
				found = append(found, "the root disk has no size: it can fill its storage")
			}
			if o.Stage == StageTemplate && c.Snapshots != nil && *c.Snapshots > 0 {
				found = append(found, fmt.Sprintf("%d snapshots", *c.Snapshots))
			}
			return judge(byAPI, found, fmt.Sprintf("%.4g GiB", c.DiskGiB))
		}},
	{Check: Check{ID: "C8", Title: "No id of the node is mapped inside", Severity: Critical, Cap: GradeB, How: byAPI,
		Remedy: "Remove lxc.idmap: the default maps root to an id that owns nothing on the node."},
		container: func(c *Container, _ Options) verdict {
			var found []string
			for _, line := range c.Raw {
				if strings.HasPrefix(line[0], "lxc.idmap") || line[0] == "lxc.id_map" {
					found = append(found, line[0]+": "+line[1])
				}
			}
			return judge(byAPI, found, "the default map")
		}},
	{Check: Check{ID: "C9", Title: "Nesting is as the profile needs it", Severity: Low, How: byAPI,
		Remedy: "Without nesting, systemd's own sandboxing fails (226/NAMESPACE) and agents can't sandbox their commands; with it, the container may mount its own proc and sysfs and make user namespaces. The guide \"Hardening\" weighs it."},
		container: func(c *Container, o Options) verdict {
			nesting := slices.Contains(c.Features, "nesting=1")
			switch {
			case o.Profile == Strict && nesting:
				return failed(byAPI, "nesting is on in the profile strict")
			case o.Profile != Strict && !nesting:
				return failed(byAPI, fmt.Sprintf("nesting is off in the profile %s", o.Profile))
			}
			return passed(byAPI, fmt.Sprintf("profile %s, nesting %t", o.Profile, nesting))
		}},
}

// harmlessRaw are the keys of raw lines that only take away, or only limit.
var harmlessRaw = []string{"lxc.prlimit.", "lxc.cgroup2.pids.", "lxc.cgroup2.memory.", "lxc.cgroup2.cpu", "lxc.cgroup2.io.", "lxc.cgroup2.hugetlb.", "lxc.sched."}

// loosens says why a raw line makes the container less closed; "" when it doesn't.
func loosens(key, value string) string {
	value = strings.TrimSpace(value)
	switch {
	case strings.HasPrefix(key, "lxc.idmap"), key == "lxc.id_map":
		return "" // C8
	case key == "lxc.cap.drop" && value == "":
		return "an empty value gives all capabilities back"
	case key == "lxc.cap.drop":
		return ""
	case key == "lxc.apparmor.profile" && value == "unconfined":
		return "no AppArmor profile"
	case strings.HasPrefix(key, "lxc.apparmor.") || strings.HasPrefix(key, "lxc.selinux."):
		return "replaces what Proxmox VE generates"
	case strings.HasPrefix(key, "lxc.seccomp."):
		return "replaces the seccomp profile"
	case strings.HasPrefix(key, "lxc.mount"):
		return "mounts something of the node"
	case strings.HasPrefix(key, "lxc.hook."):
		return "runs a program on the node"
	case strings.HasPrefix(key, "lxc.cgroup.devices.") || strings.HasPrefix(key, "lxc.cgroup2.devices."):
		return "gives access to devices"
	}
	for _, prefix := range harmlessRaw {
		if strings.HasPrefix(key, prefix) {
			return ""
		}
	}
	return "not known to be harmless"
}

// featuresOf are the features that a profile may have beside nesting, which C9
// judges for it.
var featuresOf = map[Profile][]string{Strict: {}, Standard: {"nesting"}, Docker: {"nesting", "keyctl"}}

func checkFeatures(c *Container, o Options) verdict {
	var found []string
	for _, f := range c.Features {
		name, value, _ := strings.Cut(f, "=")
		if value == "0" || slices.Contains(featuresOf[o.Profile], name) {
			continue
		}
		found = append(found, fmt.Sprintf("%s in the profile %s", f, o.Profile))
	}
	return judge(byAPI, found, c.Features...)
}

func checkFirewall(c *Container, o Options) verdict {
	const by = "the firewall's options on the server"
	if len(c.Interfaces) == 0 {
		return notApplicable("there is no interface")
	}
	if o.Stage == StageTemplate || c.Template {
		return notApplicable("a template doesn't run; each sandbox gets rules of its own")
	}
	if c.Firewall == nil {
		return unknown(by, "they could not be read")
	}
	var found []string
	f := c.Firewall
	if !f.Datacenter {
		found = append(found, "the datacenter's firewall is off: nothing is filtered")
	}
	if !f.Enabled {
		found = append(found, "the container's firewall is off")
	}
	if f.PolicyIn == "ACCEPT" {
		found = append(found, "policy_in is ACCEPT")
	}
	if !f.MACFilter {
		found = append(found, "the MAC filter is off: it can pose as another guest")
	}
	return judge(by, found)
}
