package sim_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim"
)

func TestCloneHasItsOwnHostKeyUnlessTheTemplateWasCareless(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	keys := map[int]string{}
	for base, shared := range map[int]bool{100: false, 200: true} {
		must(t, l.CreateRoot(t.Context(), base, engine.RootSpec{AuthorizedKeys: []string{l.key}, SharedHostKeys: shared}))
		must(t, l.Configure(t.Context(), base, config(base)))
		must(t, l.Start(t.Context(), base)) // makes the template's own key
		must(t, l.Stop(t.Context(), base))
		for _, id := range []int{base + 1, base + 2} {
			must(t, l.Clone(t.Context(), engine.CloneSpec{From: base, To: id, Linked: true}))
			must(t, l.Configure(t.Context(), id, config(id)))
			must(t, l.Start(t.Context(), id))
			c, key, err := l.login(id, "root")
			must(t, err)
			_ = c.Close()
			keys[id] = ssh.FingerprintSHA256(key)
		}
	}
	if keys[101] == keys[102] {
		t.Error("clones of a clean template share a host key")
	}
	if keys[201] != keys[202] {
		t.Error("clones of a careless template have keys of their own")
	}
}

func TestSnapshotKeepsTheRootAndNotMemory(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	ctx := t.Context()
	l.pct(t, 101, "echo one > /root/f; echo secret > /run/s; echo t > /tmp/t; mkdir /root/d; ln /root/f /root/d/hard")
	must(t, l.Snapshot(ctx, 101, "s1"))
	l.pct(t, 101, "echo two > /root/f; rm -r /root/d; echo new > /root/new")
	if err := l.Rollback(ctx, 101, "s1"); !errors.Is(err, engine.ErrRunning) {
		t.Errorf("rollback of a running guest: %v", err)
	}
	must(t, l.Kill(ctx, 101))
	must(t, l.Rollback(ctx, 101, "s1"))
	must(t, l.Start(ctx, 101))
	out, _ := l.pct(t, 101, "cat /root/f /root/d/hard; ls /root; ls -A /tmp; cat /run/s")
	if want := "one\none\nd\nf\ncat: /run/s: No such file or directory\n"; out != want {
		t.Errorf("after rollback: %q, want %q", out, want)
	}
	must(t, l.DeleteSnapshot(ctx, 101, "s1"))
	if err := l.DeleteSnapshot(ctx, 101, "s1"); !errors.Is(err, engine.ErrNotFound) {
		t.Errorf("second deletion: %v", err)
	}
}

func TestRebootChangesTheBootIDAndClearsMemory(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	before, _ := l.pct(t, 101, "echo x > /run/x; echo y > /dev/shm/y; cat /proc/sys/kernel/random/boot_id")
	must(t, l.Reboot(t.Context(), 101))
	after, _ := l.pct(t, 101, "cat /proc/sys/kernel/random/boot_id; ls /dev/shm; ls /run | grep x")
	if before == after || len(before) != 37 || len(after) != 37 {
		t.Errorf("before %q, after %q", before, after)
	}
}

// hand is a clock that stands still until it is moved.
type hand struct {
	engine.SystemClock
	ahead atomic.Int64
	start time.Time
}

func (h *hand) Now() time.Time { return h.start.Add(time.Duration(h.ahead.Load())) }

func TestSSHAnswersOnlyWhenBootedAndRunning(t *testing.T) {
	t.Parallel()
	clock := &hand{start: time.Now()}
	l := newLab(t, sim.Options{Clock: clock, BootDelay: time.Minute})
	ctx := t.Context()
	dial := func() error {
		c, err := l.Dial(ctx, address(101)+":22")
		if err == nil {
			_ = c.Close()
		}
		return err
	}
	if err := dial(); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("no guest: %v", err)
	}
	l.running(t, 101)
	if err := dial(); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("booting: %v", err)
	}
	clock.ahead.Store(int64(time.Minute))
	must(t, dial())
	c := l.guest(t, 101, "root")
	s, err := c.NewSession()
	must(t, err)
	must(t, s.Start("sleep 1000"))
	must(t, l.Stop(ctx, 101))
	if err := s.Wait(); err == nil {
		t.Error("a session survived the stop")
	}
	if err := dial(); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("stopped: %v", err)
	}
	_, _, err = l.login(101, "root")
	if err == nil || !strings.Contains(err.Error(), "No route to host") {
		t.Errorf("through the SSH node: %v", err)
	}
}

func TestLinkThatIsDownCutsTheGuestOff(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	c := l.guest(t, 101, "root")
	sh(t, c, "true")
	cfg := config(101)
	cfg.NICs[0].LinkDown = true
	must(t, l.Configure(t.Context(), 101, cfg))
	must(t, ignore(c.Wait()))
	if _, err := l.Dial(t.Context(), address(101)+":22"); !errors.Is(err, syscall.EHOSTUNREACH) {
		t.Errorf("dial: %v", err)
	}
	must(t, l.Configure(t.Context(), 101, config(101)))
	sh(t, l.guest(t, 101, "root"), "true")
}

func ignore(error) error { return nil }

func TestInterfacesShowStaticAndServedAddresses(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	ctx := t.Context()
	for _, id := range []int{101, 102} {
		must(t, l.CreateRoot(ctx, id, engine.RootSpec{}))
		cfg := config(id)
		cfg.NICs = append(cfg.NICs, engine.NIC{Name: "eth1", Bridge: "vmbr9", MAC: strings.Replace(cfg.NICs[0].MAC, "BC:24:11:00", "BC:24:11:01", 1), IPv4: "dhcp"})
		must(t, l.Configure(ctx, id, cfg))
		must(t, l.Start(ctx, id))
	}
	a, err := l.Interfaces(ctx, 101)
	must(t, err)
	b, err := l.Interfaces(ctx, 102)
	must(t, err)
	if len(a) != 3 || a[0].Name != "lo" || a[1].Addresses[0] != address(101)+"/16" || a[1].MAC != "bc:24:11:00:00:65" {
		t.Errorf("interfaces: %+v", a)
	}
	if a[2].Addresses[0] == b[2].Addresses[0] {
		t.Errorf("two guests were served %s", a[2].Addresses[0])
	}
	must(t, l.Reboot(ctx, 101))
	again, err := l.Interfaces(ctx, 101)
	must(t, err)
	if !slices.Equal(again[2].Addresses, a[2].Addresses) {
		t.Errorf("lease changed from %v to %v", a[2].Addresses, again[2].Addresses)
	}
}

func TestSessionSignalsEnvironmentAndKeys(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	c := l.guest(t, 101, "root")
	s, err := c.NewSession()
	must(t, err)
	if err := s.Setenv("SECRET", "x"); err == nil {
		t.Error("a variable that AcceptEnv doesn't name was accepted")
	}
	must(t, s.Setenv("LC_TEST", "yes"))
	out, err := s.Output("echo $LC_TEST; set -- $SSH_CONNECTION; echo $# $4")
	must(t, err)
	if string(out) != "yes\n4 22\n" {
		t.Errorf("environment: %q", out)
	}
	s, err = c.NewSession()
	must(t, err)
	pid, err := s.StdoutPipe()
	must(t, err)
	must(t, s.Start("exec sh -c 'echo $$; exec sleep 1000'"))
	line, err := bufio.NewReader(pid).ReadString('\n')
	must(t, err)
	must(t, s.Signal(ssh.SIGTERM)) // refused, as sshd refuses root's: the program goes on
	sh(t, c, "kill -0 "+strings.TrimSpace(line)+" && kill -s TERM -- -"+strings.TrimSpace(line))
	var exit *ssh.ExitError
	if err := s.Wait(); !errors.As(err, &exit) || exit.ExitStatus() != 143 {
		t.Errorf("killed program: %v", err)
	}
	if _, _, err := l.login(101, "agent"); err == nil {
		t.Error("agent has no authorized key, and got in")
	}
	sh(t, c, "install -d -m 700 -o agent -g agent /home/agent/.ssh; cp /root/.ssh/authorized_keys /home/agent/.ssh/; chown -R agent: /home/agent/.ssh")
	if got := sh(t, l.guest(t, 101, "agent"), "id -un; pwd"); got != "agent\n/home/agent\n" {
		t.Errorf("agent: %q", got)
	}
	s, err = l.guest(t, 101, "agent").NewSession()
	must(t, err)
	must(t, s.Start("sleep 1000"))
	must(t, s.Signal(ssh.SIGTERM))
	if err := s.Wait(); !errors.As(err, &exit) || exit.Signal() != "TERM" {
		t.Errorf("killed session: %v", err)
	}
	sh(t, c, "chmod 777 /home/agent/.ssh")
	if _, _, err := l.login(101, "agent"); err == nil {
		t.Error("sshd trusts a directory that everybody may write")
	}
}

func TestDetachedProgramOutlivesTheSessionAndPlainOnesHoldIt(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	c := l.guest(t, 101, "root")
	out := sh(t, c, "setsid sh -c 'while [ ! -e /tmp/go ]; do sleep 0.01; done; echo done > /tmp/out' </dev/null >/dev/null 2>&1 & echo started")
	if out != "started\n" {
		t.Fatalf("session: %q", out)
	}
	_ = c.Close()
	l.pct(t, 101, "touch /tmp/go")
	eventually(t, "the detached program's output", func() bool { out, _ := l.pct(t, 101, "cat /tmp/out"); return out == "done\n" })
	if out := sh(t, l.guest(t, 101, "root"), "(sleep 0.05; echo late) & echo first"); out != "first\nlate\n" {
		t.Errorf("session ended before its background job: %q", out)
	}
}

func TestFilesBySFTP(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	c, err := sftp.NewClient(l.guest(t, 101, "root"))
	must(t, err)
	defer func() { _ = c.Close() }()
	must(t, c.Mkdir("/srv/a"))
	f, err := c.OpenFile("/srv/a/.new", os.O_CREATE|os.O_EXCL|os.O_WRONLY)
	must(t, err)
	_, err = f.ReadFrom(io.LimitReader(zeros{}, 300000))
	must(t, err)
	must(t, f.Chmod(0o640))
	must(t, f.Chown(1000, 1000))
	must(t, f.Close())
	if _, err := c.OpenFile("/srv/a/.new", os.O_CREATE|os.O_EXCL|os.O_WRONLY); err == nil {
		t.Error("O_EXCL opened a file that exists")
	}
	l.pct(t, 101, "echo old > /srv/a/f")
	if err := c.Rename("/srv/a/.new", "/srv/a/f"); err == nil {
		t.Error("rename replaced a file")
	}
	must(t, c.PosixRename("/srv/a/.new", "/srv/a/f"))
	in, err := c.Stat("/srv/a/f")
	must(t, err)
	st := in.Sys().(*sftp.FileStat)
	if in.Size() != 300000 || in.Mode().Perm() != 0o640 || st.UID != 1000 || st.GID != 1000 {
		t.Errorf("stat: %v %v %d:%d", in.Size(), in.Mode(), st.UID, st.GID)
	}
	if out, _ := l.pct(t, 101, "stat -c '%a %U:%G %s' /srv/a/f"); out != "640 agent:agent 300000\n" {
		t.Errorf("inside: %q", out)
	}
	if _, err := c.Stat("/srv/none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("missing file: %v", err)
	}
	must(t, c.Symlink("f", "/srv/a/l"))
	if p, err := c.RealPath("/srv/a/l"); err != nil || p != "/srv/a/f" {
		t.Errorf("real path: %q %v", p, err)
	}
	list, err := c.ReadDir("/srv/a")
	must(t, err)
	if len(list) != 2 {
		t.Errorf("list: %v", list)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

func TestNothingOfTheHostCanBeReached(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	dir := t.TempDir()
	secret := filepath.Join(dir, "secret")
	must(t, os.WriteFile(secret, []byte("host"), 0o644))
	fifo := filepath.Join(os.TempDir(), "sh-interp-"+filepath.Base(dir)+strings.ReplaceAll(t.Name(), "/", ""))
	must(t, os.WriteFile(fifo, []byte("host"), 0o644))
	t.Cleanup(func() { _ = os.Remove(fifo) })
	program := filepath.Join(dir, "program")
	must(t, os.WriteFile(program, []byte("#!/bin/sh\necho host\n"), 0o755))
	for _, command := range []string{
		"cat " + secret, "cat < " + secret, "cat ../../../../../.." + secret, "ln -s " + secret + " /tmp/l; cat /tmp/l", "ln -s / /tmp/r; cat /tmp/r" + secret,
		"cat /proc/self/root" + secret, "cat /proc/1/root" + secret, "cat /proc/self/cwd/.." + secret, "echo " + dir + "/*", ". " + secret, "source " + program, program, "sh " + program,
		"PATH=" + dir + " program", "PATH=" + dir + " command -v program", "PATH=" + dir + "; . program", "command -v git go", "type go", "cd " + dir + " && pwd -P", "[ -e " + secret + " ] && echo host",
		"cat < " + fifo, "TMPDIR=" + dir + " sh -c 'cat <(echo host)'", "exec " + program, "env PATH=" + dir + " program", "echo host > " + filepath.Join(dir, "written"), "cp /etc/passwd " + dir + "/",
		"mkdir -p " + dir + "/made", "find / -path '" + dir + "*'", "bash -c 'read -r x < " + secret + "; echo $x'", "ls -R " + dir, "tar cf - " + secret + " " + dir, "tar xf /dev/null -C " + dir, "dd if=" + secret,
	} {
		out, _ := l.pct(t, 101, command)
		out = strings.NewReplacer(command, "", dir, "").Replace(out)
		if strings.Contains(out, "host") && !strings.Contains(command, "find") {
			t.Errorf("%q reached the host: %q", command, out)
		}
	}
	list, err := os.ReadDir(dir)
	must(t, err)
	if len(list) != 2 {
		t.Errorf("the guest wrote to the host: %v", list)
	}
}

func TestExportedRootComesBackByImport(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	l.pct(t, 101, "echo x > /root/f; chmod 604 /root/f; chown 1000:27 /root/f; ln /root/f /root/g; ln -s /etc/passwd /root/l; echo no > /run/no")
	var archive bytes.Buffer
	must(t, l.Export(t.Context(), 101, "", &archive))
	must(t, l.Import(t.Context(), 102, &archive))
	must(t, l.Configure(t.Context(), 102, config(102)))
	must(t, l.Start(t.Context(), 102))
	out, _ := l.pct(t, 102, "stat -c '%a %u:%g %h' /root/f; readlink /root/l; cat /root/g; ls /run/no; hostname")
	if want := "604 1000:27 2\n/etc/passwd\nx\nls: cannot access '/run/no': No such file or directory\nsb-102\n"; out != want {
		t.Errorf("got %q, want %q", out, want)
	}
}

func TestVolumesOutliveGuests(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	ctx := t.Context()
	l.running(t, 101)
	must(t, l.AllocVolume(ctx, "data:vm-101-disk-1", 1<<20))
	must(t, l.AttachVolume(ctx, 101, "data:vm-101-disk-1", engine.Mount{Path: "/mnt/data"}))
	if out, status := l.pct(t, 101, "echo kept > /mnt/data/f; head -c 2M /dev/zero > /mnt/data/big"); status == 0 {
		t.Errorf("a full volume took more: %q", out)
	}
	l.running(t, 102)
	if err := l.AttachVolume(ctx, 102, "data:vm-101-disk-1", engine.Mount{Path: "/mnt/data"}); !errors.Is(err, engine.ErrInUse) {
		t.Errorf("attached twice: %v", err)
	}
	must(t, l.RenameVolume(ctx, "data:vm-101-disk-1", "data:v"))
	must(t, l.Stop(ctx, 101))
	must(t, l.Destroy(ctx, 101))
	must(t, l.AttachVolume(ctx, 102, "data:v", engine.Mount{Path: "/x/y", ReadOnly: true}))
	if out, _ := l.pct(t, 102, "cat /x/y/f; echo z > /x/y/g; findmnt -no FSTYPE /x/y"); !strings.HasPrefix(out, "kept\n") || !strings.Contains(out, "read-only file system") || !strings.HasSuffix(out, "ext4\n") {
		t.Errorf("volume in its second guest: %q", out)
	}
}

func TestGuestsSurviveARestartOfTheLab(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ctx := t.Context()
	first, err := sim.New(sim.Options{Folder: folder, SaveEvery: time.Hour})
	must(t, err)
	l := &lab{Engine: first}
	l.running(t, 101)
	must(t, l.AllocVolume(ctx, "v", 0))
	must(t, l.AttachVolume(ctx, 101, "v", engine.Mount{Path: "/v"}))
	l.pct(t, 101, "echo 1 > /root/f; echo v > /v/f; mkdir /root/empty")
	must(t, l.Snapshot(ctx, 101, "s", "v"))
	must(t, first.Save())
	must(t, l.Clone(ctx, engine.CloneSpec{From: 101, To: 102}))
	l.pct(t, 101, "echo 2 > /root/f; rm /v/f")
	must(t, first.Close())
	second, err := sim.New(sim.Options{Folder: folder})
	must(t, err)
	l = &lab{Engine: second}
	must(t, l.Start(ctx, 101))
	if out, _ := l.pct(t, 101, "cat /root/f; ls /v /root; touch /root/empty/x"); out != "2\nempty\nf\n" && !strings.HasPrefix(out, "2\n") {
		t.Errorf("after restart: %q", out)
	}
	must(t, l.Stop(ctx, 101))
	must(t, l.Rollback(ctx, 101, "s"))
	must(t, l.Start(ctx, 101))
	if out, _ := l.pct(t, 101, "cat /root/f /v/f"); out != "1\nv\n" {
		t.Errorf("after rollback: %q", out)
	}
	if ids := l.List(); !slices.Equal(ids, []int{101, 102}) {
		t.Errorf("guests: %v", ids)
	}
	must(t, second.Close())
}

func TestTwoHundredClonesStartAndRunWithinSeconds(t *testing.T) {
	t.Parallel()
	l := newLab(t, sim.Options{})
	ctx := t.Context()
	must(t, l.CreateRoot(ctx, 1, engine.RootSpec{AuthorizedKeys: []string{l.key}}))
	var wg sync.WaitGroup
	var right atomic.Int32
	begin := time.Now()
	for id := 100; id < 300; id++ {
		wg.Go(func() {
			if err := errors.Join(l.Clone(ctx, engine.CloneSpec{From: 1, To: id, Linked: true}), l.Configure(ctx, id, config(id)), l.Start(ctx, id)); err != nil {
				t.Error(err)
				return
			}
			c, _, err := l.login(id, "root")
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = c.Close() }()
			s, err := c.NewSession()
			if err != nil {
				t.Error(err)
				return
			}
			out, err := s.Output("hostname > /tmp/h; cat /tmp/h")
			if err != nil || string(out) != config(id).Hostname+"\n" {
				t.Errorf("guest %d: %q %v", id, out, err)
				return
			}
			right.Add(1)
		})
	}
	wg.Wait()
	t.Logf("200 clones, starts, logins and commands: %v, %d right", time.Since(begin), right.Load())
}

func TestOpenSSHClientsJumpThroughTheNode(t *testing.T) {
	t.Parallel()
	for _, program := range []string{"ssh", "scp"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("no %s here", program)
		}
	}
	l := newLab(t, sim.Options{})
	l.running(t, 101)
	dir := t.TempDir()
	key := filepath.Join(dir, "key")
	must(t, os.WriteFile(key, l.pem, 0o600))
	host, port, _ := strings.Cut(l.node.Address(), ":")
	conf := filepath.Join(dir, "config")
	known := filepath.Join(dir, "known_hosts")
	must(t, os.WriteFile(conf, []byte("Host *\n IdentityFile "+key+"\n IdentitiesOnly yes\n StrictHostKeyChecking accept-new\n UserKnownHostsFile "+known+"\n LogLevel ERROR\nHost jump\n HostName "+host+"\n Port "+port+"\n User root\nHost 10.*\n ProxyJump jump\n User root\n"), 0o600))
	run := func(stdin string, argv ...string) (string, int) {
		c := exec.CommandContext(t.Context(), argv[0], append([]string{"-F", conf}, argv[1:]...)...)
		c.Stdin = strings.NewReader(stdin)
		out, err := c.CombinedOutput()
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return string(out), exit.ExitCode()
		}
		must(t, err)
		return string(out), 0
	}
	if out, status := run("in", "ssh", address(101), "cat; hostname; exit 7"); out != "insb-101\n" || status != 7 {
		t.Errorf("exec: %q %d", out, status)
	}
	if out, status := run("echo a\nexit 3\n", "ssh", "-T", address(101)); out != "a\n" || status != 3 {
		t.Errorf("shell: %q %d", out, status)
	}
	if out, _ := run("", "ssh", "-tt", address(101), "echo tty"); !strings.Contains(out, "tty\r\n") {
		t.Errorf("terminal: %q", out)
	}
	if out, status := run("", "scp", conf, address(101)+":/root/c"); status != 0 {
		t.Errorf("scp: %q", out)
	}
	if out, _ := l.pct(t, 101, "grep -c ProxyJump /root/c"); out != "1\n" {
		t.Errorf("copied: %q", out)
	}
}
