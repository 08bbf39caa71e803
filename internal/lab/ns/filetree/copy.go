//go:build linux

package filetree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// inode tells hard links of one file.
type inode struct{ dev, ino uint64 }

// Copy copies the content of a folder into another, which exists: owners, modes, times, links, extended attributes and
// the device nodes that overlayfs uses as whiteouts. Sockets are left out, as nothing can use a copy of one.
func Copy(ctx context.Context, from, to string) error {
	c := &copier{ctx: ctx, from: from, to: to, seen: map[inode]string{}}
	if err := filepath.WalkDir(from, c.entry); err != nil {
		return fmt.Errorf("copy a file tree: %w", err)
	}
	for i := len(c.folders) - 1; i >= 0; i-- { // times last: what is made in a folder changes them
		if err := c.times(c.folders[i].name, c.folders[i].info); err != nil {
			return fmt.Errorf("copy a file tree: %w", err)
		}
	}
	return nil
}

type copier struct {
	ctx      context.Context
	from, to string
	seen     map[inode]string
	folders  []folder
}

type folder struct {
	name string
	info *syscall.Stat_t
}

func (c *copier) entry(path string, d fs.DirEntry, err error) error {
	if err == nil {
		err = c.ctx.Err()
	}
	if errors.Is(err, fs.ErrNotExist) && path != c.from {
		return nil // a running guest removed it meanwhile
	}
	if err != nil {
		return err
	}
	info, err := d.Info()
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	name, err := filepath.Rel(c.from, path)
	if err != nil {
		return err
	}
	target := filepath.Join(c.to, name)
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: %T", path, info.Sys())
	}
	if !d.IsDir() && stat.Nlink > 1 {
		id := inode{stat.Dev, stat.Ino}
		if first := c.seen[id]; first != "" {
			return os.Link(first, target)
		}
		c.seen[id] = target
	}
	return c.node(path, target, info.Mode(), stat)
}

// node makes one file, folder, link or node.
func (c *copier) node(path, target string, mode fs.FileMode, stat *syscall.Stat_t) error {
	var err error
	switch mode.Type() {
	case 0:
		err = copyFile(path, target)
	case fs.ModeDir:
		c.folders = append(c.folders, folder{target, stat})
		if err = os.Mkdir(target, 0o700); errors.Is(err, fs.ErrExist) && target == c.to {
			err = nil
		}
	case fs.ModeSymlink:
		var to string
		if to, err = os.Readlink(path); err == nil {
			err = os.Symlink(to, target)
		}
	case fs.ModeSocket:
		return nil
	default:
		err = unix.Mknod(target, stat.Mode, int(stat.Rdev))
	}
	if err == nil {
		err = os.Lchown(target, int(stat.Uid), int(stat.Gid))
	}
	if err == nil && mode.Type() != fs.ModeSymlink {
		err = unix.Chmod(target, stat.Mode&0o7777)
	}
	if err == nil {
		err = copyAttributes(path, target)
	}
	if err == nil && mode.Type() != fs.ModeDir {
		err = c.times(target, stat)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return nil
}

func (c *copier) times(name string, stat *syscall.Stat_t) error {
	t := []unix.Timespec{{Sec: stat.Atim.Sec, Nsec: stat.Atim.Nsec}, {Sec: stat.Mtim.Sec, Nsec: stat.Mtim.Nsec}}
	return unix.UtimesNanoAt(unix.AT_FDCWD, name, t, unix.AT_SYMLINK_NOFOLLOW)
}

// copyFile shares the blocks where the file system can, and has the kernel copy them otherwise.
func copyFile(from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, out.Close()) }()
	if unix.IoctlFileClone(int(out.Fd()), int(in.Fd())) == nil {
		return nil
	}
	_, err = io.Copy(out, in)
	return err
}

// copyAttributes copies extended attributes; what the file system at the target doesn't know is left out.
func copyAttributes(from, to string) error {
	size, err := unix.Llistxattr(from, nil)
	if err != nil || size == 0 {
		return ignoreUnsupported(err)
	}
	list := make([]byte, size)
	if size, err = unix.Llistxattr(from, list); err != nil {
		return err
	}
	for _, name := range splitNames(list[:size]) {
		value := make([]byte, 64<<10) // the kernel's limit for a value
		n, err := unix.Lgetxattr(from, name, value)
		if errors.Is(err, unix.ENODATA) {
			continue
		}
		if err == nil {
			err = unix.Lsetxattr(to, name, value[:n], 0)
		}
		if err = ignoreUnsupported(err); err != nil {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return nil
}

func ignoreUnsupported(err error) error {
	if errors.Is(err, unix.ENOTSUP) {
		return nil
	}
	return err
}

func splitNames(list []byte) []string {
	var names []string
	for start, i := 0, 0; i < len(list); i++ {
		if list[i] == 0 {
			names = append(names, string(list[start:i]))
			start = i + 1
		}
	}
	return names
}

// Size is what the files of a tree take on the disk, in bytes. Files that vanish meanwhile don't count.
func Size(dir string) int64 {
	var sum int64
	seen := map[inode]bool{}
	_ = filepath.WalkDir(dir, func(_ string, d fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		info, err := d.Info()
		if err != nil {
			return nil //nolint:nilerr // see above
		}
		if stat, ok := info.Sys().(*syscall.Stat_t); ok {
			if id := (inode{stat.Dev, stat.Ino}); !seen[id] {
				seen[id] = true
				sum += stat.Blocks * 512
			}
		}
		return nil
	})
	return sum
}
