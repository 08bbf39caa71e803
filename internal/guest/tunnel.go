package guest

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
)

// DialInside connects from inside a guest to an address as the guest sees it
// ("127.0.0.1:8080"), by its sshd (direct-tcpip). The pooled connection stays
// open for as long as the tunnel does. Errors are those of WaitReady, but
// nothing is waited for; or what became of the connection inside.
func (p *Pool) DialInside(ctx context.Context, target Target, address string) (net.Conn, error) {
	c, err := p.connected(ctx, target)
	if err != nil {
		return nil, err
	}
	conn, err := c.client.DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s can't be reached inside %s: %w", address, target, err)
	}
	return &tunnel{Conn: conn, release: c.hold()}, nil
}

// ListenInside listens on a port of the guest's loopback, a free one where it is
// 0, and hands out the connections that are made to it (tcpip-forward). It ends
// when it is closed, or with the connection to the guest.
func (p *Pool) ListenInside(ctx context.Context, target Target, port int) (net.Listener, error) {
	c, err := p.connected(ctx, target)
	if err != nil {
		return nil, err
	}
	listener, err := c.client.ListenTCP(&net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: port})
	if err != nil {
		return nil, fmt.Errorf("port %d of the loopback of %s can't be listened on (is it taken, or does its sshd forbid it: AllowTcpForwarding, PermitListen?): %w", port, target, err)
	}
	return &tunnelListener{Listener: listener, release: c.hold()}, nil
}

func (p *Pool) connected(ctx context.Context, target Target) (*conn, error) {
	c, at, err := p.connect(ctx, target)
	if err == nil && at != nil {
		p.noteHostKey(target, c.hostKey)
	}
	return c, err
}

// hold keeps a connection from being closed as one that nobody needs.
func (c *conn) hold() (release func()) {
	c.open.Add(1)
	return sync.OnceFunc(func() { c.open.Add(-1) })
}

type tunnel struct {
	net.Conn
	release func()
}

func (t *tunnel) Close() error {
	t.release()
	return t.Conn.Close()
}

// CloseWrite passes on that nothing more is sent.
func (t *tunnel) CloseWrite() error {
	if half, ok := t.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}

type tunnelListener struct {
	net.Listener
	release func()
}

func (l *tunnelListener) Close() error {
	l.release()
	return l.Listener.Close()
}

// Join copies between two connections until both directions have ended, or ctx
// does, and closes both.
func Join(ctx context.Context, a, b net.Conn) {
	stop := context.AfterFunc(ctx, func() { _ = a.Close(); _ = b.Close() })
	defer stop()
	var both sync.WaitGroup
	for _, pair := range [][2]net.Conn{{a, b}, {b, a}} {
		both.Go(func() {
			to, from := pair[0], pair[1]
			if _, err := io.Copy(to, from); err == nil {
				if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
					return
				}
			}
			_ = to.Close()
		})
	}
	both.Wait()
	_ = a.Close()
	_ = b.Close()
}
