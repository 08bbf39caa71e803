package ns

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// holdVariable makes the test binary hold a lab with a running guest until it is killed.
const holdVariable = "SANDBOX_TEST_HOLD_LAB"

func TestMain(m *testing.M) {
	if os.Getenv(holdVariable) == "" {
		os.Exit(m.Run())
	}
	e, err := New(Options{})
	if err == nil {
		err = e.CreateRoot(context.Background(), 100, engine.RootSpec{})
	}
	if err == nil {
		err = e.Configure(context.Background(), 100, config(100))
	}
	if err == nil {
		err = e.Start(context.Background(), 100)
	}
	fmt.Println("held", err)
	select {}
}

func TestNothingIsLeftOfALabWhoseProgramIsKilled(t *testing.T) {
	if err := machineCan(); err != nil {
		t.Skipf("this machine can't run the engine ns: %v", err)
	}
	t.Parallel()
	cache := t.TempDir()
	shared, err := cacheFolder("")
	ok(t, err)
	ok(t, os.Symlink(imageFolder(shared), imageFolder(cache))) // the images are the same; what is left is this lab's alone
	c := exec.Command("/proc/self/exe")
	c.Env = append(os.Environ(), holdVariable+"=1", cacheVariable+"="+cache)
	out, err := c.StdoutPipe()
	ok(t, err)
	ok(t, c.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "held <nil>\n" {
		t.Fatal(line, err)
	}
	pid := c.Process.Pid
	lab := children(t, pid)
	if len(lab) != 1 {
		t.Fatalf("the lab's process: %v", lab)
	}
	ok(t, c.Process.Kill())
	_ = c.Wait()
	deadline := time.Now().Add(15 * time.Second)
	left := func() []string {
		runs, _ := filepath.Glob(filepath.Join(runFolder(cache), "*"))
		groups, _ := filepath.Glob(fmt.Sprintf("/sys/fs/cgroup/*/sandbox-lab-%d-*", pid))
		if syscall.Kill(lab[0], 0) == nil {
			runs = append(runs, fmt.Sprintf("process %d", lab[0]))
		}
		return append(runs, groups...)
	}
	for len(left()) > 0 && time.Now().Before(deadline) {
		time.Sleep(20 * time.Millisecond)
	}
	if left := left(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

// children are a process' child processes.
func children(t *testing.T, pid int) []int {
	t.Helper()
	var all []int
	tasks, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	ok(t, err)
	for _, file := range tasks {
		b, err := os.ReadFile(file)
		ok(t, err)
		for _, field := range strings.Fields(string(b)) {
			var child int
			if _, err := fmt.Sscan(field, &child); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}

func TestAKeptLabComesBackWithItsGuestsDown(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "lab")
	t.Cleanup(func() { ok(t, Remove(dir)) })
	e := start(t, Options{Folder: dir})
	up(t, e, 100)
	ok(t, e.AllocVolume(t.Context(), "v", 1<<30))
	ok(t, e.AttachVolume(t.Context(), 100, "v", engine.Mount{Path: "/data"}))
	sh(t, e, 100, "echo one >/root/f; echo one >/data/f")
	ok(t, e.Snapshot(t.Context(), 100, "s"))
	sh(t, e, 100, "echo two >/root/f")
	if _, err := New(Options{Folder: dir}); err == nil || !strings.Contains(err.Error(), "another lab uses") {
		t.Errorf("a second lab in the folder: %v", err)
	}
	ok(t, e.Close())
	e = start(t, Options{Folder: dir})
	status, err := e.Inspect(t.Context(), 100)
	ok(t, err)
	if status.Running || len(status.Snapshots) != 1 || status.Volumes["v"].Path != "/data" {
		t.Errorf("%+v", status)
	}
	ok(t, e.Start(t.Context(), 100))
	if got := sh(t, e, 100, "cat /root/f /data/f"); got != "two\none" {
		t.Error(got)
	}
	ok(t, e.Stop(t.Context(), 100))
	ok(t, e.Rollback(t.Context(), 100, "s"))
	ok(t, e.Start(t.Context(), 100))
	if got := sh(t, e, 100, "cat /root/f"); got != "one" {
		t.Error(got)
	}
}

func TestCopiesOfAGuestShareNothingThatChanges(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	sh(t, e, 100, "echo origin >/root/f; rm /etc/shells")
	ok(t, e.Snapshot(t.Context(), 100, "early"))
	sh(t, e, 100, "echo later >/root/f")
	for to, spec := range map[int]engine.CloneSpec{
		101: {From: 100, To: 101}, 102: {From: 100, To: 102, Snapshot: "early", Linked: true},
	} {
		ok(t, e.Clone(t.Context(), spec))
		ok(t, e.Configure(t.Context(), to, config(to)))
		ok(t, e.Start(t.Context(), to))
	}
	ok(t, e.Stop(t.Context(), 100))
	ok(t, e.Clone(t.Context(), engine.CloneSpec{From: 100, To: 103, Linked: true})) // of a stopped one: its layer is shared
	ok(t, e.Destroy(t.Context(), 100))
	ok(t, e.Configure(t.Context(), 103, config(103)))
	ok(t, e.Start(t.Context(), 103))
	for id, want := range map[int]string{101: "later", 102: "origin", 103: "later"} {
		if got := sh(t, e, id, "cat /root/f; test -e /etc/shells || echo gone; echo mine >/root/f"); got != want+"\ngone" {
			t.Errorf("guest %d: %q", id, got)
		}
	}
	keys := map[string]bool{}
	for _, id := range []int{101, 102, 103} {
		keys[sh(t, e, id, "cat /etc/ssh/ssh_host_ed25519_key.pub")] = true
	}
	if len(keys) != 3 {
		t.Errorf("%d host keys for three guests", len(keys))
	}
	refused(t, e.Clone(t.Context(), engine.CloneSpec{From: 101, To: 102}), engine.ErrExists)
	refused(t, e.Clone(t.Context(), engine.CloneSpec{From: 101, To: 104, Snapshot: "no"}), engine.ErrNotFound)
}

func TestABootIsNewAndMemoryFileSystemsAreEmpty(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	const script = "cat /proc/sys/kernel/random/boot_id; ls /run/mark 2>/dev/null; cat /root/f 2>/dev/null; true"
	before := sh(t, e, 100, script)
	sh(t, e, 100, "touch /run/mark; echo kept >/root/f")
	c, err := e.Dial(t.Context(), "10.77.1.100:22")
	ok(t, err)
	ok(t, e.Reboot(t.Context(), 100))
	after := sh(t, e, 100, script)
	first, rest, _ := strings.Cut(after, "\n")
	if first == before || rest != "kept" {
		t.Errorf("before %q, after %q", before, after)
	}
	status, err := e.Inspect(t.Context(), 100)
	ok(t, err)
	if status.BootID != first || time.Since(status.StartedAt) > time.Minute || status.Processes < 2 {
		t.Errorf("%+v", status)
	}
	_ = c.SetReadDeadline(time.Now().Add(5 * time.Second)) // refused by a connection that is closed already
	for err = nil; err == nil; {
		_, err = c.Read(make([]byte, 1000))
	}
	if os.IsTimeout(err) {
		t.Error("a connection outlived the guest")
	}
	refused(t, e.Start(t.Context(), 100), engine.ErrRunning)
	refused(t, e.Destroy(t.Context(), 100), engine.ErrRunning)
	ok(t, e.Kill(t.Context(), 100))
	refused(t, e.Kill(t.Context(), 100), engine.ErrNotRunning)
	_, err = e.Exec(t.Context(), 100, engine.Command{Argv: []string{"true"}})
	refused(t, err, engine.ErrNotRunning)
}

func TestAGuestThatPowersItselfOffIsDown(t *testing.T) {
	t.Parallel()
	e := start(t, Options{})
	up(t, e, 100)
	_, _ = e.Exec(t.Context(), 100, engine.Command{Argv: []string{"kill", "-TERM", "1"}}) // what poweroff does to an init
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		status, err := e.Inspect(t.Context(), 100)
		ok(t, err)
		if !status.Running {
			break
		}
		if time.Now().After(end) {
			t.Fatal("it still runs")
		}
	}
	ok(t, e.Start(t.Context(), 100))
}
