package audit

import (
	"context"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"testing"
	"time"
)

// fixture is a system in memory that passes every check, for tests that take one
// thing away at a time.
type fixture struct {
	t        *testing.T
	files    map[string]entry
	contents map[string]string
	probes   map[string]probe
	running  bool
	o        Options
}

var testNow = time.Date(2026, 12, 1, 8, 0, 0, 0, time.UTC)

const (
	goodSSHD = `permitrootlogin prohibit-password
passwordauthentication no
kbdinteractiveauthentication no
permitemptypasswords no
hostbasedauthentication no
ignorerhosts yes
pubkeyauthentication yes
allowusers root
allowusers agent
x11forwarding no
allowagentforwarding no
permittunnel no
permituserenvironment no
gatewayports no
allowtcpforwarding yes
permitlisten 127.0.0.1:*
maxauthtries 4
maxsessions 10
logingracetime 30
clientaliveinterval 60
maxstartups 10:30:60
loglevel VERBOSE
ciphers chacha20-poly1305@openssh.com,aes256-gcm@openssh.com
macs hmac-sha2-256-etm@openssh.com
kexalgorithms curve25519-sha256
hostkeyalgorithms ssh-ed25519,rsa-sha2-512
`
	ownKey     = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmGpyHSqQEmHb3yQ6TQYBXzJpCZWmZw3m2N5nX5Oa1V fleet"
	foreignKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPkXxsWv7i1AQDFmBJKTUs8uR0t6xJfGX8JZ4bN4m8cC packer"
)

func goodTemplate(t *testing.T) *fixture {
	f := &fixture{t: t, files: map[string]entry{}, contents: map[string]string{}, probes: map[string]probe{}, o: Options{
		Stage: StageTemplate, Profile: Standard, AgentUser: "agent", AllowedKeys: []string{ownKey}, Now: testNow,
	}}
	f.dir(".", 0o755, 0)
	f.put("etc/passwd", "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1::/usr/sbin:/usr/sbin/nologin\nagent:x:1000:1000::/home/agent:/bin/bash\n")
	f.put("etc/group", "root:x:0:\nsudo:x:27:\nagent:x:1000:\n")
	f.put("etc/shadow", "root:*:20000::::::\ndaemon:*:20000::::::\nagent:!:20000::::::\n", 0o640)
	f.put("etc/os-release", "ID=debian\nVERSION_ID=\"12\"\nVERSION_CODENAME=bookworm\n")
	f.put("etc/apt/sources.list", "deb http://mirror.example.org/debian bookworm main\ndeb [arch=amd64 signed-by=/x] http://mirror.example.org/debian-security bookworm-security main\n")
	f.put("var/lib/dpkg/status", "Package: openssh-server\nStatus: install ok installed\nVersion: 1:9.2\n\nPackage: postfix\nStatus: deinstall ok config-files\nVersion: 3\n")
	f.put("etc/machine-id", "uninitialized\n", 0o444)
	f.put("etc/sandbox/harden.json", `{"version":1,"profile":"standard","upgraded_at":"2026-12-01T07:00:00Z","upgradable":0}`)
	f.put("etc/sandbox/nftables.conf", "table inet sandbox {\n chain input {\n type filter hook input priority 0; policy drop;\n }\n}\n", 0o644)
	f.put("usr/sbin/sshd", "ELF", 0o755)
	f.put("usr/lib/systemd/systemd", "ELF", 0o755)
	f.put("usr/sbin/unix_chkpwd", "ELF", 0o755|fs.ModeSetgid)
	f.put("usr/lib/systemd/system/apt-daily.timer", "[Timer]\n")
	f.link("etc/systemd/system/apt-daily.timer", "/dev/null")
	f.link("dev/null", "")
	f.put("etc/systemd/system/sandbox-firstboot.service", "[Unit]\nConditionPathExists=!/etc/ssh/ssh_host_ed25519_key\nBefore=ssh.service\n[Service]\nExecStart=/usr/bin/ssh-keygen -A\n")
	f.wants("multi-user.target", "sandbox-firstboot.service")
	f.put("etc/systemd/system/sandbox-lease.timer", "[Timer]\n")
	f.wants("timers.target", "sandbox-lease.timer")
	f.put("etc/systemd/system/sandbox-filter.service", "[Service]\n")
	f.wants("sysinit.target", "sandbox-filter.service")
	f.put("usr/local/lib/sandbox/lease", "#!/bin/sh\n", 0o755)
	f.put("etc/systemd/system/user-.slice.d/50-sandbox.conf", "[Slice]\nTasksMax=4096\n")
	f.put("etc/systemd/coredump.conf.d/sandbox.conf", "[Coredump]\nStorage=none\n")
	f.put("etc/security/limits.d/sandbox.conf", "*  hard  core  0\n")
	f.put("etc/tmpfiles.d/sandbox.conf", "d /run/sandbox 0755 root root -\n")
	f.dir("root", 0o700, 0)
	f.dir("root/.ssh", 0o700, 0)
	f.put("root/.ssh/authorized_keys", ownKey+"\n", 0o600)
	f.dir("home/agent", 0o700, 1000)
	f.dir("tmp", 0o777|fs.ModeSticky, 0)
	f.probes["sshd-root"] = probe{out: goodSSHD}
	f.probes["sshd-agent"] = probe{out: goodSSHD}
	return f
}

// goodGuest is the same after its first boot.
func goodGuest(t *testing.T) *fixture {
	f := goodTemplate(t)
	f.o.Stage, f.running = StageGuest, true
	f.put("etc/ssh/ssh_host_ed25519_key", "-----BEGIN OPENSSH PRIVATE KEY-----\n", 0o600)
	f.put("etc/machine-id", strings.Repeat("a", 32)+"\n", 0o444)
	f.probes["/proc/1/uid_map"] = probe{out: "         0     100000      65536\n"}
	f.probes["/sys/module/apparmor/parameters/enabled"] = probe{out: "Y\n"}
	f.probes["/proc/self/attr/current"] = probe{out: "lxc-100_</var/lib/lxc>//&:lxc-100_<-var-lib-lxc>:unconfined (enforce)\n"}
	f.probes["/proc/self/mounts"] = probe{out: "x / btrfs rw 0 0\ntmpfs /run tmpfs rw 0 0\n"}
	f.probes["/proc/net/tcp"] = probe{out: "  sl  local_address rem_address   st\n   0: 00000000:0016 00000000:0000 0A 0\n   1: 0100007F:1F90 00000000:0000 0A 0\n"}
	f.probes["/proc/net/tcp6"] = probe{out: "  sl  local_address rem_address   st\n   0: 00000000000000000000000000000000:0016 00000000000000000000000000000000:0000 0A 0\n"}
	f.probes["failed"] = probe{}
	f.probes["nft"] = probe{out: "table inet sandbox {\n\tchain input {\n\t\ttype filter hook input priority filter; policy drop;\n"}
	return f
}

func (f *fixture) dir(name string, mode fs.FileMode, uid uint32) {
	for up := path.Dir(name); up != "." && up != name; up = path.Dir(up) {
		if _, ok := f.files[up]; !ok {
			f.files[up] = entry{path: up, mode: fs.ModeDir | 0o755}
		}
	}
	f.files[name] = entry{path: name, mode: fs.ModeDir | mode, uid: uid, gid: uid}
}

func (f *fixture) put(name, content string, mode ...fs.FileMode) {
	f.dir(path.Dir(name), f.modeOf(path.Dir(name)), f.files[path.Dir(name)].uid)
	m := fs.FileMode(0o644)
	if len(mode) > 0 {
		m = mode[0]
	}
	f.files[name] = entry{path: name, mode: m, size: int64(len(content))}
	f.contents[name] = content
}

func (f *fixture) modeOf(dir string) fs.FileMode {
	if e, ok := f.files[dir]; ok {
		return e.mode &^ fs.ModeDir
	}
	return 0o755
}

func (f *fixture) link(name, target string) {
	f.put(name, "", 0o777)
	f.files[name] = entry{path: name, mode: fs.ModeSymlink | 0o777, target: target}
}

func (f *fixture) wants(target, unit string) {
	f.link("etc/systemd/system/"+target+".wants/"+unit, "/etc/systemd/system/"+unit)
}

func (f *fixture) edit(name, old, replacement string) {
	f.t.Helper()
	if !strings.Contains(f.contents[name], old) {
		f.t.Fatalf("%s has no %q", name, old)
	}
	f.put(name, strings.Replace(f.contents[name], old, replacement, 1), f.files[name].mode)
}

func (f *fixture) chown(name string, uid uint32) {
	e := f.files[name]
	e.uid, e.gid = uid, uid
	f.files[name] = e
}

func (f *fixture) ask(name, old, replacement string) {
	f.t.Helper()
	p := f.probes[name]
	if !strings.Contains(p.out, old) {
		f.t.Fatalf("%s has no %q", name, old)
	}
	p.out = strings.Replace(p.out, old, replacement, 1)
	f.probes[name] = p
}

func (f *fixture) system() *system {
	var list []entry
	for _, e := range f.files {
		list = append(list, e)
	}
	g := &system{tree: newTree(context.Background(), list), o: f.o, probes: f.probes, running: f.running}
	g.fetch = func(_ context.Context, paths []string, limit int) (map[string][]byte, error) {
		out := map[string][]byte{}
		for _, p := range paths {
			if c, ok := f.contents[p]; ok && len(c) <= limit {
				out[p] = []byte(c)
			}
		}
		return out, nil
	}
	return g
}

func (f *fixture) report() Report { return judgeAll(f.system(), nil, "", f.o) }

func goodContainer() *Container {
	return &Container{
		Unprivileged: true, Features: []string{"nesting=1"}, Raw: [][2]string{{"lxc.cgroup2.pids.max", "4096"}, {"lxc.cap.drop", "sys_time"}},
		Cores: ptr(2), MemoryMiB: ptr(1024), SwapMiB: ptr(0), DiskGiB: 8,
		Interfaces: []Interface{{Slot: "net0", Bridge: "vmbr1", Firewall: true}},
		Firewall:   &Firewall{Datacenter: true, Enabled: true, PolicyIn: "DROP", MACFilter: true}, Snapshots: ptr(0),
	}
}

func ptr[T any](v T) *T { return &v }

func finding(t *testing.T, r Report, id string) Finding {
	t.Helper()
	for _, f := range r.Findings {
		if f.ID == id {
			return f
		}
	}
	t.Fatalf("no check %s in the report", id)
	return Finding{}
}

func bad(r Report) string {
	var b strings.Builder
	for _, f := range r.Findings {
		if f.Status == Failed || f.Status == Unknown {
			fmt.Fprintf(&b, "%s %s: %s\n", f.ID, f.Status, strings.Join(f.Evidence, "; "))
		}
	}
	return b.String()
}
