//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// inNamespace runs do in a namespace of a process ("net", "mnt"), on a thread that nothing else ever runs on: it is thrown
// away, as there is no way back from another mount namespace.
func inNamespace(pid int, kind string, do func() error) error {
	result := make(chan error, 1)
	go func() {
		runtime.LockOSThread() // and never unlock
		result <- enter(pid, kind, do)
	}()
	return <-result
}

func enter(pid int, kind string, do func() error) error {
	f, err := os.Open(fmt.Sprintf("/proc/%d/ns/%s", pid, kind))
	if err != nil {
		return err
	}
	defer func() { _ = f.Close() }()
	flag := unix.CLONE_NEWNET
	if kind == "mnt" {
		flag = unix.CLONE_NEWNS
		if err := unix.Unshare(unix.CLONE_FS); err != nil { // the kernel's condition
			return fmt.Errorf("separate a thread: %w", err)
		}
	}
	if err := unix.Setns(int(f.Fd()), flag); err != nil {
		return fmt.Errorf("enter the %s namespace of process %d: %w", kind, pid, err)
	}
	return do()
}

// mountInside mounts a folder of the supervisor's view in a guest. The path is looked up in the guest, so that links in it
// can't lead out.
func mountInside(pid int, folder, at string, readOnly bool) error {
	tree, err := unix.OpenTree(unix.AT_FDCWD, folder, unix.OPEN_TREE_CLONE|unix.OPEN_TREE_CLOEXEC)
	if err != nil {
		return fmt.Errorf("mount %s: %w", at, err)
	}
	defer func() { _ = unix.Close(tree) }()
	attributes := unix.MountAttr{Attr_set: unix.MOUNT_ATTR_NODEV}
	if readOnly {
		attributes.Attr_set |= unix.MOUNT_ATTR_RDONLY
	}
	if err := unix.MountSetattr(tree, "", unix.AT_EMPTY_PATH, &attributes); err != nil {
		return fmt.Errorf("mount %s: %w", at, err)
	}
	return inNamespace(pid, "mnt", func() error {
		if err := unix.MoveMount(tree, "", unix.AT_FDCWD, at, unix.MOVE_MOUNT_F_EMPTY_PATH); err != nil {
			return fmt.Errorf("mount %s: %w", at, err)
		}
		return nil
	})
}

func unmountInside(pid int, at string) error {
	return inNamespace(pid, "mnt", func() error {
		if err := unix.Unmount(at, unix.MNT_DETACH); err != nil && !errors.Is(err, unix.EINVAL) { // it was unmounted in the guest
			return fmt.Errorf("unmount %s: %w", at, err)
		}
		return nil
	})
}
