package wire

import (
	"net"
	"sync"
	"syscall"
)

// Listener hands out the far ends of connections. It is a net.Listener.
type Listener struct {
	addr    net.Addr
	conns   chan net.Conn
	done    chan struct{}
	once    sync.Once
	onClose func()
}

// Listen makes a listener; onClose may be nil.
func Listen(addr net.Addr, onClose func()) *Listener {
	return &Listener{addr: addr, conns: make(chan net.Conn, 16), done: make(chan struct{}), onClose: onClose}
}

// Offer gives a connection to whoever accepts; ECONNREFUSED when the listener is closed or its queue full.
func (l *Listener) Offer(c net.Conn) error {
	select {
	case <-l.done:
		return syscall.ECONNREFUSED
	default:
	}
	select {
	case l.conns <- c:
		return nil
	case <-l.done:
	default:
	}
	return syscall.ECONNREFUSED
}

// Accept waits for a connection.
func (l *Listener) Accept() (net.Conn, error) {
	select {
	case c := <-l.conns:
		return c, nil
	case <-l.done:
		return nil, net.ErrClosed
	}
}

// Close ends Accept; connections that nobody accepted are closed.
func (l *Listener) Close() error {
	l.once.Do(func() {
		close(l.done)
		if l.onClose != nil {
			l.onClose()
		}
		for {
			select {
			case c := <-l.conns:
				_ = c.Close()
			default:
				return
			}
		}
	})
	return nil
}

// Addr is the address that was listened on.
func (l *Listener) Addr() net.Addr { return l.addr }
