package audit

import (
	"fmt"
	"io/fs"
	"path"
	"strings"
)

const (
	machineIDFile = "etc/machine-id"
	// FirstBootUnit is the unit that makes host keys, see internal/harden.
	firstBootName = "sandbox-firstboot.service"
	firstBootUnit = "etc/systemd/system/" + firstBootName
)

var identityChecks = []check{
	{Check: Check{ID: "G6", Title: "A clone gets SSH host keys of its own", Severity: Critical, Cap: GradeC, How: "/etc/ssh and the first-boot unit, together",
		Remedy: "A template has no host keys and a unit that makes them before sshd starts. Proxmox VE makes new ones when it creates from a template file, not when it clones: keys that stay are the same in every clone, and with neither keys nor unit no clone can be reached."},
		guest: checkHostKeys},
	{Check: Check{ID: "G7", Title: "A clone gets a machine id and random seed of its own", Severity: Medium, How: "/etc/machine-id and /var/lib/systemd",
		Remedy: "Seal the template last: an empty /etc/machine-id, no /var/lib/dbus/machine-id, no random-seed, no credential.secret."},
		guest: checkMachineID},
	{Check: Check{ID: "G8", Title: "No address, lease or device name is left from the build", Severity: Low, How: "/var/lib/dhcp, /etc/network, /etc/netplan, /etc/udev/rules.d",
		Remedy: "Remove DHCP leases, persistent device names and static addresses: Proxmox VE writes the clone's own."},
		guest: checkNetworkLeftovers},
}

// hostKeys lists the private host keys.
func (g *system) hostKeys() []entry {
	var out []entry
	for _, e := range g.children("etc/ssh") {
		if base := path.Base(e.path); strings.HasPrefix(base, "ssh_host_") && !strings.HasSuffix(base, ".pub") {
			out = append(out, e)
		}
	}
	return out
}

func checkHostKeys(g *system) verdict {
	const by = "/etc/ssh and the first-boot unit, together"
	if !g.hasSSHServer() {
		return notApplicable("there is no SSH server")
	}
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	keys := g.hostKeys()
	unit, problems := g.firstBoot()
	var found []string
	switch {
	case g.o.Stage == StageTemplate && len(keys) > 0:
		for _, k := range keys {
			found = append(found, "/"+k.path+" would be the same in every clone")
		}
	case g.o.Stage == StageGuest && len(keys) == 0:
		found = append(found, "there are no host keys")
	}
	for _, k := range keys {
		if k.uid != 0 || k.perm()&0o077 != 0 {
			found = append(found, k.show()+" can be read by others")
		}
	}
	if g.systemd() {
		found = append(found, problems...)
	} else if g.o.Stage == StageTemplate {
		found = append(found, "there is no systemd to run a first-boot unit")
	}
	return judge(by, found, fmt.Sprintf("%d host keys, %s", len(keys), unit))
}

// firstBoot looks for a unit that makes host keys when there are none.
func (g *system) firstBoot() (unit string, problems []string) {
	if _, ok := g.unit(firstBootName); !ok {
		return "", []string{"no first-boot unit makes host keys: " + firstBootName + " is not there"}
	}
	if _, on := g.enabled(firstBootName); !on {
		problems = append(problems, firstBootName+" is not enabled")
	}
	body := strings.Join(g.lines(firstBootUnit), "\n")
	if !strings.Contains(body, "ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key") {
		problems = append(problems, firstBootName+" doesn't wait for missing keys (ConditionPathExists=!/etc/ssh/ssh_host_ed25519_key)")
	}
	if !strings.Contains(body, "Before=") || !strings.Contains(body, "ssh.service") {
		problems = append(problems, firstBootName+" isn't ordered before ssh.service")
	}
	if strings.Contains(body, "ConditionFirstBoot") {
		problems = append(problems, firstBootName+" waits for systemd's first boot, which Proxmox VE suppresses in clones")
	}
	return "/" + firstBootUnit, problems
}

func checkMachineID(g *system) verdict {
	const by = "/etc/machine-id and /var/lib/systemd"
	content, err := g.file(machineIDFile)
	id := strings.TrimSpace(string(content))
	var found []string
	if g.o.Stage == StageGuest {
		if err != nil || id == "" || id == "uninitialized" {
			return failed(by, "the running system has no machine id")
		}
		return passed(by)
	}
	// A missing file is as good: systemd takes both for a first boot.
	if id != "" && id != "uninitialized" {
		found = append(found, "/etc/machine-id is set: every clone would have it")
	}
	if e, ok := g.lstat("var/lib/dbus/machine-id"); ok && e.mode&fs.ModeSymlink == 0 && e.size > 0 {
		found = append(found, "/var/lib/dbus/machine-id is a file")
	}
	for _, f := range []string{"var/lib/systemd/random-seed", "var/lib/systemd/credential.secret"} {
		if _, ok := g.lstat(f); ok {
			found = append(found, "/"+f+" is there")
		}
	}
	return judge(by, found)
}

func checkNetworkLeftovers(g *system) verdict {
	const by = "/var/lib/dhcp, /etc/network, /etc/netplan, /etc/udev/rules.d"
	if g.o.Stage != StageTemplate {
		return notApplicable("a running system has addresses of its own")
	}
	var found []string
	for _, dir := range []string{"var/lib/dhcp", "var/lib/dhcpcd", "var/lib/NetworkManager", "var/lib/systemd/network"} {
		for _, e := range g.under(dir) {
			if e.mode.IsRegular() && e.size > 0 && (strings.Contains(path.Base(e.path), "lease") || strings.HasSuffix(e.path, ".leases")) {
				found = append(found, "/"+e.path)
			}
		}
	}
	for _, e := range g.children("etc/udev/rules.d") {
		if strings.Contains(path.Base(e.path), "persistent-net") {
			found = append(found, "/"+e.path)
		}
	}
	for _, e := range g.children("etc/netplan") {
		found = append(found, "/"+e.path)
	}
	return judge(by, found)
}
