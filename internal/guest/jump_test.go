package guest

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// behindJump is a guest at an address that only its jump host knows.
func behindJump(t *testing.T) (guest, jump *server, target Target, cfg Config) {
	t.Helper()
	pemKey, public := newKey(t)
	guest = startServer(t, public)
	jump = startServer(t, public, func(s *server) {
		s.forward = func(address string) (string, error) {
			if address != "10.77.0.11:22" {
				return "", errors.New("No route to host")
			}
			return guest.address(), nil
		}
	})
	target = Target{ID: "101", Name: "box", Address: "10.77.0.11"}
	at := jump.target("")
	return guest, jump, target, Config{Auth: Auth{PrivateKey: pemKey}, ProxyJump: &ProxyJump{Host: at.Address, Port: at.Port}}
}

func TestGuestsBehindAJumpHostShareOneConnectionToIt(t *testing.T) {
	t.Parallel()
	guest, jump, target, cfg := behindJump(t)
	p := newTestPool(t, cfg)
	var wg sync.WaitGroup
	for _, id := range []string{"101", "102", "103", "104"} {
		target := target
		target.ID = id
		wg.Go(func() {
			if _, err := p.WaitReady(t.Context(), target); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if guest.logins.Load() != 4 || jump.logins.Load() != 1 {
		t.Errorf("%d logins at the guest, %d at the jump host", guest.logins.Load(), jump.logins.Load())
	}
}

func TestAJumpHostWithoutAKnownKeyIsPinnedAndReported(t *testing.T) {
	t.Parallel()
	_, jump, target, cfg := behindJump(t)
	p := newTestPool(t, cfg)
	if _, err := p.WaitReady(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	w := p.TakeWarnings()
	if len(w) != 1 || !strings.Contains(w[0].Detail, formatHostKey(jump.hostKey.PublicKey())) || !strings.Contains(w[0].Detail, "guest_ssh.proxy_jump.host_key") {
		t.Errorf("warnings %+v", w)
	}
	jump.newHostKey()
	jump.cut()
	p.Disconnect(target)
	_, err := p.WaitReady(t.Context(), target)
	var changed *HostKeyChanged
	if !errors.As(err, &changed) || !changed.Jump {
		t.Errorf("another key in the same run: %v", err)
	}
}

func TestAJumpHostWithTheRightKeyIsNoWarning(t *testing.T) {
	t.Parallel()
	_, jump, target, cfg := behindJump(t)
	cfg.ProxyJump.HostKey = formatHostKey(jump.hostKey.PublicKey())
	p := newTestPool(t, cfg)
	if _, err := p.WaitReady(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	if w := p.TakeWarnings(); len(w) != 0 {
		t.Errorf("warnings %+v", w)
	}
}

func TestWhatIsWrongWithTheJumpHostIsToldAsSuch(t *testing.T) {
	t.Parallel()
	otherPEM, otherKey := newKey(t)
	for name, tc := range map[string]struct {
		change func(jump *server, cfg *Config)
		want   []string
	}{
		"unreachable": {func(jump *server, _ *Config) { jump.stop() }, []string{"no sandbox behind it was tried", "host, port"}},
		"another host key": {func(_ *server, cfg *Config) { cfg.ProxyJump.HostKey = formatHostKey(otherKey) },
			[]string{"guest_ssh.proxy_jump.host_key", ssh.FingerprintSHA256(otherKey)}},
		"our key refused": {func(_ *server, cfg *Config) { cfg.ProxyJump.Auth.PrivateKey = otherPEM },
			[]string{ssh.FingerprintSHA256(otherKey), "on the jump host", "guest_ssh.proxy_jump"}},
		"forwarding prohibited": {func(jump *server, _ *Config) { jump.forward = nil }, []string{"AllowTcpForwarding"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, jump, target, cfg := behindJump(t)
			tc.change(jump, &cfg)
			p := newTestPool(t, cfg)
			_, err := p.WaitReady(t.Context(), target)
			var jumpError *JumpError
			if !errors.As(err, &jumpError) {
				t.Fatalf("got %v", err)
			}
			for _, want := range append(tc.want, jump.address()) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

func TestAGuestThatTheJumpHostCannotReachIsNotReady(t *testing.T) {
	t.Parallel()
	_, jump, target, cfg := behindJump(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var tries atomic.Int32
	jump.forward = func(string) (string, error) {
		if tries.Add(1) == 3 {
			cancel()
		}
		return "", errors.New("No route to host")
	}
	p := newTestPool(t, cfg)
	_, err := p.WaitReady(ctx, target)
	var notReady *NotReady
	if !errors.As(err, &notReady) || notReady.Rung != RungTCP || notReady.Through != jump.address() || !strings.Contains(err.Error(), "No route to host") {
		t.Errorf("got %v", err)
	}
}

func TestALostJumpHostIsDialledAgain(t *testing.T) {
	t.Parallel()
	_, jump, target, cfg := behindJump(t)
	p := newTestPool(t, cfg)
	for i := range 3 {
		if _, err := p.WaitReady(t.Context(), target); err != nil {
			t.Fatalf("round %d: %v", i, err)
		}
		jump.cut()
		p.Disconnect(target)
	}
	if jump.logins.Load() != 3 {
		t.Errorf("%d logins at the jump host", jump.logins.Load())
	}
}

func TestAJumpHostThatIsAwayForAMomentIsWaitedFor(t *testing.T) {
	t.Parallel()
	_, jump, target, cfg := behindJump(t)
	address := jump.address()
	jump.stop()
	cfg.Timing = quick
	cfg.Timing.JumpGrace = time.Minute
	p := newTestPool(t, cfg)
	done := make(chan error)
	go func() {
		_, err := p.WaitReady(t.Context(), target)
		done <- err
	}()
	early, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := early.Accept()
	if err != nil {
		t.Fatal(err)
	}
	_, _ = raw.Close(), early.Close()
	jump.listen(address)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestTheJumpHostsSettingsAreChecked(t *testing.T) {
	t.Parallel()
	for name, jump := range map[string]ProxyJump{
		"host":     {},
		"port":     {Host: "a", Port: 70000},
		"host_key": {Host: "a", HostKey: "SHA256:abc"},
	} {
		if _, err := NewPool(Config{ProxyJump: &jump}); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

func TestOneCallersEndIsNotAnothers(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			if i%2 == 0 {
				_, _ = p.WaitReady(ctx, s.target("1"))
				return
			}
			if _, err := p.WaitReady(t.Context(), s.target("1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
