//go:build linux

package supervisor

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"strings"
	"sync"

	"github.com/vishvananda/netlink"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// network is the lab's own: bridges, ports and addresses in the supervisor's network namespace. Nothing of it is to be seen
// from outside, and nothing leads out.
type network struct {
	mu      sync.Mutex
	dhcp    map[string]netip.Prefix
	leases  map[string]netip.Addr // bridge and MAC → address; kept for good, as long leases are
	bridges map[string]*bridge
	owners  map[netip.Addr]*port
	hosts   map[int]*host
	home    map[string]bool // the bridges that the node's own network is on
	filter  filter
}

// host is a running guest in the network.
type host struct {
	id, pid int
	// under network.mu
	names []string // that the resolver knows it by
	ports map[string]*port
}

// newNetwork prepares an empty network namespace.
func newNetwork(dhcp map[string]netip.Prefix) (*network, error) {
	n := &network{dhcp: map[string]netip.Prefix{}, leases: map[string]netip.Addr{}, bridges: map[string]*bridge{}, owners: map[netip.Addr]*port{}, hosts: map[int]*host{}, home: map[string]bool{}}
	for name, p := range dhcp {
		n.dhcp[name], n.home[name] = p, true
	}
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return nil, fmt.Errorf("loopback: %w", err)
	}
	if err := os.WriteFile("/proc/sys/net/ipv4/ip_forward", []byte("1"), 0); err != nil {
		return nil, fmt.Errorf("forwarding: %w", err)
	}
	for name, value := range map[string]string{
		// Machines without IPv6 or without the bridge's netfilter have no such files.
		"ipv6/conf/all/forwarding": "1", "ipv6/conf/default/accept_dad": "0",
		"bridge/bridge-nf-call-arptables": "0", "bridge/bridge-nf-filter-vlan-tagged": "0",
	} {
		_ = os.WriteFile("/proc/sys/net/"+name, []byte(value), 0)
	}
	// Bridged frames go through the IP hooks, which know what belongs to a connection (package nftrules).
	for _, name := range []string{"iptables", "ip6tables"} {
		if err := os.WriteFile("/proc/sys/net/bridge/bridge-nf-call-"+name, []byte("1"), 0); err != nil {
			return nil, fmt.Errorf("the packet filter needs the kernel's br_netfilter (modprobe br_netfilter): %w", err)
		}
	}
	for name := range dhcp {
		if _, err := n.bridge(name); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// checkConfig refuses what a guest's network can't be.
func checkConfig(c engine.Config) error {
	for _, n := range c.NICs {
		if mac, err := net.ParseMAC(n.MAC); err != nil || len(mac) != 6 {
			return fmt.Errorf("NIC %s: MAC %q: %w", n.Name, n.MAC, engine.ErrInvalid)
		}
		for _, a := range []string{n.IPv4, n.IPv6} {
			switch a {
			case "", "dhcp", "auto", "manual":
				continue
			}
			if _, err := netip.ParsePrefix(a); err != nil {
				return fmt.Errorf("NIC %s: address %q: %w", n.Name, a, engine.ErrInvalid)
			}
		}
	}
	return nil
}

// host gives a guest that starts its place.
func (n *network) host(id, pid int) *host {
	return &host{id: id, pid: pid, ports: map[string]*port{}}
}

// named tells the resolver the guest's name.
func (n *network) named(h *host, c engine.Config) {
	n.mu.Lock()
	defer n.mu.Unlock()
	names := []string{}
	if c.Hostname != "" {
		names = append(names, strings.ToLower(c.Hostname))
		if c.DNSDomain != "" && !strings.Contains(c.Hostname, ".") {
			names = append(names, strings.ToLower(c.Hostname+"."+c.DNSDomain))
		}
	}
	h.names = names
}

// plug makes a running guest's ports those of its configuration. Ports that stay keep their connections.
func (n *network) plug(h *host, nics []engine.NIC) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.hosts[h.id] = h
	wanted := map[string]bool{}
	for _, c := range nics {
		wanted[c.Name] = true
	}
	var errs []error
	for name, p := range h.ports {
		if !wanted[name] {
			errs = append(errs, n.pull(p))
			delete(h.ports, name)
		}
	}
	if len(h.ports) == 0 {
		errs = append(errs, prepareInside(h.pid))
	}
	for _, c := range nics {
		p := h.ports[c.Name]
		if p != nil && p.outer != portName(c.MAC) {
			errs = append(errs, n.pull(p)) // another card, as on Proxmox: it takes its connections along
			p = nil
		}
		if p == nil {
			p = &port{host: h, outer: portName(c.MAC)}
			h.ports[c.Name] = p
		}
		if err := n.set(p, c); err != nil {
			errs = append(errs, fmt.Errorf("NIC %s: %w", c.Name, err))
		}
	}
	return errors.Join(errs...)
}

// unplug takes a host that is gone out of the network.
func (n *network) unplug(h *host) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, p := range h.ports {
		_ = n.pull(p) // its namespace is gone, and often the port with it
	}
	delete(n.hosts, h.id)
}

// leased are the leases so far, to be kept.
func (n *network) leased() map[string]netip.Addr {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.leases)
}

func (n *network) restore(leases map[string]netip.Addr) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.Copy(n.leases, leases)
}

// resolvers are the addresses at which guests with these NICs find the lab's resolver.
func (n *network) resolvers(nics []engine.NIC) []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, c := range nics {
		if b := n.bridges[c.Bridge]; b != nil && b.gateway4.IsValid() {
			return []string{b.gateway4.Addr().String()}
		}
	}
	return nil
}

// portName is the bridge's side of the NIC with a MAC, by which the packet filter knows it (package nftrules).
func portName(mac string) string { return "v" + strings.ToLower(strings.ReplaceAll(mac, ":", "")) }

// hash gives bytes that are always the same for a name, for addresses that nobody chose.
func hash(name string) [32]byte { return sha256.Sum256([]byte(name)) }
