//go:build unix

package guest

import (
	"errors"
	"net"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"
	"golang.org/x/crypto/ssh/agent"
)

// serveAgent puts an SSH agent at the path that SSH_AUTH_SOCK names.
func serveAgent(t *testing.T, path string, keys ...any) (stop func()) {
	t.Helper()
	ring := agent.NewKeyring()
	for _, key := range keys {
		if err := ring.Add(agent.AddedKey{PrivateKey: key}); err != nil {
			t.Fatal(err)
		}
	}
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				go func() { <-done; _ = c.Close() }()
				_ = agent.ServeAgent(ring, c)
			}()
		}
	}()
	return func() { close(done); _ = listener.Close() }
}

// Not parallel: an agent is found by the environment of the process.
func TestAnAgentsKeysAreUsed(t *testing.T) {
	pemKey, public := newKey(t)
	key, err := ssh.ParseRawPrivateKey([]byte(pemKey))
	if err != nil {
		t.Fatal(err)
	}
	socket := filepath.Join(t.TempDir(), "agent")
	t.Setenv("SSH_AUTH_SOCK", socket)
	s := startServer(t, public)
	p := newTestPool(t, Config{Auth: Auth{Agent: true}})

	if _, err := p.WaitReady(t.Context(), s.target("1")); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "SSH_AUTH_SOCK") {
		t.Errorf("without an agent: %v", err)
	}
	stop := serveAgent(t, socket)
	if _, err := p.WaitReady(t.Context(), s.target("1")); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "ssh-add") {
		t.Errorf("with an empty agent: %v", err)
	}
	stop()
	stop = serveAgent(t, socket, key)
	if _, err := p.WaitReady(t.Context(), s.target("1")); err != nil {
		t.Errorf("with the key: %v", err)
	}
	if keys, err := p.AuthorizedKeys(); err != nil || len(keys) != 1 || keys[0] != formatHostKey(public) {
		t.Errorf("public keys %q, %v", keys, err)
	}
	stop()
	serveAgent(t, socket, key) // restarted meanwhile
	p.Disconnect(s.target("1"))
	if _, err := p.WaitReady(t.Context(), s.target("1")); err != nil {
		t.Errorf("with a new agent: %v", err)
	}
	t.Setenv("SSH_AUTH_SOCK", "")
	if _, err := newTestPool(t, Config{Auth: Auth{Agent: true}}).AuthorizedKeys(); !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "not set") {
		t.Errorf("without the variable: %v", err)
	}
}
