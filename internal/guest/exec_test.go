//go:build unix

package guest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"strings"
	"sync"
	"testing"
	"time"
)

// guestAndPool is the usual setup: a guest with a real shell, and a pool.
func guestAndPool(t testing.TB, setUp ...func(*server)) (*server, *Pool, Target) {
	t.Helper()
	pemKey, public := newKey(t)
	s := startServer(t, public, setUp...)
	return s, newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}}), s.target("101")
}

func TestExecReportsExitCodeAndKeepsTheOutputsApart(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	res, err := p.Exec(t.Context(), target, Command{Script: "echo out; echo err >&2; exit 42"})
	if err != nil {
		t.Fatal(err)
	}
	if res.ExitCode != 42 || string(res.Stdout) != "out\n" || string(res.Stderr) != "err\n" || res.Signal != "" || res.Cancelled {
		t.Errorf("got %+v", res)
	}
}

func TestExecRunsProgramsWithArgumentsThatNeedQuoting(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	args := []string{"%s|", "a b", "it's", `"$HOME"`, "line\nline", "", "*", `back\slash`, "-n", "ünïcode"}
	res, err := p.Exec(t.Context(), target, Command{Path: "printf", Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if want := strings.Join(args[1:], "|") + "|"; string(res.Stdout) != want {
		t.Errorf("got %q, want %q (%s)", res.Stdout, want, res.Stderr)
	}
}

func TestExecPassesEveryByteOfAnEnvironmentValue(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	value := make([]byte, 0, 255)
	for b := 1; b < 256; b++ {
		value = append(value, byte(b))
	}
	res, err := p.Exec(t.Context(), target, Command{
		Path: "cat", Args: []string{"/proc/self/environ"}, Env: map[string]string{"ALL": string(value), "END": "newlines\n\n"},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat("/proc/self/environ"); err != nil {
		t.Skip("no /proc on this system")
	}
	for _, want := range []string{"ALL=" + string(value), "END=newlines\n\n"} {
		if !bytes.Contains(res.Stdout, append([]byte(want), 0)) {
			t.Errorf("%q is not in %q", want, res.Stdout)
		}
	}
}

func TestExecKeepsEnvironmentScriptAndInputOutOfTheCommandLine(t *testing.T) {
	t.Parallel()
	const canary = "s3cr3t-canary"
	var mu sync.Mutex
	var lines []string
	_, p, target := guestAndPool(t, func(s *server) {
		s.exec = func(line string, ch *execChannel) {
			mu.Lock()
			lines = append(lines, line)
			mu.Unlock()
			runShell(line, ch)
		}
	})
	res, err := p.Exec(t.Context(), target, Command{
		Script: "# " + canary + "\ncat /proc/$$/cmdline; cat; printf %s \"$TOKEN\"", Env: map[string]string{"TOKEN": canary}, Stdin: strings.NewReader("input"),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := string(res.Stdout); strings.Count(got, canary) != 1 || !strings.HasSuffix(got, "input"+canary) {
		t.Errorf("the guest's own view of the command line, then input and value: %q", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if len(lines) != 1 || strings.Contains(lines[0], canary) || strings.Contains(lines[0], "input") {
		t.Errorf("sshd was given %q", lines)
	}
}

func TestExecGivesTheCommandItsWholeInputAndNothingElse(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	input := make([]byte, 3<<20)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(input)
	for name, cmd := range map[string]Command{
		"program":          {Path: "cat"},
		"script":           {Script: "cat"},
		"with environment": {Path: "cat", Env: map[string]string{"A": "b\nc"}, Dir: "/tmp"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cmd.Stdin, cmd.StdoutLimit = bytes.NewReader(input), len(input)+1
			res, err := p.Exec(t.Context(), target, cmd)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(res.Stdout, input) || res.StdoutTruncated {
				t.Errorf("%d bytes came back of %d, exit %d, %s", len(res.Stdout), len(input), res.ExitCode, res.Stderr)
			}
		})
	}
}

func TestExecWithoutInputGivesTheCommandAnEmptyOne(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	res, err := p.Exec(t.Context(), target, Command{Path: "wc", Args: []string{"-c"}})
	if err != nil {
		t.Fatal(err)
	}
	if strings.TrimSpace(string(res.Stdout)) != "0" {
		t.Errorf("got %q", res.Stdout)
	}
}

func TestExecEndsWhenTheCommandDoesNotReadItsInput(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	endless, w := io.Pipe()
	t.Cleanup(func() { _ = w.Close() })
	res, err := p.Exec(t.Context(), target, Command{Script: "exit 3", Stdin: endless})
	if err != nil || res.ExitCode != 3 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestExecStopsTheCommandWhenItsInputFails(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	broken := errors.New("source is broken")
	_, err := p.Exec(t.Context(), target, Command{Script: "cat >/dev/null; sleep 60", Stdin: io.MultiReader(strings.NewReader("x"), &failing{broken})})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }

func TestExecKeepsAPartOfHugeOutputAndStreamsAllOfIt(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	const total = 8 << 20
	script := fmt.Sprintf("head -c %d /dev/zero; printf end", total)
	for name, tail := range map[string]bool{"head": false, "tail": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var all counter
			res, err := p.Exec(t.Context(), target, Command{Script: script, Stdout: &all, StdoutLimit: 1000, KeepTail: tail})
			if err != nil {
				t.Fatal(err)
			}
			if all.n != total+3 || len(res.Stdout) != 1000 || !res.StdoutTruncated {
				t.Errorf("streamed %d, kept %d, truncated %v", all.n, len(res.Stdout), res.StdoutTruncated)
			}
			if bytes.HasSuffix(res.Stdout, []byte("end")) != tail {
				t.Errorf("kept the wrong end: %q", res.Stdout[990:])
			}
		})
	}
}

type counter struct{ n int }

func (c *counter) Write(p []byte) (int, error) { c.n += len(p); return len(p), nil }

func TestExecGoesOnWhenAStreamWriterFails(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	res, err := p.Exec(t.Context(), target, Command{Script: "echo one; echo two; exit 5", Stdout: brokenWriter{}})
	if err != nil || res.ExitCode != 5 || string(res.Stdout) != "one\ntwo\n" {
		t.Errorf("got %+v, %v", res, err)
	}
}

type brokenWriter struct{}

func (brokenWriter) Write([]byte) (int, error) { return 0, io.ErrClosedPipe }

func TestExecRunsInTheGivenFolder(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	dir := t.TempDir() + "/it's a dir"
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	res, err := p.Exec(t.Context(), target, Command{Path: "pwd", Dir: dir})
	if err != nil || strings.TrimSpace(string(res.Stdout)) != dir {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
	res, err = p.Exec(t.Context(), target, Command{Script: "echo ran", Dir: dir + "/none"})
	if err != nil || res.ExitCode != 126 || len(res.Stdout) != 0 || !strings.Contains(string(res.Stderr), "none") {
		t.Errorf("a folder that isn't there: %+v, %v", res, err)
	}
}

func TestExecRunsAsAnotherUserBySetprivOrSu(t *testing.T) {
	t.Parallel()
	var got string
	_, p, target := guestAndPool(t, func(s *server) {
		s.exec = func(line string, ch *execChannel) { got = line; ch.exit(0) }
	})
	if _, err := p.Exec(t.Context(), target, Command{Path: "id", User: "agent"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"exec setpriv --reuid=agent ", "exec su -s /bin/sh agent -c '" + wrapper + "'"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in %q", want, got)
		}
	}
	if _, err := p.Exec(t.Context(), target, Command{Path: "id", User: "root"}); err != nil {
		t.Fatal(err)
	}
	if strings.Contains(got, "su ") || strings.Contains(got, "setpriv") {
		t.Errorf("the user who is logged in needs neither: %q", got)
	}
}

func TestExecRefusesCommandsThatCannotBeSent(t *testing.T) {
	t.Parallel()
	s, p, target := guestAndPool(t)
	const canary = "s3cr3t"
	for name, tc := range map[string]struct {
		cmd  Command
		want string
	}{
		"nothing to run":      {Command{}, "program (path) or a script"},
		"two things to run":   {Command{Path: "a", Script: "b"}, "not both"},
		"relative folder":     {Command{Path: "a", Dir: "b"}, "absolute"},
		"option as user":      {Command{Path: "a", User: "-c"}, "not a user name"},
		"code as user":        {Command{Path: "a", User: "x;reboot"}, "not a user name"},
		"name of a variable":  {Command{Path: "a", Env: map[string]string{"A-B": canary}}, "A-B"},
		"NUL in a variable":   {Command{Path: "a", Env: map[string]string{"AB": canary + "\x00"}}, "AB holds a NUL"},
		"NUL in an argument":  {Command{Path: "a", Args: []string{canary + "\x00"}}, "NUL"},
		"NUL in the script":   {Command{Script: canary + "\x00"}, "NUL"},
		"shell code as a var": {Command{Path: "a", Env: map[string]string{"A=1;x": canary}}, "environment variable"},
	} {
		_, err := p.Exec(t.Context(), target, tc.cmd)
		if err == nil || !strings.Contains(err.Error(), tc.want) || strings.Contains(err.Error(), canary) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if n := s.logins.Load(); n != 0 {
		t.Errorf("%d connections were made for them", n)
	}
}

func TestExecTellsTheCommandToStopWhenTheContextEnds(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	ctx, cancel := context.WithCancel(t.Context())
	res, err := p.Exec(ctx, target, Command{Script: "echo started; sleep 600 & wait", Stdout: onWrite(cancel)})
	var cancelled *CancelledError
	if !errors.As(err, &cancelled) || !cancelled.Stopped || !errors.Is(err, context.Canceled) {
		t.Errorf("got error %v", err)
	}
	if !res.Cancelled || res.Signal != "TERM" || res.ExitCode != 143 || string(res.Stdout) != "started\n" {
		t.Errorf("got %+v", res)
	}
}

// onWrite calls f at the first output.
func onWrite(f func()) io.Writer { return writerFunc(sync.OnceFunc(f)) }

type writerFunc func()

func (f writerFunc) Write(p []byte) (int, error) { f(); return len(p), nil }

func TestExecKillsACommandThatIgnoresTerm(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	timing := quick
	timing.KillGrace = 50 * time.Millisecond
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	ctx, cancel := context.WithCancel(t.Context())
	res, err := p.Exec(ctx, s.target("1"), Command{Script: "trap '' TERM; echo started; while :; do sleep 600; done", Stdout: onWrite(cancel)})
	if !errors.Is(err, context.Canceled) || res.Signal != "KILL" || res.ExitCode != 137 {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestExecStopsTheWholeProcessGroupWhereSSHDPassesNoSignals(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ script, signal string }{
		"by TERM": {"echo started; sleep 600; echo not reached", "TERM"},
		"by KILL": {"trap '' TERM; echo started; sleep 600; echo not reached", "KILL"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pemKey, public := newKey(t)
			s := startServer(t, public, func(s *server) { s.noSignals = true })
			timing := quick
			timing.KillGrace = 300 * time.Millisecond
			p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
			ctx, cancel := context.WithCancel(t.Context())
			res, err := p.Exec(ctx, s.target("1"), Command{Script: tc.script, Stdout: onWrite(cancel)})
			if !errors.Is(err, context.Canceled) || res.Signal != tc.signal || string(res.Stdout) != "started\n" {
				t.Errorf("got %+v, %v", res, err)
			}
		})
	}
}

func TestExecDoesNotTakeLoginNoiseForOutput(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t, func(s *server) {
		s.exec = func(line string, ch *execChannel) {
			_, _ = ch.Write([]byte("Welcome!\nsandbox-pid of course\n"))
			runShell(line, ch)
		}
	})
	res, err := p.Exec(t.Context(), target, Command{Script: "echo out; echo sandbox-pid 7"})
	if err != nil || string(res.Stdout) != "out\nsandbox-pid 7\n" {
		t.Errorf("got %q, %v", res.Stdout, err)
	}
}

func TestExecShowsWhatALoginShellSaysInsteadOfRunning(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t, func(s *server) {
		s.exec = func(_ string, ch *execChannel) {
			_, _ = ch.Write([]byte("This account is currently not available.\n"))
			ch.exit(1)
		}
	})
	res, err := p.Exec(t.Context(), target, Command{Path: "true"})
	if err != nil || res.ExitCode != 1 || string(res.Stdout) != "This account is currently not available.\n" {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestExecGivesUpOnACommandThatNeverEnds(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	started := make(chan struct{})
	s := startServer(t, public, func(s *server) {
		s.exec = func(_ string, ch *execChannel) { // a guest that ignores signals and the end of the session
			close(started)
			<-ch.ctx.Done()
		}
	})
	timing := quick
	timing.KillGrace = 10 * time.Millisecond
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-started; cancel() }()
	res, err := p.Exec(ctx, s.target("1"), Command{Path: "true"})
	var cancelled *CancelledError
	if !errors.As(err, &cancelled) || cancelled.Stopped || !res.Cancelled || !strings.Contains(err.Error(), "may still be running") {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestExecReportsADeadlineAsSuch(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	if _, err := p.WaitReady(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
	defer cancel()
	res, err := p.Exec(ctx, target, Command{Script: "sleep 600"})
	if !errors.Is(err, context.DeadlineExceeded) || !res.Cancelled {
		t.Errorf("got %+v, %v", res, err)
	}
}

func TestExecDoesNotRepeatACommandWhoseConnectionIsLost(t *testing.T) {
	t.Parallel()
	var s *server
	s, p, target := guestAndPool(t)
	_, err := p.Exec(t.Context(), target, Command{Script: "echo started; sleep 600", Stdout: onWrite(func() { s.cut() })})
	var lost *LostError
	if !errors.As(err, &lost) || !strings.Contains(err.Error(), "fate is unknown") {
		t.Errorf("got %v", err)
	}
	if n := s.commands.Load(); n != 1 {
		t.Errorf("the command was sent %d times", n)
	}
	if res, err := p.Exec(t.Context(), target, Command{Script: "echo again"}); err != nil || string(res.Stdout) != "again\n" {
		t.Errorf("the next command: %+v, %v", res, err)
	}
}

func TestExecReplacesAPooledConnectionThatDiedMeanwhile(t *testing.T) {
	t.Parallel()
	s, p, target := guestAndPool(t)
	for range 3 {
		if res, err := p.Exec(t.Context(), target, Command{Script: "exit 7"}); err != nil || res.ExitCode != 7 {
			t.Fatalf("got %+v, %v", res, err)
		}
		s.cut()
	}
	if n := s.commands.Load(); n != 3 {
		t.Errorf("%d commands were sent for 3", n)
	}
}

func TestExecNoticesThatAPooledConnectionFellSilent(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	timing := quick
	timing.Probe = 30 * time.Millisecond
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	target := s.target("1")
	if _, err := p.WaitReady(t.Context(), target); err != nil {
		t.Fatal(err)
	}
	s.mute.Store(true)
	_, err := p.Exec(t.Context(), target, Command{Path: "true"})
	var notReady *NotReady
	if !errors.As(err, &notReady) {
		t.Errorf("a frozen guest: got %v", err)
	}
	s.mute.Store(false)
	if _, err := p.Exec(t.Context(), target, Command{Path: "true"}); err != nil {
		t.Errorf("after it woke up: %v", err)
	}
}

func TestKeepAliveEndsAConnectionThatFellSilentUnderACommand(t *testing.T) {
	t.Parallel()
	pemKey, public := newKey(t)
	s := startServer(t, public)
	timing := quick
	timing.KeepAlive = 20 * time.Millisecond
	p := newTestPool(t, Config{Auth: Auth{PrivateKey: pemKey}, Timing: timing})
	_, err := p.Exec(t.Context(), s.target("1"), Command{Script: "echo started; sleep 600", Stdout: onWrite(func() { s.mute.Store(true) })})
	var lost *LostError
	if !errors.As(err, &lost) {
		t.Errorf("got %v", err)
	}
}

func TestManyCommandsShareOneConnectionWithinItsSessions(t *testing.T) {
	t.Parallel()
	s, p, target := guestAndPool(t)
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			res, err := p.Exec(t.Context(), target, Command{Script: "exit $1", Args: []string{fmt.Sprint(i)}})
			if err != nil || res.ExitCode != i {
				t.Errorf("%d: %+v, %v", i, res, err)
			}
		})
	}
	wg.Wait()
	if s.logins.Load() != 1 || s.peak.Load() > 8 {
		t.Errorf("%d logins, %d sessions at once", s.logins.Load(), s.peak.Load())
	}
}

func TestFewerSessionsThanExpectedAreLivedWith(t *testing.T) {
	t.Parallel()
	s, p, target := guestAndPool(t, func(s *server) { s.maxSessions = 2 })
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if res, err := p.Exec(t.Context(), target, Command{Script: "exit 4"}); err != nil || res.ExitCode != 4 {
				t.Errorf("%+v, %v", res, err)
			}
		})
	}
	wg.Wait()
	if n := s.commands.Load(); n != 20 {
		t.Errorf("%d commands were sent for 20", n)
	}
}

func TestSourceAddressIsWhatTheGuestSees(t *testing.T) {
	t.Parallel()
	_, p, target := guestAndPool(t)
	if got, err := p.SourceAddress(t.Context(), target); err != nil || got != "192.0.2.7" {
		t.Errorf("got %q, %v", got, err)
	}
}
