package guest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"

	"golang.org/x/crypto/ssh"
)

// Pool reaches guests: one pooled connection per guest, one shared connection
// to the jump host, a bounded number of dials at a time. Safe for concurrent use.
type Pool struct {
	cfg      Config
	identity *identity
	jump     *jumpHost // nil when guests are reached directly
	keys     *hostKeys
	dials    chan struct{} // bounds connections being made

	mu       sync.Mutex
	slots    map[string]*pooled
	closed   bool
	warnings []Warning
	warned   map[Warning]bool
}

// pooled is the slot of a guest, with the coordinates that it was made for.
type pooled struct {
	*slot
	address string
	hostKey string
}

// NewPool checks the configuration, reads the private keys and returns a pool.
// It contacts nobody. Close it when the run ends.
func NewPool(cfg Config) (*Pool, error) {
	cfg = cfg.withDefaults()
	if cfg.Port < 1 || cfg.Port > 65535 {
		return nil, fmt.Errorf("%s.port: %d is not a TCP port (1-65535)", cfg.Setting, cfg.Port)
	}
	id, warnings, err := loadIdentity(cfg.Auth, cfg.Setting)
	if err != nil {
		return nil, err
	}
	p := &Pool{
		cfg: cfg, identity: id, keys: newHostKeys(), dials: make(chan struct{}, cfg.Timing.Dials),
		slots: map[string]*pooled{}, warned: map[Warning]bool{},
	}
	if cfg.ProxyJump != nil {
		jumpID := id
		if cfg.ProxyJump.Auth != cfg.Auth {
			var more []Warning
			if jumpID, more, err = loadIdentity(cfg.ProxyJump.Auth, cfg.Setting+".proxy_jump"); err != nil {
				return nil, err
			}
			warnings = append(warnings, more...)
		}
		if p.jump, err = newJumpHost(*cfg.ProxyJump, jumpID); err != nil {
			return nil, err
		}
	}
	for _, w := range warnings {
		p.warn(w)
	}
	return p, nil
}

// AuthorizedKeys returns our public keys in authorized_keys format: what a
// guest must hold for us to log in. One line, or one for each key of an agent.
// The error is ErrNoKey (wrapped) where no key is configured.
func (p *Pool) AuthorizedKeys() ([]string, error) {
	keys, err := p.identity.offered()
	if err != nil {
		return nil, err
	}
	lines := make([]string, len(keys))
	for i, key := range keys {
		lines[i] = formatHostKey(key)
	}
	return lines, nil
}

// TakeWarnings returns what the user should hear and hasn't been given yet;
// each warning is returned once in the life of the pool.
func (p *Pool) TakeWarnings() []Warning {
	p.mu.Lock()
	defer p.mu.Unlock()
	taken := p.warnings
	p.warnings = nil
	return taken
}

func (p *Pool) warn(w Warning) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.warned[w] {
		p.warned[w] = true
		p.warnings = append(p.warnings, w)
	}
}

// NoteHostKey tells the pool of a host key that is known from elsewhere (state)
// without contact, so that keys shared by two guests are found. It returns the
// other guests that have the same key, which are also in TakeWarnings. A target
// without a host key is left alone.
func (p *Pool) NoteHostKey(target Target) []SharedHostKey {
	if target.HostKey == "" {
		return nil
	}
	key, err := parseHostKey(target.HostKey)
	if err != nil {
		return nil // told when the target is used
	}
	return p.noteHostKey(target, key)
}

func (p *Pool) noteHostKey(target Target, key ssh.PublicKey) []SharedHostKey {
	shared := p.keys.note(target, key)
	for _, s := range shared {
		p.warn(s.Warning())
	}
	return shared
}

// Disconnect drops the pooled connection: the guest was stopped, restarted or
// rolled back. Its pinned host key stays.
func (p *Pool) Disconnect(target Target) {
	p.mu.Lock()
	s := p.slots[target.key()]
	p.mu.Unlock()
	if s != nil {
		s.drop(nil)
	}
}

// Forget drops the connection and what is known of the host key: the guest was
// destroyed, and its id may soon be another's.
func (p *Pool) Forget(target Target) {
	p.mu.Lock()
	s := p.slots[target.key()]
	delete(p.slots, target.key())
	p.mu.Unlock()
	if s != nil {
		s.close()
	}
	p.keys.forget(target)
}

// Close ends every connection, also those in use. Later calls of the pool fail
// with ErrClosed.
func (p *Pool) Close() error {
	p.mu.Lock()
	p.closed = true
	slots := p.slots
	p.slots = map[string]*pooled{}
	p.mu.Unlock()
	for _, s := range slots {
		s.close()
	}
	p.identity.close()
	if p.jump != nil {
		p.jump.slot.close()
		p.jump.identity.close()
	}
	return nil
}

// slotOf returns the slot of a target, a new one when its address, port or
// pinned key are not those of the pooled connection.
func (p *Pool) slotOf(target Target) (*pooled, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	id, address := target.key(), target.address(p.cfg.Port)
	s := p.slots[id]
	if s != nil && s.address == address {
		if s.hostKey == target.HostKey || target.HostKey == "" {
			return s, nil
		}
		// First contact was without a key, now the caller holds the one that
		// was pinned then: still the same connection.
		if key, err := parseHostKey(target.HostKey); err == nil {
			s.mu.Lock()
			same := s.conn == nil || string(s.conn.hostKey.Marshal()) == string(key.Marshal())
			s.mu.Unlock()
			if same {
				s.hostKey = target.HostKey
				return s, nil
			}
		}
	}
	if s != nil {
		s.close()
	}
	s = &pooled{slot: newSlot(), address: address, hostKey: target.HostKey}
	p.slots[id] = s
	return s, nil
}

// connect returns a logged-in connection to target: the pooled one, or a new
// one after a single climb. The error is a *NotReady, *JumpError or the
// configuration's; the attempt is that of a new connection, else nil.
func (p *Pool) connect(ctx context.Context, target Target) (c *conn, at *attempt, err error) {
	if err := target.validate(); err != nil {
		return nil, nil, err
	}
	s, err := p.slotOf(target)
	if err != nil {
		return nil, nil, err
	}
	c, _, err = s.get(ctx, func(ctx context.Context) (*conn, error) {
		if p.jump != nil { // first, as its login has a time of its own
			if _, _, err := p.connectJump(ctx); err != nil {
				return nil, err
			}
		}
		select {
		case p.dials <- struct{}{}:
			defer func() { <-p.dials }()
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
		h := hop{name: target.String(), user: p.cfg.Username, identity: p.identity, pinned: p.keys.expected(target)}
		var c *conn
		var err error
		c, at, err = climb(ctx, h, p.cfg.Timing, func(ctx context.Context) (net.Conn, error) { return p.dial(ctx, s.address) })
		return c, p.notReady(target, at, err)
	})
	if err != nil {
		return nil, at, err
	}
	return c, at, nil
}

// DialGuest opens a TCP connection to an address of a guest ("10.0.0.5:22"), over the jump host where there is one.
func (p *Pool) DialGuest(ctx context.Context, address string) (net.Conn, error) {
	return p.dial(ctx, address)
}

func (p *Pool) dial(ctx context.Context, address string) (net.Conn, error) {
	if p.jump != nil {
		return p.dialThrough(ctx, address)
	}
	return new(net.Dialer).DialContext(ctx, "tcp", address)
}

// notReady wraps what stopped a climb; errors that aren't the guest's stay as
// they are.
func (p *Pool) notReady(target Target, at *attempt, err error) error {
	var jump *JumpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &jump), errors.Is(err, ErrNoKey), errors.Is(err, ErrClosed):
		return err
	}
	return p.newNotReady(target, at.missing(), err)
}

func (p *Pool) newNotReady(target Target, rung Rung, cause error) *NotReady {
	e := &NotReady{Target: target, Rung: rung, Address: target.address(p.cfg.Port), Cause: cause, Attempts: 1, plain: p.cfg.Setting != defaultSetting}
	if p.jump != nil {
		e.Through = p.jump.address()
	}
	return e
}

// session opens a session on target's connection. A pooled connection that
// turns out dead is replaced, as nothing was sent over it.
func (p *Pool) session(ctx context.Context, target Target) (*ssh.Session, *conn, func(), error) {
	for tries := 0; ; tries++ {
		c, at, err := p.connect(ctx, target)
		if err != nil {
			return nil, nil, nil, err
		}
		if at != nil {
			p.noteHostKey(target, c.hostKey)
		}
		s, release, err := c.session(ctx)
		if err == nil {
			return s, c, release, nil
		}
		if !errors.Is(err, errDead) {
			return nil, nil, nil, fmt.Errorf("no session could be opened in %s: %w", target, err)
		}
		p.Disconnect(target)
		if at != nil || tries >= 2 { // it was new, and died at once
			return nil, nil, nil, p.newNotReady(target, 0, errors.New("it broke before anything was sent"))
		}
	}
}

// SourceAddress returns the address that the guest sees us come from: ours, or
// that of the jump host. It is what management_cidrs must hold.
func (p *Pool) SourceAddress(ctx context.Context, target Target) (string, error) {
	// sshd sets the variable: "client-address client-port address port".
	res, err := p.Exec(ctx, target, Command{Script: `printf %s "$SSH_CONNECTION"`})
	if err != nil {
		return "", err
	}
	fields := strings.Fields(string(res.Stdout))
	if len(fields) == 0 || net.ParseIP(fields[0]) == nil {
		return "", fmt.Errorf("%s doesn't say where our connection comes from (SSH_CONNECTION is %q)", target, res.Stdout)
	}
	return fields[0], nil
}
