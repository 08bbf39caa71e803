package sandbox

import (
	"fmt"
	"net"
	"net/netip"
)

// checkBridge asks for a bridge where there is none to take over.
func (m *Manager) checkBridge(p *problems, spec Spec) {
	if m.bridge(spec) == "" && !m.source(spec).IsClone() {
		p.add("network.bridge", "No bridge", "A container made from a template file has no interface to take over: set network.bridge here or bridge in the provider.")
	}
}

func (m *Manager) checkNetwork(p *problems, spec Spec) {
	n := spec.Network
	if bridge := m.bridge(spec); bridge != "" && !validBridge(bridge) {
		p.add("network.bridge", fmt.Sprintf("%q is no bridge's name", bridge), "An interface's name has at most 15 letters, digits and -_. , e.g. vmbr0.")
	}
	if n.VLANID < 0 || n.VLANID > MaxVLANID {
		p.add("network.vlan_id", fmt.Sprintf("%d is no VLAN", n.VLANID), fmt.Sprintf("VLAN ids lie between 1 and %d.", MaxVLANID))
	}
	if n.MTU != 0 && (n.MTU < MinMTU || n.MTU > MaxMTU) {
		p.add("network.mtu", fmt.Sprintf("%d is out of range", n.MTU), fmt.Sprintf("Proxmox VE takes %d to %d bytes.", MinMTU, MaxMTU))
	}
	if n.RateLimitMBs < 0 {
		p.add("network.rate_limit", "It is negative", "Give MB/s, or leave it out for no limit.")
	}
	if n.MACAddress != "" {
		mac, err := net.ParseMAC(n.MACAddress)
		if err != nil || len(mac) != 6 || mac[0]&1 != 0 {
			p.add("network.mac_address", fmt.Sprintf("%q is no MAC address of one host", n.MACAddress), "Give six bytes such as BC:24:11:00:00:01, with an even first byte, or leave it out.")
		}
	}
	m.checkIPv4(p, spec)
	checkIPv6(p, n.IPv6)
}

func (m *Manager) checkIPv4(p *problems, spec Spec) {
	n := spec.Network
	if n.IPv4 != AddressAuto && isNamed(n.IPv4) && n.Gateway != "" {
		p.add("network.gateway", "There is nothing to route", fmt.Sprintf("A gateway goes with a static address; ipv4 is %q.", n.IPv4))
		return
	}
	var own netip.Prefix
	switch {
	case n.IPv4 == AddressAuto:
		r := m.settings.Addresses
		if r == nil {
			p.add("network.ipv4", "There is no range to take an address from", `ipv4 = "auto" needs the provider's address_range { cidr, first, gateway }.`)
			return
		}
		own = netip.PrefixFrom(r.First, r.CIDR.Bits())
		if spec.VMID != 0 && m.settings.VMIDs.Contains(spec.VMID) {
			addr, err := r.Address(m.settings.VMIDs, spec.VMID)
			if err != nil {
				p.add("network.ipv4", "The address range has no address for this vmid", err.Error()+".")
				return
			}
			own = netip.PrefixFrom(addr, r.CIDR.Bits())
		}
	case isNamed(n.IPv4):
		return
	default:
		var err error
		own, err = netip.ParsePrefix(n.IPv4)
		switch {
		case err != nil || !own.Addr().Is4():
			p.add("network.ipv4", fmt.Sprintf("%q is no IPv4 address with its prefix", n.IPv4), `Use "auto", "dhcp", "none" or CIDR form, e.g. "10.10.0.20/16".`)
			return
		case own.Bits() < 31 && (own.Addr() == own.Masked().Addr() || own.Addr() == broadcast(own)):
			p.add("network.ipv4", fmt.Sprintf("%s is no host's address", n.IPv4), "It is the first (network) or last (broadcast) address of its net.")
			return
		}
	}
	if n.Gateway == "" {
		return
	}
	gw, err := netip.ParseAddr(n.Gateway)
	switch {
	case err != nil || !gw.Is4():
		p.add("network.gateway", fmt.Sprintf("%q is no IPv4 address", n.Gateway), `Give the gateway's address without a prefix, e.g. "10.10.0.1".`)
	case !own.Masked().Contains(gw):
		p.add("network.gateway", fmt.Sprintf("The gateway %s is outside the address's net %s", gw, own.Masked()), "The guest could not reach it. Correct the prefix length, the address or the gateway.")
	case gw == own.Addr() && n.IPv4 != AddressAuto:
		p.add("network.gateway", "The gateway is the container's own address", "Give the address of the router on the bridge.")
	}
}

func checkIPv6(p *problems, ipv6 string) {
	if isNamed(ipv6) {
		return
	}
	prefix, err := netip.ParsePrefix(ipv6)
	if err != nil || !prefix.Addr().Is6() || prefix.Addr().Is4In6() {
		p.add("network.ipv6", fmt.Sprintf("%q is no IPv6 address with its prefix", ipv6), `Use "auto" (SLAAC), "dhcp", "none" or CIDR form, e.g. "fd00::20/64".`)
	}
}

// isNamed says whether an address setting is a word, not an address.
func isNamed(s string) bool { return s == "" || isNone(s) || s == AddressDHCP || s == AddressAuto }
