package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"time"

	"golang.org/x/crypto/ssh"
)

// hop is one SSH server on the way: a guest or the jump host.
type hop struct {
	name     string // for messages
	jump     bool
	user     string
	identity *identity
	pinned   ssh.PublicKey // nil at first contact
}

// attempt is one climb up the rungs of a hop, over a single connection: a
// server sees no connection that ends before a login, for which OpenSSH 9.8
// and later would penalise our address.
type attempt struct {
	mu      sync.Mutex
	reached map[Rung]time.Time
	hostKey ssh.PublicKey
	first   []byte // first bytes that the server sent
	message string // what it said before or during authentication
}

func (a *attempt) reach(r Rung) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.reached == nil {
		a.reached = map[Rung]time.Time{}
	}
	if a.reached[r].IsZero() {
		a.reached[r] = time.Now()
	}
}

// missing is the first rung not reached.
func (a *attempt) missing() Rung {
	a.mu.Lock()
	defer a.mu.Unlock()
	for r := RungTCP; r <= RungAuth; r++ {
		if a.reached[r].IsZero() {
			return r
		}
	}
	return 0
}

// climb dials and logs in once. On failure the attempt says how far it came.
func climb(ctx context.Context, h hop, timing Timing, dial func(context.Context) (net.Conn, error)) (*conn, *attempt, error) {
	at := &attempt{}
	// Before the network is touched: without a key there is nothing to try.
	signers, err := h.identity.signers()
	if err != nil {
		return nil, at, err
	}
	dialCtx, cancel := context.WithTimeoutCause(ctx, timing.Connect, fmt.Errorf("no answer within %s", timing.Connect))
	defer cancel()
	raw, err := dial(dialCtx)
	if err != nil {
		return nil, at, withCause(dialCtx, err)
	}
	at.reach(RungTCP)

	shakeCtx, cancelShake := context.WithTimeoutCause(ctx, timing.Handshake, fmt.Errorf("no progress within %s", timing.Handshake))
	defer cancelShake()
	// A channel of the jump host knows no deadlines; closing works for all.
	stop := context.AfterFunc(shakeCtx, func() { _ = raw.Close() })
	client, err := handshake(raw, h, signers, at)
	if !stop() && err == nil {
		_ = client.Close()
		err = context.Cause(shakeCtx)
	}
	if err != nil {
		return nil, at, withCause(shakeCtx, at.explain(h, err))
	}
	at.reach(RungAuth)
	return newConn(client, at, timing, h.jump), at, nil
}

// withCause puts the reason for which ctx ended in the place of the closed
// connection that it led to.
func withCause(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	return err
}

func handshake(raw net.Conn, h hop, signers []ssh.Signer, at *attempt) (*ssh.Client, error) {
	cfg := &ssh.ClientConfig{
		User:              h.user,
		Auth:              []ssh.AuthMethod{ssh.PublicKeys(signers...)},
		HostKeyAlgorithms: hostKeyAlgorithms(h.pinned),
		HostKeyCallback: func(_ string, _ net.Addr, key ssh.PublicKey) error {
			if h.pinned != nil && !bytes.Equal(h.pinned.Marshal(), key.Marshal()) {
				return &HostKeyChanged{Name: h.name, Jump: h.jump, Want: ssh.FingerprintSHA256(h.pinned), Got: ssh.FingerprintSHA256(key)}
			}
			at.mu.Lock()
			at.hostKey = key
			at.mu.Unlock()
			at.reach(RungHostKey)
			return nil
		},
		BannerCallback: func(message string) error {
			at.mu.Lock()
			at.message = strings.TrimSpace(message)
			at.mu.Unlock()
			return nil
		},
	}
	c, channels, requests, err := ssh.NewClientConn(&versionWatch{Conn: raw, at: at}, h.name, cfg)
	if err != nil {
		return nil, err
	}
	return ssh.NewClient(c, channels, requests), nil
}

// explain turns the library's error into one of ours where the difference
// matters: a changed host key, a refused login, a server that isn't sshd.
func (a *attempt) explain(h hop, err error) error {
	var changed *HostKeyChanged
	if errors.As(err, &changed) {
		return changed
	}
	var negotiation *ssh.AlgorithmNegotiationError
	if errors.As(err, &negotiation) && negotiation.What == "host key" && h.pinned != nil {
		return &HostKeyChanged{Name: h.name, Jump: h.jump, Want: ssh.FingerprintSHA256(h.pinned)}
	}
	a.mu.Lock()
	first, message := a.first, a.message
	a.mu.Unlock()
	switch a.missing() {
	case RungBanner:
		if len(first) > 0 {
			line, _, _ := bytes.Cut(first, []byte("\n"))
			return fmt.Errorf("it said %q instead of an SSH version: %w", bytes.TrimSpace(line), err)
		}
	case RungAuth:
		if refused(err) {
			return &AuthRefused{
				Username: h.user, Fingerprints: h.identity.fingerprints(), Setting: h.identity.setting, Message: message, Jump: h.jump,
			}
		}
	}
	return err
}

// refused tells a refusal of our keys from a connection that broke meanwhile.
// The library has no type for it; its two texts are held by a test against it.
func refused(err error) bool {
	text := err.Error()
	return strings.Contains(text, "unable to authenticate") || strings.Contains(text, "Too many authentication failures")
}

// versionWatch notes when the server's version line comes, and keeps the first
// bytes of a server that sends something else.
type versionWatch struct {
	net.Conn
	at   *attempt
	done bool
	line []byte
}

// longestGreeting is how far the version line is looked for; RFC 4253 lets a
// server send other lines before it.
const longestGreeting = 4096

func (w *versionWatch) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	if w.done || n == 0 {
		return n, err
	}
	w.line = append(w.line, p[:n]...)
	if bytes.HasPrefix(w.line, []byte("SSH-")) || bytes.Contains(w.line, []byte("\nSSH-")) {
		w.done = true
		w.at.reach(RungBanner)
	} else {
		w.at.mu.Lock()
		w.at.first = w.line
		w.at.mu.Unlock()
		w.done = len(w.line) > longestGreeting
	}
	return n, err
}
