package command

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() {
	register(map[string]shell.Command{"tar": tarCommand})
}

// tarCommand is GNU tar's -c, -x and -t, plain and with gzip; xz and bzip2 aren't installed, as in a minimal Debian.
func tarCommand(c *shell.Call) int {
	if len(c.Argv) > 1 && !strings.HasPrefix(c.Argv[1], "-") { // the old way, "tar xzf FILE"
		c.Argv[1] = "-" + c.Argv[1]
	}
	f := parse(c, "cxtzJjvpf:C:S", "create=c", "extract=x", "get=x", "list=t", "gzip=z", "file=f", "directory=C", "verbose=v",
		"strip-components=", "no-same-owner", "same-owner", "numeric-owner", "exclude=", "preserve-permissions=p", "no-same-permissions",
		"sparse=S", "warning=", "owner=", "group=", "no-recursion", "one-file-system", "delay-directory-restore", "no-overwrite-dir", "null", "files-from=", "sort=", "mtime=", "format=", "version", "hard-dereference")
	if f == nil {
		return 64
	}
	if f.has("version") {
		c.Out("tar (GNU tar) 1.35\n")
		return 0
	}
	for _, option := range []string{"exclude", "null", "files-from", "sort", "mtime", "format", "owner", "group"} {
		if f.has(option) {
			return tarFails(c, "--%s is not simulated", option)
		}
	}
	if f.has("J", "j") || strings.HasSuffix(f.value["f"], ".xz") || strings.HasSuffix(f.value["f"], ".bz2") {
		tarFails(c, "(child): xz: Cannot exec: No such file or directory")
		return tarFails(c, "Child returned status 2")
	}
	dir := c.Dir
	if f.has("C") {
		dir = c.Path(f.value["C"])
	}
	switch {
	case f.has("c"):
		return tarCreate(c, f, dir)
	case f.has("x", "t"):
		return tarRead(c, f, dir)
	}
	return tarFails(c, "You must specify one of the '-Acdtrux', '--delete' or '--test-label' options")
}

func tarFails(c *shell.Call, format string, a ...any) int {
	c.Fail(format, a...)
	return 2
}

func tarCreate(c *shell.Call, f *flags, dir string) int {
	if len(f.args) == 0 {
		return tarFails(c, "Cowardly refusing to create an empty archive")
	}
	name := f.value["f"]
	if name == "" {
		name = "-"
	}
	file, err := c.Open(name, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o666)
	if err != nil {
		return tarFails(c, "%s: Cannot open: %s", name, message(err))
	}
	defer func() { _ = file.Close() }()
	var out io.Writer = file
	if f.has("z") {
		zip := gzip.NewWriter(file)
		defer func() { _ = zip.Close() }()
		out = zip
	}
	archive := tar.NewWriter(out)
	status, seen := 0, map[uint64]string{}
	var add func(name string)
	add = func(name string) {
		if err := tarAdd(c, f, archive, dir, name, seen, add); err != nil {
			status = tarFails(c, "%s: %s", name, message(err))
		}
	}
	for _, a := range f.args {
		add(path.Clean(a))
	}
	if err := archive.Close(); err != nil {
		return tarFails(c, "-: %s", message(err))
	}
	return status
}

func tarAdd(c *shell.Call, f *flags, archive *tar.Writer, dir, name string, seen map[uint64]string, add func(string)) error {
	at := shell.Join(dir, name)
	in, err := c.Machine.FS.Lstat(c.Cred, at)
	if err != nil {
		return err
	}
	target := ""
	if in.Mode()&fs.ModeSymlink != 0 {
		if target, err = c.Machine.FS.Readlink(c.Cred, at); err != nil {
			return err
		}
	}
	h, err := tar.FileInfoHeader(in, target)
	if err != nil {
		return err
	}
	if h.Name = strings.TrimPrefix(name, "/"); name == "." {
		h.Name = "./"
	} else if in.IsDir() {
		h.Name += "/"
	}
	h.Uid, h.Gid = in.Owner()
	h.Uname, h.Gname, h.Format = c.Machine.UserName(h.Uid), c.Machine.GroupName(h.Gid), tar.FormatGNU
	if !in.IsDir() && in.Links() > 1 && !f.has("hard-dereference") {
		if first := seen[in.Ino()]; first != "" {
			h.Typeflag, h.Linkname, h.Size = tar.TypeLink, first, 0
		} else {
			seen[in.Ino()] = h.Name
		}
	}
	if err := archive.WriteHeader(h); err != nil {
		return err
	}
	if f.has("v") {
		c.Out("%s\n", h.Name)
	}
	if in.IsDir() && f.has("no-recursion") {
		return nil
	}
	if in.IsDir() {
		entries, err := c.Machine.FS.ReadDir(c.Cred, at)
		for _, e := range entries {
			if name == "." {
				add("./" + e.Name())
			} else {
				add(name + "/" + e.Name())
			}
		}
		return err
	}
	if h.Typeflag != tar.TypeReg {
		return nil
	}
	file, err := c.Machine.FS.Open(c.Cred, at, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	_, err = c.Copy(archive, file)
	return err
}

func tarRead(c *shell.Call, f *flags, dir string) int {
	name := f.value["f"]
	if name == "" {
		name = "-"
	}
	file, err := c.Open(name, os.O_RDONLY, 0)
	if err != nil {
		return tarFails(c, "%s: Cannot open: %s", name, message(err))
	}
	defer func() { _ = file.Close() }()
	var in io.Reader = file
	// As GNU tar does with a file whose name says so; a pipe needs -z.
	if f.has("z") || strings.HasSuffix(name, ".gz") || strings.HasSuffix(name, ".tgz") {
		if in, err = gzip.NewReader(file); err != nil {
			c.Fail("gzip: stdin: not in gzip format")
			return tarFails(c, "Child returned status 1")
		}
	}
	strip, _ := strconv.Atoi(f.value["strip-components"])
	archive := tar.NewReader(in)
	for entries := 0; ; entries++ {
		h, err := archive.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			if entries == 0 {
				c.Fail("This does not look like a tar archive")
			} else {
				c.Fail("Unexpected EOF in archive")
			}
			return tarFails(c, "Error is not recoverable: exiting now")
		}
		to, linked := inside(h.Name, strip), inside(h.Linkname, strip)
		if to == "" && !f.has("t") || len(f.args) > 0 && !tarNamed(f.args, h.Name) {
			continue
		}
		if f.has("t") || f.has("v") {
			c.Out("%s\n", h.Name)
		}
		if f.has("t") {
			continue
		}
		if err := tarExtract(c, f, h, archive, shell.Join(dir, linked), shell.Join(dir, to)); err != nil {
			return tarFails(c, "%s: Cannot open: %s", h.Name, message(err))
		}
	}
	return 0
}

// inside is a name of an archive as one below the folder, without its leading folders.
func inside(name string, strip int) string {
	name = path.Clean("/" + name)[1:]
	for range strip {
		_, name, _ = strings.Cut(name, "/")
	}
	return name
}

func tarNamed(names []string, entry string) bool {
	entry = path.Clean(entry)
	for _, n := range names {
		if n = path.Clean(n); entry == n || strings.HasPrefix(entry, n+"/") {
			return true
		}
	}
	return false
}

func tarExtract(c *shell.Call, f *flags, h *tar.Header, content io.Reader, linked, to string) error {
	files := c.Machine.FS
	mode := fs.FileMode(h.Mode).Perm()
	if h.FileInfo().Mode()&fs.ModeSetuid != 0 && f.has("p") {
		mode |= fs.ModeSetuid
	}
	if !f.has("p") && c.Cred.UID != 0 {
		mode &^= fs.FileMode(c.Umask)
	}
	if h.Typeflag != tar.TypeDir {
		if err := files.MkdirAll(c.Cred, path.Dir(to), 0o755); err != nil {
			return err
		}
		if err := files.Unlink(c.Cred, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	switch h.Typeflag {
	case tar.TypeDir:
		if err := files.MkdirAll(c.Cred, to, 0o755); err != nil {
			return err
		}
	case tar.TypeSymlink:
		return files.Symlink(c.Cred, h.Linkname, to)
	case tar.TypeLink:
		return files.Link(c.Cred, linked, to)
	case tar.TypeReg:
		file, err := files.Open(c.Cred, to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
		if err != nil {
			return err
		}
		_, err = c.Copy(file, content)
		if err = errors.Join(err, file.Close()); err != nil {
			return err
		}
	default:
		return fs.ErrPermission // devices: no guest may make them
	}
	if c.Cred.UID == 0 && !f.has("no-same-owner") {
		if err := files.Chown(c.Cred, to, h.Uid, h.Gid, false); err != nil {
			return err
		}
	}
	if err := files.Chtimes(c.Cred, to, h.ModTime); err != nil {
		return err
	}
	return files.Chmod(c.Cred, to, mode)
}
