//go:build unix

package harden_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// sandboxRoot is the part of a system that the lease's script looks at.
type sandboxRoot struct {
	t   *testing.T
	dir string
	now time.Time
}

func newRoot(t *testing.T) *sandboxRoot {
	r := &sandboxRoot{t: t, dir: t.TempDir(), now: time.Date(2026, 12, 1, 12, 0, 0, 0, time.UTC)}
	r.put("run/.keep", "")
	r.up(20 * time.Minute)
	r.put("proc/net/tcp", "  sl  local_address rem_address   st\n   0: 00000000:0016 00000000:0000 0A\n")
	return r
}

func (r *sandboxRoot) put(name, content string) {
	r.t.Helper()
	name = filepath.Join(r.dir, name)
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		r.t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(content), 0o644); err != nil {
		r.t.Fatal(err)
	}
}

func (r *sandboxRoot) up(d time.Duration) {
	r.put("proc/uptime", fmt.Sprintf("%.2f 100.00\n", d.Seconds()))
}

func (r *sandboxRoot) lease(expires string, idle int) {
	r.put("etc/sandbox/lease.json", fmt.Sprintf(`{"version":1,"claim":"abcdefghijklmnopqrstuvwxyz","expires_at":%q,"idle_stop_s":%d}`+"\n", expires, idle))
}

// look runs the script; ended says whether it ended the sandbox.
func (r *sandboxRoot) look() (ended bool, said string, code int) {
	r.t.Helper()
	mark := filepath.Join(r.dir, "ended")
	if err := os.RemoveAll(mark); err != nil {
		r.t.Fatal(err)
	}
	cmd := exec.CommandContext(r.t.Context(), "sh", "files/lease")
	cmd.Env = append(os.Environ(), "SANDBOX_LEASE_ROOT="+r.dir, "SANDBOX_LEASE_END=touch "+mark, "SANDBOX_LEASE_NOW="+strconv.FormatInt(r.now.Unix(), 10))
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState == nil {
		r.t.Fatal(err)
	}
	_, err = os.Stat(mark)
	return err == nil, string(out), cmd.ProcessState.ExitCode()
}

func TestTheLeaseEndsASandboxWhenItIsOver(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		setup func(*sandboxRoot)
		ended bool
		code  int
	}{
		"no file is no limit":     {func(*sandboxRoot) {}, false, 0},
		"not over":                {func(r *sandboxRoot) { r.lease("2026-12-01T12:00:01Z", 0) }, false, 0},
		"over":                    {func(r *sandboxRoot) { r.lease("2026-12-01T12:00:00Z", 0) }, true, 0},
		"over, just booted":       {func(r *sandboxRoot) { r.lease("2026-11-01T00:00:00Z", 0); r.up(599 * time.Second) }, false, 0},
		"over, ten minutes later": {func(r *sandboxRoot) { r.lease("2026-11-01T00:00:00Z", 0); r.up(600 * time.Second) }, true, 0},
		"a newer version": {func(r *sandboxRoot) {
			r.put("etc/sandbox/lease.json", `{"version":2,"expires_at":"2020-01-01T00:00:00Z"}`)
		}, false, 1},
		"no JSON":              {func(r *sandboxRoot) { r.put("etc/sandbox/lease.json", "expires tomorrow") }, false, 1},
		"no time":              {func(r *sandboxRoot) { r.lease("tomorrow", 0) }, false, 1},
		"a command for a time": {func(r *sandboxRoot) { r.lease("$(touch /tmp/x)", 0) }, false, 1},
		"another zone":         {func(r *sandboxRoot) { r.lease("2026-12-01T10:00:00+05:00", 0) }, false, 1},
		"null": {func(r *sandboxRoot) {
			r.put("etc/sandbox/lease.json", `{"version":1,"expires_at":null,"idle_stop_s":0}`)
		}, false, 0},
		"written with line breaks": {func(r *sandboxRoot) {
			r.put("etc/sandbox/lease.json", "{\n  \"version\": 1,\n  \"expires_at\": \"2026-12-01T11:00:00Z\"\n}\n")
		}, true, 0},
		"idle is not looked for":   {func(r *sandboxRoot) { r.lease("2026-12-02T00:00:00Z", 0); r.put("run/sandbox-lease/used", "0\n") }, false, 0},
		"not idle for long enough": {func(r *sandboxRoot) { r.lease("2026-12-02T00:00:00Z", 1201); r.put("run/sandbox-lease/used", "0\n") }, false, 0},
		"idle":                     {func(r *sandboxRoot) { r.lease("2026-12-02T00:00:00Z", 1200); r.put("run/sandbox-lease/used", "0\n") }, true, 0},
		"a connection":             {func(r *sandboxRoot) { r.idle(); r.put("proc/net/tcp6", "sl\n 1: 0000:0016 0000:D431 01\n") }, false, 0},
		"a connection elsewhere":   {func(r *sandboxRoot) { r.idle(); r.put("proc/net/tcp6", "sl\n 1: 0000:D431 0000:0016 01\n") }, true, 0},
		"a run": {func(r *sandboxRoot) {
			r.idle()
			r.put("run/sandbox/runs/ab.1/pid", "77 123\n")
			r.put("proc/77/stat", "")
		}, false, 0},
		"a run that ended": {func(r *sandboxRoot) { r.idle(); r.put("run/sandbox/runs/ab.1/pid", "77 123\n") }, true, 0},
		"something computes": {func(r *sandboxRoot) {
			r.idle()
			r.put("run/sandbox-lease/cpu", "1000000000 1140\n")
			r.put("sys/fs/cgroup/cpu.stat", "usage_usec 1030000000\n")
		}, false, 0},
		"something computes little": {func(r *sandboxRoot) {
			r.idle()
			r.put("run/sandbox-lease/cpu", "1000000000 1140\n")
			r.put("sys/fs/cgroup/cpu.stat", "usage_usec 1001000000\n")
		}, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newRoot(t)
			c.setup(r)
			ended, said, code := r.look()
			if ended != c.ended || code != c.code {
				t.Errorf("ended %t, exit code %d: %s", ended, code, said)
			}
			if (ended || code != 0) && !strings.HasPrefix(said, "lease: ") {
				t.Errorf("it doesn't say why: %q", said)
			}
		})
	}
}

// idle makes a sandbox that nobody has used since it booted.
func (r *sandboxRoot) idle() {
	r.lease("2026-12-02T00:00:00Z", 600)
	r.put("run/sandbox-lease/used", "0\n")
}

func TestUseCountsFromItsLastMoment(t *testing.T) {
	t.Parallel()
	r := newRoot(t)
	r.lease("2026-12-02T00:00:00Z", 900)
	for _, c := range []struct {
		minute    int
		connected bool
		ended     bool
	}{{1, false, false}, {12, true, false}, {20, false, false}, {26, false, false}, {27, false, true}} {
		r.up(time.Duration(c.minute) * time.Minute)
		connection := ""
		if c.connected {
			connection = "sl\n 1: 0000:0016 0000:D431 01\n"
		}
		r.put("proc/net/tcp6", connection)
		if ended, said, _ := r.look(); ended != c.ended {
			t.Errorf("minute %d: ended %t: %s", c.minute, ended, said)
		}
	}
}
