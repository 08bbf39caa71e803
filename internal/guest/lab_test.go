package guest_test

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sshnode"
)

// lab is the emulator's simulated guests behind its SSH node: another team's
// idea of what a guest is.
type lab struct {
	engine *sim.Engine
	pool   *guest.Pool
}

func newLab(t *testing.T) *lab {
	t.Helper()
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "")
	if err != nil {
		t.Fatal(err)
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		t.Fatal(err)
	}
	line := strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))

	e, err := sim.New(sim.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	node, err := sshnode.Start(sshnode.Options{Dial: e.Dial, AuthorizedKeys: []string{line}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = node.Close() })
	host, port, err := net.SplitHostPort(node.Address())
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	pool, err := guest.NewPool(guest.Config{
		Auth:      guest.Auth{PrivateKey: string(pem.EncodeToMemory(block))},
		ProxyJump: &guest.ProxyJump{Host: host, Port: n, HostKey: string(ssh.MarshalAuthorizedKey(node.HostKey()))},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	if err := e.CreateRoot(t.Context(), 9000, engine.RootSpec{AuthorizedKeys: []string{line}}); err != nil {
		t.Fatal(err)
	}
	return &lab{engine: e, pool: pool}
}

// start clones a guest, starts it and returns how to reach it.
func (l *lab) start(t *testing.T, id int) guest.Target {
	t.Helper()
	address := fmt.Sprintf("10.77.0.%d", id)
	err := errors.Join(
		l.engine.Clone(t.Context(), engine.CloneSpec{From: 9000, To: id, Linked: true}),
		l.engine.Configure(t.Context(), id, engine.Config{Hostname: fmt.Sprintf("box%d", id), NICs: []engine.NIC{{
			Name: "eth0", Bridge: "vmbr1", MAC: fmt.Sprintf("BC:24:11:00:00:%02X", id), IPv4: address + "/24", Gateway4: "10.77.0.1",
		}}}),
		l.engine.Start(t.Context(), id),
	)
	if err != nil {
		t.Fatal(err)
	}
	return guest.Target{ID: strconv.Itoa(id), Name: fmt.Sprintf("box%d", id), Address: address}
}

func TestALabGuestIsWorkedWithEndToEnd(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	target := l.start(t, 101)
	ready, err := l.pool.WaitReady(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	target.HostKey = ready.HostKey

	t.Run("commands", func(t *testing.T) {
		input := bytes.Repeat([]byte{0, 1, 0xff, '\n'}, 1<<14)
		res, err := l.pool.Exec(t.Context(), target, guest.Command{
			Script: `printf '%s|' "$A" "$@" >&2; cat; exit 9`, Args: []string{"x y", "it's"}, Dir: "/etc",
			Env: map[string]string{"A": "é 'q' \nline"}, Stdin: bytes.NewReader(input),
		})
		if err != nil || res.ExitCode != 9 || string(res.Stderr) != "é 'q' \nline|x y|it's|" || !bytes.Equal(res.Stdout, input) {
			t.Errorf("exit %d, %q, %d bytes, %v", res.ExitCode, res.Stderr, len(res.Stdout), err)
		}
		res, err = l.pool.Exec(t.Context(), target, guest.Command{Path: "hostname"})
		if err != nil || string(res.Stdout) != "box101\n" {
			t.Errorf("got %+v, %v", res, err)
		}
		res, err = l.pool.Exec(t.Context(), target, guest.Command{Path: "no-such-program"})
		if err != nil || res.ExitCode != 127 {
			t.Errorf("a program that isn't there: %+v, %v", res, err)
		}
	})
	t.Run("cancellation", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := l.pool.Exec(ctx, target, guest.Command{Script: "echo started; sleep 600", Stdout: cancelling(cancel)})
		var cancelled *guest.CancelledError
		if !errors.As(err, &cancelled) || !cancelled.Stopped || res.Signal != "TERM" && res.ExitCode != 143 {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("files", func(t *testing.T) {
		for _, content := range []string{"one", "two"} {
			info, err := l.pool.WriteFile(t.Context(), target, guest.File{Path: "/srv/deep/file", Content: strings.NewReader(content), Mode: 0o640, Owner: "root:daemon", MakeDirs: true})
			if err != nil || info.Size != 3 || info.Mode != 0o640 || info.Owner != "root" || info.Group != "daemon" {
				t.Errorf("got %+v, %v", info, err)
			}
		}
		content, err := l.pool.ReadFile(t.Context(), target, "/srv/deep/file", 100)
		if err != nil || string(content) != "two" {
			t.Errorf("got %q, %v", content, err)
		}
		if err := l.pool.Remove(t.Context(), target, "/srv/deep/file"); err != nil {
			t.Error(err)
		}
		if _, err := l.pool.Stat(t.Context(), target, "/srv/deep/file", false); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("got %v", err)
		}
		for path, want := range map[string]bool{"/run/secret": true, "/etc/secret": false} {
			if got, err := l.pool.IsTmpfs(t.Context(), target, path); err != nil || got != want {
				t.Errorf("%s: %v, %v", path, got, err)
			}
		}
	})
	t.Run("authorized keys", func(t *testing.T) {
		keys := []string{ready.HostKey + " somebody"} // any public key will do
		if err := l.pool.SetAuthorizedKeys(t.Context(), target, "root", keys); err != nil {
			t.Fatal(err)
		}
		if got, err := l.pool.AuthorizedKeysOf(t.Context(), target, "root"); err != nil || !slices.Equal(got, keys) {
			t.Errorf("got %q, %v", got, err)
		}
		l.pool.Disconnect(target)
		if _, err := l.pool.WaitReady(t.Context(), target); err != nil {
			t.Errorf("our own key was lost: %v", err)
		}
	})
	t.Run("restart", func(t *testing.T) {
		old, err := l.pool.BootID(t.Context(), target)
		if err != nil {
			t.Fatal(err)
		}
		var restart sync.WaitGroup
		restart.Go(func() {
			if err := l.engine.Reboot(t.Context(), 101); err != nil {
				t.Error(err)
			}
		})
		if _, err := l.pool.WaitReboot(t.Context(), target, old); err != nil {
			t.Error(err)
		}
		restart.Wait()
		if id, err := l.pool.BootID(t.Context(), target); err != nil || id == old {
			t.Errorf("boot id %q, %v", id, err)
		}
	})
}

type cancelling context.CancelFunc

func (c cancelling) Write(p []byte) (int, error) { c(); return len(p), nil }

func TestManyLabGuestsAreReadyAtOnce(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	var wg sync.WaitGroup
	for id := 101; id <= 130; id++ {
		target := l.start(t, id)
		wg.Go(func() {
			if _, err := l.pool.WaitReady(t.Context(), target); err != nil {
				t.Error(err)
				return
			}
			res, err := l.pool.Exec(t.Context(), target, guest.Command{Path: "hostname"})
			if err != nil || strings.TrimSpace(string(res.Stdout)) != target.Name {
				t.Errorf("%s: %+v, %v", target.Name, res, err)
			}
		})
	}
	wg.Wait()
	if w := l.pool.TakeWarnings(); len(w) != 0 {
		t.Errorf("warnings: %+v", w)
	}
}

func TestALabGuestThatIsDestroyedAndMadeAnewHasAnotherHostKey(t *testing.T) {
	t.Parallel()
	l := newLab(t)
	target := l.start(t, 101)
	first, err := l.pool.WaitReady(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(l.engine.Kill(t.Context(), 101), l.engine.Destroy(t.Context(), 101)); err != nil {
		t.Fatal(err)
	}
	l.start(t, 101)
	stale := target
	stale.HostKey = first.HostKey
	_, err = l.pool.WaitReady(t.Context(), stale)
	var changed *guest.HostKeyChanged
	if !errors.As(err, &changed) {
		t.Errorf("under the old name: %v", err)
	}
	l.pool.Forget(target)
	if _, err := l.pool.WaitReady(t.Context(), target); err != nil {
		t.Errorf("as another: %v", err)
	}
}
