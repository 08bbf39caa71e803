package sandbox

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// A node's packet filter lets pass what belongs to a connection that it has let
// pass before, whatever its rules say by then, and neither a link that goes down
// for a moment nor anything else that the API can do makes it forget one. So
// connections that a change of rules forbids are ended from inside the container,
// where its kernel can close them, or by a restart.

// flow is an open connection, or a UDP socket that isn't bound to a peer.
type flow struct {
	process string // one in whose network namespace it is
	proto   string // "tcp" or "udp"
	local   netip.AddrPort
	remote  netip.AddrPort // the zero port of a UDP socket without a peer
	inbound bool           // it came in, to a port that is listened at
}

func (f flow) String() string {
	if f.inbound {
		return fmt.Sprintf("%s from %s", f.proto, f.remote)
	}
	return fmt.Sprintf("%s to %s", f.proto, f.remote)
}

// cutFlows ends the connections of a running container that its new rules, which
// are in force by now, wouldn't let begin.
func (f *finishing) cutFlows(ctx context.Context) error {
	filter := f.m.filterInForce(ctx, f.spec, f.wall)
	flows, why := f.look(ctx)
	forbidden := f.forbiddenBy(filter, flows)
	if why == nil && len(forbidden) > 0 {
		if why = f.closeFlows(ctx, forbidden); why == nil {
			flows, why = f.look(ctx)
		}
		if left := f.forbiddenBy(filter, flows); why == nil && len(left) > 0 {
			why = fmt.Errorf("%s went on (closing connections needs ss, of iproute2, and root)", named(left))
		}
	}
	if why != nil {
		if err := stopCause(ctx, why); err != nil {
			return &Error{Op: "firewall", Ref: f.ref, What: "end the connections that its new rules forbid", Err: err}
		}
		f.warnings.add("The container was restarted", fmt.Sprintf(
			"What was open in container %d when its rules changed outlasts the change on the node, and could not be looked through and ended from inside: %s. Its programs were ended with it.", f.ref.VMID, why))
		return f.restart(ctx)
	}
	if len(forbidden) > 0 {
		f.warnings.add("Connections were ended", fmt.Sprintf("Mode %q forbids what container %d had open: %s.", f.spec.Network.Mode, f.ref.VMID, named(forbidden)))
	}
	f.warnOfDatagrams(flows)
	return nil
}

// stopCause is the context's error where that is why something failed.
func stopCause(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), err)
	}
	return nil
}

// warnOfDatagrams says what can't be ended: UDP knows no end, so that the node
// goes on taking datagrams for known while they follow each other.
func (f *finishing) warnOfDatagrams(flows []flow) {
	for _, open := range flows {
		if open.proto == "udp" && open.remote.Port() == 0 {
			f.warnings.add("UDP may go on for a while", fmt.Sprintf(
				"Container %d has a UDP socket at port %d that talks to anyone. Where the new rules forbid a peer that it was in touch with, the node lets that go on until both are silent for two minutes. "+
					"To end it now, run on node %s: conntrack -D -s %s", f.ref.VMID, open.local.Port(), f.ref.Node, f.sandbox.address()))
			return
		}
	}
}

func named(flows []flow) string {
	const most = 5
	var names []string
	for i, open := range flows {
		if i == most {
			names = append(names, fmt.Sprintf("%d more", len(flows)-most))
			break
		}
		names = append(names, open.String())
	}
	return strings.Join(names, ", ")
}

// filterInForce is the filter that decides about a container's packets: that of
// its mode, or its group's as the server has it.
func (m *Manager) filterInForce(ctx context.Context, spec Spec, w *wall) egress.Filter {
	group := spec.Network.FirewallGroup
	if group == "" {
		return w.filter
	}
	rules, err := m.pve.FirewallRules(ctx, pve.GroupFirewall(group))
	if err != nil {
		return w.filter
	}
	filter := egress.Filter{Rules: egress.FromServer(rules)}
	for _, name := range filter.DatacenterSets() {
		if set, err := egress.ReadSet(ctx, m.pve, pve.ClusterFirewall(), name); err == nil {
			filter.Sets = append(filter.Sets, set) // one that can't be read lets nothing through
		}
	}
	return filter
}

// forbiddenBy are the flows that could not begin now.
func (f *finishing) forbiddenBy(filter egress.Filter, flows []flow) []flow {
	own := func(peer netip.Addr) netip.Addr {
		if peer.Is6() && f.sandbox.IPv6.IsValid() {
			return f.sandbox.IPv6
		}
		return f.sandbox.IPv4
	}
	var out []flow
	for _, open := range flows {
		if open.remote.Port() == 0 {
			continue
		}
		peer := open.remote.Addr()
		c := egress.Connection{Direction: egress.Out, From: own(peer), To: peer, Proto: open.proto, Port: int(open.remote.Port())}
		if open.inbound {
			c = egress.Connection{Direction: egress.In, From: peer, To: own(peer), Proto: open.proto, Port: int(open.local.Port())}
		}
		if permitted, _ := filter.Permits(c, egress.Drop); !permitted {
			out = append(out, open)
		}
	}
	return out
}

// lookTime bounds a look at a container's connections, the way in included.
const lookTime = 20 * time.Second

// look lists what is open in a container, nested ones' included.
func (f *finishing) look(ctx context.Context) ([]flow, error) {
	if f.spec.WaitFor != WaitForSSH {
		return nil, errors.New("it isn't entered over SSH (wait_for)")
	}
	if err := f.waitAddress(ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	t := target(f.ref, f.sandbox, f.hostKey)
	if _, err := f.m.guests.WaitReady(ctx, t); err != nil {
		return nil, err
	}
	said, err := f.m.guests.Exec(ctx, t, guest.Command{Script: listFlows, StdoutLimit: 8 << 20})
	switch {
	case err != nil:
		return nil, err
	case said.StdoutTruncated:
		return nil, errors.New("it has too many connections")
	}
	return parseFlows(string(said.Stdout))
}

// closeFlows has the container's kernel end flows, which tells the peers, too.
func (f *finishing) closeFlows(ctx context.Context, flows []flow) error {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	var args []string
	for _, open := range flows {
		args = append(args, open.process, open.proto[:1], open.remote.Addr().String(), strconv.Itoa(int(open.remote.Port())))
	}
	const atOnce = 4 * 200
	for len(args) > 0 {
		n := min(len(args), atOnce)
		if _, err := f.m.guests.Exec(ctx, target(f.ref, f.sandbox, f.hostKey), guest.Command{Script: closeFlowsScript, Args: args[:n]}); err != nil {
			return err
		}
		args = args[n:]
	}
	return nil
}

// listFlows prints the kernel's tables of sockets, once for each network namespace
// in which a process of the container is.
const listFlows = `seen=
list() {
  read=1
  for f in tcp tcp6 udp udp6; do
    t=$(cat "$2/$f" 2>/dev/null) || continue
    printf '# %s %s\n%s\n' "$1" "$f" "$t"
    read=0
  done
  return $read
}
for p in /proc/[0-9]*; do
  n=$(readlink "$p/ns/net" 2>/dev/null) || continue
  [ -n "$n" ] || continue
  case "$seen" in *"<$n>"*) continue ;; esac
  if list "${p#/proc/}" "$p/net"; then seen="$seen<$n>"; fi
done
[ -n "$seen" ] || list self /proc/net
`

// closeFlowsScript takes four words for each flow: process, t or u, address, port.
const closeFlowsScript = `while [ $# -ge 4 ]; do
  enter=
  [ "$1" = self ] || [ "$(readlink "/proc/$1/ns/net")" = "$(readlink /proc/self/ns/net)" ] || enter="nsenter -t $1 -n"
  $enter ss -K -n "-$2" dst "[$3]" dport = ":$4" >/dev/null 2>&1
  shift 4
done
true
`

// States of sockets in the kernel's tables (include/net/tcp_states.h).
const (
	stateSynSent  = "02" // it hasn't begun, and won't
	stateTimeWait = "06"
	stateListen   = "0A"
)

// parseFlows reads what listFlows prints.
func parseFlows(text string) ([]flow, error) {
	var flows []flow
	process, table, tables, read := "", "", 0, 0
	type port struct {
		process, proto string
		number         uint16
	}
	listening := map[port]bool{}
	for _, line := range strings.Split(text, "\n") {
		words := strings.Fields(line)
		switch {
		case len(words) == 3 && words[0] == "#":
			process, table = words[1], words[2]
			tables++
			continue
		case len(words) > 0 && words[0] == "sl":
			read++
			continue
		case len(words) < 4:
			continue
		}
		local, err1 := parseSocket(words[1])
		remote, err2 := parseSocket(words[2])
		if err := errors.Join(err1, err2); err != nil {
			return nil, fmt.Errorf("a line of /proc/net/%s: %w", table, err)
		}
		open := flow{process: process, proto: table[:3], local: local, remote: remote}
		switch state := words[3]; {
		case open.proto == "tcp" && state == stateListen:
			listening[port{process, open.proto, local.Port()}] = true
		case open.proto == "tcp" && (state == stateTimeWait || state == stateSynSent), remote.Addr().IsLoopback(), local.Addr().IsLoopback():
		case open.proto == "udp" && remote.Port() == 0 && (local.Port() == 68 || local.Port() == 546): // a DHCP client's, whose peer is the mode's business
		default:
			flows = append(flows, open)
		}
	}
	if tables == 0 || read < tables {
		return nil, errors.New("it shows no table of its sockets (/proc/net)")
	}
	for i, open := range flows {
		flows[i].inbound = listening[port{open.process, open.proto, open.local.Port()}]
	}
	return flows, nil
}

// parseSocket reads an address as the kernel's tables have it: "0100007F:1F90", 32
// bits at a time in the machine's order, which is little-endian wherever Proxmox VE
// runs.
func parseSocket(text string) (netip.AddrPort, error) {
	host, port, _ := strings.Cut(text, ":")
	raw, err := hex.DecodeString(host)
	if err != nil {
		return netip.AddrPort{}, err
	}
	for i := 0; i+4 <= len(raw); i += 4 {
		raw[i], raw[i+1], raw[i+2], raw[i+3] = raw[i+3], raw[i+2], raw[i+1], raw[i]
	}
	addr, ok := netip.AddrFromSlice(raw)
	number, err := strconv.ParseUint(port, 16, 16)
	if !ok || err != nil {
		return netip.AddrPort{}, fmt.Errorf("%q is no address", text)
	}
	return netip.AddrPortFrom(addr.Unmap(), uint16(number)), nil
}
