//go:build linux

package supervisor

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// place is where things are in the supervisor's own view of the file system. Guests' roots lie on a memory file system that
// only this view has, so that no folder on the way to them must be open to the guests' users.
type place struct {
	state string // the lab's folder
	cache string // base images
	roots string // mount points of running guests' roots
}

// newPlace separates this process' mounts from the machine's and makes the place.
func newPlace(o Open) (place, error) {
	var p place
	state, err := os.Open(o.Folder)
	if err != nil {
		return p, err
	}
	defer func() { _ = state.Close() }()
	cache, err := os.Open(o.Cache)
	if err != nil {
		return p, err
	}
	defer func() { _ = cache.Close() }()
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return p, fmt.Errorf("separate the mounts: %w", err)
	}
	if err := unix.Mount("proc", "/proc", "proc", unix.MS_NOSUID|unix.MS_NODEV|unix.MS_NOEXEC, ""); err != nil {
		return p, fmt.Errorf("mount /proc: %w", err)
	}
	top, err := anyFolder("/mnt", "/srv", "/media", "/opt")
	if err != nil {
		return p, err
	}
	if err := unix.Mount("lab", top, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755"); err != nil {
		return p, fmt.Errorf("mount %s: %w", top, err)
	}
	p = place{state: filepath.Join(top, "s"), cache: filepath.Join(top, "c"), roots: filepath.Join(top, "r")}
	for _, dir := range []string{p.state, p.cache, p.roots} {
		if err := os.Mkdir(dir, 0o755); err != nil { //nolint:gosec // guests' users must get through
			return p, err
		}
	}
	if err := bind(cache, p.cache); err != nil {
		return p, err
	}
	return p, p.bindState(state, o)
}

// bindState puts the lab's folder in its place. An overlay can't have its upper layer on another overlay, which is what a
// container's own root usually is: what is temporary is kept in memory then.
func (p place) bindState(state *os.File, o Open) error {
	var on unix.Statfs_t
	if err := unix.Fstatfs(int(state.Fd()), &on); err != nil {
		return err
	}
	if on.Type != unix.OVERLAYFS_SUPER_MAGIC {
		return bind(state, p.state)
	}
	if !o.Temporary {
		return fmt.Errorf("%s lies on an overlay file system, which can't hold guests: choose a folder on a disk or a volume", o.Folder)
	}
	return unix.Mount("lab", p.state, "tmpfs", unix.MS_NOSUID|unix.MS_NODEV, "mode=755")
}

func bind(dir *os.File, to string) error {
	if err := unix.Mount(fmt.Sprintf("/proc/self/fd/%d", dir.Fd()), to, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("bind %s: %w", dir.Name(), err)
	}
	return nil
}

func anyFolder(candidates ...string) (string, error) {
	for _, c := range candidates {
		if info, err := os.Stat(c); err == nil && info.IsDir() {
			return c, nil
		} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", err
		}
	}
	return "", fmt.Errorf("none of the folders %v exists, of which one is needed as a mount point", candidates)
}

func (p place) layer(n int) string  { return filepath.Join(p.state, "l", fmt.Sprint(n)) }
func (p place) data(n int) string   { return filepath.Join(p.layer(n), "d") }
func (p place) work(n int) string   { return filepath.Join(p.layer(n), "w") }
func (p place) root(id int) string  { return filepath.Join(p.roots, fmt.Sprint(id)) }
func (p place) volume(n int) string { return filepath.Join(p.state, "v", fmt.Sprint(n)) }
func (p place) index() string       { return filepath.Join(p.state, "index.json") }
func (p place) console(id int) string {
	return filepath.Join(p.state, "log", fmt.Sprint(id))
}
