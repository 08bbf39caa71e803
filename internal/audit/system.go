package audit

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// system is what the checks of the inside look at.
type system struct {
	*tree
	o       Options
	probes  map[string]probe
	running bool // there are processes: not a folder
	closer  io.Closer
}

func (g *system) close() {
	if g.closer != nil {
		_ = g.closer.Close() // read only
	}
}

// probe is the answer of a command inside.
type probe struct {
	exit int
	out  string
}

const maxProbe = 256 << 10 // bytes of one answer

// probeScript runs commands that only a running system can answer, and prints a
// line for each: name, exit code, output in base64. sshd wants a host key even to
// say how it is configured; a sealed template has none, so it gets one for the
// moment.
const probeScript = `
limit=$1 agent=$2
probe() { name=$1; shift; out=$("$@" 2>&1 </dev/null); code=$?; printf '%s %s ' "$name" "$code"; printf '%s' "$out" | head -c "$limit" | base64 -w 0; echo; }
sshd=$(command -v sshd || echo /usr/sbin/sshd)
if [ -x "$sshd" ]; then
  t=$(mktemp -d /tmp/sandbox-audit.XXXXXX) || exit 1
  trap 'rm -rf "$t"' EXIT
  ssh-keygen -q -t ed25519 -N '' -f "$t/key"
  made=; [ -d /run/sshd ] || { mkdir -p -m 0755 /run/sshd && made=1; }
  for u in root "$agent"; do probe "sshd-$u" "$sshd" -T -o "HostKey=$t/key" -C "user=$u,host=localhost,addr=192.0.2.1,laddr=192.0.2.2,lport=22"; done
  [ -z "$made" ] || rmdir /run/sshd
fi
for f in /proc/net/tcp /proc/net/tcp6 /proc/net/udp /proc/net/udp6 /proc/1/uid_map /proc/self/uid_map /proc/self/attr/current /sys/module/apparmor/parameters/enabled /proc/self/mounts /proc/1/comm; do
  [ -e "$f" ] && probe "$f" cat "$f"
done
command -v systemctl >/dev/null && [ -d /run/systemd/system ] && probe failed systemctl list-units --failed --plain --no-legend --no-pager
command -v nft >/dev/null && probe nft nft list ruleset
command -v dpkg >/dev/null && probe dpkg-audit dpkg --audit
exit 0
`

func look(ctx context.Context, target Target, o Options) (*system, error) {
	g := &system{o: o, probes: map[string]probe{}, running: target.Folder == ""}
	var err error
	if target.Folder != "" {
		g.tree, g.closer, err = openFolder(ctx, target.Folder)
	} else {
		g.tree, err = openInside(ctx, target.Runner)
	}
	if err != nil {
		return nil, err
	}
	if _, ok := g.stat(passwdFile); !ok && g.partial == "" {
		g.partial = "there is no /etc/passwd: it is no root filesystem"
	}
	if target.Runner != nil {
		if err := g.probe(ctx, target.Runner); err != nil {
			g.close()
			return nil, err
		}
	}
	if err := g.load(g.wanted()); err != nil {
		g.close()
		return nil, err
	}
	return g, nil
}

func (g *system) probe(ctx context.Context, r remote.Runner) error {
	res, err := r.Run(ctx, remote.Script{Text: probeScript, Args: []string{strconv.Itoa(maxProbe), g.o.AgentUser}, Limit: 32 * maxProbe})
	if err != nil {
		return fmt.Errorf("audit: ask the system: %w", err)
	}
	for line := range strings.Lines(string(res.Stdout)) {
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		exit, err := strconv.Atoi(fields[1])
		if err != nil {
			continue
		}
		p := probe{exit: exit}
		if len(fields) > 2 {
			out, err := base64.StdEncoding.DecodeString(fields[2])
			if err != nil {
				continue
			}
			p.out = string(out)
		}
		g.probes[fields[0]] = p
	}
	return nil
}

// wanted are the files that checks read by name, so that a running system is
// asked once for all.
func (g *system) wanted() []string {
	names := []string{
		passwdFile, groupFile, shadowFile, machineIDFile, dpkgStatus, osRelease, loginDefs, sudoersFile, manifest.Path, RecordPath,
		"etc/environment", "etc/apt/sources.list", "etc/sandbox/nftables.conf", firstBootUnit,
	}
	for _, dir := range []string{"etc/sudoers.d", "etc/apt/sources.list.d", "etc/apt/apt.conf.d", "etc/security/limits.d", "etc/systemd/coredump.conf.d", "etc/systemd/system", "etc/systemd/system/user-.slice.d", "etc/tmpfiles.d", "etc/ssh", "etc/ssh/sshd_config.d"} {
		for _, e := range g.children(dir) {
			names = append(names, e.path)
		}
	}
	for _, e := range g.list {
		if strings.HasSuffix(e.path, "/.ssh/authorized_keys") || strings.HasSuffix(e.path, "/.ssh/authorized_keys2") {
			names = append(names, e.path)
		}
	}
	return names
}

// RecordPath is where hardening notes what it did.
const RecordPath = "/etc/sandbox/harden.json"

// record is hardening's note, see harden.Record.
type record struct {
	Version    int     `json:"version"`
	Profile    Profile `json:"profile"`
	UpgradedAt string  `json:"upgraded_at"`
	Upgradable int     `json:"upgradable"`
}

func (g *system) record() (record, error) {
	content, err := g.file(RecordPath)
	if err != nil {
		return record{}, err
	}
	var r record
	if err := json.Unmarshal(content, &r); err != nil {
		return record{}, err
	}
	if r.Version != 1 || !slices.Contains(Profiles(), r.Profile) {
		return record{}, fmt.Errorf("%s: version %d, profile %q", RecordPath, r.Version, r.Profile)
	}
	return r, nil
}

// profile is the profile that the system says it was hardened for. It only says
// what may be expected: the container's configuration is judged by its own.
func (g *system) profile() Profile {
	r, _ := g.record()
	return r.Profile
}

// anyOf says whether one of the names exists.
func (g *system) anyOf(names ...string) bool {
	return slices.ContainsFunc(names, func(n string) bool { _, ok := g.stat(n); return ok })
}

// hasSSHServer says whether there is an SSH server.
func (g *system) hasSSHServer() bool {
	return g.anyOf("usr/sbin/sshd", "usr/bin/sshd", "usr/local/sbin/sshd")
}

// systemd says whether systemd is the init.
func (g *system) systemd() bool {
	return g.anyOf("usr/lib/systemd/systemd", "lib/systemd/systemd")
}
