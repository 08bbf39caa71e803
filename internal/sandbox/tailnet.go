package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
)

// ErrTailnet says that a sandbox could not join a tailnet.
var ErrTailnet = errors.New("the container could not join the tailnet")

// TailnetSpec is how a sandbox joins a tailnet.
type TailnetSpec struct {
	AuthKey  string // secret
	Hostname string // "" means TailnetName
	Tags     []string
}

// joinScript starts tailscaled, without a tunnel device where there is none, and logs in by a key that stands in no
// command line and on no disk: $1 is the host name, $2 the tags joined by commas, the key comes by standard input.
const joinScript = `
set -eu
umask 077
for program in tailscale tailscaled; do
  command -v "$program" >/dev/null 2>&1 || { echo "$program is not installed" >&2; exit 90; }
done
key=/run/sandbox-tailscale-key.$$
trap 'rm -f "$key"' EXIT
trap 'exit 91' HUP INT TERM
cat >"$key"
up() { tailscale status --json >/dev/null 2>&1; }
if ! up; then
  flags=
  [ -c /dev/net/tun ] || flags=--tun=userspace-networking
  if command -v systemctl >/dev/null 2>&1 && [ -d /run/systemd/system ]; then
    if [ -n "$flags" ]; then
      mkdir -p /etc/systemd/system/tailscaled.service.d
      printf '[Service]\nEnvironment=FLAGS=%s\n' "$flags" >/etc/systemd/system/tailscaled.service.d/sandbox.conf
      chmod 755 /etc/systemd/system/tailscaled.service.d
      chmod 644 /etc/systemd/system/tailscaled.service.d/sandbox.conf
      systemctl daemon-reload
    fi
    systemctl enable --now tailscaled >&2
  else
    mkdir -p /var/lib/tailscale /run/tailscale
    setsid tailscaled --state=/var/lib/tailscale/tailscaled.state $flags >/dev/null 2>&1 </dev/null &
  fi
  tries=0
  until up; do
    tries=$((tries + 1))
    [ "$tries" -lt 60 ] || { echo "tailscaled doesn't answer" >&2; exit 92; }
    sleep 0.5
  done
fi
set -- tailscale up --reset --timeout=60s --auth-key="file:$key" --hostname="$1" ${2:+--advertise-tags="$2"}
"$@" >&2
`

// leaveScript logs out; a container that is in no tailnet is left alone.
const leaveScript = `
command -v tailscale >/dev/null 2>&1 || exit 0
tailscale logout >&2 2>&1 || true
if [ -d /run/systemd/system ]; then systemctl disable --now tailscaled >/dev/null 2>&1 || true; fi
`

var notOfALabel = regexp.MustCompile(`[^a-z0-9]+`)

// TailnetName is the host name that a sandbox has in a tailnet where none is given: owner and vmid, as a DNS label.
func (m *Manager) TailnetName(vmid int) string {
	number := strconv.Itoa(vmid)
	owner := strings.Trim(notOfALabel.ReplaceAllString(strings.ToLower(m.settings.Owner), "-"), "-")
	if limit := 63 - 1 - len(number); len(owner) > limit {
		owner = strings.TrimRight(owner[:limit], "-")
	}
	return strings.Trim(owner+"-"+number, "-")
}

// JoinTailnet has a running sandbox join a tailnet, or join it anew. The key
// travels by SSH's standard input into a file in memory that is gone when this
// returns. Where the container has no /dev/net/tun, it is in the tailnet by
// userspace networking: it can be reached, and reaches out by tailscaled's proxies.
func (m *Manager) JoinTailnet(ctx context.Context, prior Prior, spec TailnetSpec) error {
	fail := func(ref Ref, err error, remedy string) error {
		return &Error{Op: "join", Ref: ref, Kind: ErrTailnet, What: "join the tailnet", Err: err, Remedy: remedy}
	}
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return err
	}
	if _, err := m.await(ctx, s, &t); err != nil {
		return err
	}
	inMemory, err := m.guests.IsTmpfs(ctx, t, "/run")
	if err != nil {
		return fail(s.Ref, err, "")
	}
	if !inMemory {
		return fail(s.Ref, errors.New("/run is no tmpfs in it, and a key must not get onto a disk"), "mount a tmpfs at /run in the template, as every systemd does")
	}
	name := spec.Hostname
	if name == "" {
		name = m.TailnetName(s.VMID)
	}
	result, err := m.guests.Exec(ctx, t, guest.Command{Script: joinScript, Args: []string{name, strings.Join(spec.Tags, ",")}, Stdin: strings.NewReader(spec.AuthKey)})
	switch {
	case err != nil:
		return fail(s.Ref, err, "")
	case result.ExitCode == 90:
		return fail(s.Ref, errors.New(strings.TrimSpace(string(result.Stderr))), "install tailscale in the template, or leave the attribute tailscale out")
	case result.ExitCode != 0:
		said := redact.New(spec.AuthKey).Text(strings.TrimSpace(string(result.Stderr)))
		return fail(s.Ref, fmt.Errorf("it ended with exit code %d: %s", result.ExitCode, said), "the key must be valid and not used up, its tags must be those that are asked for, and the network mode must let it reach Tailscale")
	}
	return nil
}

// LeaveTailnet logs a running sandbox out of its tailnet.
func (m *Manager) LeaveTailnet(ctx context.Context, prior Prior) error {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return err
	}
	if _, err := m.guests.Exec(ctx, t, guest.Command{Script: leaveScript}); err != nil {
		return unreached(s.Ref, err)
	}
	return nil
}
