package sandbox

import (
	"fmt"
	"net/netip"
)

// Address is the address that a vmid gets.
func (r AddressRange) Address(vmids VMIDRange, vmid int) (netip.Addr, error) {
	if !vmids.Contains(vmid) {
		return netip.Addr{}, fmt.Errorf("the id %d lies outside the range %d to %d, so it has no address of its own", vmid, vmids.First, vmids.Last)
	}
	addr, ok := addToIPv4(r.First, vmid-vmids.First)
	if !ok || !r.CIDR.Contains(addr) || addr == broadcast(r.CIDR) {
		return netip.Addr{}, fmt.Errorf("the address for the id %d lies outside %s: the address range is smaller than the range of ids", vmid, r.CIDR)
	}
	return addr, nil
}

// addToIPv4 says false when the sum isn't an IPv4 address.
func addToIPv4(a netip.Addr, n int) (netip.Addr, bool) {
	if !a.Is4() || n < 0 {
		return netip.Addr{}, false
	}
	b := a.As4()
	sum := uint64(b[0])<<24 | uint64(b[1])<<16 | uint64(b[2])<<8 | uint64(b[3])
	sum += uint64(n)
	if sum > 0xffffffff {
		return netip.Addr{}, false
	}
	return netip.AddrFrom4([4]byte{byte(sum >> 24), byte(sum >> 16), byte(sum >> 8), byte(sum)}), true
}

// broadcast is the last address of an IPv4 net. Nets of 31 and 32 bits have
// none (RFC 3021); the zero address stands for that.
func broadcast(p netip.Prefix) netip.Addr {
	if !p.Addr().Is4() || p.Bits() >= 31 {
		return netip.Addr{}
	}
	last, _ := addToIPv4(p.Masked().Addr(), 1<<(32-p.Bits())-1)
	return last
}

// ipv4Config is what net0 says about IPv4 for one vmid: the value of ip= and of
// gw=, empty for none.
func (m *Manager) ipv4Config(n Network, vmid int) (ip, gateway string, err error) {
	switch n.IPv4 {
	case AddressAuto:
		r := m.settings.Addresses
		if r == nil {
			return "", "", fmt.Errorf("ipv4 = %q needs the provider's address_range", AddressAuto)
		}
		addr, err := r.Address(m.settings.VMIDs, vmid)
		if err != nil {
			return "", "", err
		}
		gateway = n.Gateway
		if gateway == "" && r.Gateway.IsValid() {
			gateway = r.Gateway.String()
		}
		return netip.PrefixFrom(addr, r.CIDR.Bits()).String(), gateway, nil
	case AddressDHCP:
		return AddressDHCP, "", nil
	case AddressNone, AddressManual:
		return "", "", nil
	}
	return n.IPv4, n.Gateway, nil
}

// ipv6Config is what net0 says about IPv6: the value of ip6=, empty for none.
func ipv6Config(n Network) string {
	if isNone(n.IPv6) {
		return ""
	}
	return n.IPv6
}
