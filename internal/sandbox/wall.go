package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// NetworkMode is what a sandbox may reach.
type NetworkMode = egress.Mode

// The network modes; package egress says what each lets through.
const (
	ModeOff       = egress.Off
	ModeWeb       = egress.Web
	ModeNAT       = egress.NAT
	ModeAllowlist = egress.Allowlist
	ModeUnmanaged = egress.Unmanaged
)

// DefaultMode is what a specification gets that names no mode: leaving it out
// never means unfiltered.
const DefaultMode = ModeNAT

// wall is the firewall that a specification wants of one container.
type wall struct {
	want egress.Guest
	// filter is what the mode means, for telling what must not be reachable; with
	// a security group it stands in the group.
	filter egress.Filter
	policy egress.Policy
}

// wallFor renders the firewall of a container whose interface is net0; nil for
// one whose firewall is left alone. node is where it is, nameservers what its
// configuration says of resolvers.
func (m *Manager) wallFor(ctx context.Context, spec Spec, node string, net0 pve.Properties, nameservers []string) (*wall, error) {
	if !spec.Network.Mode.Managed() {
		return nil, nil
	}
	p := egress.Policy{
		Mode: spec.Network.Mode, SSHPort: m.settings.Guest.Port, Allow: spec.Network.Allow,
		Management: m.management(ctx, net0), Nodes: m.surroundings.nodeAddresses(ctx),
	}
	if spec.DNS != nil && len(spec.DNS.Servers) > 0 {
		nameservers = spec.DNS.Servers
	}
	if len(nameservers) == 0 {
		nameservers = m.surroundings.resolvers(ctx, node)
	}
	for _, text := range nameservers {
		if addr, err := netip.ParseAddr(text); err == nil {
			p.Resolvers = append(p.Resolvers, addr)
		}
	}
	var err error
	if p.Resolved, err = m.pin(ctx, spec.Network); err != nil {
		return nil, err
	}
	nic := nicOf(net0)
	want, err := egress.RenderGuest(p, nic)
	if err != nil {
		return nil, err
	}
	w := &wall{policy: p, want: want, filter: want.Filter}
	if group := spec.Network.FirewallGroup; group != "" {
		w.want = egress.GroupGuest(group, nic)
	}
	return w, nil
}

// nicOf is what the switches of a firewall need to know of net0.
func nicOf(net0 pve.Properties) egress.NIC {
	static := func(address string) bool { return strings.Contains(address, "/") }
	unused := func(address string) bool { return address == "" || address == AddressManual }
	v4, v6 := net0.Text("ip"), net0.Text("ip6")
	var own []netip.Prefix
	switch {
	case static(v4) && !static(v6) && !unused(v6):
		own = []netip.Prefix{hostOf(v4), netip.PrefixFrom(netip.IPv6Unspecified(), 0)}
	case static(v6) && !static(v4) && !unused(v4):
		own = []netip.Prefix{netip.PrefixFrom(netip.IPv4Unspecified(), 0), hostOf(v6), netip.MustParsePrefix("fe80::/10")}
	}
	return egress.NIC{
		Own:    own,
		Static: (static(v4) || unused(v4)) && (static(v6) || unused(v6)) && (static(v4) || static(v6)),
		DHCP:   v4 == AddressDHCP || v6 == AddressDHCP,
		IPv6:   !unused(v6),
	}
}

// hostOf is the address alone of one in CIDR form; the zero prefix of what is none.
func hostOf(cidr string) netip.Prefix {
	p, err := netip.ParsePrefix(cidr)
	if err != nil {
		return netip.Prefix{}
	}
	return netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
}

// management are the networks that may log in: the provider's and, where guests
// are reached without a jump host, the address that we reach this one from.
func (m *Manager) management(ctx context.Context, net0 pve.Properties) []netip.Prefix {
	all := slices.Clone(m.settings.Management)
	if m.settings.Guest.ProxyJump != nil {
		return all
	}
	for _, address := range []string{net0.Text("ip"), net0.Text("ip6")} {
		if prefix, err := netip.ParsePrefix(address); err == nil {
			if source, ok := sourceTowards(ctx, prefix.Addr()); ok && !covered(all, source) {
				all = append(all, netip.PrefixFrom(source, source.BitLen()))
			}
		}
	}
	return all
}

// sourceTowards is the address that this machine would send from. Connecting a
// UDP socket sends nothing.
func sourceTowards(ctx context.Context, to netip.Addr) (netip.Addr, bool) {
	conn, err := new(net.Dialer).DialContext(ctx, "udp", netip.AddrPortFrom(to, 22).String())
	if err != nil {
		return netip.Addr{}, false
	}
	defer func() { _ = conn.Close() }()
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return from.Addr().Unmap(), err == nil
}

func covered(networks []netip.Prefix, addr netip.Addr) bool {
	return slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(addr) })
}

// buildWall works out the container's wall. cfg is what it has now, or what it
// starts out with.
func (f *finishing) buildWall(ctx context.Context, cfg *pve.LXCConfig) error {
	if !f.spec.Network.Mode.Managed() {
		return nil
	}
	value, err := f.m.net0(f.spec.Network, f.ref.VMID, cfg, true)
	if err != nil {
		return f.m.step("firewall", f.ref, "work out its interface", err)
	}
	nameservers := strings.FieldsFunc(cfg.Text("nameserver"), func(r rune) bool { return r == ' ' || r == ',' })
	node := f.ref.Node
	if f.spec.NodeName != "" {
		node = f.spec.NodeName
	}
	f.wall, err = f.m.wallFor(ctx, f.spec, node, pve.ParseProperties(value), nameservers)
	if f.wall != nil {
		f.spec.Network.Pinned = f.wall.policy.Resolved
	}
	if err != nil {
		return &Error{Op: "firewall", Ref: f.ref, What: "render network.mode " + string(f.spec.Network.Mode), Err: err}
	}
	return nil
}

// raiseWall writes the container's firewall and reads it back. have is what it
// is believed to have; nil reads it first. Nothing may run in a container whose
// wall isn't up, so that every failure ends the run before the start.
func (f *finishing) raiseWall(ctx context.Context, have *egress.Guest) error {
	if f.wall == nil {
		return nil
	}
	got, written, err := egress.SyncGuest(ctx, f.m.pve, f.ref.Node, f.ref.VMID, have, f.wall.want)
	if written {
		f.wrote = f.m.clock.Now()
	}
	if err != nil {
		return &Error{Op: "firewall", Ref: f.ref, Kind: ErrWall, What: "write its firewall", Err: err,
			Remedy: "nothing was started; apply again when the server takes the rules"}
	}
	f.rules = &got
	return nil
}

// settled waits until the server's firewall service has had its time since the
// last write. It says nothing when it has run, so time is all there is.
func (f *finishing) settled(ctx context.Context) error {
	if f.wrote.IsZero() || f.spec.Network.Proof == ProofNone {
		return nil
	}
	left := f.m.settings.FirewallSettle - f.m.clock.Now().Sub(f.wrote)
	if left <= 0 {
		return nil
	}
	began := f.m.clock.Now()
	defer func() { f.timings.Firewall += f.m.clock.Now().Sub(began) }()
	if err := f.m.clock.Sleep(ctx, left); err != nil {
		return &Error{Op: "firewall", Ref: f.ref, What: "wait for its firewall to bite", Err: err}
	}
	return nil
}

// dark says whether the container's interface is to be held down when it starts:
// until its rules surely bite.
func (f *finishing) dark() bool {
	return f.wall != nil && f.spec.Network.Proof != ProofNone && f.spec.Network.Proof != ProofProbed
}

// link sets the state of the container's link, if it is another one.
func (f *finishing) link(ctx context.Context, up bool) error {
	for attempt := 1; ; attempt++ {
		if err := f.readConfig(ctx); err != nil {
			return err
		}
		net0 := f.now.Nets()[0].Properties
		if net0.Flag("link_down") != up {
			return nil
		}
		if up {
			net0 = net0.Without("link_down")
		} else {
			net0 = net0.With("link_down", "1")
		}
		digest := f.now.Digest()
		err := f.m.write(ctx, f.ref, fmt.Sprintf("set the link of container %d", f.ref.VMID), func(ctx context.Context) error {
			return f.m.pve.UpdateLXC(ctx, f.ref.Node, f.ref.VMID, pve.LXCUpdate{Set: map[string]string{"net0": net0.String()}, Digest: digest})
		})
		f.now = nil
		if err == nil {
			return nil
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == updateAttempts {
			return f.m.step("firewall", f.ref, "set its link "+map[bool]string{true: "up", false: "down"}[up], err)
		}
	}
}

// light raises the link of a container that runs, when its wall surely stands.
// A link that somebody else holds down, or a run that was cut, is no sign of how
// old the rules are: they get their time from now on.
func (f *finishing) light(ctx context.Context) error {
	if f.wall == nil {
		return nil
	}
	if err := f.readConfig(ctx); err != nil {
		return err
	}
	if !f.now.Nets()[0].Flag("link_down") {
		return nil
	}
	if f.wrote.IsZero() {
		f.wrote = f.m.clock.Now()
	}
	if err := f.settled(ctx); err != nil {
		return err
	}
	f.proof = true
	return f.link(ctx, true)
}

// shutIn is the end of a container that was seen to reach what it must not: the
// link goes down first, then it stops, whatever else is under way.
func (f *finishing) shutIn(ctx context.Context, cause *Error) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
	defer cancel()
	var errs []error
	f.now = nil
	errs = append(errs, f.link(ctx, false))
	errs = append(errs, f.m.shutdown(ctx, f.ref, f.warnings))
	if err := errors.Join(errs...); err != nil {
		cause.Err = fmt.Errorf("%w; and it could not be shut in: %w", cause.Err, err)
	}
	f.statusOK = false
	return cause
}
