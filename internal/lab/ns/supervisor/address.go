//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// addresses are those that a NIC has inside. A lease needs a cable; what is configured stays without one.
func (n *network) addresses(c engine.NIC) []netip.Prefix {
	var all []netip.Prefix
	if c.IPv4 == "dhcp" && !c.LinkDown {
		all = append(all, n.lease(c))
	}
	for _, text := range []string{c.IPv4, c.IPv6} {
		if p, err := netip.ParsePrefix(text); err == nil {
			all = append(all, p)
		}
	}
	if (c.IPv6 == "auto" || c.IPv6 == "dhcp") && !c.LinkDown {
		if mac, err := net.ParseMAC(c.MAC); err == nil {
			all = append(all, eui64(range6(c.Bridge), mac))
		}
	}
	return all
}

// eui64 is the address that a kernel makes itself of a prefix and a MAC (RFC 4291, appendix A).
func eui64(prefix netip.Prefix, mac net.HardwareAddr) netip.Prefix {
	b := prefix.Addr().As16()
	copy(b[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
	return netip.PrefixFrom(netip.AddrFrom16(b), 64)
}

// lease finds the address that a bridge's DHCP server gives to a MAC: the same each time. The engine knows it and
// configures it itself; no DHCP is spoken.
func (n *network) lease(c engine.NIC) netip.Prefix {
	prefix := n.range4(c.Bridge)
	bits := prefix.Bits()
	if b := n.bridges[c.Bridge]; b != nil {
		bits = b.gateway4.Bits()
	}
	key := c.Bridge + " " + strings.ToLower(c.MAC)
	if a, ok := n.leases[key]; ok {
		return netip.PrefixFrom(a, bits)
	}
	taken := map[netip.Addr]bool{}
	for _, a := range n.leases {
		taken[a] = true
	}
	// The first hundred are left to static addresses and the gateway.
	a := prefix.Masked().Addr()
	for range 100 {
		a = a.Next()
	}
	for ; prefix.Contains(a) && (taken[a] || n.owners[a] != nil); a = a.Next() {
	}
	n.leases[key] = a
	return netip.PrefixFrom(a, bits)
}

// gateway gives the node the address that a guest expects its gateway at, unless a guest has it: nodes are what the
// guests of a lab are configured to go through.
func (n *network) gateway(b *bridge, gateway, address string) error {
	a, err := netip.ParseAddr(gateway)
	if err != nil || n.owners[a] != nil {
		return nil //nolint:nilerr // none
	}
	bits := a.BitLen()
	if p, err := netip.ParsePrefix(address); err == nil && p.Contains(a) {
		bits = p.Bits()
	}
	for _, other := range n.bridges {
		if other.own[a] {
			return nil
		}
	}
	return n.address(b, netip.PrefixFrom(a, bits))
}

// own tells the node where a port's addresses are. The first to have an address keeps it, as with ARP; the neighbour entry
// is permanent, as a guest that restarts comes back with the same MAC.
func (n *network) own(p *port, mac net.HardwareAddr) error {
	for _, prefix := range p.addresses {
		a := prefix.Addr()
		if n.owners[a] != nil || n.isOwn(a) {
			continue
		}
		n.owners[a] = p
		p.owned = append(p.owned, a)
		if err := netlink.NeighSet(p.neighbour(a, mac)); err != nil {
			return fmt.Errorf("neighbour %s: %w", a, err)
		}
		if err := netlink.RouteReplace(p.route(a)); err != nil {
			return fmt.Errorf("route to %s: %w", a, err)
		}
	}
	return nil
}

// isOwn says whether an address is the node's.
func (n *network) isOwn(a netip.Addr) bool {
	for _, b := range n.bridges {
		if b.own[a] {
			return true
		}
	}
	return false
}

func family(a netip.Addr) int {
	if a.Is4() {
		return netlink.FAMILY_V4
	}
	return netlink.FAMILY_V6
}

func (p *port) neighbour(a netip.Addr, mac net.HardwareAddr) *netlink.Neigh {
	return &netlink.Neigh{LinkIndex: p.bridge.index, Family: family(a), State: netlink.NUD_PERMANENT, IP: a.AsSlice(), HardwareAddr: mac}
}

// route leads to one address alone: guests of one subnet may be on different bridges.
func (p *port) route(a netip.Addr) *netlink.Route {
	return &netlink.Route{LinkIndex: p.bridge.index, Scope: netlink.SCOPE_LINK, Dst: &net.IPNet{IP: a.AsSlice(), Mask: net.CIDRMask(a.BitLen(), a.BitLen())}}
}

// disown forgets a port's addresses.
func (n *network) disown(p *port) {
	for _, a := range p.owned {
		delete(n.owners, a)
		_ = netlink.NeighDel(p.neighbour(a, nil))
		_ = netlink.RouteDel(p.route(a))
	}
	p.owned = nil
}

// interfaces lists lo and the NICs of a running guest, as they are inside.
func (s *Supervisor) interfaces(ctx context.Context, id int) ([]engine.Interface, error) {
	g, err := s.find(ctx, id)
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	if g.running == nil {
		return nil, engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	order := []string{"lo"}
	for _, n := range g.config.NICs {
		order = append(order, n.Name)
	}
	var all []engine.Interface
	err = inNamespace(g.running.pid(), "net", func() error {
		for _, name := range order {
			i, err := inspectInside(name)
			if errors.As(err, &netlink.LinkNotFoundError{}) {
				continue // renamed or removed by the guest
			}
			if err != nil {
				return err
			}
			all = append(all, i)
		}
		return nil
	})
	return all, err
}

func inspectInside(name string) (engine.Interface, error) {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return engine.Interface{}, err
	}
	i := engine.Interface{Name: name, MAC: link.Attrs().HardwareAddr.String()}
	if i.MAC == "" {
		i.MAC = "00:00:00:00:00:00"
	}
	addresses, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil && !errors.Is(err, unix.ENODEV) {
		return i, err
	}
	slices.SortStableFunc(addresses, func(a, b netlink.Addr) int { // IPv4 first, link-local last
		return rank(a) - rank(b)
	})
	for _, a := range addresses {
		i.Addresses = append(i.Addresses, prefixOf(a).String())
	}
	return i, nil
}

func rank(a netlink.Addr) int {
	switch p := prefixOf(a).Addr(); {
	case p.Is4():
		return 0
	case p.IsLinkLocalUnicast():
		return 2
	}
	return 1
}
