package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"golang.org/x/crypto/ssh"
)

// Reach is what became of an attempt to open a TCP connection.
type Reach int

// What an attempt can come to.
const (
	ReachUnknown Reach = iota // it couldn't be tried, see the error
	ReachOpen                 // the connection was opened
	ReachRefused              // somebody answered with a refusal: the target, or a filter that rejects
	ReachSilent               // no answer in time
)

func (r Reach) String() string {
	return map[Reach]string{ReachUnknown: "unknown", ReachOpen: "open", ReachRefused: "refused", ReachSilent: "no answer"}[r]
}

// ReachFrom tries to open a TCP connection to address ("10.0.0.5:443") from inside
// a guest, by its sshd (direct-tcpip). The context bounds it. The connection is
// closed at once and nothing is sent over it. An error goes with ReachUnknown: the
// guest can't be entered, or its sshd forwards nothing.
func (p *Pool) ReachFrom(ctx context.Context, target Target, address string) (Reach, error) {
	c, at, err := p.connect(ctx, target)
	if err != nil {
		return ReachUnknown, err
	}
	if at != nil {
		p.noteHostKey(target, c.hostKey)
	}
	conn, err := c.client.DialContext(ctx, "tcp", address)
	return outcome(ctx, conn, err)
}

// ReachFromHere tries to open a TCP connection from where guests are reached from:
// this machine and the jump host, if there is one, at the same time. It is open if
// it is from one of them; else what the jump host found counts.
func (p *Pool) ReachFromHere(ctx context.Context, address string) (Reach, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type finding struct {
		reach Reach
		err   error
	}
	direct := func() finding {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", address)
		reach, err := outcome(ctx, conn, err)
		return finding{reach, err}
	}
	if p.jump == nil {
		f := direct()
		return f.reach, f.err
	}
	here := make(chan finding, 1)
	go func() { here <- direct() }()
	there := make(chan finding, 1)
	go func() {
		conn, err := p.dialThrough(ctx, address)
		reach, err := outcome(ctx, conn, err)
		there <- finding{reach, err}
	}()
	select {
	case f := <-here:
		if f.reach == ReachOpen {
			return f.reach, f.err
		}
		f = <-there
		return f.reach, f.err
	case f := <-there:
		if f.reach == ReachOpen {
			return f.reach, f.err
		}
		if f := <-here; f.reach == ReachOpen {
			return f.reach, f.err
		}
		return f.reach, f.err
	}
}

// outcome closes the connection and says what was learnt.
func outcome(ctx context.Context, conn net.Conn, err error) (Reach, error) {
	var rejected *ssh.OpenChannelError
	var timeout net.Error
	switch {
	case err == nil:
		_ = conn.Close()
		return ReachOpen, nil
	case errors.As(err, &rejected) && rejected.Reason != ssh.ConnectionFailed:
		return ReachUnknown, fmt.Errorf("the SSH server forwards no connections (AllowTcpForwarding): %w", err)
	case errors.As(err, &rejected):
		if strings.Contains(strings.ToLower(rejected.Message), "refused") {
			return ReachRefused, nil
		}
		return ReachSilent, nil
	case errors.Is(err, syscall.ECONNREFUSED):
		return ReachRefused, nil
	case ctx.Err() != nil, errors.As(err, &timeout) && timeout.Timeout(), errors.Is(err, syscall.EHOSTUNREACH), errors.Is(err, syscall.ENETUNREACH):
		return ReachSilent, nil //nolint:nilerr // that nothing answers is the finding
	}
	return ReachUnknown, err
}
