package audit

import (
	"encoding/hex"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	dpkgStatus = "var/lib/dpkg/status"
	osRelease  = "etc/os-release"
)

var serviceChecks = []check{
	{Check: Check{ID: "G9.1", Title: "No package of a mail, file or login server is installed", Severity: Medium, How: "/var/lib/dpkg/status",
		Remedy: "Purge it: what listens can be attacked, and an agent needs none of it. Proxmox VE's own Debian template ships postfix."},
		guest: checkPackages},
	{Check: Check{ID: "G9.2", Title: "Nothing but SSH listens beyond the loopback", Severity: High, How: "/proc/net/tcp, tcp6, udp and udp6",
		Remedy: "Stop and disable the service, or bind it to 127.0.0.1; what shall be reached goes through a port exposure."},
		guest: checkSockets},
	{Check: Check{ID: "G9.3", Title: "No unit has failed", Severity: Low, How: "systemctl --failed",
		Remedy: "See why (systemctl status); units that can't work in a container are masked."},
		guest: checkFailedUnits},
	{Check: Check{ID: "G9.4", Title: "All packages were upgraded, at most 35 days ago", Severity: Medium, How: "hardening's record, /etc/sandbox/harden.json",
		Remedy: "Build the template anew; sandbox-harden upgrades and fails when something stays upgradable. A weekly build keeps clones current."},
		guest: checkUpgraded},
	{Check: Check{ID: "G9.5", Title: "The package sources are those of the release", Severity: Low, How: "/etc/os-release against /etc/apt",
		Remedy: "Name the release's own suites (VERSION_CODENAME, with -updates and -security): with another's, upgrades stop without a word."},
		guest: checkSources},
	{Check: Check{ID: "G10", Title: "Nothing updates or tidies by itself", Severity: Low, How: "the units of apt, man-db, e2scrub and fstrim",
		Remedy: "Mask the timers: a sandbox is short-lived, its updates come with the next template."},
		guest: checkTimers},
	{Check: Check{ID: "G11", Title: "Units that can't work in a container are masked", Severity: Low, How: "/etc/systemd/system",
		Remedy: "Mask them: they fail or wait, and a sandbox's boot waits with them."},
		guest: checkUseless},
}

// serverPackages are packages of servers that no sandbox needs.
var serverPackages = []string{
	"postfix", "exim4", "exim4-daemon-light", "exim4-base", "sendmail", "sendmail-bin", "telnetd", "inetutils-telnetd", "rsh-server", "xinetd", "openbsd-inetd",
	"vsftpd", "proftpd", "proftpd-core", "samba", "nfs-kernel-server", "rpcbind", "avahi-daemon", "cups", "cups-daemon", "snmpd", "dovecot-core", "slapd", "tftpd-hpa", "bind9", "isc-dhcp-server",
}

// packages are the installed ones with their versions; nil without dpkg.
func (g *system) packages() map[string]string {
	content, err := g.bigFile(dpkgStatus)
	if err != nil {
		return nil
	}
	out := map[string]string{}
	var name, version string
	installed := false
	for line := range strings.Lines(string(content) + "\n") {
		key, value, _ := strings.Cut(strings.TrimRight(line, "\n"), ": ")
		switch {
		case strings.TrimSpace(line) == "":
			if installed && name != "" {
				out[name] = version
			}
			name, version, installed = "", "", false
		case key == "Package":
			name = value
		case key == "Version":
			version = value
		case key == "Status":
			installed = strings.HasSuffix(value, " installed")
		}
	}
	return out
}

func checkPackages(g *system) verdict {
	installed := g.packages()
	if installed == nil {
		return unknown("/var/lib/dpkg/status", "it can't be read: only Debian's packages are known")
	}
	var found []string
	for _, p := range serverPackages {
		if v, ok := installed[p]; ok {
			found = append(found, p+" "+v)
		}
	}
	if p, ok := g.probes["dpkg-audit"]; ok && strings.TrimSpace(p.out) != "" {
		found = append(found, "dpkg --audit: "+lastLine([]byte(p.out), ""))
	}
	return judge("/var/lib/dpkg/status", found, fmt.Sprintf("%d packages", len(installed)))
}

// listener is a socket that takes what comes from outside.
type listener struct {
	proto string
	at    netip.AddrPort
}

// parseSockets reads /proc/net/tcp and its like.
func parseSockets(proto, text string) ([]listener, error) {
	var out []listener
	for i, line := range strings.Split(strings.TrimSpace(text), "\n") {
		f := strings.Fields(line)
		if i == 0 || len(f) < 4 {
			continue
		}
		if strings.HasPrefix(proto, "tcp") && f[3] != "0A" { // LISTEN
			continue
		}
		host, port, ok := strings.Cut(f[1], ":")
		raw, err := hex.DecodeString(host)
		n, err2 := strconv.ParseUint(port, 16, 16)
		if !ok || err != nil || err2 != nil || len(raw) != 4 && len(raw) != 16 {
			return nil, fmt.Errorf("/proc/net/%s: %q", proto, line)
		}
		for w := 0; w < len(raw); w += 4 { // words in the machine's order, little endian where containers run
			slices.Reverse(raw[w : w+4])
		}
		addr, _ := netip.AddrFromSlice(raw)
		if strings.HasPrefix(proto, "udp") && len(f) > 2 && !strings.HasSuffix(f[2], ":0000") {
			continue // connected: takes answers only
		}
		out = append(out, listener{proto, netip.AddrPortFrom(addr.Unmap(), uint16(n))})
	}
	return out, nil
}

func checkSockets(g *system) verdict {
	const by = "/proc/net/tcp, tcp6, udp and udp6"
	if !g.running {
		return notApplicable("nothing runs in a folder")
	}
	var found, seen []string
	asked := false
	for _, proto := range []string{"tcp", "tcp6", "udp", "udp6"} {
		p, ok := g.probes["/proc/net/"+proto]
		if !ok {
			continue
		}
		asked = true
		list, err := parseSockets(proto, p.out)
		if err != nil {
			return unknown(by, err.Error())
		}
		for _, l := range list {
			text := fmt.Sprintf("%s %s", l.proto, l.at)
			switch {
			case l.at.Addr().IsLoopback():
			case strings.HasPrefix(proto, "tcp") && (l.at.Port() == 22 || slices.Contains(g.o.Ports, int(l.at.Port()))):
				seen = append(seen, text)
			case strings.HasPrefix(proto, "udp") && (l.at.Port() == 68 || l.at.Port() == 546):
				seen = append(seen, text+" (DHCP)")
			default:
				found = append(found, text)
			}
		}
	}
	if !asked {
		return unknown(by, "the system didn't say")
	}
	return judge(by, found, seen...)
}

func checkFailedUnits(g *system) verdict {
	if !g.running {
		return notApplicable("nothing runs in a folder")
	}
	p, ok := g.probes["failed"]
	if !ok {
		return notApplicable("systemd doesn't run")
	}
	if p.exit != 0 {
		return unknown("systemctl --failed", lastLine([]byte(p.out), "it failed"))
	}
	var found []string
	for line := range strings.Lines(p.out) {
		if f := strings.Fields(strings.TrimLeft(line, "● *")); len(f) > 0 {
			found = append(found, f[0])
		}
	}
	return judge("systemctl --failed", found)
}

// freshFor is how old an upgrade may be: a weekly build, a month missed.
const freshFor = 35 * 24 * time.Hour

func checkUpgraded(g *system) verdict {
	const by = "hardening's record, /etc/sandbox/harden.json"
	r, err := g.record()
	if err != nil {
		return unknown(by, "there is no record of an upgrade: "+err.Error())
	}
	at, err := time.Parse(time.RFC3339, r.UpgradedAt)
	if err != nil {
		return unknown(by, "the record has no time of an upgrade")
	}
	var found []string
	if r.Upgradable > 0 {
		found = append(found, fmt.Sprintf("%d packages stayed upgradable", r.Upgradable))
	}
	if age := g.o.Now.Sub(at); age > freshFor {
		found = append(found, fmt.Sprintf("upgraded %s, %d days ago", at.Format(time.DateOnly), int(age.Hours()/24)))
	}
	return judge(by, found, "upgraded "+r.UpgradedAt)
}

// releaseField is a field of /etc/os-release.
func (g *system) releaseField(name string) string {
	for _, line := range g.lines(osRelease) {
		if v, ok := strings.CutPrefix(line, name+"="); ok {
			return strings.Trim(v, `"'`)
		}
	}
	return ""
}

// source is one suite of a package source.
type source struct{ address, suite string }

// sources lists the system's package sources.
func (g *system) sources() []source {
	var out []source
	for _, e := range append([]entry{{path: "etc/apt/sources.list"}}, g.children("etc/apt/sources.list.d")...) {
		switch {
		case strings.HasSuffix(e.path, ".list"):
			out = append(out, oneLineSources(g.lines(e.path))...)
		case strings.HasSuffix(e.path, ".sources"):
			content, _ := g.file(e.path)
			out = append(out, stanzaSources(string(content))...)
		}
	}
	return out
}

func oneLineSources(lines []string) []source {
	var out []source
	for _, l := range lines {
		f := strings.Fields(l)
		if len(f) < 3 || f[0] != "deb" {
			continue
		}
		f = f[1:]
		if strings.HasPrefix(f[0], "[") { // options, which may have blanks in them
			for len(f) > 1 && !strings.HasSuffix(f[0], "]") {
				f = f[1:]
			}
			f = f[1:]
		}
		if len(f) >= 2 {
			out = append(out, source{f[0], f[1]})
		}
	}
	return out
}

// stanzaSources reads the deb822 form.
func stanzaSources(content string) []source {
	var out []source
	for stanza := range strings.SplitSeq(content, "\n\n") {
		var addresses, suites []string
		enabled := true
		for line := range strings.Lines(stanza) {
			key, value, _ := strings.Cut(strings.TrimSpace(line), ":")
			switch strings.ToLower(key) {
			case "uris":
				addresses = strings.Fields(value)
			case "suites":
				suites = strings.Fields(value)
			case "enabled":
				enabled = strings.TrimSpace(value) != "no"
			}
		}
		for _, a := range addresses {
			for _, s := range suites {
				if enabled {
					out = append(out, source{a, s})
				}
			}
		}
	}
	return out
}

// archives are the last parts of the addresses of Debian's and Ubuntu's own
// packages, wherever the mirror is. Others name their suites as they like.
var archives = []string{"debian", "debian-security", "ubuntu", "ubuntu-ports"}

func checkSources(g *system) verdict {
	const by = "/etc/os-release against /etc/apt"
	codename := g.releaseField("VERSION_CODENAME")
	if _, ok := g.stat("etc/apt"); !ok || codename == "" {
		return notApplicable("it is no Debian or Ubuntu")
	}
	sources := g.sources()
	if len(sources) == 0 {
		return failed(by, "there are no sources: nothing can be upgraded")
	}
	var found, seen []string
	distribution := false
	for _, s := range sources {
		base, _, _ := strings.Cut(s.suite, "/")
		base, _, _ = strings.Cut(base, "-")
		switch {
		case base == codename:
			distribution = true
			seen = append(seen, s.suite)
		case slices.Contains(archives, path.Base(s.address)):
			found = append(found, fmt.Sprintf("%s of %s is not %s", s.suite, s.address, codename))
		}
	}
	if !distribution {
		found = append(found, "no source is of "+codename)
	}
	return judge(by, found, strings.Join(seen, " "))
}

var (
	timers  = []string{"apt-daily.timer", "apt-daily-upgrade.timer", "unattended-upgrades.service", "man-db.timer", "e2scrub_all.timer", "fstrim.timer", "dpkg-db-backup.timer"}
	useless = []string{
		"sys-kernel-config.mount", "sys-kernel-debug.mount", "sys-kernel-tracing.mount", "dev-hugepages.mount", "proc-sys-fs-binfmt_misc.automount", "systemd-udevd.service",
		"systemd-udev-trigger.service", "systemd-modules-load.service", "systemd-journald-audit.socket", "systemd-networkd-wait-online.service", "systemd-timesyncd.service", "chrony.service", "auditd.service",
	}
)

// unmasked lists those of units that are there.
func (g *system) unmasked(units []string) []string {
	var found []string
	for _, u := range units {
		if file, ok := g.unit(u); ok {
			found = append(found, "/"+file)
		}
	}
	return found
}

func checkTimers(g *system) verdict {
	if !g.systemd() {
		return notApplicable("there is no systemd")
	}
	return judge("the units of apt, man-db, e2scrub and fstrim", g.unmasked(timers))
}

func checkUseless(g *system) verdict {
	if !g.systemd() {
		return notApplicable("there is no systemd")
	}
	return judge("/etc/systemd/system", g.unmasked(useless))
}
