//go:build linux

package guestinit

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/wire"
)

// grace is how long processes have between the request to end and the end. LXC waits longer, for the sake of databases.
const grace = time.Second

// respawn is the pause before a service that ended is started again.
const respawn = 200 * time.Millisecond

// environment is what `pct exec` gives to a command.
var environment = []string{
	"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "USER=root", "LOGNAME=root", "SHELL=/bin/bash",
	"TERM=linux", "container=lxc",
}

// processes are those that this init started; all others that end are orphans, which are collected and forgotten.
type processes struct {
	mu      sync.Mutex // held while one is started, so that its end can't be seen before it is known
	waiting map[int]chan syscall.WaitStatus
	empty   chan struct{} // closed by the reaper when there is no process left, once stopping
	ending  bool
}

func newProcesses() *processes {
	p := &processes{waiting: map[int]chan syscall.WaitStatus{}, empty: make(chan struct{})}
	ended := make(chan os.Signal, 1)
	signal.Notify(ended, syscall.SIGCHLD)
	go func() {
		for range ended {
			p.reap()
		}
	}()
	return p
}

func (p *processes) reap() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for {
		var status syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &status, syscall.WNOHANG, nil)
		if errors.Is(err, syscall.EINTR) {
			continue
		}
		if errors.Is(err, syscall.ECHILD) && p.ending {
			select {
			case <-p.empty:
			default:
				close(p.empty)
			}
		}
		if err != nil || pid <= 0 {
			return
		}
		if done := p.waiting[pid]; done != nil {
			delete(p.waiting, pid)
			done <- status
		}
	}
}

// spawn starts a process in a session of its own. Its wait status comes through the channel.
func (p *processes) spawn(argv, env []string, files []*os.File) (int, <-chan syscall.WaitStatus, error) {
	path, err := exec.LookPath(argv[0])
	if err != nil {
		return 0, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	process, err := os.StartProcess(path, argv, &os.ProcAttr{Dir: "/", Env: env, Files: files, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return 0, nil, err
	}
	done := make(chan syscall.WaitStatus, 1)
	p.waiting[process.Pid] = done
	pid := process.Pid
	return pid, done, process.Release() // the reaper waits
}

// start sets the system call filter, which all that follows inherits, and starts the services.
func (p *processes) start(s Start) error {
	if err := os.Setenv("PATH", strings.TrimPrefix(environment[0], "PATH=")); err != nil {
		return err
	}
	if err := restrict(); err != nil {
		return fmt.Errorf("system call filter: %w", err)
	}
	for _, argv := range s.Services {
		done, err := p.service(argv)
		if err != nil {
			return fmt.Errorf("service %s: %w", argv[0], err)
		}
		go p.keep(argv, done)
	}
	return nil
}

func (p *processes) service(argv []string) (<-chan syscall.WaitStatus, error) {
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, err
	}
	defer func() { _ = null.Close() }()
	_, done, err := p.spawn(argv, environment, []*os.File{null, os.Stdout, os.Stderr})
	return done, err
}

// keep starts a service again when it ends, as an init does.
func (p *processes) keep(argv []string, done <-chan syscall.WaitStatus) {
	for {
		<-done
		time.Sleep(respawn)
		p.mu.Lock()
		ending := p.ending
		p.mu.Unlock()
		if ending {
			return
		}
		again, err := p.service(argv)
		if err != nil {
			fmt.Fprintf(os.Stderr, "init: service %s doesn't start again: %v\n", argv[0], err)
			return
		}
		done = again
	}
}

// exec runs a command to its end, or to the caller's.
func (p *processes) exec(ctx context.Context, c *wire.Call) (any, error) {
	var x Exec
	if err := c.Args(&x); err != nil {
		return nil, err
	}
	if len(c.Files) != 3 || len(x.Argv) == 0 {
		return nil, errors.New("a command needs three files and a name")
	}
	pid, done, err := p.spawn(x.Argv, slices.Concat(environment, x.Env), c.Files)
	if err != nil {
		fmt.Fprintf(c.Files[2], "%s: %v\n", x.Argv[0], err)
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, os.ErrNotExist) {
			return 127, nil // as a shell says it
		}
		return 126, nil
	}
	for _, f := range c.Files { // the command has them; its end must be the end of the streams
		_ = f.Close()
	}
	c.Files = nil
	select {
	case status := <-done:
		return exitCode(status), nil
	case <-ctx.Done():
		_ = unix.Kill(-pid, unix.SIGKILL)
		return nil, ctx.Err()
	}
}

func exitCode(status syscall.WaitStatus) int {
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// stopAll asks all processes to end, and ends those that don't.
func (p *processes) stopAll() {
	p.mu.Lock()
	p.ending = true
	p.mu.Unlock()
	_ = unix.Kill(-1, unix.SIGTERM)
	_ = unix.Kill(-1, unix.SIGCONT)
	p.reap()
	select {
	case <-p.empty:
	case <-time.After(grace):
		_ = unix.Kill(-1, unix.SIGKILL)
	}
}
