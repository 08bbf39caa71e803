package sim

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/wire"
)

// nodeAddress is where connections of the lab's own node come from.
var nodeAddress = netip.MustParseAddr("10.77.0.1")

// network knows who has which address.
type network struct {
	clock engine.Clock
	// judge is asked about each new connection; nil lets all pass.
	judge atomic.Pointer[func(engine.Connection) engine.Verdict]

	mu     sync.Mutex
	dhcp   map[string]netip.Prefix
	leases map[string]netip.Addr // bridge and MAC → address; kept for good, as long leases are
	owners map[netip.Addr]*host
	hosts  map[*host]bool
}

// host is a running guest in the network.
type host struct {
	network *network
	id      int // the guest's
	// accept serves a connection to the SSH port; false while the server isn't up.
	accept func(net.Conn) bool

	// under network.mu
	nics      []nic
	listeners map[int]*wire.Listener
	local     map[int]bool        // those that only the loopback leads to
	conns     map[*wire.Conn]bool // that came in
	begun     map[*wire.Conn]bool // that go out
	gone      bool
	nextPort  int
}

type nic struct {
	engine.NIC
	addresses []netip.Prefix
}

func newNetwork(clock engine.Clock, dhcp map[string]netip.Prefix) *network {
	n := &network{clock: clock, dhcp: map[string]netip.Prefix{}, leases: map[string]netip.Addr{}, owners: map[netip.Addr]*host{}, hosts: map[*host]bool{}}
	for bridge, p := range dhcp {
		n.dhcp[bridge] = p.Masked()
	}
	return n
}

// check refuses what a guest's network can't be.
func check(c engine.Config) error {
	for _, n := range c.NICs {
		if _, err := net.ParseMAC(n.MAC); err != nil {
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

// plug gives a host its addresses. The first to have an address keeps it, as with ARP.
func (n *network) plug(h *host, nics []engine.NIC) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.disown(h)
	h.nics = nil
	for _, c := range nics {
		card := nic{NIC: c}
		if !c.LinkDown {
			card.addresses = n.addresses(c)
		} else {
			card.addresses = static(c) // the kernel keeps what is configured; nothing comes through
		}
		h.nics = append(h.nics, card)
		for _, a := range card.addresses {
			if !c.LinkDown && n.owners[a.Addr()] == nil {
				n.owners[a.Addr()] = h
			}
		}
	}
	n.hosts[h] = true
	for c := range h.conns {
		if a, err := netip.ParseAddrPort(c.LocalAddr().String()); err == nil && n.owners[a.Addr()] != h {
			go c.Reset() // its OnClose takes the lock
		}
	}
}

func (n *network) disown(h *host) {
	for a, o := range n.owners {
		if o == h {
			delete(n.owners, a)
		}
	}
}

// unplug takes a host out and cuts its connections.
func (n *network) unplug(h *host) {
	n.mu.Lock()
	n.disown(h)
	delete(n.hosts, h)
	h.gone = true
	var conns []*wire.Conn
	for _, all := range []map[*wire.Conn]bool{h.conns, h.begun} {
		for c := range all {
			conns = append(conns, c)
		}
	}
	var listeners []*wire.Listener
	for _, l := range h.listeners {
		listeners = append(listeners, l)
	}
	n.mu.Unlock()
	for _, l := range listeners {
		_ = l.Close()
	}
	for _, c := range conns {
		c.Reset()
	}
}

func static(c engine.NIC) []netip.Prefix {
	var all []netip.Prefix
	for _, s := range []string{c.IPv4, c.IPv6} {
		if p, err := netip.ParsePrefix(s); err == nil {
			all = append(all, p)
		}
	}
	return all
}

// addresses are those of a NIC whose link is up: IPv4, IPv6, and the link-local one that every kernel makes.
func (n *network) addresses(c engine.NIC) []netip.Prefix {
	var all []netip.Prefix
	if c.IPv4 == "dhcp" {
		all = append(all, n.lease(c))
	}
	all = append(all, static(c)...)
	mac, err := net.ParseMAC(c.MAC)
	if err != nil || len(mac) != 6 {
		return all
	}
	eui := func(prefix netip.Prefix) netip.Prefix {
		b := prefix.Addr().As16()
		copy(b[8:], []byte{mac[0] ^ 2, mac[1], mac[2], 0xff, 0xfe, mac[3], mac[4], mac[5]})
		return netip.PrefixFrom(netip.AddrFrom16(b), 64)
	}
	if c.IPv6 == "auto" || c.IPv6 == "dhcp" {
		sum := sha256.Sum256([]byte(c.Bridge))
		all = append(all, eui(netip.PrefixFrom(netip.AddrFrom16([16]byte{0xfd, sum[0], sum[1], sum[2], sum[3], sum[4]}), 64)))
	}
	return append(all, eui(netip.MustParsePrefix("fe80::/64")))
}

// lease finds the address that a bridge's DHCP server gives to a MAC: the same each time.
func (n *network) lease(c engine.NIC) netip.Prefix {
	prefix, ok := n.dhcp[c.Bridge]
	if !ok {
		sum := sha256.Sum256([]byte(c.Bridge))
		prefix = netip.PrefixFrom(netip.AddrFrom4([4]byte{10, 80 + sum[0]%100, 0, 0}), 16)
		n.dhcp[c.Bridge] = prefix
	}
	key := c.Bridge + " " + strings.ToLower(c.MAC)
	if a, ok := n.leases[key]; ok {
		return netip.PrefixFrom(a, prefix.Bits())
	}
	taken := map[netip.Addr]bool{}
	for _, a := range n.leases {
		taken[a] = true
	}
	// The first hundred are left to static addresses and the gateway.
	a := prefix.Addr()
	for range 100 {
		a = a.Next()
	}
	for ; prefix.Contains(a) && (taken[a] || n.owners[a] != nil); a = a.Next() {
	}
	n.leases[key] = a
	return netip.PrefixFrom(a, prefix.Bits())
}

// Interfaces lists lo and the NICs of a running guest.
func (e *Engine) Interfaces(ctx context.Context, id int) ([]engine.Interface, error) {
	g, err := e.find(ctx, id)
	if err != nil {
		return nil, err
	}
	defer g.mu.Unlock()
	if g.machine == nil {
		return nil, engine.Refuse(g.name(), engine.ErrNotRunning)
	}
	return g.host.Interfaces(), nil
}

// Interfaces is the network as seen from inside.
func (h *host) Interfaces() []engine.Interface {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	all := []engine.Interface{{Name: "lo", MAC: "00:00:00:00:00:00", Addresses: []string{"127.0.0.1/8", "::1/128"}}}
	for _, c := range h.nics {
		i := engine.Interface{Name: c.Name, MAC: strings.ToLower(c.MAC)}
		for _, a := range c.addresses {
			i.Addresses = append(i.Addresses, a.String())
		}
		all = append(all, i)
	}
	return all
}

// Dial connects from the lab's node.
func (e *Engine) Dial(ctx context.Context, address string) (net.Conn, error) {
	return e.network.dial(ctx, nil, address)
}

// Dial connects from a guest; its own loopback included.
func (h *host) Dial(ctx context.Context, address string) (net.Conn, error) {
	return h.network.dial(ctx, h, address)
}

func (n *network) dial(ctx context.Context, from *host, address string) (net.Conn, error) {
	refuse := func(why error) (net.Conn, error) {
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: connect: %w", address, why)}
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	name, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if name == "localhost" {
		name = "127.0.0.1"
	}
	to, err := netip.ParseAddrPort(net.JoinHostPort(name, port))
	if err != nil {
		return nil, fmt.Errorf("dial %s: the lab has no names, only addresses: %w", address, err)
	}
	if from != nil && to.Addr() == nodeAddress {
		return refuse(syscall.ECONNREFUSED) // no guest's rule is about its node, and nothing listens there
	}
	if err := n.pass(ctx, n.connection(from, to, tcp)); err != nil {
		return refuse(err)
	}
	n.mu.Lock()
	target := n.owners[to.Addr().Unmap()]
	if to.Addr().IsLoopback() {
		target = from
	}
	if target == nil || target.gone || from != nil && from != target && !from.linked() {
		n.mu.Unlock()
		return refuse(syscall.EHOSTUNREACH)
	}
	source := nodeAddress
	if from != nil {
		source = from.source(to.Addr())
	}
	target.nextPort++
	near := net.TCPAddrFromAddrPort(netip.AddrPortFrom(source, uint16(32768+target.nextPort%28000)))
	ours, theirs := wire.Pipe(near, net.TCPAddrFromAddrPort(to))
	target.conns[theirs] = true
	theirs.OnClose(func() {
		n.mu.Lock()
		delete(target.conns, theirs)
		n.mu.Unlock()
	})
	if from != nil {
		from.begun[ours] = true
		ours.OnClose(func() {
			n.mu.Lock()
			delete(from.begun, ours)
			n.mu.Unlock()
		})
	}
	l := target.listeners[int(to.Port())]
	if target.local[int(to.Port())] && !to.Addr().IsLoopback() {
		n.mu.Unlock()
		_ = theirs.Close()
		return refuse(syscall.ECONNREFUSED)
	}
	n.mu.Unlock()
	if l != nil {
		err = l.Offer(theirs)
	} else if to.Port() != 22 || !target.accept(theirs) {
		err = syscall.ECONNREFUSED
	}
	if err != nil {
		_ = theirs.Close()
		_ = ours.Close()
		return refuse(err)
	}
	return ours, nil
}

// linked says whether any NIC is up; the network is locked.
func (h *host) linked() bool {
	return slices.ContainsFunc(h.nics, func(c nic) bool { return !c.LinkDown })
}

func (h *host) source(to netip.Addr) netip.Addr {
	if to.IsLoopback() {
		return to
	}
	for _, c := range h.nics {
		for _, a := range c.addresses {
			if !c.LinkDown && a.Addr().Is4() == to.Is4() {
				return a.Addr()
			}
		}
	}
	return nodeAddress
}

// Sockets lists what listens, what came in and what goes out.
func (h *host) Sockets() []machine.Socket {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	all := []machine.Socket{{Local: netip.AddrPortFrom(netip.IPv4Unspecified(), 22)}}
	for port := range h.listeners {
		at := netip.IPv4Unspecified()
		if h.local[port] {
			at = netip.AddrFrom4([4]byte{127, 0, 0, 1})
		}
		all = append(all, machine.Socket{Local: netip.AddrPortFrom(at, uint16(port))})
	}
	for _, conns := range []map[*wire.Conn]bool{h.conns, h.begun} {
		for c := range conns {
			local, err1 := netip.ParseAddrPort(c.LocalAddr().String())
			remote, err2 := netip.ParseAddrPort(c.RemoteAddr().String())
			if err1 == nil && err2 == nil {
				all = append(all, machine.Socket{Local: local, Remote: remote})
			}
		}
	}
	return all
}

// Listen waits for connections to a port of the guest.
func (h *host) Listen(port int) (net.Listener, error) { return h.listen(port, false) }

// ListenLocal waits for connections from the guest itself.
func (h *host) ListenLocal(port int) (net.Listener, error) { return h.listen(port, true) }

func (h *host) listen(port int, local bool) (net.Listener, error) {
	h.network.mu.Lock()
	defer h.network.mu.Unlock()
	for free := 40000; port == 0; free++ {
		if h.listeners[free] == nil {
			port = free
		}
	}
	if h.gone || h.listeners[port] != nil || port == 22 {
		return nil, syscall.EADDRINUSE
	}
	l := wire.Listen(&net.TCPAddr{IP: net.IPv4zero, Port: port}, func() {
		h.network.mu.Lock()
		delete(h.listeners, port)
		delete(h.local, port)
		h.network.mu.Unlock()
	})
	h.listeners[port] = l
	if local {
		h.local[port] = true
	}
	return l, nil
}
