//go:build linux

package supervisor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/cgroup"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/guestinit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// running is what a guest has while it runs.
type running struct {
	command   *exec.Cmd
	init      *wire.Client
	ended     chan struct{} // closed when the init is gone, and with it every process of the guest
	limits    *cgroup.Guest
	host      *host
	root      string
	bootID    string
	startedAt time.Time
}

func (r *running) pid() int { return r.command.Process.Pid }

// spawn starts a guest's init in namespaces of its own. It waits for calls and has done nothing yet.
func (s *Supervisor) spawn(id int) (*running, error) {
	control, theirs, err := wire.Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	console, err := s.openConsole(id)
	if err != nil {
		return nil, errors.Join(err, control.Close())
	}
	defer func() { _ = console.Close() }()
	r := &running{init: wire.NewClient(control), ended: make(chan struct{}), startedAt: time.Now()}
	r.command = &exec.Cmd{
		Path: "/proc/self/exe", Args: []string{guestinit.Argv0}, Dir: "/", Stdout: console, Stderr: console, ExtraFiles: []*os.File{theirs},
		// One processor's worth of runtime is plenty for an init, and each thread costs memory.
		Env: []string{"GOMAXPROCS=1"},
	}
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: s.idBase, Size: IDCount}}
	r.command.SysProcAttr = &syscall.SysProcAttr{
		Setsid:      true,
		Cloneflags:  unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWNET,
		UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
		Credential: &syscall.Credential{Uid: 0, Gid: 0},
	}
	if err := r.command.Start(); err != nil {
		return nil, errors.Join(fmt.Errorf("start the init: %w", err), control.Close())
	}
	go func() {
		_ = r.command.Wait()
		_ = control.Close()
		close(r.ended)
	}()
	return r, nil
}

// openConsole opens the file that the guest's services write to.
func (s *Supervisor) openConsole(id int) (*os.File, error) {
	name := s.place.console(id)
	if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
		return nil, err
	}
	return os.OpenFile(name, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
}

// kill ends the guest's processes and waits until they are gone.
func (r *running) kill() {
	_ = r.command.Process.Kill() // process 1 takes its namespace along
	<-r.ended
}

// freeze stops the guest's processes where they are. A guest that doesn't run needs none of that.
func (r *running) freeze(ctx context.Context) (thaw func(), err error) {
	if r == nil {
		return func() {}, nil
	}
	thaw, frozen, err := r.limits.Freeze(ctx)
	if frozen || err != nil {
		return thaw, err
	}
	if _, err := r.init.Call(ctx, guestinit.CallPause, true, nil); err != nil {
		return func() {}, fmt.Errorf("pause: %w", err)
	}
	return func() { _, _ = r.init.Call(context.WithoutCancel(ctx), guestinit.CallPause, false, nil) }, nil
}

func (r *running) processes(ctx context.Context) int {
	if n := r.limits.Processes(); n > 0 {
		return n
	}
	var n int
	_, _ = r.init.Call(ctx, guestinit.CallCount, struct{}{}, &n) // a guest that just ended has none
	return n
}
