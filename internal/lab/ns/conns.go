//go:build linux

package ns

import (
	"net"
	"sync"
)

// conns are the connections to guests that are open. A guest that goes down can't end them itself, as its network goes too.
type conns struct {
	mu   sync.Mutex
	open map[int]map[*conn]bool
}

// conn is a connection to a guest.
type conn struct {
	*net.TCPConn
	of    *conns
	guest int
}

func (c *conns) add(guest int, tcp *net.TCPConn) *conn {
	n := &conn{TCPConn: tcp, of: c, guest: guest}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == nil {
		c.open = map[int]map[*conn]bool{}
	}
	if c.open[guest] == nil {
		c.open[guest] = map[*conn]bool{}
	}
	c.open[guest][n] = true
	return n
}

// Close closes the connection.
func (c *conn) Close() error {
	c.of.mu.Lock()
	delete(c.of.open[c.guest], c)
	c.of.mu.Unlock()
	return c.TCPConn.Close()
}

// cut ends a guest's connections: whoever reads from one sees its end at once.
func (c *conns) cut(guest int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := range c.open[guest] {
		_ = n.TCPConn.Close()
	}
	delete(c.open, guest)
}

func (c *conns) cutAll() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, all := range c.open {
		for n := range all {
			_ = n.TCPConn.Close()
		}
	}
	c.open = nil
}
