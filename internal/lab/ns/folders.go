//go:build linux

package ns

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/cgroup"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/ns/supervisor"
)

// cacheVariable names the folder of the cache.
const cacheVariable = "SANDBOX_LAB_CACHE"

// cacheFolder finds the folder for base images and temporary labs, and makes it.
func cacheFolder(given string) (string, error) {
	dir := given
	if dir == "" {
		dir = os.Getenv(cacheVariable)
	}
	if dir == "" {
		dir = ofCheckout()
	}
	if dir == "" {
		user, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("no place for base images: set %s: %w", cacheVariable, err)
		}
		dir = filepath.Join(user, "sandbox-lab")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	for _, d := range []string{imageFolder(dir), runFolder(dir)} {
		if err := os.MkdirAll(d, 0o755); err != nil { //nolint:gosec // nothing in it is secret; labs' own folders are closed
			return "", err
		}
	}
	return dir, nil
}

// ofCheckout is .cache/lab of this module's checkout, if the working directory is in one.
func ofCheckout() string {
	dir, err := os.Getwd()
	for ; err == nil && dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		module, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(module), "module github.com/agentsandbox/terraform-provider-sandbox") {
			return filepath.Join(dir, ".cache", "lab")
		}
	}
	return ""
}

func imageFolder(cache string) string { return filepath.Join(cache, "images") }
func runFolder(cache string) string   { return filepath.Join(cache, "run") }

// labs counts those of this process.
var labs atomic.Int64

// prepare makes the lab's folder and says what it is like. The file that it returns is locked, and shows others that the
// folder is in use; whoever holds it keeps it so.
func prepare(o Options) (open supervisor.Open, lock *os.File, err error) {
	open = supervisor.Open{
		Folder: o.Folder, Cache: imageFolder(o.Cache), Cgroup: cgroup.Name(os.Getpid(), int(labs.Add(1))),
		UserNamespace: os.Geteuid() != 0, SharedHostKeys: o.SharedHostKeys, DHCP: o.DHCP, Outside: o.Outside,
	}
	cgroup.Sweep(cgroup.Alive)
	sweepRuns(o.Cache)
	leave, err := enterGate(o.Cache)
	if err != nil {
		return open, nil, err
	}
	defer leave()
	if open.Folder == "" {
		open.Temporary = true
		if open.Folder, err = os.MkdirTemp(runFolder(o.Cache), "lab-"); err != nil {
			return open, nil, err
		}
	} else if err := os.MkdirAll(open.Folder, 0o700); err != nil {
		return open, nil, err
	}
	if open.Folder, err = filepath.Abs(open.Folder); err != nil {
		return open, nil, err
	}
	lock, err = lockFile(open.Folder)
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = fmt.Errorf("another lab uses the folder %s", open.Folder)
	}
	return open, lock, err
}

func lockFile(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// enterGate keeps other labs out while a folder of theirs is made and locked, or looked at: between the two a sweep would
// take a folder that was made this moment for a killed lab's. It waits for its turn.
func enterGate(cache string) (leave func(), err error) {
	f, err := os.OpenFile(filepath.Join(cache, "gate"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		if !errors.Is(err, unix.EINTR) {
			break
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { _ = f.Close() }, nil
}

// sweepRuns removes the folders of temporary labs whose supervisor was killed, so that it couldn't.
func sweepRuns(cache string) {
	entries, err := os.ReadDir(runFolder(cache))
	if err != nil {
		return
	}
	for _, e := range entries {
		name := filepath.Join(runFolder(cache), e.Name())
		if lock := lockDead(cache, name); lock != nil {
			_ = Remove(name) // the next lab tries again
			_ = lock.Close()
		}
	}
}

// lockDead locks a folder that no lab uses, else it returns nil.
func lockDead(cache, name string) *os.File {
	leave, err := enterGate(cache)
	if err != nil {
		return nil
	}
	defer leave()
	if _, err := os.Stat(filepath.Join(name, "lock")); err != nil {
		return nil
	}
	lock, err := lockFile(name)
	if err != nil {
		return nil
	}
	return lock
}
