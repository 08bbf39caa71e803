//go:build linux

package supervisor

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"syscall"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// dial connects from the lab's node and passes the connected socket out, where it works like any other.
func (s *Supervisor) dial(ctx context.Context, c *wire.Call) (any, error) {
	var address string
	if err := c.Args(&address); err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return nil, fmt.Errorf("dial %s: the lab has no names, only addresses: %w", address, err)
	}
	s.network.mu.Lock()
	p := s.network.owners[to.Addr().Unmap()]
	own := to.Addr().IsLoopback() || s.network.isOwn(to.Addr().Unmap())
	s.network.mu.Unlock()
	var dialed Dialed
	switch {
	case p != nil:
		dialed.Guest = p.host.id
	case !own: // nobody would answer, and the kernel takes seconds to find out
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: fmt.Errorf("%s: connect: %w", address, syscall.EHOSTUNREACH)}
	}
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer func() { _ = conn.Close() }()
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil, fmt.Errorf("dial %s: %T is no TCP connection", address, conn)
	}
	if c.Pass, err = tcp.File(); err != nil {
		return nil, err
	}
	return dialed, nil
}
