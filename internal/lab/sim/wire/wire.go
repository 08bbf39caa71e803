// Package wire is the network between simulated guests: buffered connections in memory, which cost no port, no file
// descriptor and no goroutine of their own.
package wire

import (
	"io"
	"net"
	"os"
	"sync"
	"syscall"
	"time"
)

// window is how much may be on its way in one direction before a writer waits.
const window = 256 << 10

// Pipe makes the two ends of a connection between two addresses.
func Pipe(a, b net.Addr) (atA, atB *Conn) {
	ab, ba := newHalf(), newHalf()
	return &Conn{in: ba, out: ab, local: a, remote: b}, &Conn{in: ab, out: ba, local: b, remote: a}
}

// Conn is an end of a connection.
type Conn struct {
	in, out       *half
	local, remote net.Addr

	once    sync.Once
	onClose func()
}

// OnClose calls f once when this end is closed. It must be set before the connection is used.
func (c *Conn) OnClose(f func()) { c.onClose = f }

// Read reads what the other end wrote.
func (c *Conn) Read(p []byte) (int, error) { return c.in.read(p) }

// Write sends to the other end.
func (c *Conn) Write(p []byte) (int, error) { return c.out.write(p) }

// CloseWrite says that nothing more will be written.
func (c *Conn) CloseWrite() error {
	c.out.end(nil)
	return nil
}

// Close ends the connection in both directions.
func (c *Conn) Close() error {
	c.out.end(nil)
	c.in.abandon()
	c.once.Do(func() {
		if c.onClose != nil {
			c.onClose()
		}
	})
	return nil
}

// Reset ends the connection as a lost peer does: both ends get ECONNRESET.
func (c *Conn) Reset() {
	c.out.end(syscall.ECONNRESET)
	c.in.end(syscall.ECONNRESET)
	_ = c.Close()
}

// LocalAddr is this end's address.
func (c *Conn) LocalAddr() net.Addr { return c.local }

// RemoteAddr is the other end's address.
func (c *Conn) RemoteAddr() net.Addr { return c.remote }

// SetDeadline sets both deadlines.
func (c *Conn) SetDeadline(t time.Time) error {
	_ = c.SetReadDeadline(t)
	return c.SetWriteDeadline(t)
}

// SetReadDeadline limits reads on the machine's clock, as net.Conn says.
func (c *Conn) SetReadDeadline(t time.Time) error {
	c.in.deadline(&c.in.readBy, t)
	return nil
}

// SetWriteDeadline limits writes.
func (c *Conn) SetWriteDeadline(t time.Time) error {
	c.out.deadline(&c.out.writeBy, t)
	return nil
}

// half is one direction.
type half struct {
	mu              sync.Mutex
	changed         *sync.Cond
	buf             []byte
	ended           bool  // no more writes
	why             error // instead of EOF
	abandoned       bool  // nobody reads
	readBy, writeBy time.Time
}

func newHalf() *half {
	h := &half{}
	h.changed = sync.NewCond(&h.mu)
	return h
}

func (h *half) read(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for {
		switch {
		case h.abandoned:
			return 0, net.ErrClosed
		case passed(h.readBy):
			return 0, os.ErrDeadlineExceeded
		case h.why != nil:
			return 0, h.why
		case len(h.buf) > 0:
			n := copy(p, h.buf)
			if h.buf = h.buf[n:]; len(h.buf) == 0 {
				h.buf = nil
			}
			h.changed.Broadcast()
			return n, nil
		case h.ended:
			return 0, io.EOF
		}
		h.changed.Wait()
	}
}

func (h *half) write(p []byte) (int, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	done := 0
	for {
		switch {
		case h.why != nil:
			return done, h.why
		case h.ended:
			return done, net.ErrClosed
		case h.abandoned:
			return done, syscall.EPIPE
		case passed(h.writeBy):
			return done, os.ErrDeadlineExceeded
		}
		n := min(len(p)-done, window-len(h.buf))
		if n > 0 {
			h.buf = append(h.buf, p[done:done+n]...)
			done += n
			h.changed.Broadcast()
		}
		if done == len(p) {
			return done, nil
		}
		h.changed.Wait()
	}
}

func (h *half) end(why error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ended = true
	if h.why == nil {
		h.why = why
	}
	h.changed.Broadcast()
}

func (h *half) abandon() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.abandoned, h.buf = true, nil
	h.changed.Broadcast()
}

func passed(t time.Time) bool { return !t.IsZero() && !time.Now().Before(t) }

func (h *half) deadline(which *time.Time, t time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*which = t
	h.changed.Broadcast()
	if wait := time.Until(t); !t.IsZero() && wait > 0 {
		time.AfterFunc(wait, func() {
			h.mu.Lock()
			defer h.mu.Unlock()
			h.changed.Broadcast()
		})
	}
}
