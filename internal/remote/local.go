package remote

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"time"
)

// Command runs scripts by a program of this machine: argv, then sh with the
// script. Local(), Chroot and "docker exec" are of this kind.
type Command struct {
	// Argv comes before "sh -c SCRIPT sh ARGS…"; empty runs the shell here.
	Argv []string
	// Env is the whole environment, "NAME=value"; nil is a short one without
	// anything of ours.
	Env []string
}

var cleanEnv = []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/root", "LANG=C.UTF-8", "LC_ALL=C.UTF-8"}

// Chroot runs scripts in a folder that holds a root filesystem, in mount, process
// and IPC namespaces of their own that end with the script. It needs root, and
// trusts what is in the folder: its programs run. The network is this machine's,
// for package downloads.
func Chroot(dir string) Command {
	return Command{Argv: []string{
		"unshare", "--mount", "--pid", "--ipc", "--uts", "--fork", "--kill-child", "--propagation", "private",
		"sh", "-ec", `
mount -t proc -o nosuid,nodev,noexec proc "$1/proc"
mount -t tmpfs -o nosuid,mode=755,size=1m tmpfs "$1/dev"
for n in null zero full random urandom tty; do : >"$1/dev/$n"; mount --bind "/dev/$n" "$1/dev/$n"; done
ln -s /proc/self/fd "$1/dev/fd"; ln -s fd/0 "$1/dev/stdin"; ln -s fd/1 "$1/dev/stdout"; ln -s fd/2 "$1/dev/stderr"
mkdir "$1/dev/shm" "$1/dev/pts"
dir=$1; shift; exec chroot "$dir" "$@"`, "chroot", dir,
	}}
}

// Run implements Runner.
func (c Command) Run(ctx context.Context, s Script) (Result, error) {
	argv := append(slices.Clone(c.Argv), "sh", "-c", s.Text, "sh")
	argv = append(argv, s.Args...)
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = c.Env
	if cmd.Env == nil {
		cmd.Env = cleanEnv
	}
	cmd.WaitDelay = 5 * time.Second
	stdout, stderr := NewCapture(s.Limit), NewCapture(s.Limit)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = s.Stdin, stdout, stderr
	err := cmd.Run()
	res := Result{Stdout: stdout.Bytes(), Stderr: stderr.Bytes(), Truncated: stdout.Truncated()}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return res, context.Cause(ctx)
	case errors.As(err, &exit) && exit.Exited():
		res.ExitCode = exit.ExitCode()
		return res, nil
	case err != nil:
		return res, fmt.Errorf("run a script by %s: %w", argv[0], err)
	}
	return res, nil
}
