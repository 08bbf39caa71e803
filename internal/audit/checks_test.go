package audit

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestAHardenedTemplateAndItsCloneGetTheBestGrade(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fixture{"template": goodTemplate(t), "guest": goodGuest(t)} {
		r := judgeAll(f.system(), goodContainer(), "", f.o)
		if name == "template" {
			c := goodContainer()
			c.Template = true
			r = judgeAll(f.system(), c, "", f.o)
		}
		if r.Grade != GradeAPlus || r.Score != 100 || bad(r) != "" {
			t.Errorf("%s: %s, %d points\n%s", name, r.Grade, r.Score, bad(r))
		}
		if len(r.Findings) != len(Checks()) {
			t.Errorf("%s: %d findings of %d checks", name, len(r.Findings), len(Checks()))
		}
	}
}

// weaknesses are what can be wrong inside, each with the one check that must name
// it. Every check of the inside has at least one.
var weaknesses = []struct {
	id, name string
	guest    bool // in a booted system
	do       func(f *fixture)
	evidence string
}{
	{"G1.1", "root may use a password", false, func(f *fixture) {
		f.ask("sshd-root", "permitrootlogin prohibit-password", "permitrootlogin yes")
	}, "permitrootlogin yes (for root)"},
	{"G1.1", "a Match block lets the agent use a password", false, func(f *fixture) {
		f.ask("sshd-agent", "passwordauthentication no", "passwordauthentication yes")
	}, "passwordauthentication yes (for agent)"},
	{"G1.2", "anybody may log in", false, func(f *fixture) {
		for _, u := range []string{"sshd-root", "sshd-agent"} {
			f.ask(u, "allowusers root\nallowusers agent\n", "")
		}
	}, "AllowUsers isn't set"},
	{"G1.3", "X11 is forwarded", false, func(f *fixture) { f.ask("sshd-agent", "x11forwarding no", "x11forwarding yes") }, "x11forwarding yes"},
	{"G1.3", "a forwarded port may listen for others", false, func(f *fixture) { f.ask("sshd-agent", "permitlisten 127.0.0.1:*", "permitlisten any") }, "permitlisten any"},
	{"G1.4", "endless guesses", false, func(f *fixture) { f.ask("sshd-root", "maxauthtries 4", "maxauthtries 60") }, "maxauthtries 60"},
	{"G1.5", "a cipher in CBC mode", false, func(f *fixture) { f.ask("sshd-root", "ciphers ", "ciphers aes128-cbc,") }, "ciphers aes128-cbc"},
	{"G1.6", "a socket unit for SSH", false, func(f *fixture) {
		f.put("usr/lib/systemd/system/ssh.socket", "[Socket]\n")
		f.link("etc/systemd/system/sockets.target.wants/ssh.socket", "/usr/lib/systemd/system/ssh.socket")
	}, "ssh.socket is enabled"},
	{"G2", "root has a password", false, func(f *fixture) { f.edit("etc/shadow", "root:*", "root:$y$j9T$abc") }, "root has a password"},
	{"G2", "an empty password", false, func(f *fixture) { f.edit("etc/shadow", "agent:!", "agent:") }, "agent has an empty password"},
	{"G2", "a second root", false, func(f *fixture) { f.edit("etc/passwd", "daemon:x:1:", "daemon:x:0:") }, "daemon is root too"},
	{"G3.1", "others may write the keys", false, func(f *fixture) { f.put("root/.ssh/authorized_keys", ownKey, 0o666) }, "/root/.ssh/authorized_keys 0666"},
	{"G3.2", "a key of the build", false, func(f *fixture) { f.put("root/.ssh/authorized_keys", ownKey+"\n"+foreignKey, 0o600) }, "(packer)"},
	{"G4", "the agent is in the group docker", false, func(f *fixture) { f.put("etc/group", "docker:x:999:agent\nagent:x:1000:\n") }, "group docker"},
	{"G4", "a home for all to see", false, func(f *fixture) { f.dir("home/agent", 0o755, 1000) }, "look into the home"},
	{"G4", "no agent user", false, func(f *fixture) { f.edit("etc/passwd", "agent:x:1000:1000::/home/agent:/bin/bash\n", "") }, "no account agent"},
	{"G5", "sudo without a password", false, func(f *fixture) {
		f.put("usr/bin/sudo", "ELF", 0o755|fs.ModeSetuid)
		f.put("etc/sudoers", "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n", 0o440)
		f.put("etc/sudoers.d/agent", "agent ALL=(ALL) NOPASSWD:ALL\n", 0o440)
	}, "/etc/sudoers.d/agent: agent ALL"},
	{"G6", "host keys in the template", false, func(f *fixture) { f.put("etc/ssh/ssh_host_rsa_key", "x", 0o600) }, "/etc/ssh/ssh_host_rsa_key would be the same in every clone"},
	{"G6", "no unit that makes them", false, func(f *fixture) { delete(f.files, "etc/systemd/system/sandbox-firstboot.service") }, "no first-boot unit"},
	{"G6", "the unit isn't enabled", false, func(f *fixture) {
		delete(f.files, "etc/systemd/system/multi-user.target.wants/sandbox-firstboot.service")
	}, "is not enabled"},
	{"G6", "the unit waits for what clones don't have", false, func(f *fixture) {
		f.edit("etc/systemd/system/sandbox-firstboot.service", "Before=ssh.service\n", "Before=ssh.service\nConditionFirstBoot=yes\n")
	}, "suppresses in clones"},
	{"G6", "a host key for all to read", true, func(f *fixture) { f.put("etc/ssh/ssh_host_ed25519_key", "x", 0o644) }, "can be read by others"},
	{"G7", "a machine id in the template", false, func(f *fixture) { f.put("etc/machine-id", strings.Repeat("b", 32)) }, "/etc/machine-id is set"},
	{"G7", "a random seed", false, func(f *fixture) { f.put("var/lib/systemd/random-seed", "x", 0o600) }, "random-seed"},
	{"G7", "a guest without one", true, func(f *fixture) { f.put("etc/machine-id", "uninitialized\n") }, "no machine id"},
	{"G8", "a DHCP lease", false, func(f *fixture) { f.put("var/lib/dhcp/dhclient.eth0.leases", "lease {}") }, "/var/lib/dhcp/dhclient.eth0.leases"},
	{"G9.1", "postfix", false, func(f *fixture) { f.edit("var/lib/dpkg/status", "deinstall ok config-files", "install ok installed") }, "postfix 3"},
	{"G9.2", "a service for all", true, func(f *fixture) { f.ask("/proc/net/tcp", "0100007F:1F90", "00000000:1F90") }, "tcp 0.0.0.0:8080"},
	{"G9.2", "mDNS", true, func(f *fixture) {
		f.probes["/proc/net/udp"] = probe{out: "  sl\n 1: 00000000:14E9 00000000:0000 07 0\n"}
	}, "udp 0.0.0.0:5353"},
	{"G9.3", "a failed unit", true, func(f *fixture) {
		f.probes["failed"] = probe{out: "● systemd-timesyncd.service loaded failed failed NTP\n"}
	}, "systemd-timesyncd.service"},
	{"G9.4", "an old upgrade", false, func(f *fixture) { f.edit("etc/sandbox/harden.json", "2026-12-01T07", "2026-09-01T07") }, "days ago"},
	{"G9.4", "packages that stayed behind", false, func(f *fixture) { f.edit("etc/sandbox/harden.json", `"upgradable":0`, `"upgradable":3`) }, "3 packages"},
	{"G9.5", "sources of another release", false, func(f *fixture) { f.edit("etc/apt/sources.list", "debian bookworm main", "debian bullseye main") }, "bullseye of http://mirror.example.org/debian is not bookworm"},
	{"G10", "a timer of apt", false, func(f *fixture) { delete(f.files, "etc/systemd/system/apt-daily.timer") }, "apt-daily.timer"},
	{"G11", "udev", false, func(f *fixture) { f.put("usr/lib/systemd/system/systemd-udevd.service", "[Unit]\n") }, "systemd-udevd.service"},
	{"G12.1", "su is setuid", false, func(f *fixture) { f.put("usr/bin/su", "ELF", 0o755|fs.ModeSetuid) }, "/usr/bin/su 4755 0:0"},
	{"G12.1", "an allowed name that isn't root's", false, func(f *fixture) {
		f.put("usr/bin/newuidmap", "ELF", 0o755|fs.ModeSetuid)
		f.chown("usr/bin/newuidmap", 5)
	}, "/usr/bin/newuidmap 4755 5:5"},
	{"G12.2", "a file for all to write", false, func(f *fixture) { f.put("srv/shared", "x", 0o666) }, "/srv/shared 0666"},
	{"G12.2", "a folder for all without the sticky bit", false, func(f *fixture) { f.dir("srv/drop", 0o777, 0) }, "/srv/drop 0777"},
	{"G12.3", "a program that is the agent's", false, func(f *fixture) {
		f.put("usr/local/bin/tool", "x", 0o755)
		f.chown("usr/local/bin/tool", 1000)
	}, "/usr/local/bin/tool"},
	{"G13.1", "no place for secrets", false, func(f *fixture) { delete(f.files, "etc/tmpfiles.d/sandbox.conf") }, "nothing makes /run/sandbox"},
	{"G13.1", "a place on disk", true, func(f *fixture) { f.ask("/proc/self/mounts", "tmpfs /run tmpfs", "x /run ext4") }, "/run is not in memory: ext4"},
	{"G13.2", "a key of Anthropic's", false, func(f *fixture) { f.put("root/notes", "k=sk-"+"ant-api03-"+strings.Repeat("aB3", 12)) }, "/root/notes line 1: Anthropic key"},
	{"G13.2", "an environment file", false, func(f *fixture) { f.put("srv/app/.env", "A=1\nDB_PASSWORD=hunter2hunter2\n") }, "/srv/app/.env line 2: key in an environment file"},
	{"G13.2", "a private key", false, func(f *fixture) {
		f.put("home/agent/.ssh/id_ed25519", "-----BEGIN OPENSSH PRIVATE "+"KEY-----\n", 0o600)
	}, "id_ed25519 line 1: private key"},
	{"G13.2", "a login of Codex", false, func(f *fixture) { f.put("home/agent/.codex/auth.json", "{}", 0o600) }, "login of Codex"},
	{"G13.2", "a token of npm", false, func(f *fixture) { f.put("root/.npmrc", "//npm.corp.internal/:_auth"+"Token=aabbccddeeff0011\n") }, "npm token"},
	{"G14", "core dumps", false, func(f *fixture) { delete(f.files, "etc/systemd/coredump.conf.d/sandbox.conf") }, "no Storage=none"},
	{"G15", "package lists", false, func(f *fixture) { f.put("var/lib/apt/lists/mirror.example.org_dists", "x") }, "/var/lib/apt/lists: 1 files"},
	{"G15", "a history", false, func(f *fixture) { f.put("root/.bash_history", "ls\n") }, "/root/.bash_history"},
	{"G16", "an agent that can change itself", false, func(f *fixture) {
		f.put("etc/sandbox/template.json", goodManifest)
		f.put("opt/codex/codex", "ELF", 0o757)
	}, "/opt/codex/codex 0757 0:0 can be changed by the agent"},
	{"G16", "an agent that updates itself", false, func(f *fixture) {
		f.put("etc/sandbox/template.json", strings.ReplaceAll(goodManifest, "codex", "claude-code"))
		f.put("opt/claude-code/claude-code", "ELF", 0o755)
		f.put("etc/environment", "DISABLE_AUTOUPDATER=0\n")
	}, "claude-code may update itself: DISABLE_AUTOUPDATER"},
	{"G17.1", "no record", false, func(f *fixture) { delete(f.files, "etc/sandbox/harden.json") }, ""},
	{"G17.2", "another manifest than the marker names", false, func(f *fixture) {
		f.put("etc/sandbox/template.json", goodManifest)
		f.put("opt/codex/codex", "ELF", 0o755)
		f.o.ManifestDigest = strings.Repeat("0", 64)
	}, "the marker says 0000"},
	{"G18", "apt's proxy of the build", false, func(f *fixture) { f.put("etc/apt/apt.conf.d/01proxy", `Acquire::http::Proxy "http://x:3142";`) }, "01proxy sets a proxy"},
	{"G19", "a privileged container", true, func(f *fixture) { f.probes["/proc/1/uid_map"] = probe{out: "0 0 4294967295\n"} }, "root inside is root outside"},
	{"G20", "no AppArmor profile", true, func(f *fixture) { f.probes["/proc/self/attr/current"] = probe{out: "unconfined\n"} }, "unconfined"},
	{"G21", "a lease that the agent can change", false, func(f *fixture) { f.chown("usr/local/lib/sandbox/lease", 1000) }, "/usr/local/lib/sandbox/lease"},
	{"G22", "a filter that lets all in", false, func(f *fixture) { f.edit("etc/sandbox/nftables.conf", "policy drop", "policy accept") }, "no input chain with policy drop"},
	{"G22", "a filter that isn't loaded", true, func(f *fixture) { f.probes["nft"] = probe{} }, "the running rules lack it"},
	{"G23", "no limit of processes", false, func(f *fixture) { f.edit("etc/systemd/system/user-.slice.d/50-sandbox.conf", "4096", "infinity") }, "user-.slice.d"},
}

const goodManifest = `{"version":1,"build_id":"b1","built_at":"2026-12-01T07:30:00Z","source":{"kind":"os_template","reference":"local:vztmpl/x"},"os":{"id":"debian","version":"12"},"agents":{"codex":{"version":"0.169.0","binary":"/opt/codex/codex"}}}`

func TestEveryWeaknessIsNamedByItsCheck(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, w := range weaknesses {
		covered[w.id] = true
		t.Run(w.id+" "+w.name, func(t *testing.T) {
			f := goodTemplate(t)
			if w.guest {
				f = goodGuest(t)
			}
			w.do(f)
			r := f.report()
			got := finding(t, r, w.id)
			if got.Status != Failed || !strings.Contains(strings.Join(got.Evidence, "\n"), w.evidence) {
				t.Errorf("%s: %s", got.Status, strings.Join(got.Evidence, "; "))
			}
			if got.Remedy == "" || got.VerifiedBy == "" {
				t.Error("no remedy, or no word of how it was verified")
			}
			if r.Score == 100 {
				t.Error("the score doesn't know")
			}
		})
	}
	for _, c := range Checks() {
		if c.Part == PartGuest && !covered[c.ID] {
			t.Errorf("%s can't fail in any test", c.ID)
		}
	}
}

func TestEveryWeaknessOfAConfigurationIsNamedByItsCheck(t *testing.T) {
	t.Parallel()
	covered := map[string]bool{}
	for _, w := range []struct {
		id       string
		do       func(*Container, *Options)
		evidence string
	}{
		{"C1", func(c *Container, _ *Options) { c.Unprivileged = false }, "root on the node"},
		{"C2.1", func(c *Container, _ *Options) { c.Raw = append(c.Raw, [2]string{"lxc.apparmor.profile", "unconfined"}) }, "no AppArmor profile"},
		{"C2.1", func(c *Container, _ *Options) { c.Raw = append(c.Raw, [2]string{"lxc.cap.drop", ""}) }, "all capabilities back"},
		{"C2.1", func(c *Container, _ *Options) {
			c.Raw = append(c.Raw, [2]string{"lxc.mount.entry", "/srv srv none bind"})
		}, "mounts something of the node"},
		{"C2.1", func(c *Container, _ *Options) { c.Raw = append(c.Raw, [2]string{"lxc.something.new", "1"}) }, "not known to be harmless"},
		{"C2.2", func(c *Container, _ *Options) { c.Mounts = []Mount{{"mp0", "/srv", "/data"}} }, "mp0 mounts the node's /srv"},
		{"C2.2", func(c *Container, _ *Options) { c.Devices = []string{"dev0=/dev/kvm"} }, "/dev/kvm"},
		{"C2.3", func(c *Container, _ *Options) { c.Hookscript = "local:snippets/x" }, "local:snippets/x"},
		{"C3", func(c *Container, _ *Options) { c.Features = append(c.Features, "keyctl=1") }, "keyctl=1 in the profile standard"},
		{"C4", func(c *Container, o *Options) { o.Stage = StageTemplate }, "not converted"},
		{"C5", func(c *Container, _ *Options) { c.Cores = nil }, "all cores of the node"},
		{"C6.1", func(c *Container, _ *Options) { c.Interfaces[0].Firewall = false }, "net0 on vmbr1 has no firewall=1"},
		{"C6.2", func(c *Container, _ *Options) { c.Firewall.Datacenter = false }, "nothing is filtered"},
		{"C7", func(c *Container, _ *Options) { c.DiskGiB = 0 }, "no size"},
		{"C8", func(c *Container, _ *Options) { c.Raw = [][2]string{{"lxc.idmap", "u 0 0 65536"}} }, "u 0 0 65536"},
		{"C9", func(c *Container, o *Options) { o.Profile = Strict }, "nesting is on"},
		{"C9", func(c *Container, _ *Options) { c.Features = nil }, "nesting is off"},
	} {
		covered[w.id] = true
		c, o := goodContainer(), Options{Stage: StageGuest, Profile: Standard, Now: testNow}
		w.do(c, &o)
		got := finding(t, judgeAll(nil, c, "", o), w.id)
		if got.Status != Failed || !strings.Contains(strings.Join(got.Evidence, "\n"), w.evidence) {
			t.Errorf("%s: %s %v, want %q", w.id, got.Status, got.Evidence, w.evidence)
		}
	}
	for _, c := range Checks() {
		if c.Part == PartContainer && !covered[c.ID] {
			t.Errorf("%s can't fail in any test", c.ID)
		}
	}
	docker := goodContainer()
	docker.Features = append(docker.Features, "keyctl=1")
	if f := finding(t, judgeAll(nil, docker, "", Options{Profile: Docker, Stage: StageGuest}), "C3"); f.Status != Passed {
		t.Errorf("keyctl in the profile docker: %v", f.Evidence)
	}
}

// A guest that says that it was hardened for Docker gets no more from it outside.
func TestAGuestsWordDoesntLoosenItsContainersChecks(t *testing.T) {
	t.Parallel()
	f := goodGuest(t)
	f.o.Profile = ""
	f.edit("etc/sandbox/harden.json", `"standard"`, `"docker"`)
	c := goodContainer()
	c.Features = append(c.Features, "keyctl=1")
	if got := finding(t, judgeAll(f.system(), c, "", f.o), "C3"); got.Status != Failed {
		t.Errorf("C3: %s", got.Status)
	}
}

func TestWhatCantBeCheckedNeverPasses(t *testing.T) {
	t.Parallel()
	f := goodTemplate(t)
	delete(f.probes, "sshd-root")
	r := f.report()
	if got := finding(t, r, "G1.1"); got.Status != Unknown {
		t.Errorf("G1.1 without sshd -T: %s", got.Status)
	}
	if r.Score == 100 || r.Grade == GradeAPlus {
		t.Errorf("%d points, %s", r.Score, r.Grade)
	}
	g := goodGuest(t).system()
	g.partial = "there are too many files"
	for _, id := range []string{"G6", "G12.1", "G12.2", "G12.3", "G13.2", "G3.1"} {
		if got := finding(t, judgeAll(g, nil, "", goodGuest(t).o), id); got.Status != Unknown {
			t.Errorf("%s of half a list of files: %s", id, got.Status)
		}
	}
	r = judgeAll(nil, goodContainer(), "it is stopped", Options{Stage: StageGuest, Profile: Standard})
	if r.Grade.AtLeast(GradeB) {
		t.Errorf("a container whose inside nobody saw has %s, %d points", r.Grade, r.Score)
	}
	if got := finding(t, r, "G2"); got.Status != Unknown || !slices.Contains(got.Evidence, "it is stopped") {
		t.Errorf("G2: %s %v", got.Status, got.Evidence)
	}
}

func TestNotApplicableIsNeitherPassedNorCounted(t *testing.T) {
	t.Parallel()
	f := goodGuest(t)
	f.probes["/sys/module/apparmor/parameters/enabled"] = probe{out: "N\n"}
	f.probes["/proc/self/attr/current"] = probe{out: "unconfined\n"}
	r := f.report()
	if got := finding(t, r, "G20"); got.Status != NotApplicable {
		t.Errorf("AppArmor on a kernel without: %s", got.Status)
	}
	if r.Score != 100 {
		t.Errorf("%d points", r.Score)
	}
	noSSH := goodTemplate(t)
	delete(noSSH.files, "usr/sbin/sshd")
	for _, id := range []string{"G1.1", "G6"} {
		if got := finding(t, noSSH.report(), id); got.Status != NotApplicable {
			t.Errorf("%s without an SSH server: %s", id, got.Status)
		}
	}
}

func TestEvidenceNeverHoldsTheSecret(t *testing.T) {
	t.Parallel()
	secret := "gh" + "p_" + strings.Repeat("Zq9", 12)
	f := goodTemplate(t)
	f.put("root/x", "a\nb "+secret+"\n")
	for _, g := range f.report().Findings {
		if strings.Contains(strings.Join(g.Evidence, ""), secret[4:12]) {
			t.Errorf("%s shows it: %v", g.ID, g.Evidence)
		}
	}
}

func TestExamplesOfSecretsAreNone(t *testing.T) {
	t.Parallel()
	f := goodTemplate(t)
	f.put("etc/app.conf", "# key = sk-your-key-goes-here-please-replace\n//registry/:_authToken=${NPM_TOKEN}\nurl = https://user:$PASS@host/\nAKIA"+"IOSFODNN7EXAMPLE\n")
	f.put("home/agent/project/.env.example", "API_KEY=put-your-key-here\n")
	if got := finding(t, f.report(), "G13.2"); got.Status != Passed {
		t.Errorf("%s: %v", got.Status, got.Evidence)
	}
}

func TestChecksAreDescribed(t *testing.T) {
	t.Parallel()
	form := regexp.MustCompile(`^[CG][1-9][0-9]?(\.[1-9])?$`)
	seen := map[string]bool{}
	for _, c := range Checks() {
		if !form.MatchString(c.ID) || seen[c.ID] {
			t.Errorf("the id %q", c.ID)
		}
		seen[c.ID] = true
		if c.Title == "" || strings.HasSuffix(c.Title, ".") || c.How == "" || !strings.HasSuffix(c.Remedy, ".") && !strings.HasSuffix(c.Remedy, ")") || weights[c.Severity] == 0 || c.Group == "" {
			t.Errorf("%s is not described: %+v", c.ID, c)
		}
	}
	for i := range 9 { // C1 to C9
		if id := "C" + string(rune('1'+i)); !slices.ContainsFunc(Checks(), func(c Check) bool { return c.ID == id || strings.HasPrefix(c.ID, id+".") }) {
			t.Errorf("no check %s", id)
		}
	}
}
