//go:build linux

package image

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// tinyPackages are unpacked in this order; a later one's files replace an earlier one's. Libraries are those that sshd,
// git and the core utilities are linked with. In newer releases some have a suffix (64-bit time): see fetch.
var tinyPackages = []string{
	"busybox-static", "base-files", "base-passwd", "libc6", "libc-bin", "bash-static", "dash", "coreutils", "util-linux", "openssh-server", "openssh-client", "openssh-sftp-server", "git", "iproute2",
	"libacl1", "libattr1", "libaudit1", "libblkid1", "libbpf1", "libbsd0", "libcap-ng0", "libcap2", "libcom-err2", "libcrypt1", "libelf1", "libgcrypt20", "libgmp10", "libgpg-error0",
	"libgssapi-krb5-2", "libk5crypto3", "libkeyutils1", "libkrb5-3", "libkrb5support0", "liblz4-1", "liblzma5", "libmd0", "libmnl0", "libmount1", "libnsl2", "libpam0g", "libpam-modules",
	"libpcre2-8-0", "libselinux1", "libsmartcols1", "libssl3", "libsystemd0", "libtinfo6", "libtirpc3", "libudev1", "libuuid1", "libwrap0", "libzstd1", "zlib1g",
}

// tinyLeftOut are parts of packages that nobody needs in a guest.
var tinyLeftOut = []string{
	"usr/share/doc/", "usr/share/man/", "usr/share/locale/", "usr/share/info/", "usr/share/lintian/", "usr/share/bash-completion/", "usr/share/gitweb/",
	"usr/share/perl5/", "etc/init.d/", "etc/apt/", "etc/ufw/", "etc/update-motd.d/", "etc/pam.d/su", "etc/pam.d/sshd", "usr/lib/x86_64-linux-gnu/gconv/", "usr/share/base-files/",
}

// merged are folders that are links into /usr.
var merged = []string{"bin", "sbin", "lib", "lib32", "lib64", "libx32"}

// tinyFiles are those that the packages' own scripts would have written.
var tinyFiles = []struct {
	name, text string
	mode       int64
}{
	{"etc/passwd", "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\nnobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n" +
		"sshd:x:101:65534::/run/sshd:/usr/sbin/nologin\nagent:x:1000:1000:agent:/home/agent:/bin/bash\n", 0o644},
	{"etc/group", "root:x:0:\ndaemon:x:1:\nadm:x:4:\ntty:x:5:\nshadow:x:42:\nsudo:x:27:\nusers:x:100:\nnogroup:x:65534:\nagent:x:1000:\n", 0o644},
	{"etc/shadow", "root:*:20000:0:99999:7:::\ndaemon:*:20000:0:99999:7:::\nnobody:*:20000:0:99999:7:::\nsshd:*:20000:0:99999:7:::\nagent:*:20000:0:99999:7:::\n", 0o640},
	{"etc/nsswitch.conf", "passwd: files\ngroup: files\nshadow: files\nhosts: files dns\nservices: files\n", 0o644},
	{"etc/shells", "/bin/sh\n/bin/bash\n", 0o644},
	{"etc/profile", "export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin\n", 0o644},
	{"etc/environment", "", 0o644},
	{"etc/hosts", "127.0.0.1\tlocalhost\n::1\tlocalhost\n", 0o644},
	{"etc/ssh/sshd_config", "UsePAM no\nPermitRootLogin prohibit-password\nPasswordAuthentication no\nKbdInteractiveAuthentication no\nPrintMotd no\n" +
		"AcceptEnv LANG LC_*\nSubsystem sftp /usr/lib/openssh/sftp-server\n", 0o644},
}

// tinyFolders are those that no package brings.
var tinyFolders = []struct {
	name  string
	owner int
	mode  int64
}{
	{name: "root", mode: 0o700}, {name: "home", mode: 0o755}, {name: "home/agent", owner: 1000, mode: 0o750}, {name: "tmp", mode: 0o1777}, {name: "var/tmp", mode: 0o1777},
	{name: "run", mode: 0o755}, {name: "proc", mode: 0o555}, {name: "sys", mode: 0o555}, {name: "dev", mode: 0o755}, {name: "mnt", mode: 0o755}, {name: "srv", mode: 0o755}, {name: "opt", mode: 0o755},
}

// tinyVersion counts changes of this file that aren't in the tables above.
const tinyVersion = 1

func tinyText() string {
	return fmt.Sprintln(tinyVersion, tinyPackages, tinyLeftOut, tinyFiles, tinyFolders)
}

func buildTiny(ctx context.Context, dir, target string) (err error) {
	if err := fetch(ctx, dir, tinyPackages); err != nil {
		return err
	}
	f, err := os.Create(target)
	if err != nil {
		return err
	}
	t := &tinyTar{out: tar.NewWriter(f), seen: map[string]bool{}}
	defer func() { err = errors.Join(err, t.out.Close(), f.Close()) }()
	if err := t.own(); err != nil { // first, as what is there is not replaced
		return err
	}
	for i := len(tinyPackages) - 1; i >= 0; i-- { // busybox comes last: it fills in what nothing better provides
		if err := t.unpack(ctx, dir, tinyPackages[i]); err != nil {
			return err
		}
	}
	return t.applets(ctx, dir)
}

// fetch downloads packages into a folder, all at once. A name that this release doesn't have is tried with the suffix
// that Debian 13 gave to libraries.
func fetch(ctx context.Context, dir string, packages []string) error {
	known, err := output(ctx, dir, append([]string{"apt-cache", "--quiet=0", "pkgnames"}, "lib")...)
	if err != nil {
		return err
	}
	names := strings.Fields(string(known))
	slices.Sort(names)
	argv := []string{"apt-get", "--quiet", "--quiet", "download"}
	for _, p := range packages {
		if _, ok := slices.BinarySearch(names, p); !ok && strings.HasPrefix(p, "lib") {
			p += "t64"
		}
		argv = append(argv, p)
	}
	if os.Geteuid() == 0 {
		// Its own user for downloads can't write into the cache's folder.
		argv = slices.Insert(argv, 1, "-o", "APT::Sandbox::User=root")
	}
	if _, err := output(ctx, dir, argv...); err != nil {
		return fmt.Errorf("fetch packages (apt-get update may be due): %w", err)
	}
	return nil
}

// tinyTar writes an image, each name once.
type tinyTar struct {
	out  *tar.Writer
	seen map[string]bool
}

// take says whether a name is still free, and takes it.
func (t *tinyTar) take(name string) bool {
	free := !t.seen[name]
	t.seen[name] = true
	return free
}

func (t *tinyTar) own() error {
	for _, d := range tinyFolders {
		t.take(d.name)
		if err := t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: d.name + "/", Mode: d.mode, Uid: d.owner, Gid: d.owner}); err != nil {
			return err
		}
	}
	for _, f := range tinyFiles {
		t.take(f.name)
		if err := t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: f.name, Mode: f.mode, Size: int64(len(f.text))}); err != nil {
			return err
		}
		if _, err := io.WriteString(t.out, f.text); err != nil {
			return err
		}
	}
	links := map[string]string{"usr/bin/bash": "bash-static", "var/run": "/run", "etc/mtab": "/proc/mounts"}
	for _, d := range merged {
		links[d] = "usr/" + d
	}
	for name, to := range links {
		if err := t.link(name, to); err != nil {
			return err
		}
	}
	return nil
}

func (t *tinyTar) link(name, to string) error {
	if !t.take(name) {
		return nil
	}
	return t.out.WriteHeader(&tar.Header{Typeflag: tar.TypeSymlink, Name: name, Linkname: to, Mode: 0o777})
}

// unpack adds a package's files.
func (t *tinyTar) unpack(ctx context.Context, dir, name string) error {
	file, err := packageFile(dir, name)
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, "dpkg-deb", "--fsys-tarfile", file)
	var complaints bytes.Buffer
	c.Stderr = &complaints
	pipe, err := c.StdoutPipe()
	if err != nil {
		return err
	}
	if err := c.Start(); err != nil {
		return err
	}
	err = t.add(tar.NewReader(pipe))
	_, _ = io.Copy(io.Discard, pipe)
	if waited := c.Wait(); waited != nil {
		err = errors.Join(err, fmt.Errorf("dpkg-deb: %w: %s", waited, complaints.String()))
	}
	return err
}

func packageFile(dir, name string) (string, error) {
	for _, n := range []string{name, name + "t64"} {
		if files, _ := filepath.Glob(filepath.Join(dir, n+"_*.deb")); len(files) == 1 {
			return files[0], nil
		}
	}
	return "", fmt.Errorf("package %s was not fetched", name)
}

func (t *tinyTar) add(in *tar.Reader) error {
	for {
		h, err := in.Next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		name := usr(strings.Trim(strings.TrimPrefix(h.Name, "."), "/"))
		if name == "" || slices.Contains(merged, name) || slices.ContainsFunc(tinyLeftOut, func(p string) bool { return strings.HasPrefix(name+"/", p) }) || !t.take(name) {
			continue
		}
		h.Name, h.Uname, h.Gname = name, "", ""
		if h.Typeflag == tar.TypeDir {
			h.Name += "/"
		}
		if h.Typeflag == tar.TypeLink {
			h.Linkname = usr(strings.Trim(strings.TrimPrefix(h.Linkname, "."), "/"))
		}
		if err := t.out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := io.Copy(t.out, in); err != nil {
			return err
		}
	}
}

// usr moves a name of the old layout to /usr.
func usr(name string) string {
	if first, _, _ := strings.Cut(name, "/"); slices.Contains(merged, first) && first != name {
		return "usr/" + name
	}
	return name
}

// applets adds a link for each of busybox' programs that nothing else provides.
func (t *tinyTar) applets(ctx context.Context, dir string) error {
	file, err := packageFile(dir, "busybox-static")
	if err != nil {
		return err
	}
	if _, err := output(ctx, dir, "dpkg-deb", "-x", file, filepath.Join(dir, "busybox")); err != nil {
		return err
	}
	programs, _ := filepath.Glob(filepath.Join(dir, "busybox", "*", "busybox"))
	if len(programs) == 0 {
		programs, _ = filepath.Glob(filepath.Join(dir, "busybox", "usr", "*", "busybox"))
	}
	if len(programs) == 0 {
		return errors.New("the package busybox-static has no busybox")
	}
	list, err := output(ctx, dir, programs[0], "--list-full")
	if err != nil {
		return err
	}
	for _, name := range strings.Fields(string(list)) {
		name = usr(name)
		base := filepath.Base(name)
		if t.seen["usr/bin/"+base] || t.seen["usr/sbin/"+base] || slices.Contains([]string{"init", "linuxrc", "su", "login", "passwd"}, base) {
			continue
		}
		if err := t.link(name, "/usr/bin/busybox"); err != nil {
			return err
		}
	}
	return nil
}
