//go:build unix

package guest

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"syscall"
)

// runShell runs a command line as sshd does: by the login shell, in a process
// group of its own that signals go to.
func runShell(line string, ch *execChannel) { runShellIn("/bin/sh", nil, line, ch) }

func runShellIn(shell string, env []string, line string, ch *execChannel) {
	cmd := exec.Command(shell, "-c", line)
	cmd.Env = append([]string{"PATH=" + os.Getenv("PATH"), "HOME=/", "SSH_CONNECTION=192.0.2.7 50000 192.0.2.9 22"}, env...)
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr = ch, ch.Stderr()
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		ch.exit(255)
		return
	}
	if err := cmd.Start(); err != nil {
		ch.exit(127)
		return
	}
	go func() {
		_, _ = io.Copy(stdin, ch)
		_ = stdin.Close()
	}()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		numbers := map[string]syscall.Signal{"TERM": syscall.SIGTERM, "KILL": syscall.SIGKILL}
		for {
			select {
			case name := <-ch.signals:
				_ = syscall.Kill(-cmd.Process.Pid, numbers[name])
			case <-ch.ctx.Done(): // the client is gone
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				return
			case <-ended:
				return
			}
		}
	}()
	err = cmd.Wait()
	var exit *exec.ExitError
	switch {
	case err == nil:
		ch.exit(0)
	case errors.As(err, &exit):
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() {
			names := map[syscall.Signal]string{syscall.SIGTERM: "TERM", syscall.SIGKILL: "KILL"}
			ch.exitSignal(names[status.Signal()])
			return
		}
		ch.exit(exit.ExitCode())
	default:
		ch.exit(255)
	}
}
