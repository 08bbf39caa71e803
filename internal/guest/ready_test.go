package guest

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

func TestWaitReadyClimbsAllRungsAndPinsTheHostKey(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	ready, err := p.WaitReady(t.Context(), s.target("101"))
	if err != nil {
		t.Fatal(err)
	}
	if want := formatHostKey(s.hostKey.PublicKey()); ready.HostKey != want || !ready.Pinned {
		t.Errorf("host key %q (pinned now: %v), want %q", ready.HostKey, ready.Pinned, want)
	}
	e := ready.Elapsed
	if e.TCP <= 0 || e.Banner <= 0 || e.HostKey <= 0 || e.Auth <= 0 || e.Total != e.TCP+e.Banner+e.HostKey+e.Auth {
		t.Errorf("elapsed %+v", e)
	}
	if ready.Attempts != 1 {
		t.Errorf("%d attempts", ready.Attempts)
	}
	again, err := p.WaitReady(t.Context(), s.target("101"))
	if err != nil || again.HostKey != ready.HostKey || s.logins.Load() != 1 {
		t.Errorf("the second time: %+v, %v, %d logins", again, err, s.logins.Load())
	}
}

func TestWaitReadyWaitsForAGuestThatIsStillBooting(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	target, address := s.target("101"), s.address()
	s.stop()
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	type outcome struct {
		ready Ready
		err   error
	}
	done := make(chan outcome)
	go func() {
		ready, err := p.WaitReady(t.Context(), target)
		done <- outcome{ready, err}
	}()
	// A listener that hangs up: sshd at its start. Then the real one.
	early, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := early.Accept() // the first attempt has come
	if err != nil {
		t.Fatal(err)
	}
	_ = raw.Close()
	_ = early.Close()
	s.listen(address)
	got := <-done
	if got.err != nil || got.ready.Attempts < 2 {
		t.Errorf("got %+v", got)
	}
}

func TestWaitReadyNamesTheRungThatWasNotReached(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	fingerprint := ssh.FingerprintSHA256(public)
	_, other := newKey(t)
	closed := startServer(t, public)
	closed.stop()
	refusing := startServer(t, other)

	for name, tc := range map[string]struct {
		target func(t *testing.T, seen func()) Target // seen is told of each connection
		until  int                                    // connections after which the wait is ended; 0: it ends itself
		rung   Rung
		want   []string
	}{
		"nothing listens": {func(*testing.T, func()) Target { return closed.target("1") }, 0, RungTCP,
			[]string{"guest_ssh.proxy_jump", "route to the sandboxes' subnet", "Tailscale subnet router", `"box1" (1)`}},
		"no SSH server":   {talker("HTTP/1.1 400 Bad Request\r\n\r\n"), 3, RungBanner, []string{"HTTP/1.1 400", "openssh-server", "guest_ssh.port"}},
		"too many logins": {talker("Exceeded MaxStartups\r\n"), 3, RungBanner, []string{"Exceeded MaxStartups"}},
		"silence":         {talker(""), 1, RungBanner, []string{"openssh-server"}},
		"our key refused": {func(*testing.T, func()) Target { return refusing.target("1") }, 0, RungAuth,
			[]string{fingerprint, "/root/.ssh/authorized_keys", `"root"`, "guest_ssh"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cfg := Config{Auth: Auth{PrivateKey: pemKey}}
			if tc.rung == RungTCP { // nobody is there to count attempts
				cfg.Timeout = 200 * time.Millisecond
			}
			p := newTestPool(t, cfg)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			var connections atomic.Int32
			target := tc.target(t, func() {
				if connections.Add(1) == int32(tc.until) {
					cancel()
				}
			})
			_, err := p.WaitReady(ctx, target)
			var notReady *NotReady
			if !errors.As(err, &notReady) {
				t.Fatalf("got %v", err)
			}
			if notReady.Rung != tc.rung || notReady.Attempts == 0 {
				t.Errorf("rung %s after %d attempts: %v", notReady.Rung, notReady.Attempts, err)
			}
			for _, want := range tc.want {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%q is not in: %v", want, err)
				}
			}
		})
	}
}

// talker is a TCP server that says something else than sshd does; with no
// words it says nothing at all.
func talker(words string) func(*testing.T, func()) Target {
	return func(t *testing.T, seen func()) Target { return talk(t, words, seen) }
}

func talk(t *testing.T, words string, seen func()) Target {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			raw, err := listener.Accept()
			if err != nil {
				return
			}
			if words == "" { // the client's version has come, so it is connected
				_, _ = raw.Read(make([]byte, 1))
			}
			seen()
			if words == "" {
				t.Cleanup(func() { _ = raw.Close() })
				continue
			}
			_, _ = raw.Write([]byte(words))
			_ = raw.Close()
		}
	}()
	address := listener.Addr().(*net.TCPAddr)
	return Target{ID: "9", Name: "talker", Address: "127.0.0.1", Port: address.Port}
}

func TestWaitReadyEndsWithTheContext(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	s.stop()
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.WaitReady(ctx, s.target("1"))
	var notReady *NotReady
	if !errors.Is(err, context.Canceled) || !errors.As(err, &notReady) {
		t.Errorf("got %v", err)
	}
}

func TestWaitReadyForgivesARefusalWhileKeysAreBeingWritten(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	_, other := newKey(t)
	s := startServer(t, other)
	timing := quick
	timing.AuthGrace = time.Minute
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	done := make(chan error)
	go func() {
		_, err := p.WaitReady(t.Context(), s.target("1"))
		done <- err
	}()
	for s.refusals.Load() == 0 {
		runtime.Gosched()
	}
	s.trust(public)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestARefusalWhileBootingIsNotFinal(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	_, other := newKey(t)
	s := startServer(t, other, func(s *server) {
		s.authBanner = "\"System is booting up. Unprivileged users are not permitted to log in yet. See pam_nologin(8).\"\n"
	})
	timing := quick
	timing.AuthGrace = time.Nanosecond
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	done := make(chan error)
	go func() {
		_, err := p.WaitReady(t.Context(), s.target("1"))
		done <- err
	}()
	for s.refusals.Load() < 3 {
		runtime.Gosched()
	}
	s.trust(public)
	if err := <-done; err != nil {
		t.Error(err)
	}
}

func TestAChangedHostKeyIsRefusedAndExplained(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	target := s.target("101")
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	ready, err := p.WaitReady(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	s.newHostKey()

	refused := func(p *Pool, target Target) {
		t.Helper()
		_, err := p.WaitReady(t.Context(), target)
		var changed *HostKeyChanged
		if !errors.As(err, &changed) {
			t.Fatalf("got %v", err)
		}
		for _, want := range []string{changed.Want, changed.Got, "rolled back", "in the middle", "accept", `"box101" (101)`} {
			if !strings.Contains(err.Error(), want) {
				t.Errorf("%q is not in: %v", want, err)
			}
		}
	}
	p.Disconnect(target)
	refused(p, target) // known to this process
	pinned := target
	pinned.HostKey = ready.HostKey
	refused(newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}}), pinned) // known from state

	p.Forget(target)
	if again, err := p.WaitReady(t.Context(), target); err != nil || again.HostKey == ready.HostKey {
		t.Errorf("a guest that was destroyed and made anew: %+v, %v", again, err)
	}
}

func TestAPinnedKeyOfATypeThatTheServerLacksCountsAsChanged(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	target := s.target("1")
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ssh.NewPublicKey(&ecKey.PublicKey)
	if err != nil {
		t.Fatal(err)
	}
	target.HostKey = formatHostKey(other)
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	_, err = p.WaitReady(t.Context(), target)
	var changed *HostKeyChanged
	if !errors.As(err, &changed) || changed.Got != "" {
		t.Errorf("got %v", err)
	}
}

func TestOneHostKeyInTwoGuestsIsAWarningThatNamesBoth(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	a := startServer(t, public)
	b := startServer(t, public, func(s *server) { s.hostKey = a.hostKey })
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	if ready, err := p.WaitReady(t.Context(), a.target("101")); err != nil || len(ready.Shared) != 0 {
		t.Fatalf("the first: %+v, %v", ready, err)
	}
	ready, err := p.WaitReady(t.Context(), b.target("102"))
	if err != nil || len(ready.Shared) != 1 || ready.Shared[0].A.ID != "101" || ready.Shared[0].B.ID != "102" {
		t.Fatalf("the second: %+v, %v", ready.Shared, err)
	}
	warnings := p.TakeWarnings()
	if len(warnings) != 1 || !strings.Contains(warnings[0].Detail, `"box101" (101)`) || !strings.Contains(warnings[0].Detail, `"box102" (102)`) {
		t.Errorf("warnings: %+v", warnings)
	}
	if _, err := p.WaitReady(t.Context(), a.target("101")); err != nil {
		t.Fatal(err)
	}
	if again := p.TakeWarnings(); len(again) != 0 {
		t.Errorf("said twice: %+v", again)
	}
	p.Forget(a.target("101"))
	c := b.target("103")
	c.HostKey = ready.HostKey
	if shared := p.NoteHostKey(c); len(shared) != 1 || shared[0].A.ID != "102" || shared[0].B.ID != "103" {
		t.Errorf("a key known from state: %+v", shared)
	}
}

func TestAGuestIsDialledOnceForManyCallers(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if _, err := p.WaitReady(t.Context(), s.target("1")); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := s.logins.Load(); n != 1 {
		t.Errorf("%d logins", n)
	}
}

func TestAClosedPoolSaysSo(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}})
	if err := p.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := p.WaitReady(t.Context(), s.target("1")); !errors.Is(err, ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestKeysThatCannotBeUsedAreExplainedWithoutShowingThem(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	dir := t.TempDir()
	write := func(name, text string, mode os.FileMode) string {
		t.Helper()
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	encrypted := encryptedKey(t)
	body := strings.Split(pemKey, "\n")[2]
	for name, tc := range map[string]struct {
		auth Auth
		want string
	}{
		"encrypted":      {Auth{PrivateKey: encrypted}, "passphrase"},
		"encrypted file": {Auth{PrivateKeyFile: write("enc", encrypted, 0o600)}, "ssh-add"},
		"public key":     {Auth{PrivateKey: string(ssh.MarshalAuthorizedKey(public))}, "public key"},
		"PuTTY":          {Auth{PrivateKey: "PuTTY-User-Key-File-3: ssh-ed25519\n"}, "puttygen"},
		"not PEM":        {Auth{PrivateKey: body}, "PEM"},
		"cut short":      {Auth{PrivateKey: pemKey[:len(pemKey)-60]}, "private_key"},
		"missing file":   {Auth{PrivateKeyFile: filepath.Join(dir, "none")}, "none"},
		"two of them":    {Auth{PrivateKey: pemKey, Agent: true}, "more than one key"},
	} {
		_, err := NewPool(Config{Auth: tc.auth})
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), body[:20]) {
			t.Errorf("%s: got %v", name, err)
		}
	}

	p := newTestPool(t, Config{Auth: Auth{PrivateKeyFile: write("good", pemKey, 0o600)}})
	if w := p.TakeWarnings(); len(w) != 0 {
		t.Errorf("a file with mode 0600: %+v", w)
	}
	if keys, err := p.AuthorizedKeys(); err != nil || len(keys) != 1 || keys[0] != formatHostKey(public) {
		t.Errorf("public half: %q, %v", keys, err)
	}
	if runtime.GOOS == "windows" {
		return
	}
	p = newTestPool(t, Config{Auth: Auth{PrivateKeyFile: write("open", pemKey, 0o644)}})
	if w := p.TakeWarnings(); len(w) != 1 || !strings.Contains(w[0].Detail, "0644") || !strings.Contains(w[0].Detail, "chmod 600") {
		t.Errorf("a file that others can read: %+v", w)
	}
}

func encryptedKey(t *testing.T) string {
	t.Helper()
	pemKey, _ := newKey(t)
	raw, err := ssh.ParseRawPrivateKey([]byte(pemKey))
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKeyWithPassphrase(raw, "", []byte("secret"))
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(block))
}

func TestWithoutAKeyNothingIsTried(t *testing.T) {
	t.Parallel()
	_, public := newKey(t)
	s := startServer(t, public)
	p := newTestPool(t, Config{})
	_, err := p.WaitReady(t.Context(), s.target("1"))
	if !errors.Is(err, ErrNoKey) || !strings.Contains(err.Error(), "guest_ssh.private_key_file") {
		t.Errorf("got %v", err)
	}
	if _, err := p.AuthorizedKeys(); !errors.Is(err, ErrNoKey) {
		t.Errorf("got %v", err)
	}
}
