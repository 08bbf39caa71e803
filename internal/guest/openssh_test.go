//go:build unix

package guest

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/rsa"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/crypto/ssh"
)

// openSSH starts the system's own sshd (or that in SANDBOX_SSHD, with its
// sftp-server in SANDBOX_SFTP_SERVER) for the user who runs the tests.
func openSSH(t *testing.T, trusted ssh.PublicKey, settings ...string) (target Target, log *safeBuffer) {
	t.Helper()
	sshd := os.Getenv("SANDBOX_SSHD")
	if sshd == "" {
		for _, path := range []string{"/usr/sbin/sshd", "/usr/local/sbin/sshd", "/usr/bin/sshd"} {
			if _, err := os.Stat(path); err == nil {
				sshd = path
			}
		}
	}
	if sshd == "" {
		t.Skip("no OpenSSH server on this machine; the tests against the in-process server cover the same ground")
	}
	if os.Getuid() == 0 {
		if _, err := user.Lookup("sshd"); err != nil {
			t.Skip("as root, sshd needs a user of that name for its unprivileged part")
		}
		if err := os.MkdirAll("/run/sshd", 0o755); err != nil {
			t.Skip(err)
		}
	}
	sftp := os.Getenv("SANDBOX_SFTP_SERVER")
	if sftp == "" {
		sftp = "internal-sftp"
	}
	dir := t.TempDir()
	write := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	// Two host keys, as a server has: the pinned one must be asked for by type.
	edPEM, _ := newKey(t)
	rsaKey, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	rsaBlock, err := ssh.MarshalPrivateKey(rsaKey, "")
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := listener.Addr().(*net.TCPAddr).Port
	_ = listener.Close()
	lines := append(settings,
		"ListenAddress 127.0.0.1", "Port "+strconv.Itoa(port), "StrictModes no", "UsePAM no", "UseDNS no", "PidFile none", "PermitRootLogin prohibit-password",
		"HostKey "+write("rsa", pem.EncodeToMemory(rsaBlock)), "HostKey "+write("ed25519", []byte(edPEM)),
		"AuthorizedKeysFile "+write("keys", ssh.MarshalAuthorizedKey(trusted)), "Subsystem sftp "+sftp,
	)
	config := write("config", []byte(strings.Join(lines, "\n")+"\n"))
	log = &safeBuffer{}
	cmd := exec.Command(sshd, "-D", "-e", "-f", config)
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log.String())
		}
	})
	return Target{ID: "1", Name: "openssh", Address: "127.0.0.1", Port: port}, log
}

type safeBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *safeBuffer) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(p)
}

func (s *safeBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

func me(t *testing.T) string {
	t.Helper()
	u, err := user.Current()
	if err != nil {
		t.Fatal(err)
	}
	return u.Username
}

func TestOpenSSHIsWorkedWithEndToEnd(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	target, _ := openSSH(t, public, "MaxSessions 3")
	p := newTestPool(t, Config{Username: me(t), Auth: Auth{PrivateKey: pemKey}, Timeout: 30 * time.Second})
	ready, err := p.WaitReady(t.Context(), target)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%+v", ready.Elapsed)
	target.HostKey = ready.HostKey

	t.Run("exec", func(t *testing.T) {
		input := bytes.Repeat([]byte{0, 1, 0xff, '\n'}, 1<<18)
		res, err := p.Exec(t.Context(), target, Command{
			Script: `printf '%s|' "$A" >&2; cat; exit 9`, Env: map[string]string{"A": "é 'q' \n\x81\xff"}, Stdin: bytes.NewReader(input), StdoutLimit: 1 << 21,
		})
		if err != nil || res.ExitCode != 9 || string(res.Stderr) != "é 'q' \n\x81\xff|" || !bytes.Equal(res.Stdout, input) {
			t.Errorf("exit %d, %q, %d bytes, %v", res.ExitCode, res.Stderr, len(res.Stdout), err)
		}
	})
	t.Run("cancel", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		res, err := p.Exec(ctx, target, Command{Script: "echo started; sleep 600 & wait", Stdout: onWrite(cancel)})
		if !errors.Is(err, context.Canceled) || res.Signal != "TERM" {
			t.Errorf("got %+v, %v", res, err)
		}
	})
	t.Run("as another user", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("only root may change the user")
		}
		res, err := p.Exec(t.Context(), target, Command{Script: `id -un; cat; printf %s "$A"`, User: "nobody", Dir: "/", Env: map[string]string{"A": "x\ny"}, Stdin: strings.NewReader("in\n")})
		if err != nil || string(res.Stdout) != "nobody\nin\nx\ny" {
			t.Errorf("got %q %q, %v", res.Stdout, res.Stderr, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		marker := fmt.Sprintf("61%d", os.Getpid())
		res, err = p.Exec(ctx, target, Command{Script: "echo started; sleep " + marker + "; echo not reached", User: "nobody", Dir: "/", Stdout: onWrite(cancel)})
		if !errors.Is(err, context.Canceled) || res.ExitCode != 143 {
			t.Errorf("cancelled: %+v, %v", res, err)
		}
		if out, err := exec.Command("pgrep", "-f", "sleep "+marker).Output(); err == nil {
			t.Errorf("still running: %s", out)
		}
	})
	t.Run("more commands than sessions", func(t *testing.T) {
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				if res, err := p.Exec(t.Context(), target, Command{Script: "exit $1", Args: []string{strconv.Itoa(i)}}); err != nil || res.ExitCode != i {
					t.Errorf("%d: %+v, %v", i, res, err)
				}
			})
		}
		wg.Wait()
	})
	t.Run("files", func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "f")
		for _, content := range []string{"one", "two"} {
			info, err := p.WriteFile(t.Context(), target, File{Path: path, Content: strings.NewReader(content), Mode: 0o640})
			if err != nil || info.Size != 3 || info.Mode != 0o640 || int(info.UID) != os.Getuid() {
				t.Errorf("got %+v, %v", info, err)
			}
		}
		if got, err := p.ReadFile(t.Context(), target, path, 10); err != nil || string(got) != "two" {
			t.Errorf("got %q, %v", got, err)
		}
		if got, err := p.IsTmpfs(t.Context(), target, "/proc"); err != nil || got {
			t.Errorf("/proc: %v, %v", got, err)
		}
		if id, err := p.BootID(t.Context(), target); err != nil || len(id) != 36 {
			t.Errorf("boot id %q, %v", id, err)
		}
	})
	t.Run("source address", func(t *testing.T) {
		if got, err := p.SourceAddress(t.Context(), target); err != nil || got != "127.0.0.1" {
			t.Errorf("got %q, %v", got, err)
		}
	})
}

func TestOpenSSHRefusesAStrangersKey(t *testing.T) {
	t.Parallel()
	_, public := newKey(t)
	pemKey, mine := newKey(t)
	target, _ := openSSH(t, public)
	p := newTestPool(t, Config{Username: me(t), Auth: Auth{PrivateKey: pemKey}, Timeout: 30 * time.Second})
	_, err := p.WaitReady(t.Context(), target)
	var refused *AuthRefused
	if !errors.As(err, &refused) || !strings.Contains(err.Error(), ssh.FingerprintSHA256(mine)) {
		t.Errorf("got %v", err)
	}
}

func TestOpenSSHIsAskedForTheTypeOfThePinnedKey(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	target, _ := openSSH(t, public)
	cfg := Config{Username: me(t), Auth: Auth{PrivateKey: pemKey}, Timeout: 30 * time.Second}
	first := newTestPool(t, cfg)
	if _, err := first.WaitReady(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	rsaKey := ""
	out, err := exec.Command("ssh-keyscan", "-t", "rsa", "-p", strconv.Itoa(target.Port), target.Address).Output()
	if err != nil {
		t.Skipf("ssh-keyscan: %v", err)
	}
	for _, line := range strings.Split(string(out), "\n") {
		if _, key, ok := strings.Cut(line, " "); ok && strings.HasPrefix(key, "ssh-rsa ") {
			rsaKey = key
		}
	}
	target.HostKey = rsaKey
	ready, err := newTestPool(t, cfg).WaitReady(t.Context(), target)
	if err != nil || ready.HostKey != rsaKey || ready.Pinned {
		t.Errorf("got %+v, %v", ready, err)
	}
}

func TestOpenSSHAsJumpHost(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	guest := startServer(t, public)
	jump, _ := openSSH(t, public, "AllowTcpForwarding local")
	strict, _ := openSSH(t, public, "AllowTcpForwarding no")
	cfg := Config{Username: me(t), Auth: Auth{PrivateKey: pemKey}, Timeout: 30 * time.Second, ProxyJump: &ProxyJump{Host: jump.Address, Port: jump.Port}}
	p := newTestPool(t, cfg)
	if _, err := p.WaitReady(t.Context(), guest.target("1")); err != nil {
		t.Error(err)
	}
	cfg.ProxyJump = &ProxyJump{Host: strict.Address, Port: strict.Port}
	cfg.Timing = quick
	cfg.Timing.JumpGrace = 10 * time.Second // its sshd may still be starting
	_, err := newTestPool(t, cfg).WaitReady(t.Context(), guest.target("1"))
	var jumpError *JumpError
	if !errors.As(err, &jumpError) || !strings.Contains(err.Error(), "AllowTcpForwarding") {
		t.Errorf("got %v", err)
	}
	gone := guest.target("1")
	guest.stop()
	cfg.ProxyJump, cfg.Timeout = &ProxyJump{Host: jump.Address, Port: jump.Port}, 500*time.Millisecond
	_, err = newTestPool(t, cfg).WaitReady(t.Context(), gone)
	var notReady *NotReady
	if !errors.As(err, &notReady) || notReady.Rung != RungTCP {
		t.Errorf("a guest that isn't there: %v", err)
	}
}
