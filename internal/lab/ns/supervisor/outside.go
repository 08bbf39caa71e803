//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"sync"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/net/ipv4"
	"golang.org/x/net/ipv6"
	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// The outside answers at these ports, whatever the address.
var (
	outsideTCP = []int{22, 25, 53, 80, 443, 853, 8006, 8080}
	outsideUDP = []int{53, 123, 443}
)

// The link between the lab's node and the outside, from a range that is kept for measurements (RFC 2544).
var (
	nodeEnd4, outsideEnd4 = netip.MustParsePrefix("198.19.255.253/30"), netip.MustParsePrefix("198.19.255.254/30")
	nodeEnd6, outsideEnd6 = netip.MustParsePrefix("fd5b:6f75:7473::1/64"), netip.MustParsePrefix("fd5b:6f75:7473::2/64")
)

const (
	nodeLink    = "out0"
	outsideLink = "in0"
	// anyTable routes what comes in to this machine, whatever its address is.
	anyTable = 100
	// mostContacts bounds the memory of a lab that is flooded.
	mostContacts = 100000
)

// outside stands in for the rest of the world: a network namespace behind the node in which every address answers, so that
// what a firewall should hold back is seen to be there without it. It remembers who came through.
type outside struct {
	answer func(question []byte) []byte // of DNS

	mu       sync.Mutex
	contacts []engine.Contact
}

// openOutside makes the outside and routes to it what the lab doesn't know.
func (n *network) openOutside() (*outside, error) {
	o := &outside{answer: n.answer}
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlock: the thread is in another network
		result <- o.build()
		// The sockets hold the namespace; the thread ends with this function.
	}()
	if err := <-result; err != nil {
		return nil, fmt.Errorf("the outside: %w", err)
	}
	return o, nil
}

// build runs on the thread that moves into the new namespace; the node's end is made from there too.
func (o *outside) build() error {
	node, err := os.Open("/proc/thread-self/ns/net")
	if err != nil {
		return err
	}
	defer func() { _ = node.Close() }()
	if err := unix.Unshare(unix.CLONE_NEWNET); err != nil {
		return err
	}
	peer := netlink.NewLinkAttrs()
	peer.Name = outsideLink
	err = netlink.LinkAdd(&netlink.Veth{LinkAttrs: peer, PeerName: nodeLink, PeerNamespace: netlink.NsFd(int(node.Fd()))})
	if err != nil {
		return err
	}
	for _, name := range []string{"all", "default", outsideLink} {
		_ = os.WriteFile("/proc/sys/net/ipv6/conf/"+name+"/accept_dad", []byte("0"), 0) // absent without IPv6
	}
	if err := configureEnd(outsideLink, []netip.Prefix{outsideEnd4, outsideEnd6}, []netip.Addr{nodeEnd4.Addr(), nodeEnd6.Addr()}); err != nil {
		return err
	}
	if err := answerForAll(); err != nil {
		return err
	}
	if err := o.listen(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { // on another thread, which is in the node's network
		done <- configureEnd(nodeLink, []netip.Prefix{nodeEnd4, nodeEnd6}, []netip.Addr{outsideEnd4.Addr(), outsideEnd6.Addr()})
	}()
	return <-done
}

func configureEnd(name string, own []netip.Prefix, gateways []netip.Addr) error {
	link, err := netlink.LinkByName(name)
	if err != nil {
		return err
	}
	for _, p := range own {
		if err := netlink.AddrAdd(link, netlinkAddr(p)); err != nil && p.Addr().Is4() {
			return fmt.Errorf("address %s: %w", p, err)
		}
	}
	if err := netlink.LinkSetUp(link); err != nil {
		return err
	}
	for _, g := range gateways {
		err := netlink.RouteReplace(&netlink.Route{LinkIndex: link.Attrs().Index, Gw: g.AsSlice(), Flags: int(netlink.FLAG_ONLINK)})
		if err != nil && g.Is4() {
			return fmt.Errorf("route by %s: %w", g, err)
		}
	}
	return nil
}

// answerForAll has this namespace take every address that comes in over the link for its own.
func answerForAll() error {
	lo, err := netlink.LinkByName("lo")
	if err == nil {
		err = netlink.LinkSetUp(lo)
	}
	if err != nil {
		return err
	}
	for _, all := range []netip.Prefix{netip.MustParsePrefix("0.0.0.0/0"), netip.MustParsePrefix("::/0")} {
		rule := netlink.NewRule()
		rule.IifName, rule.Table, rule.Priority, rule.Family = outsideLink, anyTable, 1, family(all.Addr())
		err := netlink.RuleAdd(rule)
		if err == nil {
			err = netlink.RouteAdd(&netlink.Route{
				LinkIndex: lo.Attrs().Index, Table: anyTable, Type: unix.RTN_LOCAL, Scope: netlink.SCOPE_HOST,
				Dst: &net.IPNet{IP: all.Addr().AsSlice(), Mask: net.CIDRMask(0, all.Addr().BitLen())},
			})
		}
		if err != nil && all.Addr().Is4() {
			return err
		}
	}
	return nil
}

// transparent lets a socket speak for addresses that aren't this machine's.
func transparent(network, _ string, c syscall.RawConn) error {
	var set error
	err := c.Control(func(fd uintptr) {
		level, option := unix.SOL_IP, unix.IP_TRANSPARENT
		if network == "tcp6" || network == "udp6" {
			level, option = unix.SOL_IPV6, unix.IPV6_TRANSPARENT
		}
		set = unix.SetsockoptInt(int(fd), level, option, 1)
	})
	return errors.Join(err, set)
}

func (o *outside) listen() error {
	config := net.ListenConfig{Control: transparent}
	for _, v := range []string{"4", "6"} {
		for _, port := range outsideTCP {
			l, err := config.Listen(context.Background(), "tcp"+v, fmt.Sprintf(":%d", port))
			if err != nil && v == "6" {
				continue
			}
			if err != nil {
				return err
			}
			go o.acceptTCP(l)
		}
		for _, port := range outsideUDP {
			c, err := config.ListenPacket(context.Background(), "udp"+v, fmt.Sprintf(":%d", port))
			if err != nil && v == "6" {
				continue
			}
			if err != nil {
				return err
			}
			if v == "4" {
				go o.answer4(ipv4.NewPacketConn(c), port)
			} else {
				go o.answer6(ipv6.NewPacketConn(c), port)
			}
		}
	}
	return nil
}

func (o *outside) note(protocol int, source, dest netip.AddrPort) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.contacts) < mostContacts {
		o.contacts = append(o.contacts, engine.Contact{At: time.Now(), Protocol: protocol, Source: source, Dest: dest})
	}
}

// list gives the contacts so far, oldest first.
func (o *outside) list() []engine.Contact {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Clone(o.contacts)
}

// acceptTCP greets and hangs up: whoever got a word from here got out.
func (o *outside) acceptTCP(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		source, _ := netip.ParseAddrPort(c.RemoteAddr().String())
		dest, _ := netip.ParseAddrPort(c.LocalAddr().String())
		o.note(unix.IPPROTO_TCP, unmapped(source), unmapped(dest))
		go func() {
			_ = c.SetDeadline(time.Now().Add(time.Second))
			_, _ = fmt.Fprintf(c, "%s is open\n", c.LocalAddr())
			_ = c.Close()
		}()
	}
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

// reply is what a datagram gets: an answer of DNS at its port, an echo at the others.
func (o *outside) reply(port int, datagram []byte) []byte {
	if port == resolverPort {
		return o.answer(datagram)
	}
	return datagram
}

func (o *outside) answer4(c *ipv4.PacketConn, port int) {
	if c.SetControlMessage(ipv4.FlagDst, true) != nil {
		return
	}
	buffer := make([]byte, 4096)
	for {
		n, control, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		if control == nil {
			continue
		}
		o.noteUDP(from, control.Dst, port)
		if answer := o.reply(port, buffer[:n]); answer != nil {
			_, _ = c.WriteTo(answer, &ipv4.ControlMessage{Src: control.Dst}, from)
		}
	}
}

func (o *outside) answer6(c *ipv6.PacketConn, port int) {
	if c.SetControlMessage(ipv6.FlagDst, true) != nil {
		return
	}
	buffer := make([]byte, 4096)
	for {
		n, control, from, err := c.ReadFrom(buffer)
		if err != nil {
			return
		}
		if control == nil {
			continue
		}
		o.noteUDP(from, control.Dst, port)
		if answer := o.reply(port, buffer[:n]); answer != nil {
			_, _ = c.WriteTo(answer, &ipv6.ControlMessage{Src: control.Dst}, from)
		}
	}
}

func (o *outside) noteUDP(from net.Addr, to net.IP, port int) {
	source, _ := netip.ParseAddrPort(from.String())
	dest, _ := netip.AddrFromSlice(to)
	o.note(unix.IPPROTO_UDP, unmapped(source), netip.AddrPortFrom(dest.Unmap(), uint16(port)))
}
