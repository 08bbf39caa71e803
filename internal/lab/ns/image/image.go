//go:build linux

package image

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sys/unix"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// The images that there are.
const (
	// Tiny is built in seconds: OpenSSH, git, GNU's core utilities and util-linux, busybox for the rest. No package manager.
	Tiny = "tiny"
	// Debian is a minimal Debian 12 with OpenSSH, git and apt.
	Debian = "debian-12"
)

// Default is what is taken when nobody asks for an image by name.
const Default = Tiny

// Image is a built image: a tar file in the cache.
type Image struct {
	Name string
	// Key is unlike for every recipe; it names the file in the cache.
	Key string
	// Tar is the file.
	Tar string
}

// recipe says how an image is made. Text is what the cache's key depends on: whatever changes the image must be in it.
type recipe struct {
	needs []string // programs
	text  func() string
	build func(ctx context.Context, dir, tar string) error
}

var recipes = map[string]recipe{
	Tiny:   {needs: []string{"apt-get", "dpkg-deb"}, text: tinyText, build: buildTiny},
	Debian: {needs: []string{"apt-get", "mmdebstrap"}, text: debianText, build: buildDebian},
}

// Names lists the images.
func Names() []string { return slices.Sorted(maps.Keys(recipes)) }

// find gives an image's place in the cache, built or not.
func find(cache, name string) (Image, recipe, error) {
	if name == "" {
		name = Default
	}
	r, ok := recipes[name]
	if !ok {
		return Image{}, r, fmt.Errorf("image %q (there are %v): %w", name, Names(), engine.ErrInvalid)
	}
	sum := sha256.Sum256([]byte(runtime.GOARCH + "\n" + r.text()))
	key := name + "-" + hex.EncodeToString(sum[:6])
	return Image{Name: name, Key: key, Tar: filepath.Join(cache, key+".tar")}, r, nil
}

// Ensure returns an image from the cache, building it if it isn't there. One process builds at a time.
func Ensure(ctx context.Context, cache, name string, log *slog.Logger) (Image, error) {
	i, r, err := find(cache, name)
	if err != nil {
		return i, err
	}
	if _, err := os.Stat(i.Tar); err == nil {
		return i, nil
	}
	for _, program := range r.needs {
		if _, err := exec.LookPath(program); err != nil {
			return i, fmt.Errorf("image %s can't be built on this machine: %s is missing (on Debian: apt-get install %s): %w", i.Name, program, packageOf(program), err)
		}
	}
	if err := os.MkdirAll(cache, 0o755); err != nil { //nolint:gosec // nothing in it is secret
		return i, err
	}
	lock, err := os.OpenFile(filepath.Join(cache, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return i, err
	}
	defer func() { _ = lock.Close() }()
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX); err != nil {
		return i, fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	if _, err := os.Stat(i.Tar); err == nil {
		return i, nil // somebody else built it meanwhile
	} else if !errors.Is(err, fs.ErrNotExist) {
		return i, err
	}
	log.Warn("building a base image, once", "image", i.Name, "file", i.Tar)
	if err := build(ctx, r, i); err != nil {
		return i, fmt.Errorf("image %s: %w", i.Name, err)
	}
	return i, nil
}

// build makes the file under another name first, so that a half-built one is never taken for an image.
func build(ctx context.Context, r recipe, i Image) (err error) {
	dir, err := os.MkdirTemp(filepath.Dir(i.Tar), "build-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	tar := filepath.Join(dir, "image.tar")
	if err := r.build(ctx, dir, tar); err != nil {
		return err
	}
	return os.Rename(tar, i.Tar)
}

func packageOf(program string) string {
	return map[string]string{"apt-get": "apt", "dpkg-deb": "dpkg"}[program] + map[string]string{"mmdebstrap": "mmdebstrap"}[program]
}

// output runs a program and gives what it prints, or an error with what it complained about.
func output(ctx context.Context, dir string, argv ...string) ([]byte, error) {
	c := exec.CommandContext(ctx, argv[0], argv[1:]...)
	c.Dir = dir
	out, err := c.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, tail(failed.Stderr))
	}
	if err != nil {
		return out, fmt.Errorf("%s: %w", argv[0], err)
	}
	return out, nil
}

// tail is the end of what a program said, where the reason usually stands.
func tail(said []byte) string {
	const most = 1000
	if len(said) > most {
		said = said[len(said)-most:]
	}
	return string(said)
}
