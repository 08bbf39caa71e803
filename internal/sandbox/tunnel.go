package sandbox

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// Tunnel is a port that leads somewhere else for as long as it is open.
type Tunnel struct {
	// Address is where it listens: on this machine, or on the guest's loopback.
	Address netip.AddrPort

	stop     context.CancelFunc
	listener net.Listener
	work     sync.WaitGroup
}

// Close ends the tunnel with its connections.
func (t *Tunnel) Close() error {
	t.stop()
	err := t.listener.Close()
	t.work.Wait()
	return err
}

// loopback is all that tunnels listen on, at either end.
var loopback = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Forward listens on a port of this machine's loopback (a free one where
// localPort is 0) and leads to a port of a sandbox's own. The sandbox must be
// ours; it need not run yet: each connection waits up to patience until the
// port answers. Nothing is reached before somebody connects.
func (m *Manager) Forward(ctx context.Context, prior Prior, port, localPort int, patience time.Duration) (*Tunnel, error) {
	s, err := m.read(ctx, prior, true)
	if err != nil {
		return nil, err
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", netip.AddrPortFrom(loopback, uint16(localPort)).String())
	if err != nil {
		return nil, &Error{Op: "forward", Ref: s.Ref, What: fmt.Sprintf("listen on port %d of this machine", localPort), Err: err,
			Remedy: "choose another local_port, or leave it out to be given a free one"}
	}
	inside := net.JoinHostPort(loopback.String(), strconv.Itoa(port))
	return m.tunnel(ctx, listener, s.Ref, func(ctx context.Context) (net.Conn, error) {
		limited, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		for pause := 50 * time.Millisecond; ; pause = min(2*pause, time.Second) {
			conn, err := m.dialInside(limited, prior, inside)
			if err == nil || limited.Err() != nil {
				return conn, err
			}
			if m.clock.Sleep(limited, pause) != nil {
				return nil, err // which says more than that time ran out
			}
		}
	})
}

func (m *Manager) dialInside(ctx context.Context, prior Prior, address string) (net.Conn, error) {
	_, t, err := m.enter(ctx, prior)
	if err != nil {
		return nil, err
	}
	return m.guests.DialInside(ctx, t, address)
}

// ReverseForward listens on a port of a sandbox's loopback (a free one where
// port is 0) and leads to an address that this machine reaches. The sandbox must
// run. Nothing outside of it can use the port.
func (m *Manager) ReverseForward(ctx context.Context, prior Prior, port int, to string) (*Tunnel, error) {
	s, t, err := m.enter(ctx, prior)
	if err != nil {
		return nil, err
	}
	if _, err := m.await(ctx, s, &t); err != nil {
		return nil, err
	}
	listener, err := m.guests.ListenInside(ctx, t, port)
	if err != nil {
		return nil, &Error{Op: "forward", Ref: s.Ref, What: "listen in it", Err: err}
	}
	return m.tunnel(ctx, listener, s.Ref, func(ctx context.Context) (net.Conn, error) {
		return (&net.Dialer{Timeout: 10 * time.Second}).DialContext(ctx, "tcp", to)
	})
}

// tunnel serves a listener. It lives beyond the call that made it, so that only its Close ends it.
func (m *Manager) tunnel(ctx context.Context, listener net.Listener, ref Ref, dial func(context.Context) (net.Conn, error)) (*Tunnel, error) {
	address, err := netip.ParseAddrPort(listener.Addr().String())
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	t := &Tunnel{Address: address, listener: listener}
	ctx, t.stop = context.WithCancel(context.WithoutCancel(ctx))
	t.work.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				if ctx.Err() == nil {
					m.log.WarnContext(ctx, "a tunnel ended", "vmid", ref.VMID, "listened", address.String(), "cause", err)
				}
				return
			}
			t.work.Go(func() {
				other, err := dial(ctx)
				if err != nil {
					m.log.WarnContext(ctx, "a tunnel's connection leads nowhere", "vmid", ref.VMID, "listens", address.String(), "cause", err)
					_ = conn.Close()
					return
				}
				guest.Join(ctx, conn, other)
			})
		}
	})
	return t, nil
}
