package ns

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// machineCan says once why the tests can't run here.
var machineCan = sync.OnceValue(Check)

func start(t *testing.T, o Options) *Engine {
	t.Helper()
	if err := machineCan(); err != nil {
		t.Skipf("this machine can't run the engine ns: %v", err)
	}
	o.Log = slog.New(slog.NewTextHandler(testWriter{t}, nil))
	e, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.(*Engine)
}

type testWriter struct{ t *testing.T }

func (w testWriter) Write(b []byte) (int, error) {
	w.t.Log(strings.TrimSpace(string(b)))
	return len(b), nil
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func refused(t *testing.T, err, why error) {
	t.Helper()
	if !errors.Is(err, why) {
		t.Fatalf("got %v, want %v", err, why)
	}
}

// config is a guest's with a static address.
func config(id int) engine.Config {
	return engine.Config{Hostname: fmt.Sprintf("g%d", id), NICs: []engine.NIC{{
		Name: "eth0", Bridge: "vmbr0", MAC: fmt.Sprintf("BC:24:11:00:%02X:%02X", id/256, id%256),
		IPv4: fmt.Sprintf("10.77.1.%d/16", id%256), Gateway4: "10.77.0.1",
	}}}
}

// up makes a running guest.
func up(t *testing.T, e *Engine, id int) {
	t.Helper()
	ok(t, e.CreateRoot(t.Context(), id, engine.RootSpec{}))
	ok(t, e.Configure(t.Context(), id, config(id)))
	ok(t, e.Start(t.Context(), id))
}

// sh runs a script in a guest and returns its output; it must succeed.
func sh(t *testing.T, e *Engine, id int, script string) string {
	t.Helper()
	var out, problems bytes.Buffer
	code, err := e.Exec(t.Context(), id, engine.Command{Argv: []string{"sh", "-c", script}, Stdout: &out, Stderr: &problems})
	if err != nil || code != 0 {
		t.Fatalf("%s: exit code %d, %v\n%s%s", script, code, err, out.String(), problems.String())
	}
	return strings.TrimSpace(out.String())
}

func TestAGuestRunsProgramsAsItsOwnRoot(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	for script, want := range map[string]string{
		"id -u":                          "0",
		"hostname":                       "g100",
		"cat /proc/self/uid_map | wc -l": "1",
		"echo $$ >/dev/null; ls /proc | grep -c '^1$'": "1",
		"cat /etc/hostname":                            "g100",
	} {
		if got := sh(t, e, 100, script); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
}

func TestACommandHasItsStreamsAndItsExitCode(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	var out, problems bytes.Buffer
	code, err := e.Exec(t.Context(), 100, engine.Command{
		Argv: []string{"sh", "-c", "cat; echo $WORD; echo bad >&2; exit 42"}, Env: []string{"WORD=hello"},
		Stdin: strings.NewReader("in\n"), Stdout: &out, Stderr: &problems,
	})
	ok(t, err)
	if code != 42 || out.String() != "in\nhello\n" || problems.String() != "bad\n" {
		t.Errorf("exit code %d, %q, %q", code, out.String(), problems.String())
	}
	code, err = e.Exec(t.Context(), 100, engine.Command{Argv: []string{"nosuch"}})
	ok(t, err)
	if code != 127 {
		t.Errorf("a program that isn't there: exit code %d", code)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	_, err = e.Exec(ctx, 100, engine.Command{Argv: []string{"sleep", "60"}})
	refused(t, err, context.DeadlineExceeded)
}

func TestTheNodeReachesAGuestsSSHServerAndNothingElse(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	if banner := banner(t, e, "10.77.1.100:22"); !strings.HasPrefix(banner, "SSH-2.0-OpenSSH") {
		t.Errorf("banner %q", banner)
	}
	_, err := e.Dial(t.Context(), "10.77.1.100:81")
	refused(t, err, syscall.ECONNREFUSED)
	_, err = e.Dial(t.Context(), "10.77.1.101:22")
	refused(t, err, syscall.EHOSTUNREACH)
}

// banner reads what a server says first, waiting for the server to listen.
func banner(t *testing.T, e *Engine, address string) string {
	t.Helper()
	for {
		c, err := e.Dial(t.Context(), address)
		if errors.Is(err, syscall.ECONNREFUSED) {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		ok(t, err)
		defer func() { _ = c.Close() }()
		ok(t, c.SetReadDeadline(time.Now().Add(10*time.Second)))
		b := make([]byte, 100)
		n, err := c.Read(b)
		ok(t, err)
		return string(b[:n])
	}
}

func TestARollbackPutsBackTheRootAndTheVolumesOfASnapshot(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	ok(t, e.AllocVolume(t.Context(), "v", 1<<30))
	ok(t, e.AttachVolume(t.Context(), 100, "v", engine.Mount{Path: "/data/x"}))
	sh(t, e, 100, "echo one >/root/f; echo one >/data/x/f; mkdir /root/d; touch /root/d/old; rm -r /usr/share/git-core; mkdir /usr/share/git-core")
	ok(t, e.Snapshot(t.Context(), 100, "s", "v"))
	sh(t, e, 100, "echo two >/root/f; echo two >/data/x/f; rm -r /root/d; mkdir /root/d")
	refused(t, e.Rollback(t.Context(), 100, "s"), engine.ErrRunning)
	ok(t, e.Stop(t.Context(), 100))
	ok(t, e.Rollback(t.Context(), 100, "s"))
	ok(t, e.Start(t.Context(), 100))
	if got := sh(t, e, 100, "cat /root/f /data/x/f; ls /root/d; ls -A /usr/share/git-core | wc -l; stat -c %u /data/x /root/f"); got != "one\none\nold\n0\n0\n0" {
		t.Errorf("after the rollback: %q", got)
	}
	ok(t, e.DeleteSnapshot(t.Context(), 100, "s"))
	refused(t, e.DeleteSnapshot(t.Context(), 100, "s"), engine.ErrNotFound)
}

func TestAnExportedRootIsImportedWithItsOwners(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	sh(t, e, 100, "echo x >/root/f; chown agent /root/f; ln /root/f /root/g; ln -s f /root/l; chmod 4711 /root/f")
	var archive bytes.Buffer
	ok(t, e.Export(t.Context(), 100, "", &archive))
	ok(t, e.Import(t.Context(), 101, &archive))
	ok(t, e.Configure(t.Context(), 101, config(101)))
	ok(t, e.Start(t.Context(), 101))
	if got := sh(t, e, 101, "stat -c '%U %a %h' /root/f; readlink /root/l"); got != "agent 4711 2\nf" {
		t.Errorf("imported: %q", got)
	}
	_ = io.Discard
}

func TestTheImagesProgramsAreWhatToolsExpect(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	for script, want := range map[string]string{
		"runuser -u agent -- id -un":                                           "agent",
		"setsid true && flock /tmp/l true && echo ok":                          "ok",
		"cd /tmp && git init -q r && git -C r rev-parse --is-inside-work-tree": "true",
		"stat -f -c %T /run; head -c 20M /dev/zero | wc -c":                    "tmpfs\n20971520",
		"ls -l /proc/self/exe | grep -c coreutils/ || true":                    "0",
	} {
		if got := sh(t, e, 100, script); got != want {
			t.Errorf("%s: got %q, want %q", script, got, want)
		}
	}
}
