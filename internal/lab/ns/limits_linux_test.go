package ns

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/cgroup"
)

func needsCgroup(t *testing.T) {
	t.Helper()
	l, err := cgroup.Open(cgroup.Name(1, 1))
	if err != nil {
		t.Skip(err)
	}
	l.Close()
}

func TestAGuestHasNoMoreThanItsMemoryAndProcesses(t *testing.T) {
	needsCgroup(t)
	t.Parallel()
	e := start(t, Options{})
	ok(t, e.CreateRoot(t.Context(), 100, engine.RootSpec{}))
	c := config(100)
	c.Limits.MemoryBytes = 64 << 20
	ok(t, e.Configure(t.Context(), 100, c))
	ok(t, e.Start(t.Context(), 100))
	const eat = "head -c 200M /dev/zero | tail -c 200M | wc -c"
	if got := sh(t, e, 100, eat+"; true"); got == "209715200" {
		t.Error("200 MB in 64 MB")
	}
	if got := sh(t, e, 100, "echo alive"); got != "alive" {
		t.Error(got)
	}
	status, err := e.Inspect(t.Context(), 100)
	ok(t, err)
	if status.MemoryBytes < 1<<20 || status.MemoryBytes > 64<<20 {
		t.Errorf("%d bytes in use", status.MemoryBytes)
	}
	c.Limits.MemoryBytes = 512 << 20
	ok(t, e.Configure(t.Context(), 100, c)) // at once, while it runs
	if got := sh(t, e, 100, eat); got != "209715200" {
		t.Errorf("200 MB in 512 MB: %q", got)
	}
	files, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/pids/sandbox-lab-%d-*/100/pids.max", os.Getpid()))
	unified, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/sandbox-lab-%d-*/100/pids.max", os.Getpid()))
	for _, file := range append(files, unified...) {
		b, err := os.ReadFile(file)
		if err != nil || strings.TrimSpace(string(b)) == "max" {
			t.Errorf("%s: %q %v", file, b, err)
		}
	}
	if len(files)+len(unified) == 0 {
		t.Error("no limit of processes was found")
	}
}

func TestAGuestHasNoMoreThanItsShareOfTheProcessor(t *testing.T) {
	needsCgroup(t)
	t.Parallel()
	e := start(t, Options{})
	ok(t, e.CreateRoot(t.Context(), 100, engine.RootSpec{}))
	c := config(100)
	c.Limits.CPU = 0.1
	ok(t, e.Configure(t.Context(), 100, c))
	ok(t, e.Start(t.Context(), 100))
	began := time.Now()
	out := sh(t, e, 100, "timeout 2 sh -c 'while :; do :; done'; cat /proc/self/stat >/dev/null; times | tail -1")
	_, user, _ := strings.Cut(out, "m") // children: 0m0.190000s 0m0.000000s
	seconds, err := strconv.ParseFloat(user[:strings.Index(user, "s")], 64)
	ok(t, err)
	if share := seconds / time.Since(began).Seconds(); share > 0.2 {
		t.Errorf("%.2f of a processor, asked for 0.1 (%s)", share, out)
	}
}

func TestTheKernelsExposedPartsAreClosed(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	for what, script := range map[string]string{
		"system call filter":  "grep -q 'Seccomp:.2' /proc/self/status",
		"sysctls of others":   "! sh -c 'echo 1 >/proc/sys/kernel/panic' 2>/dev/null",
		"kernel memory":       "test ! -s /proc/kcore",
		"devices":             "! mknod /tmp/sda b 8 0 2>/dev/null",
		"the machine's files": "test ! -e /mnt/s && test ! -e /mnt/c",
		"the machine's disks": "! grep -q ' /work \\| ext4 ' /proc/mounts",
		"other processes":     "test $(ls /proc | grep -c '^[0-9]') -lt 15",
		"its own sysctls":     "echo 1 >/proc/sys/net/ipv4/ip_forward",
		"mounts of its own":   "mount -t tmpfs none /mnt",
	} {
		code, err := e.Exec(t.Context(), 100, engine.Command{Argv: []string{"sh", "-c", script}})
		if err != nil || code != 0 {
			t.Errorf("%s: exit code %d, %v (%s)", what, code, err, script)
		}
	}
}
