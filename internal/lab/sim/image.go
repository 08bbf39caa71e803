package sim

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/command"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/tree"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

// release is what tells one base image from another.
type release struct{ version, codename, full string }

var releases = map[string]release{
	"debian-12": {"12", "bookworm", "12.12"},
	"debian-13": {"13", "trixie", "13.1"},
}

const defaultImage = "debian-13"

// Images lists the base images.
func (e *Engine) Images() []string { return slices.Sorted(maps.Keys(releases)) }

// image returns a base image, built on first use.
func (e *Engine) image(name string) (*tree.Tree, error) {
	if name == "" {
		name = defaultImage
	}
	r, ok := releases[name]
	if !ok {
		return nil, fmt.Errorf("image %q (there are %v): %w", name, e.Images(), engine.ErrInvalid)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if t := e.images[name]; t != nil {
		return t, nil
	}
	t := tree.New(e.clock.Now, 0)
	if err := build(vfs.New(&vfs.Mount{Path: "/", Tree: t}), r); err != nil {
		return nil, fmt.Errorf("image %s: %w", name, err)
	}
	e.images[name] = t
	return t, nil
}

// build fills a root as a minimal Debian has it.
func build(f *vfs.FS, r release) error {
	var errs []error
	dir := func(name string, mode fs.FileMode) {
		errs = append(errs, f.MkdirAll(vfs.Root, name, mode), f.Chmod(vfs.Root, name, mode))
	}
	file := func(name, text string, mode fs.FileMode) {
		errs = append(errs, f.WriteFile(vfs.Root, name, []byte(text), mode))
	}
	for _, d := range []string{"/boot", "/dev", "/etc/ssh", "/etc/systemd/system", "/etc/default", "/etc/profile.d", "/home", "/media", "/mnt", "/opt", "/proc",
		"/run", "/srv", "/sys", "/usr/bin", "/usr/sbin", "/usr/lib/openssh", "/usr/local/bin", "/usr/local/sbin", "/usr/share", "/var/cache", "/var/lib", "/var/log", "/var/spool"} {
		dir(d, 0o755)
	}
	dir("/root", 0o700)
	dir("/tmp", 0o777|fs.ModeSticky)
	dir("/var/tmp", 0o777|fs.ModeSticky)
	dir("/home/agent", 0o750)
	errs = append(errs, f.Chown(vfs.Root, "/home/agent", 1000, 1000, true),
		f.Symlink(vfs.Root, "usr/bin", "/bin"), f.Symlink(vfs.Root, "usr/sbin", "/sbin"), f.Symlink(vfs.Root, "usr/lib", "/lib"),
		f.Symlink(vfs.Root, "/run", "/var/run"), f.Symlink(vfs.Root, "/proc/mounts", "/etc/mtab"))
	file("/etc/passwd", "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\nsshd:x:101:65534::/run/sshd:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n", 0o644)
	file("/etc/group", "root:x:0:\ndaemon:x:1:\nadm:x:4:\nsudo:x:27:\nusers:x:100:\nnogroup:x:65534:\nagent:x:1000:\n", 0o644)
	file("/etc/shadow", "root:*:20000:0:99999:7:::\nagent:!:20000:0:99999:7:::\n", 0o640)
	file("/etc/os-release", fmt.Sprintf("PRETTY_NAME=\"Debian GNU/Linux %[1]s (%[2]s)\"\nNAME=\"Debian GNU/Linux\"\nVERSION_ID=\"%[1]s\"\nVERSION=\"%[1]s (%[2]s)\"\nVERSION_CODENAME=%[2]s\nID=debian\nHOME_URL=\"https://www.debian.org/\"\n", r.version, r.codename), 0o644)
	file("/etc/debian_version", r.full+"\n", 0o644)
	file("/etc/hostname", "debian\n", 0o644)
	file("/etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost\n", 0o644)
	file("/etc/machine-id", "", 0o444)
	file("/etc/profile", "", 0o644)
	file("/etc/environment", "", 0o644)
	file("/etc/ssh/sshd_config", "AcceptEnv LANG LC_*\nSubsystem sftp /usr/lib/openssh/sftp-server\n", 0o644)
	programs := append(command.Names(), "sh", "bash")
	for _, p := range programs {
		where := "/usr/bin"
		if slices.Contains(command.Sbin, p) {
			where = "/usr/sbin"
		}
		file(path.Join(where, p), shell.Magic+p+"\n", 0o755)
	}
	return errors.Join(errs...)
}
