//go:build linux

package guestinit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"
)

// harmless are the mount flags of everything that isn't the guest's own disk.
const harmless = unix.MS_NOSUID | unix.MS_NODEV | unix.MS_NOEXEC

// setUp makes the mounts that LXC makes for an unprivileged container and moves into the root. Nothing of the machine's own
// file systems stays reachable.
func setUp(s Setup) error {
	for _, step := range []struct {
		what string
		do   func() error
	}{
		{"host name", func() error { return unix.Sethostname([]byte(s.Hostname)) }},
		{"keep mounts to itself", func() error { return unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, "") }},
		// A mount that was inherited from another user namespace can't become a root; one of one's own can.
		{"own the root", func() error { return unix.Mount(s.Root, s.Root, "", unix.MS_BIND|unix.MS_REC, "") }},
		{"enter the root", func() error { return os.Chdir(s.Root) }},
		{"mount points", mountPoints},
		{"/proc", func() error { return unix.Mount("proc", "proc", "proc", harmless, "") }},
		{"/sys", func() error { return unix.Mount("sysfs", "sys", "sysfs", harmless|unix.MS_RDONLY, "") }},
		{"/dev", devices},
		{"/run", func() error { return unix.Mount("tmpfs", "run", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755") }},
		{"boot id", func() error { return bootID(s.BootID) }},
		{"what /proc must not let in", protectProc},
		{"change the root", func() error { return unix.PivotRoot(".", ".") }},
		{"leave the old root", func() error { return unix.Unmount(".", unix.MNT_DETACH) }},
		{"enter the new root", func() error { return os.Chdir("/") }},
		{"/run's folders", runFolders},
	} {
		if err := step.do(); err != nil {
			return fmt.Errorf("%s: %w", step.what, err)
		}
	}
	unix.Umask(0o022)
	return nil
}

func mountPoints() error {
	for _, d := range []string{"proc", "sys", "dev", "run", "tmp", "root"} {
		if err := os.Mkdir(d, 0o755); err != nil && !errors.Is(err, fs.ErrExist) { //nolint:gosec // as every root has them
			return err
		}
	}
	return nil
}

// devices makes a /dev with the nodes that a container may have. They are bound from outside: an unprivileged user can't
// make any.
func devices() error {
	if err := unix.Mount("none", "dev", "tmpfs", unix.MS_NOSUID, "mode=755,size=500k"); err != nil {
		return err
	}
	for _, n := range []string{"null", "zero", "full", "random", "urandom", "tty"} {
		f, err := os.Create("dev/" + n)
		if err != nil {
			return err
		}
		if err := f.Close(); err != nil {
			return err
		}
		if err := unix.Mount("/dev/"+n, "dev/"+n, "", unix.MS_BIND, ""); err != nil {
			return fmt.Errorf("%s: %w", n, err)
		}
	}
	if err := errors.Join(os.Mkdir("dev/pts", 0o755), os.Mkdir("dev/shm", 0o755)); err != nil { //nolint:gosec // as every /dev has them
		return err
	}
	// Group 5 is tty in Debian; a namespace that doesn't map it has no such option.
	const options = "newinstance,ptmxmode=0666,mode=0620"
	err := unix.Mount("devpts", "dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options+",gid=5")
	if err != nil {
		err = unix.Mount("devpts", "dev/pts", "devpts", unix.MS_NOSUID|unix.MS_NOEXEC, options)
	}
	if err != nil {
		return fmt.Errorf("pts: %w", err)
	}
	if err := unix.Mount("tmpfs", "dev/shm", "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=1777"); err != nil {
		return fmt.Errorf("shm: %w", err)
	}
	for name, to := range map[string]string{
		"ptmx": "pts/ptmx", "fd": "/proc/self/fd", "stdin": "/proc/self/fd/0", "stdout": "/proc/self/fd/1", "stderr": "/proc/self/fd/2",
	} {
		if err := os.Symlink(to, "dev/"+name); err != nil {
			return err
		}
	}
	return nil
}

// bootID shows an id of the guest's own where programs look for the machine's.
func bootID(id string) error {
	const at = "proc/sys/kernel/random/boot_id"
	if err := os.WriteFile("dev/.boot_id", []byte(id+"\n"), 0o444); err != nil { //nolint:gosec // everybody may read it
		return err
	}
	return unix.Mount("dev/.boot_id", at, "", unix.MS_BIND, "")
}

// protectProc leaves of /proc/sys only the network's part writable, which is the guest's own, and closes what reaches
// past the namespaces.
func protectProc() error {
	if err := unix.Mount("proc/sys/net", "proc/sys/net", "", unix.MS_BIND, ""); err != nil {
		return err
	}
	for _, p := range []string{"proc/sys", "proc/sysrq-trigger", "proc/irq", "proc/bus", "proc/fs"} {
		err := unix.Mount(p, p, "", unix.MS_BIND|unix.MS_REC, "")
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = unix.Mount("", p, "", unix.MS_BIND|unix.MS_REMOUNT|unix.MS_RDONLY|harmless, "")
		}
		if err != nil {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	for _, p := range []string{"proc/kcore", "proc/keys", "proc/timer_list", "proc/sched_debug"} {
		if err := unix.Mount("/dev/null", p, "", unix.MS_BIND, ""); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: %w", p, err)
		}
	}
	return nil
}

// runFolders makes what packages expect in /run and their own scripts would have made.
func runFolders() error {
	for _, d := range []struct {
		name string
		mode fs.FileMode
	}{{"/run/sshd", 0o755}, {"/run/lock", 0o777 | fs.ModeSticky}, {"/run/user", 0o755}, {"/run/user/0", 0o700}} {
		if err := os.Mkdir(d.name, 0o700); err != nil {
			return err
		}
		if err := os.Chmod(d.name, d.mode); err != nil {
			return err
		}
	}
	return nil
}

// count counts the guest's processes but this one's own threads.
func count() (int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, err
	}
	n := 0
	for _, e := range entries {
		if strings.Trim(e.Name(), "0123456789") == "" {
			n++
		}
	}
	return n, nil
}
