package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// suspect is a target that is tried from inside.
type suspect struct {
	name      string
	proto     string // "tcp", or "udp", which a script asks
	at        netip.AddrPort
	forbidden bool
	// seen says that the target has just answered us: that it is closed from
	// inside proves something.
	seen bool
	// node says that it may be the node that the container runs on. Whether that is
	// forbidden is the node's rules' to say, and asked only when it is open.
	node  bool
	reach guest.Reach
	err   error
}

// suspects are the targets to try: the canaries that answer us, DNS where the mode
// forbids it, and the node's own ports.
func (f *finishing) suspects(ctx context.Context) (all []*suspect, unseen []string) {
	var mu sync.Mutex
	var looks errgroup.Group
	add := func(s *suspect, named bool) {
		looks.Go(func() error {
			s.seen = !s.forbidden || f.answersUs(ctx, s)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case s.seen:
				all = append(all, s)
			case named:
				unseen = append(unseen, s.name)
			}
			return nil
		})
	}
	for _, text := range f.spec.Network.Canaries {
		proto, at, err := parseCanary(text)
		if err != nil {
			continue // refused by checkProof
		}
		add(&suspect{name: text, proto: proto, at: at, forbidden: !f.permits(proto, at)}, true)
		if !at.Addr().Is4() || !f.sandbox.IPv6.IsValid() {
			continue
		}
		if by6 := twin(at); !f.permits(proto, by6) {
			add(&suspect{name: fmt.Sprintf("%s (%s by IPv6)", by6, text), proto: proto, at: by6, forbidden: true}, false)
		}
	}
	_ = looks.Wait()
	if f.spec.Network.Mode == ModeOff {
		for _, r := range f.wall.policy.Resolvers {
			at := netip.AddrPortFrom(r, portDNS)
			all = append(all, &suspect{name: "DNS at " + at.String(), proto: "udp", at: at, forbidden: true})
		}
	}
	return append(all, f.nodePorts()...), unseen
}

// permits says whether the mode lets a connection out.
func (f *finishing) permits(proto string, to netip.AddrPort) bool {
	own := f.sandbox.IPv4
	if to.Addr().Is6() {
		own = f.sandbox.IPv6
	}
	permitted, _ := f.wall.filter.Permits(egress.Connection{Direction: egress.Out, From: own, To: to.Addr(), Proto: proto, Port: int(to.Port())}, egress.Drop)
	return permitted
}

// answersUs says whether a target answers from where the sandboxes are reached
// from.
func (f *finishing) answersUs(ctx context.Context, s *suspect) bool {
	if s.proto == "udp" {
		return answers(ctx, s.at)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*probeTime)
	defer cancel()
	reach, _ := f.m.guests.ReachFromHere(ctx, s.at.String())
	return reach == guest.ReachOpen
}

// nodePorts are the management ports of the node, at its own addresses and at the
// container's gateway, which mostly is the node.
func (f *finishing) nodePorts() []*suspect {
	addresses := slices.Clone(f.wall.policy.Nodes)
	for _, text := range []string{f.sandbox.Network.Gateway, f.sandbox.Network.Gateway6} {
		if a, err := netip.ParseAddr(text); err == nil && !slices.Contains(addresses, a) {
			addresses = append(addresses, a)
		}
	}
	var all []*suspect
	for _, a := range addresses {
		if a.Is6() && !f.sandbox.IPv6.IsValid() || a.Is4() && !f.sandbox.IPv4.IsValid() {
			continue
		}
		for _, port := range []uint16{22, 8006} {
			at := netip.AddrPortFrom(a, port)
			all = append(all, &suspect{name: at.String(), proto: "tcp", at: at, node: true})
		}
	}
	return all
}

// judgeNode says of open ports of what may be the node whether they are forbidden:
// the guest's own rules aren't asked about traffic to the node that it runs on.
// What no rule of the node forbids is a warning, once for each network.
func (f *finishing) judgeNode(ctx context.Context, suspects []*suspect) {
	var open []*suspect
	for _, s := range suspects {
		if s.node && s.reach == guest.ReachOpen && !s.forbidden {
			open = append(open, s)
		}
	}
	if len(open) == 0 {
		return
	}
	interfaces, err := f.m.pve.Interfaces(ctx, f.ref.Node)
	if err != nil {
		interfaces = nil
	}
	list, err := egress.ReadRules(ctx, f.m.pve, pve.NodeFirewall(f.ref.Node))
	var unguarded []string
	for _, s := range open {
		if s.forbidden = !f.isNode(s.at.Addr(), interfaces) && !f.permits(s.proto, s.at); s.forbidden {
			continue // another host that answers at the gateway's address
		}
		c := egress.Connection{Direction: egress.In, From: f.sandbox.IPv4, To: s.at.Addr(), Proto: s.proto, Port: int(s.at.Port()), Iface: f.sandbox.Network.Bridge}
		if s.at.Addr().Is6() {
			c.From = f.sandbox.IPv6
		}
		permitted, _ := egress.Filter{Rules: list.Rules}.Permits(c, egress.Accept)
		if s.forbidden = err == nil && !permitted; !s.forbidden {
			unguarded = append(unguarded, s.name)
		}
	}
	if len(unguarded) > 0 {
		f.warnOfNode(interfaces, unguarded)
	}
}

// isNode says whether an address is the node's own, as far as can be seen: one in a
// network in which the node has another address is another host's, and an address
// that no list shows may be the node's on a virtual network.
func (f *finishing) isNode(a netip.Addr, interfaces []pve.NetworkInterface) bool {
	if slices.Contains(f.wall.policy.Nodes, a) {
		return true
	}
	own := true
	for _, i := range interfaces {
		for _, cidr := range []string{i.CIDR, i.CIDR6} {
			p, err := netip.ParsePrefix(cidr)
			if err != nil || !p.Contains(a) {
				continue
			}
			if p.Addr() == a {
				return true
			}
			own = false
		}
	}
	return own
}

// warnOfNode says which rules close the node to the container's network.
func (f *finishing) warnOfNode(interfaces []pve.NetworkInterface, reached []string) {
	spec := GuardSpec{NodeName: f.ref.Node, Bridge: f.sandbox.Network.Bridge, DHCP: f.sandbox.Network.IPv4 == AddressDHCP}
	for _, i := range interfaces {
		if i.Name == spec.Bridge && (i.Gateway != "" || i.Gateway6 != "") { // the node's own network: not all of it are sandboxes
			if p, err := netip.ParsePrefix(f.sandbox.Network.IPv4CIDR); err == nil {
				spec.Bridge, spec.Subnet = "", netip.PrefixFrom(p.Addr(), p.Addr().BitLen())
			}
		}
	}
	for _, r := range f.wall.policy.Resolvers {
		if r.IsPrivate() && f.isNode(r, interfaces) {
			spec.Resolvers = append(spec.Resolvers, r)
		}
	}
	if _, told := f.m.unguarded.LoadOrStore(spec.NodeName+"/"+spec.Key(), true); told {
		return
	}
	f.warnings.add("The node can be reached from inside", fmt.Sprintf("Container %d reached %s of node %s: no rule of a guest covers traffic to its own node. "+
		"The resource sandbox_node_guard closes that; or an administrator runs, on a node as root:\n  %s", f.ref.VMID, strings.Join(reached, ", "), f.ref.Node, strings.Join(spec.Commands(), "\n  ")))
}
