//go:build linux

package ns

import (
	"bytes"
	"context"
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
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/supervisor"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// process is a running supervisor.
type process struct {
	command *exec.Cmd
	control *net.UnixConn
	said    *complaints
	waited  chan struct{}
}

// launch starts a supervisor in namespaces of its own. It inherits the lock of the lab's folder. It ends by itself when
// the control socket does, so also when this process is killed.
func launch(lock *os.File) (*process, error) {
	defer func() { _ = lock.Close() }()
	if err := findFilter(); err != nil {
		return nil, err
	}
	control, theirs, err := wire.Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	ready, release, err := os.Pipe()
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer func() { _, _ = ready.Close(), release.Close() }()
	p := &process{control: control, said: &complaints{}, waited: make(chan struct{})}
	p.command = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{supervisor.Argv0}, Env: environment(), Dir: "/", Stderr: p.said,
		ExtraFiles: []*os.File{theirs, ready, lock},
		SysProcAttr: &syscall.SysProcAttr{
			Setsid:     true, // Ctrl-C is the program's to handle, not the lab's
			Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWNET | unix.CLONE_NEWPID | unix.CLONE_NEWIPC | unix.CLONE_NEWUTS,
		},
		WaitDelay: time.Second,
	}
	var ids *subordinate
	if os.Geteuid() != 0 {
		if ids, err = findSubordinate(); err != nil {
			return nil, errors.Join(err, control.Close())
		}
		p.command.SysProcAttr.Cloneflags |= unix.CLONE_NEWUSER
		p.command.Args = append(p.command.Args, supervisor.Wait)
	}
	if err := p.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("this machine lets no namespaces be made: %w", err), control.Close())
	}
	go func() {
		_ = p.command.Wait()
		close(p.waited)
	}()
	if ids != nil {
		if err := ids.mapInto(context.Background(), p.command.Process.Pid); err != nil {
			return nil, errors.Join(err, p.end())
		}
	}
	return p, nil
}

// end hangs up, which ends the supervisor, and waits for it.
func (p *process) end() error {
	err := p.control.Close()
	select {
	case <-p.waited:
	case <-time.After(closePatience):
		_ = p.command.Process.Kill()
		<-p.waited
		err = errors.Join(err, errors.New("the lab's supervisor had to be killed"))
	}
	if said := p.said.String(); said != "" {
		err = errors.Join(err, errors.New(said))
	}
	return err
}

// environment is what a supervisor needs of this process': where programs are, nothing that is secret.
func environment() []string { return []string{"PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"} }

// complaints keep the end of what a supervisor says on stderr, which is nothing as long as all is well.
type complaints struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (c *complaints) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.b.Len() > 64<<10 {
		c.b.Reset()
	}
	return c.b.Write(b)
}

func (c *complaints) String() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return strings.TrimSpace(c.b.String())
}

// subordinate are the ids that an ordinary user may give to guests.
type subordinate struct{ uids, gids idRange }

type idRange struct{ first, count string }

func findSubordinate() (*subordinate, error) {
	me, err := user.Current()
	if err != nil {
		return nil, err
	}
	var s subordinate
	for file, into := range map[string]*idRange{"/etc/subuid": &s.uids, "/etc/subgid": &s.gids} {
		if *into, err = readRange(file, me); err != nil {
			return nil, err
		}
	}
	for _, program := range []string{"newuidmap", "newgidmap"} {
		if _, err := exec.LookPath(program); err != nil {
			return nil, fmt.Errorf("%s is missing (on Debian: apt-get install uidmap), or run as root: %w", program, err)
		}
	}
	return &s, nil
}

// readRange finds a user's range in subuid(5) or subgid(5): name or number, first id, count.
func readRange(file string, me *user.User) (idRange, error) {
	remedy := fmt.Errorf("%s has no range of %d ids for %s: add one (usermod --add-subuids 200000-265535 --add-subgids 200000-265535 %s), or run as root",
		file, supervisor.IDCount, me.Username, me.Username)
	text, err := os.ReadFile(file)
	if err != nil {
		return idRange{}, errors.Join(remedy, err)
	}
	for line := range strings.SplitSeq(string(text), "\n") {
		f := strings.Split(strings.TrimSpace(line), ":")
		if len(f) != 3 || (f[0] != me.Username && f[0] != me.Uid) {
			continue
		}
		if n, err := strconv.Atoi(f[2]); err == nil && n >= supervisor.IDCount {
			return idRange{f[1], f[2]}, nil
		}
	}
	return idRange{}, remedy
}

// mapInto writes the maps of a process' user namespace: this user is its root, the subordinate ids follow.
func (s *subordinate) mapInto(ctx context.Context, pid int) error {
	for _, m := range []struct {
		program string
		own     int
		ids     idRange
	}{{"newuidmap", os.Getuid(), s.uids}, {"newgidmap", os.Getgid(), s.gids}} {
		c := exec.CommandContext(ctx, m.program, strconv.Itoa(pid), "0", strconv.Itoa(m.own), "1",
			strconv.Itoa(supervisor.UserIDBase), m.ids.first, m.ids.count)
		if out, err := c.CombinedOutput(); err != nil {
			return fmt.Errorf("%s: %w: %s", m.program, err, bytes.TrimSpace(out))
		}
	}
	return nil
}

// findFilter says early that nft is missing: a lab whose firewall lets everything pass would teach what isn't so.
func findFilter() error {
	path := filepath.SplitList(strings.TrimPrefix(environment()[0], "PATH="))
	for _, dir := range path {
		if unix.Access(filepath.Join(dir, "nft"), unix.X_OK) == nil {
			return nil
		}
	}
	return errors.New("nft is missing (on Debian: apt-get install nftables), which the lab's firewall is made with")
}
