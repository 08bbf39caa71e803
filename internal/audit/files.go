package audit

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
)

var fileChecks = []check{
	{Check: Check{ID: "G12.1", Title: "No program is setuid or setgid beyond the known few", Severity: Medium, How: "modes of all files",
		Remedy: "Take the bit off (dpkg-statoverride keeps it off over upgrades), or remove the package: nobody has a password, so su, passwd, mount and their like serve nobody."},
		guest: checkSetuid},
	{Check: Check{ID: "G12.2", Title: "Nothing can be written by everybody", Severity: Medium, How: "modes of all files",
		Remedy: "chmod o-w; a folder that must be everybody's gets the sticky bit."},
		guest: checkWorldWritable},
	{Check: Check{ID: "G12.3", Title: "What root runs and reads belongs to root", Severity: High, How: "owners and modes under /etc, /usr and /opt",
		Remedy: "chown to root and take away others' right to write: who can change what root runs is root at the next boot."},
		guest: checkRootsFiles},
}

// setuidAllowed are the programs that may be setuid or setgid, by path without
// the leading slash. In all profiles: what reads the shadow file for PAM, what
// maps subordinate ids for rootless containers (it checks /etc/subuid), sudo (with
// no rule it does nothing; G5 judges the rules), D-Bus' launcher (root's and its
// own group's only), and ssh-agent, whose group keeps others from tracing it.
var setuidAllowed = []string{
	"usr/sbin/unix_chkpwd", "usr/bin/newuidmap", "usr/bin/newgidmap", "usr/bin/sudo", "usr/lib/dbus-1.0/dbus-daemon-launch-helper", "usr/bin/ssh-agent",
}

// setuidDocker are more, for the profile docker.
var setuidDocker = []string{"usr/bin/fusermount3", "usr/bin/fusermount"}

// SetuidAllowed lists the programs that may be setuid or setgid in a profile.
func SetuidAllowed(p Profile) []string {
	out := slices.Clone(setuidAllowed)
	if p == Docker {
		out = append(out, setuidDocker...)
	}
	for i := range out {
		out[i] = "/" + out[i]
	}
	return out
}

func checkSetuid(g *system) verdict {
	const by = "modes of all files"
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	allowed := SetuidAllowed(g.o.Profile)
	var found, seen []string
	for _, e := range g.list {
		if !e.mode.IsRegular() || e.mode&(fs.ModeSetuid|fs.ModeSetgid) == 0 {
			continue
		}
		if slices.Contains(allowed, "/"+e.path) && e.uid == 0 {
			seen = append(seen, e.show())
		} else {
			found = append(found, e.show())
		}
	}
	return judge(by, found, seen...)
}

func checkWorldWritable(g *system) verdict {
	const by = "modes of all files"
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	var found []string
	for _, e := range g.list {
		if e.mode&fs.ModeSymlink != 0 || e.perm()&0o002 == 0 || e.mode&fs.ModeDir != 0 && e.mode&fs.ModeSticky != 0 {
			continue
		}
		top, _, _ := strings.Cut(e.path, "/")
		if notWalked[top] {
			continue // the kernel's, or made at boot
		}
		found = append(found, e.show())
	}
	return judge(by, found)
}

// rootsFolders are where root's programs and settings are.
var rootsFolders = []string{"etc", "usr", "bin", "sbin", "lib", "lib64", "opt", "boot"}

func checkRootsFiles(g *system) verdict {
	const by = "owners and modes under /etc, /usr and /opt"
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	agent, _ := g.account(g.o.AgentUser)
	var found []string
	for _, dir := range rootsFolders {
		if e, ok := g.lstat(dir); ok && e.mode&fs.ModeSymlink != 0 {
			continue
		}
		for _, e := range g.under(dir) {
			switch {
			case e.mode&fs.ModeSymlink != 0:
			case agent.uid != "" && fmt.Sprint(e.uid) == agent.uid, e.uid >= 1000:
				found = append(found, e.show())
			case agent.gid != "" && fmt.Sprint(e.gid) == agent.gid && e.perm()&0o020 != 0:
				found = append(found, e.show())
			}
		}
	}
	for _, dir := range []string{"root", ".", "home"} {
		if e, ok := g.stat(dir); ok && (e.uid != 0 || e.perm()&0o022 != 0) {
			found = append(found, e.show())
		}
	}
	if e, ok := g.stat(shadowFile); ok && (e.uid != 0 || e.perm()&0o027 != 0) {
		found = append(found, e.show())
	}
	return judge(by, found)
}

// bigFile reads a file that may be larger than others: the packages' list.
func (g *system) bigFile(name string) ([]byte, error) {
	e, ok := g.stat(name)
	if !ok || !e.mode.IsRegular() {
		return nil, fs.ErrNotExist
	}
	if content := g.read[e.path]; content != nil {
		return content, nil
	}
	const most = 16 << 20
	if e.size > most {
		return nil, fmt.Errorf("/%s: %w", e.path, errTooLarge)
	}
	got, err := g.fetch(g.ctx, []string{e.path}, most)
	if err != nil {
		return nil, err
	}
	content, ok := got[e.path]
	if !ok {
		return nil, fmt.Errorf("/%s can't be read", path.Clean(e.path))
	}
	g.read[e.path] = content
	return content, nil
}
