package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strconv"

	"golang.org/x/crypto/ssh"
)

// jumpHost is the one connection through which all guests are dialled.
type jumpHost struct {
	cfg      ProxyJump
	identity *identity
	pinned   ssh.PublicKey // from the configuration; nil pins at first contact
	slot     *slot
}

func newJumpHost(cfg ProxyJump, id *identity) (*jumpHost, error) {
	j := &jumpHost{cfg: cfg, identity: id, slot: newSlot()}
	if cfg.Host == "" {
		return nil, errors.New("guest_ssh.proxy_jump needs a host")
	}
	if cfg.Port < 1 || cfg.Port > 65535 {
		return nil, fmt.Errorf("guest_ssh.proxy_jump.port: %d is not a TCP port (1-65535)", cfg.Port)
	}
	if cfg.HostKey != "" {
		key, err := parseHostKey(cfg.HostKey)
		if err != nil {
			return nil, fmt.Errorf("guest_ssh.proxy_jump.host_key is not a public key in authorized_keys format (\"ssh-ed25519 AAAA…\"): %w", err)
		}
		j.pinned = key
	}
	return j, nil
}

func (j *jumpHost) address() string {
	return net.JoinHostPort(j.cfg.Host, strconv.Itoa(j.cfg.Port))
}

// connect returns the shared connection to the jump host.
func (p *Pool) connectJump(ctx context.Context) (*conn, bool, error) {
	j := p.jump
	return j.slot.get(ctx, func(ctx context.Context) (*conn, error) {
		h := hop{name: j.address(), jump: true, user: j.cfg.Username, identity: j.identity, pinned: j.pinned}
		if h.pinned == nil {
			h.pinned = p.keys.expected(jumpTarget(j))
		}
		c, at, err := climb(ctx, h, p.cfg.Timing, func(ctx context.Context) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", j.address())
		})
		if errors.Is(err, ErrNoKey) {
			return nil, err
		}
		if err != nil {
			var changed *HostKeyChanged
			var refused *AuthRefused
			final := errors.As(err, &changed) || errors.As(err, &refused)
			return nil, &JumpError{Host: j.address(), Rung: at.missing(), Cause: err, Final: final}
		}
		if h.pinned == nil {
			p.warn(Warning{
				Summary: "Host key of the jump host isn't pinned",
				Detail: fmt.Sprintf("The key that %s showed at first contact is trusted for this run. To have it checked from the start, set guest_ssh.proxy_jump.host_key to %q, "+
					"after a comparison with the fingerprint %s on the host's console (ssh-keygen -lf).", j.address(), formatHostKey(c.hostKey), ssh.FingerprintSHA256(c.hostKey)),
			})
		}
		p.keys.note(jumpTarget(j), c.hostKey)
		return c, nil
	})
}

// jumpTarget is what the jump host's key is remembered by; no guest's id can
// be equal to it.
func jumpTarget(j *jumpHost) Target {
	return Target{ID: "jump host " + j.address(), Name: "jump host " + j.address()}
}

// dialThrough connects to a guest from the jump host. A *JumpError means that
// the guest wasn't tried.
func (p *Pool) dialThrough(ctx context.Context, address string) (net.Conn, error) {
	for {
		c, reused, err := p.connectJump(ctx)
		if err != nil {
			return nil, err
		}
		raw, err := c.client.DialContext(ctx, "tcp", address)
		var rejected *ssh.OpenChannelError
		switch {
		case err == nil:
			return raw, nil
		case ctx.Err() != nil:
			return nil, context.Cause(ctx)
		case errors.As(err, &rejected) && rejected.Reason == ssh.Prohibited:
			return nil, &JumpError{Host: p.jump.address(), Cause: err, Final: true}
		case errors.As(err, &rejected):
			return nil, err // the jump host tried, the guest didn't answer
		}
		p.jump.slot.drop(c)
		if !reused {
			return nil, &JumpError{Host: p.jump.address(), Rung: RungTCP, Cause: fmt.Errorf("the connection broke: %w", err)}
		}
	}
}
