package audit

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"golang.org/x/crypto/ssh"
)

const (
	passwdFile  = "etc/passwd"
	groupFile   = "etc/group"
	shadowFile  = "etc/shadow"
	sudoersFile = "etc/sudoers"
	loginDefs   = "etc/login.defs"
)

var accountChecks = []check{
	{Check: Check{ID: "G2", Title: "No account has a password, and none an empty one", Severity: Critical, Cap: GradeD, How: "/etc/shadow and /etc/passwd",
		Remedy: "Lock each (passwd -l): who logs in does so by key, and root by the node."},
		guest: checkPasswords},
	{Check: Check{ID: "G3.1", Title: "Files of authorized keys belong to their user, and only the user or root can write them", Severity: High, How: "owners and modes of ~/.ssh",
		Remedy: "chown them to the user or root, and chmod 600 the file and 700 the folder."},
		guest: checkKeyFiles},
	{Check: Check{ID: "G3.2", Title: "Only known keys may log in", Severity: High, Cap: GradeC, How: "authorized_keys against the list of allowed keys",
		Remedy: "Remove the keys that nobody knows; a key of the build that stays in a template opens every clone."},
		guest: checkKnownKeys},
	{Check: Check{ID: "G4", Title: "The agent has an account of its own that can do nothing as root", Severity: High, How: "/etc/passwd, /etc/group and the home's mode",
		Remedy: "An account with a fixed id of 1000 or above, a home of mode 700, and in none of the groups that lead to root (sudo, docker, lxd, disk …)."},
		guest: checkAgentUser},
	{Check: Check{ID: "G5", Title: "Nobody becomes root by sudo", Severity: High, How: "/etc/sudoers and /etc/sudoers.d",
		Remedy: "Remove the rules; what needs root is done before the template is sealed. A rule without NOPASSWD serves nobody either: no account has a password."},
		guest: checkSudo},
}

type account struct {
	name     string
	uid, gid string
	home     string
	shell    string
}

func (g *system) accounts() []account {
	var out []account
	for _, line := range g.lines(passwdFile) {
		if f := strings.Split(line, ":"); len(f) == 7 {
			out = append(out, account{f[0], f[2], f[3], f[5], f[6]})
		}
	}
	return out
}

func (g *system) account(name string) (account, bool) {
	for _, a := range g.accounts() {
		if a.name == name {
			return a, true
		}
	}
	return account{}, false
}

func checkPasswords(g *system) verdict {
	const by = "/etc/shadow and /etc/passwd"
	shadow := g.lines(shadowFile)
	accounts := g.accounts()
	if len(shadow) == 0 || len(accounts) == 0 {
		return unknown(by, "they can't be read")
	}
	var found []string
	for _, line := range shadow {
		f := strings.Split(line, ":")
		if len(f) < 2 {
			continue
		}
		switch {
		case f[1] == "":
			found = append(found, f[0]+" has an empty password: anybody is let in")
		case !strings.HasPrefix(f[1], "!") && !strings.HasPrefix(f[1], "*"):
			found = append(found, f[0]+" has a password")
		}
	}
	for _, a := range accounts {
		if a.uid == "0" && a.name != "root" {
			found = append(found, a.name+" is root too (uid 0)")
		}
	}
	for _, line := range g.lines(passwdFile) {
		if f := strings.Split(line, ":"); len(f) == 7 && f[1] != "x" && !strings.HasPrefix(f[1], "*") && !strings.HasPrefix(f[1], "!") {
			found = append(found, f[0]+" has its password, or none, in /etc/passwd")
		}
	}
	return judge(by, found)
}

// keyFile is an account's file of authorized keys.
type keyFile struct {
	account
	entry
}

func (g *system) keyFiles() []keyFile {
	var out []keyFile
	for _, a := range g.accounts() {
		for _, name := range []string{"authorized_keys", "authorized_keys2"} {
			if e, ok := g.stat(path.Join(a.home, ".ssh", name)); ok && e.mode.IsRegular() {
				out = append(out, keyFile{a, e})
			}
		}
	}
	return out
}

func checkKeyFiles(g *system) verdict {
	const by = "owners and modes of ~/.ssh"
	if g.partial != "" {
		return unknown(by, g.partial)
	}
	var found []string
	seen := 0
	for _, a := range g.accounts() {
		dir, ok := g.stat(path.Join(a.home, ".ssh"))
		if !ok {
			continue
		}
		names := append([]entry{dir}, g.children(dir.path)...)
		for _, e := range names {
			base := path.Base(e.path)
			if e.path != dir.path && !strings.HasPrefix(base, "authorized_keys") {
				continue
			}
			seen++
			if owner := fmt.Sprint(e.uid); owner != a.uid && owner != "0" {
				found = append(found, e.show()+" belongs to somebody else")
			}
			if e.mode&fs.ModeSymlink != 0 {
				found = append(found, e.show()+" is a link")
			} else if e.perm()&0o022 != 0 {
				found = append(found, e.show()+" can be written by others")
			}
		}
	}
	if seen == 0 {
		return notApplicable("there are none")
	}
	return judge(by, found)
}

func checkKnownKeys(g *system) verdict {
	const by = "authorized_keys against the list of allowed keys"
	if len(g.accounts()) == 0 {
		return unknown(by, "/etc/passwd can't be read")
	}
	allowed := map[string]bool{}
	for _, line := range g.o.AllowedKeys {
		key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
		if err != nil {
			return unknown(by, "an allowed key can't be read: "+err.Error())
		}
		allowed[ssh.FingerprintSHA256(key)] = true
	}
	var found, seen []string
	for _, f := range g.keyFiles() {
		content, err := g.file(f.path)
		if err != nil {
			return unknown(by, err.Error())
		}
		for n, line := range strings.Split(string(content), "\n") {
			line = strings.TrimSpace(line)
			if line == "" || strings.HasPrefix(line, "#") {
				continue
			}
			key, comment, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
			if err != nil {
				found = append(found, fmt.Sprintf("/%s line %d is no key", f.path, n+1))
				continue
			}
			at := fmt.Sprintf("%s may log in with %s (%s)", f.name, ssh.FingerprintSHA256(key), cmp.Or(comment, "no comment"))
			if allowed[ssh.FingerprintSHA256(key)] {
				seen = append(seen, at)
			} else {
				found = append(found, at)
			}
		}
	}
	if g.o.AllowedKeys == nil {
		if len(found) == 0 && len(seen) == 0 {
			return passed(by, "no key may log in")
		}
		v := notApplicable("nobody said which keys are allowed")
		v.evidence = append(v.evidence, found...)
		return v
	}
	return judge(by, found, seen...)
}

// rootGroups are the groups whose members can become root, or read what root reads.
var rootGroups = []string{"root", "sudo", "wheel", "admin", "docker", "lxd", "incus", "incus-admin", "libvirt", "disk", "shadow", "kmem", "kvm", "systemd-journal", "adm", "staff"}

func checkAgentUser(g *system) verdict {
	const by = "/etc/passwd, /etc/group and the home's mode"
	if len(g.accounts()) == 0 {
		return unknown(by, "/etc/passwd can't be read")
	}
	a, ok := g.account(g.o.AgentUser)
	if !ok {
		return failed(by, "there is no account "+g.o.AgentUser)
	}
	var found []string
	if uid := atoi(a.uid); uid < 1000 || uid >= 60000 {
		found = append(found, "its uid is "+a.uid)
	}
	if strings.HasSuffix(a.shell, "/nologin") || strings.HasSuffix(a.shell, "/false") || a.shell == "" {
		found = append(found, "its shell is "+a.shell)
	}
	for _, line := range g.lines(groupFile) {
		f := strings.Split(line, ":")
		if len(f) != 4 || !slices.Contains(rootGroups, f[0]) {
			continue
		}
		if f[2] == a.gid || slices.Contains(strings.Split(f[3], ","), a.name) {
			if f[0] != "docker" || g.o.Profile != Docker {
				found = append(found, "it is in the group "+f[0])
			}
		}
	}
	home, ok := g.stat(a.home)
	switch {
	case !ok || !home.mode.IsDir():
		found = append(found, "it has no home "+a.home)
	case fmt.Sprint(home.uid) != a.uid:
		found = append(found, home.show()+" belongs to somebody else")
	case home.perm()&0o077 != 0:
		found = append(found, home.show()+": others can look into the home")
	}
	return judge(by, found, fmt.Sprintf("%s, uid %s, home %s", a.name, a.uid, a.home))
}

func checkSudo(g *system) verdict {
	const by = "/etc/sudoers and /etc/sudoers.d"
	if !g.anyOf("usr/bin/sudo", "usr/bin/doas", "usr/local/bin/sudo") {
		return notApplicable("sudo is not installed")
	}
	files := []string{sudoersFile}
	for _, e := range g.children("etc/sudoers.d") {
		if base := path.Base(e.path); !strings.Contains(base, ".") && !strings.HasSuffix(base, "~") {
			files = append(files, e.path)
		}
	}
	var found []string
	for _, f := range files {
		e, ok := g.stat(f)
		if !ok {
			continue
		}
		if e.perm()&0o022 != 0 || e.uid != 0 {
			found = append(found, e.show()+" can be written by others")
		}
		if _, err := g.file(f); err != nil {
			return unknown(by, err.Error())
		}
		for _, line := range g.lines(f) {
			subject := strings.Fields(line)[0]
			switch {
			case strings.HasPrefix(line, "Defaults"), strings.HasPrefix(line, "@include"), strings.Contains(subject, "_Alias"), subject == "root":
				continue
			case strings.HasPrefix(subject, "%") && !g.hasMembers(subject[1:]) && !strings.Contains(line, "NOPASSWD"):
				continue // the distribution's own, for a group that nobody is in
			}
			found = append(found, "/"+f+": "+line)
		}
	}
	if content := g.lines("etc/doas.conf"); len(content) > 0 {
		found = append(found, content...)
	}
	return judge(by, found)
}

func (g *system) hasMembers(group string) bool {
	for _, line := range g.lines(groupFile) {
		f := strings.Split(line, ":")
		if len(f) != 4 || f[0] != group {
			continue
		}
		if f[3] != "" {
			return true
		}
		return slices.ContainsFunc(g.accounts(), func(a account) bool { return a.gid == f[2] && a.name != "root" })
	}
	return false
}
