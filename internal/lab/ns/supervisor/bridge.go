//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/vishvananda/netlink"
)

// bridge is one of the lab's bridges, with the node's own addresses on it.
type bridge struct {
	name     string // as the API has it
	device   string
	mac      net.HardwareAddr
	index    int
	gateway4 netip.Prefix
	gateway6 netip.Prefix
	own      map[netip.Addr]bool
}

// bridge returns a bridge, made on first use.
func (n *network) bridge(name string) (*bridge, error) {
	if b := n.bridges[name]; b != nil {
		return b, nil
	}
	sum := hash(name)
	b := &bridge{name: name, device: name, mac: net.HardwareAddr{0x02, 0x5b, sum[0], sum[1], sum[2], sum[3]}, own: map[netip.Addr]bool{}}
	if len(name) > 15 || name == "lo" {
		b.device = fmt.Sprintf("b%x", sum[:6])
	}
	if err := b.create(); err != nil {
		return nil, fmt.Errorf("bridge %s: %w", name, err)
	}
	n.bridges[name] = b
	prefix := n.range4(name)
	// The range of leases may be part of a wider network: the node's address is the first of the /16 around it.
	wide := netip.PrefixFrom(prefix.Addr(), min(prefix.Bits(), 16)).Masked()
	b.gateway4 = netip.PrefixFrom(wide.Addr().Next(), wide.Bits())
	b.gateway6 = netip.PrefixFrom(range6(name).Addr().Next(), 64)
	for _, p := range []netip.Prefix{b.gateway4, b.gateway6} {
		if err := n.address(b, p); err != nil {
			return nil, fmt.Errorf("bridge %s: %w", name, err)
		}
	}
	return b, nil
}

// create makes the device. It has a fixed MAC, as else it takes the lowest of its ports', which come and go; and a port
// that is always up, as a bridge whose last port goes loses its carrier and gets it back only up to a second later.
func (b *bridge) create() error {
	attributes := netlink.NewLinkAttrs()
	attributes.Name, attributes.HardwareAddr = b.device, b.mac
	snooping := false
	device := &netlink.Bridge{LinkAttrs: attributes, MulticastSnooping: &snooping}
	if err := netlink.LinkAdd(device); err != nil {
		return err
	}
	link, err := netlink.LinkByName(b.device)
	if err != nil {
		return err
	}
	b.index = link.Attrs().Index
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	sum := hash(b.name)
	hold := netlink.NewLinkAttrs()
	hold.Name, hold.MasterIndex, hold.Flags = fmt.Sprintf("h%x", sum[:6]), b.index, net.FlagUp
	peer := fmt.Sprintf("i%x", sum[:6])
	if err := netlink.LinkAdd(&netlink.Veth{LinkAttrs: hold, PeerName: peer}); err != nil {
		return err
	}
	other, err := netlink.LinkByName(peer)
	if err != nil {
		return err
	}
	if err := netlink.LinkSetUp(other); err != nil {
		return err
	}
	waitUp(b.device)
	return nil
}

// address gives the node an address on the bridge.
func (n *network) address(b *bridge, p netip.Prefix) error {
	if b.own[p.Addr()] {
		return nil
	}
	if err := netlink.AddrAdd(&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: b.index}}, netlinkAddr(p)); err != nil {
		if p.Addr().Is6() { // a machine without IPv6
			return nil
		}
		return fmt.Errorf("address %s: %w", p, err)
	}
	b.own[p.Addr()] = true
	return errors.Join(n.resolveAt(p.Addr()), n.renew())
}

// netlinkAddr is an address as netlink takes it. IPv6 addresses are used at once, without looking for another user.
func netlinkAddr(p netip.Prefix) *netlink.Addr {
	a := &netlink.Addr{IPNet: &net.IPNet{IP: p.Addr().AsSlice(), Mask: net.CIDRMask(p.Bits(), p.Addr().BitLen())}}
	if p.Addr().Is6() {
		a.Flags = 0x02 // IFA_F_NODAD
	}
	return a
}

// waitUp waits until the kernel's rate-limited watch has seen a link come up; packets are lost until then.
func waitUp(device string) {
	for end := time.Now().Add(2 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		if l, err := netlink.LinkByName(device); err != nil || l.Attrs().OperState == netlink.OperUp {
			return
		}
	}
}

// range4 is the range of a bridge's leases: the given one, or one of the bridge's own.
func (n *network) range4(name string) netip.Prefix {
	p, ok := n.dhcp[name]
	if !ok {
		sum := hash(name)
		p = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80 + sum[0]%100, 0, 0}), 16)
		n.dhcp[name] = p
	}
	return p
}

// range6 is the /64 in which the guests of a bridge make themselves an address.
func range6(name string) netip.Prefix {
	sum := hash(name)
	return netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, sum[0], sum[1], sum[2], sum[3], sum[4]}), 64)
}
