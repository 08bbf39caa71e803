package guest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"
)

// conn is one logged-in connection: kept alive, with a bounded number of
// sessions at a time.
type conn struct {
	client  *ssh.Client
	hostKey ssh.PublicKey
	timing  Timing
	done    chan struct{} // closed when the connection is dead

	shared  bool          // a jump host's, whose users aren't counted
	tokens  chan struct{} // one for each session that may still be opened
	open    atomic.Int32  // sessions open now
	touched atomic.Bool   // a session was opened since the last look
}

func newConn(client *ssh.Client, at *attempt, timing Timing, shared bool) *conn {
	c := &conn{
		client: client, hostKey: at.hostKey, timing: timing, shared: shared,
		done: make(chan struct{}), tokens: make(chan struct{}, timing.Sessions),
	}
	for range timing.Sessions {
		c.tokens <- struct{}{}
	}
	go func() {
		_ = client.Wait() // why it ended is told by whoever was using it
		close(c.done)
	}()
	go c.keepAlive()
	return c
}

func (c *conn) alive() bool {
	select {
	case <-c.done:
		return false
	default:
		return true
	}
}

func (c *conn) close() { _ = c.client.Close() } // an error means that it was closed already

// keepAlive asks for an answer at each interval and closes the connection when
// none comes within another: a stopped guest sends no FIN, and TCP alone would
// take many minutes to notice. A connection that nobody needs any more is
// closed too; a run over hundreds of guests would else hold one to each.
func (c *conn) keepAlive() {
	ticker := time.NewTicker(c.timing.KeepAlive)
	defer ticker.Stop()
	used := time.Now()
	for {
		select {
		case <-c.done:
			return
		case <-ticker.C:
		}
		if c.shared || c.open.Load() > 0 || c.touched.Swap(false) {
			used = time.Now()
		}
		if time.Since(used) >= c.timing.Idle || !c.ping(c.timing.KeepAlive) {
			c.close()
			return
		}
	}
}

// ping says whether the other side still answers.
func (c *conn) ping(within time.Duration) bool {
	answered := make(chan error, 1)
	go func() {
		// Servers refuse the request as unknown; any answer will do.
		_, _, err := c.client.SendRequest("keepalive@openssh.com", true, nil)
		answered <- err
	}()
	timeout := time.NewTimer(within)
	defer timeout.Stop()
	select {
	case err := <-answered:
		return err == nil
	case <-timeout.C:
	case <-c.done:
	}
	return false
}

var (
	errDead = errors.New("the pooled connection is dead")
	// errSessions comes from a server that refuses even a first session.
	errSessions = errors.New("sshd refuses to open a session (MaxSessions 0, or out of resources)")
)

// session opens a session for which nothing was sent yet. errDead means that
// the connection is of no use and nothing has happened. release must be called
// once the session was closed.
func (c *conn) session(ctx context.Context) (s *ssh.Session, release func(), err error) {
	for {
		select {
		case <-c.tokens:
		case <-c.done:
			return nil, nil, errDead
		case <-ctx.Done():
			return nil, nil, context.Cause(ctx)
		}
		c.open.Add(1)
		c.touched.Store(true)
		release = sync.OnceFunc(func() {
			c.open.Add(-1)
			c.tokens <- struct{}{}
		})
		s, err = c.newSession(ctx, release)
		var rejected *ssh.OpenChannelError
		switch {
		case err == nil:
			return s, release, nil
		case !errors.As(err, &rejected):
			return nil, nil, err
		case c.open.Load() <= 1:
			release()
			return nil, nil, fmt.Errorf("%w: %w", errSessions, err)
		}
		// The server allows fewer sessions than we thought: keep the token, so
		// that one less is tried from now on, and wait for another to end.
		c.open.Add(-1)
	}
}

// newSession bounds the opening by ctx and by the probe time, after which the
// connection counts as dead. Unless the server rejected the session, it has
// called release when it fails.
func (c *conn) newSession(ctx context.Context, release func()) (*ssh.Session, error) {
	type opened struct {
		session *ssh.Session
		err     error
	}
	result := make(chan opened, 1)
	go func() {
		s, err := c.client.NewSession()
		result <- opened{s, err}
	}()
	probe := time.NewTimer(c.timing.Probe)
	defer probe.Stop()
	select {
	case r := <-result:
		var rejected *ssh.OpenChannelError
		if r.err != nil && !errors.As(r.err, &rejected) {
			release()
			c.close()
			return nil, errDead
		}
		return r.session, r.err
	case <-probe.C:
		c.close()
		release()
		return nil, errDead
	case <-ctx.Done():
		go func() { // a session that opens after all must not count for ever
			if r := <-result; r.session != nil {
				_ = r.session.Close()
			}
			release()
		}()
		return nil, context.Cause(ctx)
	}
}

// slot holds the one connection to a host and lets a single caller dial it.
type slot struct {
	lock chan struct{} // holds one token

	mu      sync.Mutex
	conn    *conn
	dials   int   // finished so far
	lastErr error // of the latest
	closed  bool
}

func newSlot() *slot {
	s := &slot{lock: make(chan struct{}, 1)}
	s.lock <- struct{}{}
	return s
}

// get returns the pooled connection, or dials one. Callers who waited while
// another's dial failed share its error, so that ten of them don't wait ten
// timeouts in a row.
func (s *slot) get(ctx context.Context, dial func(context.Context) (*conn, error)) (c *conn, reused bool, err error) {
	s.mu.Lock()
	before := s.dials
	s.mu.Unlock()
	select {
	case <-s.lock:
	case <-ctx.Done():
		return nil, false, context.Cause(ctx)
	}
	defer func() { s.lock <- struct{}{} }()

	s.mu.Lock()
	c, dials, lastErr, closed := s.conn, s.dials, s.lastErr, s.closed
	s.mu.Unlock()
	switch {
	case closed:
		return nil, false, ErrClosed
	case c != nil && c.alive():
		return c, true, nil
	case dials != before && lastErr != nil:
		return nil, false, lastErr
	}
	c, err = dial(ctx)

	s.mu.Lock()
	defer s.mu.Unlock()
	s.dials++
	s.conn, s.lastErr = c, err
	if ctx.Err() != nil {
		s.lastErr = nil // the caller's end isn't the host's fault
	}
	if s.closed && c != nil {
		c.close()
		return nil, false, ErrClosed
	}
	return c, false, err
}

// drop closes the connection if it is the given one, or any when c is nil.
func (s *slot) drop(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != nil && (c == nil || s.conn == c) {
		s.conn.close()
		s.conn = nil
	}
}

func (s *slot) close() {
	s.drop(nil)
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
}
