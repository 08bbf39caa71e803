//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// port is a guest's NIC and the bridge's port that it is plugged into.
type port struct {
	host      *host
	outer     string // the bridge's side
	made      bool
	nic       engine.NIC
	bridge    *bridge
	addresses []netip.Prefix // configured inside
	owned     []netip.Addr   // those that the node knows to be here
}

// set makes a port what a NIC's configuration says. The network is locked.
func (n *network) set(p *port, c engine.NIC) error {
	b, err := n.bridge(c.Bridge)
	if err != nil {
		return err
	}
	mac, err := net.ParseMAC(c.MAC)
	if err != nil {
		return err
	}
	former := p.nic
	p.nic, p.bridge = c, b
	if !p.made {
		if err := p.create(mac); err != nil {
			return err
		}
	} else if former.Bridge != c.Bridge {
		if err := p.move(); err != nil {
			return err
		}
	}
	n.disown(p)
	p.addresses = n.addresses(c)
	for _, g := range []struct{ gateway, address string }{{c.Gateway4, c.IPv4}, {c.Gateway6, c.IPv6}} {
		if err := n.gateway(b, g.gateway, g.address); err != nil {
			return err
		}
	}
	if err := inNamespace(p.host.pid, "net", p.configureInside); err != nil {
		return err
	}
	if err := p.raise(!c.LinkDown); err != nil {
		return err
	}
	if c.LinkDown {
		return nil
	}
	return n.own(p, mac)
}

func (p *port) create(mac net.HardwareAddr) error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.MasterIndex = p.outer, p.bridge.index
	err := netlink.LinkAdd(&netlink.Veth{
		LinkAttrs: attributes, PeerName: p.nic.Name, PeerHardwareAddr: mac, PeerNamespace: netlink.NsPid(p.host.pid),
	})
	p.made = err == nil
	return err
}

// move plugs a port into another bridge.
func (p *port) move() error {
	link, err := netlink.LinkByName(p.outer)
	if err != nil {
		return err
	}
	return netlink.LinkSetMasterByIndex(link, p.bridge.index)
}

// raise takes the bridge's side up or down. The guest sees its cable in or out; its own settings stay.
func (p *port) raise(up bool) error {
	link, err := netlink.LinkByName(p.outer)
	if err != nil {
		return err
	}
	if !up {
		return netlink.LinkSetDown(link)
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	waitUp(p.outer)
	return inNamespace(p.host.pid, "net", func() error {
		waitUp(p.nic.Name)
		return nil
	})
}

// pull removes a port. The network is locked.
func (n *network) pull(p *port) error {
	n.disown(p)
	if !p.made {
		return nil
	}
	p.made = false
	link, err := netlink.LinkByName(p.outer)
	if err != nil {
		return nil //nolint:nilerr // it went with the guest's namespace
	}
	return netlink.LinkDel(link)
}

// prepareInside makes a guest's network namespace what a container's is before its first NIC.
func prepareInside(pid int) error {
	return inNamespace(pid, "net", func() error {
		for name, value := range map[string]string{
			"ipv6/conf/default/accept_dad": "0", "ipv6/conf/default/accept_ra": "0", "ipv4/ping_group_range": "0 65534",
		} {
			_ = os.WriteFile("/proc/sys/net/"+name, []byte(value), 0) // absent without IPv6
		}
		lo, err := netlink.LinkByName("lo")
		if err != nil {
			return err
		}
		return netlink.LinkSetUp(lo)
	})
}

// configureInside gives the NIC its addresses and routes, on a thread in the guest's network namespace.
func (p *port) configureInside() error {
	link, err := netlink.LinkByName(p.nic.Name)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	present, err := netlink.AddrList(link, netlink.FAMILY_ALL)
	if err != nil {
		return err
	}
	missing := slices.Clone(p.addresses)
	for _, a := range present {
		prefix := prefixOf(a)
		if prefix.Addr().IsLinkLocalUnicast() && prefix.Addr().Is6() {
			continue // the kernel's
		}
		if i := slices.Index(missing, prefix); i >= 0 {
			missing = slices.Delete(missing, i, i+1)
		} else if err := netlink.AddrDel(link, &a); err != nil {
			return err
		}
	}
	for _, a := range missing {
		if err := netlink.AddrAdd(link, netlinkAddr(a)); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("address %s: %w", a, err)
		}
	}
	return p.routeInside(link)
}

func prefixOf(a netlink.Addr) netip.Prefix {
	ip, _ := netip.AddrFromSlice(a.IP)
	ones, _ := a.Mask.Size()
	return netip.PrefixFrom(ip.Unmap(), ones)
}

// routeInside sets the default routes, and the gateways' MAC addresses, which never change.
func (p *port) routeInside(link netlink.Link) error {
	index := link.Attrs().Index
	for family, gateway := range p.gateways() {
		if !gateway.IsValid() {
			routes, err := netlink.RouteList(link, family)
			if err != nil {
				return err
			}
			for _, r := range routes {
				if isDefault(r) {
					if err := netlink.RouteDel(&r); err != nil {
						return err
					}
				}
			}
			continue
		}
		taken, err := defaultElsewhere(family, index)
		if err != nil {
			return err
		}
		if taken {
			continue // the first NIC's counts, as with ifupdown
		}
		err = netlink.RouteReplace(&netlink.Route{LinkIndex: index, Gw: gateway.AsSlice(), Flags: int(netlink.FLAG_ONLINK)})
		if err != nil {
			return fmt.Errorf("gateway %s: %w", gateway, err)
		}
		if !p.bridge.own[gateway] {
			continue // a guest is the gateway
		}
		err = netlink.NeighSet(&netlink.Neigh{LinkIndex: index, Family: family, State: netlink.NUD_PERMANENT, IP: gateway.AsSlice(), HardwareAddr: p.bridge.mac})
		if err != nil {
			return fmt.Errorf("neighbour %s: %w", gateway, err)
		}
	}
	return nil
}

func isDefault(r netlink.Route) bool {
	return (r.Dst == nil || r.Dst.IP.IsUnspecified()) && r.Gw != nil
}

// defaultElsewhere says whether the guest has a default route over another link.
func defaultElsewhere(family, index int) (bool, error) {
	routes, err := netlink.RouteList(nil, family)
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(routes, func(r netlink.Route) bool { return isDefault(r) && r.LinkIndex != index }), nil
}

// gateways are the default gateways by family, invalid where there is none.
func (p *port) gateways() map[int]netip.Addr {
	via := map[int]netip.Addr{netlink.FAMILY_V4: {}, netlink.FAMILY_V6: {}}
	given := func(family int, text string) {
		if a, err := netip.ParseAddr(text); err == nil {
			via[family] = a
		}
	}
	given(netlink.FAMILY_V4, p.nic.Gateway4)
	given(netlink.FAMILY_V6, p.nic.Gateway6)
	if p.nic.IPv4 == "dhcp" && !p.nic.LinkDown {
		via[netlink.FAMILY_V4] = p.bridge.gateway4.Addr()
	}
	if (p.nic.IPv6 == "auto" || p.nic.IPv6 == "dhcp") && !p.nic.LinkDown {
		via[netlink.FAMILY_V6] = p.bridge.gateway6.Addr()
	}
	hasIPv6 := slices.ContainsFunc(p.addresses, func(a netip.Prefix) bool { return a.Addr().Is6() })
	if !hasIPv6 {
		via[netlink.FAMILY_V6] = netip.Addr{}
	}
	return via
}
