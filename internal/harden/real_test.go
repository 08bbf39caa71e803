//go:build linux

package harden_test

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/harden"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// debian unpacks a real Debian into a folder of its own, for a chroot.
func debian(t *testing.T) string {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a chroot needs root")
	}
	for _, program := range []string{"unshare", "chroot", "tar"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skip("a chroot needs ", program)
		}
	}
	image, err := ns.BaseImage(t.Context(), "debian-12")
	if err != nil {
		t.Skip("no real Debian: ", err)
	}
	dir := t.TempDir()
	if out, err := exec.CommandContext(t.Context(), "tar", "-C", dir, "--numeric-owner", "-xpf", image, "--exclude=./dev/*").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	// The machine's resolver, for apt; Proxmox VE writes a container's.
	resolver, err := os.ReadFile("/etc/resolv.conf")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "etc/resolv.conf"), resolver, 0o644); err != nil {
		t.Fatal(err)
	}
	r := remote.Chroot(dir)
	if res, err := r.Run(t.Context(), remote.Script{Text: "id -u"}); err != nil || res.ExitCode != 0 {
		t.Skipf("a chroot can't be entered here: %v %s", err, res.Stderr)
	}
	return dir
}

// state is every file of a root filesystem with what makes it what it is, but for times, and for what is in memory where it
// runs.
func state(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if name == filepath.Join(dir, "run") {
			return fs.SkipDir
		}
		info, err := d.Info()
		if err != nil {
			return err
		}
		stat := info.Sys().(*syscall.Stat_t)
		line := fmt.Sprintf("%v %d:%d", info.Mode(), stat.Uid, stat.Gid)
		switch {
		case info.Mode().IsRegular():
			content, err := os.ReadFile(name)
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %x", sha256.Sum256(content))
		case info.Mode()&fs.ModeSymlink != 0:
			target, err := os.Readlink(name)
			if err != nil {
				return err
			}
			line += " " + target
		}
		out[strings.TrimPrefix(name, dir)] = line
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func changes(before, after map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] != after[name] {
			out = append(out, name+": "+before[name]+" -> "+after[name])
		}
	}
	for name := range before {
		if _, ok := after[name]; !ok {
			out = append(out, name+" is gone")
		}
	}
	return out
}

const providerKey = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIEmGpyHSqQEmHb3yQ6TQYBXzJpCZWmZw3m2N5nX5Oa1V fleet"

// One real Debian, from its packages as they come to a sealed template, and then weakened: each step of the test goes on
// from the one before.
func TestARealDebianIsHardenedAndProvedAndItsWeaknessesAreNamed(t *testing.T) {
	t.Parallel()
	dir := debian(t)
	r := remote.Chroot(dir)
	inside := func(script string) string {
		t.Helper()
		res, err := r.Run(t.Context(), remote.Script{Text: "set -e; " + script})
		if err != nil || res.ExitCode != 0 {
			t.Fatalf("%s: %v, exit code %d: %s", script, err, res.ExitCode, res.Stderr)
		}
		return strings.TrimSpace(string(res.Stdout))
	}
	options := harden.Options{Seal: true, ProviderKeys: []string{providerKey}}
	auditOptions := audit.Options{AllowedKeys: []string{providerKey}}

	// What a build leaves behind, and what a distribution ships.
	inside(`mkdir -p /root/.ssh && echo 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPkXxsWv7i1AQDFmBJKTUs8uR0t6xJfGX8JZ4bN4m8cC packer' >/root/.ssh/authorized_keys
		ssh-keygen -A >/dev/null; echo 0123456789abcdef0123456789abcdef >/etc/machine-id; echo ls >/root/.bash_history
		usermod -aG sudo agent; echo 'agent ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/90-agent; echo built >/var/log/build.log; chmod 777 /srv`)

	t.Run("a source of another release is refused", func(t *testing.T) {
		sources := inside("cat /etc/apt/sources.list")
		inside("sed -i 's/ bookworm main/ bullseye main/' /etc/apt/sources.list")
		before := state(t, dir)
		_, err := harden.Apply(t.Context(), r, options)
		var step *harden.StepError
		if !errors.As(err, &step) || step.Step.ID != "packages" || !strings.Contains(step.Said, "bullseye") || !strings.Contains(step.Said, "bookworm") {
			t.Errorf("got %v", err)
		}
		if c := changes(before, state(t, dir)); len(c) > 0 {
			t.Errorf("it changed %v", c)
		}
		if err := os.WriteFile(filepath.Join(dir, "etc/apt/sources.list"), []byte(sources+"\n"), 0o644); err != nil {
			t.Fatal(err)
		}
	})
	t.Run("a source that can't be read is an error, not an upgrade of nothing", func(t *testing.T) {
		inside("echo 'deb [trusted=yes] file:///nowhere bookworm main' >/etc/apt/sources.list.d/nowhere.list; mv /etc/apt/sources.list /root/sources.list")
		_, err := harden.Apply(t.Context(), r, options)
		var step *harden.StepError
		if !errors.As(err, &step) || !strings.Contains(step.Said, "nobody knows what is to be upgraded") {
			t.Errorf("got %v", err)
		}
		inside("rm /etc/apt/sources.list.d/nowhere.list; mv /root/sources.list /etc/apt/sources.list")
	})

	first, err := harden.Apply(t.Context(), r, options)
	var step *harden.StepError
	if errors.As(err, &step) && strings.Contains(step.Said, "the package lists can't be read") {
		t.Skip("no package mirror can be reached: ", step.Said)
	}
	if err != nil {
		t.Fatal(err)
	}
	if first.Changes() == 0 || len(first.Changed["ssh"]) == 0 || len(first.Changed["identity"]) == 0 {
		t.Errorf("the first run changed %v", first.Changed)
	}
	after := state(t, dir)

	t.Run("a second run changes nothing", func(t *testing.T) {
		second, err := harden.Apply(t.Context(), r, options)
		if err != nil {
			t.Fatal(err)
		}
		if second.Changes() > 0 {
			t.Errorf("it says that it changed %v", second.Changed)
		}
		if c := changes(after, state(t, dir)); len(c) > 0 {
			t.Errorf("it changed %s", strings.Join(c, "\n"))
		}
	})
	t.Run("the filter can be loaded, again too, and opened by root alone", func(t *testing.T) {
		if ns.Check() != nil {
			t.Skip("needs nft: ", ns.Check())
		}
		// In a network of its own, and as the agent from within a user namespace of its own, which is all that it can have.
		got := inside(`unshare --net sh -ec '
			nft -f /etc/sandbox/nftables.conf
			/usr/local/lib/sandbox/open-port add 3000
			nft -f /etc/sandbox/nftables.conf
			nft list ruleset
			setpriv --reuid=agent --regid=agent --init-groups nft flush ruleset 2>/dev/null && echo LIFTED || :
			/usr/local/lib/sandbox/open-port remove 3000
			nft -f /etc/sandbox/nftables.conf
			nft list ruleset | grep 3000 || echo closed'`)
		for _, want := range []string{"hook input priority filter; policy drop", "hook forward priority filter; policy drop", "elements = { 3000 }", "169.254.0.0/16", "closed"} {
			if !strings.Contains(got, want) {
				t.Errorf("the rules lack %q:\n%s", want, got)
			}
		}
		if strings.Contains(got, "LIFTED") {
			t.Error("the agent could lift the filter")
		}
	})
	t.Run("systemd takes the units", func(t *testing.T) {
		if said := inside("cd /etc/systemd/system; systemd-analyze verify --man=no sandbox-firstboot.service sandbox-filter.service sandbox-lease.service sandbox-lease.timer 2>&1 | grep -i sandbox || :"); said != "" {
			t.Error(said)
		}
	})
	t.Run("the audit gives the best grade", func(t *testing.T) {
		report, err := audit.Run(t.Context(), audit.Target{Folder: dir, Runner: r}, auditOptions)
		if err != nil {
			t.Fatal(err)
		}
		if !report.Grade.AtLeast(audit.GradeA) || len(report.IDs(audit.Failed)) > 0 || len(report.IDs(audit.Unknown)) > 0 {
			t.Errorf("%s, %d points; failed %v, unknown %v", report.Grade, report.Score, report.IDs(audit.Failed), report.IDs(audit.Unknown))
		}
		if c := changes(after, state(t, dir)); len(c) > 0 {
			t.Errorf("the audit changed %v", c)
		}
	})
	t.Run("without running the folder's own sshd its settings are unknown", func(t *testing.T) {
		report, err := audit.Run(t.Context(), audit.Target{Folder: dir}, auditOptions)
		if err != nil {
			t.Fatal(err)
		}
		if got := report.IDs(audit.Unknown); !slices.Equal(got, []string{"G1.1", "G1.2", "G1.3", "G1.4", "G1.5"}) || report.Grade == audit.GradeAPlus {
			t.Errorf("%s; unknown are %v", report.Grade, got)
		}
	})
	t.Run("the same through a shell inside", func(t *testing.T) {
		o := auditOptions
		o.Stage = audit.StageTemplate
		report, err := audit.Run(t.Context(), audit.Target{Runner: r}, o)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range report.Findings {
			// A chroot runs on the machine's kernel: what is the machine's isn't the template's.
			if (f.Status == audit.Failed || f.Status == audit.Unknown) && !slices.Contains([]string{"G9.2", "G13.1", "G19", "G20"}, f.ID) {
				t.Errorf("%s %s: %v", f.ID, f.Status, f.Evidence)
			}
		}
	})
	t.Run("a weakened copy names each weakness", func(t *testing.T) {
		secret := "sk-" + "ant-api03-" + strings.Repeat("Qx7", 12)
		weaken := map[string]string{
			"G1.1":  "echo 'PermitRootLogin yes' >/etc/ssh/sshd_config.d/00-a.conf",
			"G1.3":  "echo 'X11Forwarding yes' >>/etc/ssh/sshd_config.d/00-a.conf",
			"G2":    "usermod -p '' agent",
			"G3.2":  "echo 'ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIPkXxsWv7i1AQDFmBJKTUs8uR0t6xJfGX8JZ4bN4m8cC packer' >>/root/.ssh/authorized_keys",
			"G3.1":  "chmod 666 /root/.ssh/authorized_keys",
			"G4":    "usermod -aG adm agent",
			"G5":    "echo 'agent ALL=(ALL) NOPASSWD:ALL' >/etc/sudoers.d/agent",
			"G6":    "ssh-keygen -A >/dev/null",
			"G7":    "echo 0123456789abcdef0123456789abcdef >/etc/machine-id",
			"G9.4":  `sed -i 's/"upgradable":0/"upgradable":2/' /etc/sandbox/harden.json`,
			"G9.5":  "sed -i 's/ bookworm main/ trixie main/' /etc/apt/sources.list",
			"G10":   "rm /etc/systemd/system/apt-daily.timer",
			"G12.1": "chmod u+s /usr/bin/su",
			"G12.2": "chmod 777 /srv",
			"G12.3": "chown agent /usr/local/bin",
			"G13.1": "rm /etc/tmpfiles.d/sandbox.conf",
			"G13.2": "echo 'ANTHROPIC_API_KEY=" + secret + "' >/home/agent/.env",
			"G14":   "rm /etc/security/limits.d/50-sandbox.conf",
			"G15":   "echo x >/var/log/syslog",
			"G18":   `echo 'Acquire::http::Proxy "http://192.0.2.1:3142";' >/etc/apt/apt.conf.d/02proxy`,
			"G21":   "chown agent /usr/local/lib/sandbox/lease",
			"G22":   "rm /etc/systemd/system/sysinit.target.wants/sandbox-filter.service",
			"G23":   "rm /etc/systemd/system/user-.slice.d/50-sandbox.conf",
		}
		for _, id := range slices.Sorted(maps.Keys(weaken)) {
			inside(weaken[id])
		}
		report, err := audit.Run(t.Context(), audit.Target{Folder: dir, Runner: r}, auditOptions)
		if err != nil {
			t.Fatal(err)
		}
		want := slices.Sorted(maps.Keys(weaken))
		failed := report.IDs(audit.Failed)
		slices.Sort(failed)
		if !slices.Equal(failed, want) {
			t.Errorf("failed are %v, not %v", failed, want)
		}
		if report.Grade != audit.GradeF {
			t.Errorf("it has %s", report.Grade)
		}
		if strings.Contains(fmt.Sprint(report), secret[12:]) {
			t.Error("the report holds the secret")
		}
	})
	t.Run("hardening mends what it stands for", func(t *testing.T) {
		inside("rm /home/agent/.env /etc/apt/apt.conf.d/02proxy; sed -i 's/ trixie main/ bookworm main/' /etc/apt/sources.list")
		var step *harden.StepError
		again := options
		again.SkipPackages = true
		if _, err := harden.Apply(t.Context(), r, again); !errors.As(err, &step) || step.Step.ID != "ssh" || !strings.Contains(step.Said, "00-a.conf") {
			t.Errorf("with a file before its own in sshd_config.d: %v", err)
		}
		inside("rm /etc/ssh/sshd_config.d/00-a.conf")
		if _, err := harden.Apply(t.Context(), r, again); err != nil {
			t.Fatal(err)
		}
		report, err := audit.Run(t.Context(), audit.Target{Folder: dir, Runner: r}, auditOptions)
		if err != nil {
			t.Fatal(err)
		}
		if !report.Grade.AtLeast(audit.GradeA) || len(report.IDs(audit.Failed)) > 0 {
			t.Errorf("%s; failed %v", report.Grade, report.IDs(audit.Failed))
		}
	})
}
