package command

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() {
	register(map[string]shell.Command{"mkdir": mkdir, "rmdir": rmdir, "rm": rm, "mv": mv, "cp": cp, "ln": ln, "touch": touch,
		"chmod": chmod, "chown": chown, "chgrp": chown, "truncate": truncate, "install": install, "mktemp": mktemp, "sync": nothing})
}

func nothing(*shell.Call) int { return 0 }

func each(args []string, f func(string) int) int {
	status := 0
	for _, a := range args {
		if s := f(a); s != 0 {
			status = s
		}
	}
	return status
}

func needOperand(c *shell.Call, f *flags, n int) bool {
	if len(f.args) >= n {
		return true
	}
	c.Fail("missing operand")
	return false
}

func mkdir(c *shell.Call) int {
	f := parse(c, "pm:v", "parents=p", "mode=m")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	return each(f.args, func(name string) int {
		p, umask := c.Path(name), fs.FileMode(c.Umask)
		make := c.Machine.FS.Mkdir
		if f.has("p") {
			make = c.Machine.FS.MkdirAll
		}
		if err := make(c.Cred, p, 0o777&^umask); err != nil {
			return c.Fail("cannot create directory '%s': %s", name, message(err))
		}
		if f.has("m") {
			return changeMode(c, name, f.value["m"], false)
		}
		return 0
	})
}

func rmdir(c *shell.Call) int {
	f := parse(c, "p")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	return each(f.args, func(name string) int {
		if err := c.Machine.FS.Rmdir(c.Cred, c.Path(name)); err != nil {
			return c.Fail("failed to remove '%s': %s", name, message(err))
		}
		return 0
	})
}

func rm(c *shell.Call) int {
	f := parse(c, "rRfvid", "recursive=r", "force=f", "one-file-system", "preserve-root", "no-preserve-root")
	if f == nil {
		return 1
	}
	if len(f.args) == 0 {
		if f.has("f") {
			return 0
		}
		return c.Fail("missing operand")
	}
	return each(f.args, func(name string) int {
		p := c.Path(name)
		if path.Clean(p) == "/" && f.has("r", "R") && !f.has("no-preserve-root") {
			return c.Fail("it is dangerous to operate recursively on '/'")
		}
		in, err := c.Machine.FS.Lstat(c.Cred, p)
		switch {
		case errors.Is(err, fs.ErrNotExist) && f.has("f"):
			return 0
		case err == nil && in.IsDir() && f.has("r", "R"):
			err = c.Machine.FS.RemoveAll(c.Cred, p)
		case err == nil && in.IsDir() && f.has("d"):
			err = c.Machine.FS.Rmdir(c.Cred, p)
		case err == nil:
			err = c.Machine.FS.Unlink(c.Cred, p)
		}
		if err != nil {
			return c.Fail("cannot remove '%s': %s", name, message(err))
		}
		return 0
	})
}

// targets pairs sources with what they become: in a directory, or the one other name.
func targets(c *shell.Call, f *flags) (pairs [][2]string, ok bool) {
	dir := f.value["t"]
	args := f.args
	if dir == "" {
		if len(args) < 2 {
			c.Fail("missing file operand")
			return nil, false
		}
		last := args[len(args)-1]
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(last))
		if err == nil && in.IsDir() && !f.has("T") {
			dir = last
			args = args[:len(args)-1]
		} else if len(args) > 2 {
			c.Fail("target '%s' is not a directory", last)
			return nil, false
		} else {
			return [][2]string{{args[0], last}}, true
		}
	}
	for _, a := range args {
		pairs = append(pairs, [2]string{a, path.Join(dir, path.Base(a))})
	}
	return pairs, true
}

func mv(c *shell.Call) int {
	f := parse(c, "fnvTt:i", "force=f", "no-clobber=n", "no-target-directory=T", "target-directory=t")
	if f == nil {
		return 1
	}
	pairs, ok := targets(c, f)
	if !ok {
		return 1
	}
	status := 0
	for _, p := range pairs {
		from, to := c.Path(p[0]), c.Path(p[1])
		if _, err := c.Machine.FS.Lstat(c.Cred, to); err == nil && f.has("n") {
			continue
		}
		err := c.Machine.FS.Rename(c.Cred, from, to)
		if errors.Is(err, syscall.EXDEV) { // another mount: copy and remove, as mv does
			if err = copyTree(c, from, to, copying{recursive: true, preserve: true}); err == nil {
				err = c.Machine.FS.RemoveAll(c.Cred, from)
			}
		}
		if err != nil {
			status = c.Fail("cannot move '%s' to '%s': %s", p[0], p[1], message(err))
		}
	}
	return status
}

type copying struct{ recursive, preserve, links bool }

func cp(c *shell.Call) int {
	f := parse(c, "rRapfdvnTt:uL", "recursive=r", "archive=a", "reflink=", "preserve=p", "no-clobber=n", "no-target-directory=T", "target-directory=t", "force=f")
	if f == nil {
		return 1
	}
	pairs, ok := targets(c, f)
	if !ok {
		return 1
	}
	how := copying{recursive: f.has("r", "R", "a"), preserve: f.has("a", "p"), links: f.has("a", "d", "r", "R") && !f.has("L")}
	status := 0
	for _, p := range pairs {
		if _, err := c.Machine.FS.Lstat(c.Cred, c.Path(p[1])); err == nil && f.has("n") {
			continue
		}
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(p[0]))
		if err == nil && in.IsDir() && !how.recursive {
			status = c.Fail("-r not specified; omitting directory '%s'", p[0])
			continue
		}
		if err == nil || how.links {
			err = copyTree(c, c.Path(p[0]), c.Path(p[1]), how)
		}
		if err != nil {
			status = c.Fail("cannot copy '%s': %s", p[0], message(err))
		}
	}
	return status
}

func copyTree(c *shell.Call, from, to string, how copying) error {
	f := c.Machine.FS
	in, err := f.Lstat(c.Cred, from)
	if err != nil {
		return err
	}
	if in.Mode()&fs.ModeSymlink != 0 && !how.links && !how.preserve {
		if in, err = f.Stat(c.Cred, from); err != nil {
			return err
		}
	}
	mode := in.Mode().Perm() &^ fs.FileMode(c.Umask)
	switch {
	case in.IsDir():
		if err := f.Mkdir(c.Cred, to, mode|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		list, err := f.ReadDir(c.Cred, from)
		if err != nil {
			return err
		}
		for _, e := range list {
			if err := copyTree(c, path.Join(from, e.Name()), path.Join(to, e.Name()), how); err != nil {
				return err
			}
		}
	case in.Mode()&fs.ModeSymlink != 0:
		target, err := f.Readlink(c.Cred, from)
		if err != nil {
			return err
		}
		if err := f.Unlink(c.Cred, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return f.Symlink(c.Cred, target, to)
	default:
		if err := copyContent(c, from, to, mode); err != nil {
			return err
		}
	}
	if !how.preserve {
		return nil
	}
	uid, gid := in.Owner()
	if c.Cred.UID == 0 {
		if err := f.Chown(c.Cred, to, uid, gid, true); err != nil {
			return err
		}
	}
	return errors.Join(f.Chmod(c.Cred, to, in.Mode()), f.Chtimes(c.Cred, to, in.ModTime()))
}

func copyContent(c *shell.Call, from, to string, mode fs.FileMode) error {
	src, err := c.Machine.FS.Open(c.Cred, from, os.O_RDONLY, 0)
	if err != nil {
		return err
	}
	defer func() { _ = src.Close() }()
	dst, err := c.Machine.FS.Open(c.Cred, to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	defer func() { _ = dst.Close() }()
	_, err = c.Copy(struct{ io.Writer }{dst}, src)
	return err
}

func ln(c *shell.Call) int {
	f := parse(c, "sfnTvt:r", "symbolic=s", "force=f", "no-dereference=n", "no-target-directory=T")
	if f == nil {
		return 1
	}
	if len(f.args) == 1 && f.value["t"] == "" {
		f.args = append(f.args, ".")
	}
	if f.has("n") {
		if in, err := c.Machine.FS.Lstat(c.Cred, c.Path(f.args[len(f.args)-1])); err == nil && in.Mode()&fs.ModeSymlink != 0 {
			f.count["T"]++
		}
	}
	pairs, ok := targets(c, f)
	if !ok {
		return 1
	}
	status := 0
	for _, p := range pairs {
		to := c.Path(p[1])
		if f.has("f") {
			if err := c.Machine.FS.Unlink(c.Cred, to); err != nil && !errors.Is(err, fs.ErrNotExist) {
				status = c.FailFile(p[1], err)
				continue
			}
		}
		var err error
		if f.has("s") {
			err = c.Machine.FS.Symlink(c.Cred, p[0], to)
		} else {
			err = c.Machine.FS.Link(c.Cred, c.Path(p[0]), to)
		}
		if err != nil {
			status = c.Fail("failed to create link '%s': %s", p[1], message(err))
		}
	}
	return status
}

func touch(c *shell.Call) int {
	f := parse(c, "acmd:t:r:", "no-create=c", "date=d", "reference=r")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	at := c.Machine.Clock.Now()
	switch {
	case f.has("d"):
		t, err := parseDate(f.value["d"], at)
		if err != nil {
			return c.Fail("invalid date format '%s'", f.value["d"])
		}
		at = t
	case f.has("r"):
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(f.value["r"]))
		if err != nil {
			return c.FailFile(f.value["r"], err)
		}
		at = in.ModTime()
	case f.has("t"):
		t, err := time.Parse("200601021504", f.value["t"])
		if err != nil {
			return c.Fail("invalid date format '%s'", f.value["t"])
		}
		at = t
	}
	return each(f.args, func(name string) int {
		if _, err := c.Machine.FS.Stat(c.Cred, c.Path(name)); errors.Is(err, fs.ErrNotExist) {
			if f.has("c") {
				return 0
			}
			h, err := c.Open(name, os.O_WRONLY|os.O_CREATE, 0o666)
			if err != nil {
				return c.Fail("cannot touch '%s': %s", name, message(err))
			}
			_ = h.Close()
		}
		if err := c.Machine.FS.Chtimes(c.Cred, c.Path(name), at); err != nil {
			return c.Fail("cannot touch '%s': %s", name, message(err))
		}
		return 0
	})
}

func truncate(c *shell.Call) int {
	f := parse(c, "s:c", "size=s")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	size, err := parseSize(f.value["s"])
	if err != nil {
		return c.Fail("Invalid number: '%s'", f.value["s"])
	}
	return each(f.args, func(name string) int {
		h, err := c.Machine.FS.Open(c.Cred, c.Path(name), os.O_WRONLY|os.O_CREATE, 0o666&^fs.FileMode(c.Umask))
		if err == nil {
			err = errors.Join(h.Truncate(size), h.Close())
		}
		if err != nil {
			return c.Fail("cannot open '%s' for writing: %s", name, message(err))
		}
		return 0
	})
}

// install copies with a mode and an owner, and makes directories.
func install(c *shell.Call) int {
	f := parse(c, "dDm:o:g:t:Tv", "directory=d", "mode=m", "owner=o", "group=g")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	mode := "0755"
	if f.has("m") {
		mode = f.value["m"]
	}
	finish := func(name string) int {
		if s := changeMode(c, name, mode, false); s != 0 {
			return s
		}
		owner := f.value["o"]
		if g := f.value["g"]; g != "" {
			owner += ":" + g
		}
		if owner == "" {
			return 0
		}
		return changeOwner(c, name, owner, false, false)
	}
	if f.has("d") {
		return each(f.args, func(name string) int {
			if err := c.Machine.FS.MkdirAll(c.Cred, c.Path(name), 0o755); err != nil {
				return c.Fail("cannot create directory '%s': %s", name, message(err))
			}
			return finish(name)
		})
	}
	if f.has("D") && len(f.args) == 2 {
		if err := c.Machine.FS.MkdirAll(c.Cred, path.Dir(c.Path(f.args[1])), 0o755); err != nil {
			return c.FailFile(f.args[1], err)
		}
	}
	pairs, ok := targets(c, f)
	if !ok {
		return 1
	}
	status := 0
	for _, p := range pairs {
		var err error
		if special := p[0] == "/dev/stdin" || p[0] == "-"; special {
			err = saveStdin(c, c.Path(p[1]))
		} else {
			err = copyContent(c, c.Path(p[0]), c.Path(p[1]), 0o600)
		}
		if err != nil {
			status = c.Fail("cannot install '%s': %s", p[0], message(err))
			continue
		}
		status = max(status, finish(p[1]))
	}
	return status
}

func saveStdin(c *shell.Call, to string) error {
	h, err := c.Machine.FS.Open(c.Cred, to, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = c.Copy(h, c.In)
	return errors.Join(err, h.Close())
}

func mktemp(c *shell.Call) int {
	f := parse(c, "dqup:t", "directory=d", "tmpdir=p", "dry-run=u", "suffix=")
	if f == nil {
		return 1
	}
	dir := f.value["p"]
	if dir == "" {
		if dir = shell.Getenv(c.Env, "TMPDIR"); dir == "" {
			dir = "/tmp"
		}
	}
	template := "tmp.XXXXXXXXXX"
	if len(f.args) > 0 {
		template = f.args[0]
		if !f.has("p", "t") {
			dir = ""
		}
	}
	template += f.value["suffix"]
	end := strings.LastIndex(template, "X") + 1
	start := end
	for start > 0 && template[start-1] == 'X' {
		start--
	}
	if end-start < 3 {
		return c.Fail("too few X's in template '%s'", template)
	}
	for range 100 {
		name := path.Join(dir, template[:start]+randomName(end-start)+template[end:])
		var err error
		if f.has("d") {
			err = c.Machine.FS.Mkdir(c.Cred, c.Path(name), 0o700)
		} else {
			var h io.Closer
			if h, err = c.Machine.FS.Open(c.Cred, c.Path(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600); err == nil {
				_ = h.Close()
			}
		}
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return c.Fail("failed to create file via template '%s': %s", template, message(err))
		}
		c.Out("%s\n", name)
		return 0
	}
	return c.Fail("failed to create file via template '%s': File exists", template)
}

// parseSize reads 10, 4k, 3M, 2G.
func parseSize(s string) (int64, error) {
	unit := int64(1)
	s = strings.TrimSuffix(strings.TrimSuffix(s, "B"), "i")
	if s == "" {
		return 0, strconv.ErrSyntax
	}
	if i := strings.IndexByte("kmgt", s[len(s)-1]|0x20); i >= 0 {
		unit = 1 << (10 * (i + 1))
		s = s[:len(s)-1]
	}
	n, err := strconv.ParseInt(s, 10, 64)
	return n * unit, err
}
