package command

import (
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

func init() {
	register(map[string]shell.Command{"ls": ls, "stat": stat, "find": find, "df": df, "du": du, "mount": mount, "findmnt": findmnt, "mountpoint": mountpoint})
}

// modeString is a mode as ls shows it.
func modeString(m fs.FileMode) string {
	kind := byte('-')
	switch {
	case m.IsDir():
		kind = 'd'
	case m&fs.ModeSymlink != 0:
		kind = 'l'
	case m&fs.ModeCharDevice != 0:
		kind = 'c'
	}
	s := []byte(string(kind) + "rwxrwxrwx")
	for i := range 9 {
		if m&(1<<(8-i)) == 0 {
			s[i+1] = '-'
		}
	}
	for at, bit := range map[int]fs.FileMode{3: fs.ModeSetuid, 6: fs.ModeSetgid, 9: fs.ModeSticky} {
		if m&bit == 0 {
			continue
		}
		letter := byte('s')
		if at == 9 {
			letter = 't'
		}
		if s[at] == '-' {
			letter -= 'a' - 'A'
		}
		s[at] = letter
	}
	return string(s)
}

func ls(c *shell.Call) int {
	f := parse(c, "alA1dRhtrSFnpgi", "all=a", "almost-all=A", "directory=d", "color=", "time-style=")
	if f == nil {
		return 2
	}
	if len(f.args) == 0 {
		f.args = []string{"."}
	}
	status := 0
	var files []*vfs.Info
	var names, dirs []string
	for _, a := range f.args {
		look := c.Machine.FS.Lstat
		if !f.has("l", "d") {
			look = c.Machine.FS.Stat
		}
		in, err := look(c.Cred, c.Path(a))
		if err != nil {
			c.Fail("cannot access '%s': %s", a, message(err))
			status = 2
			continue
		}
		if in.IsDir() && !f.has("d") {
			dirs = append(dirs, a)
			continue
		}
		files, names = append(files, in), append(names, a)
	}
	for i, in := range files {
		lsLine(c, f, in, names[i], c.Path(names[i]))
	}
	for i, d := range dirs {
		if len(f.args) > 1 || f.has("R") {
			if i > 0 || len(files) > 0 {
				c.Out("\n")
			}
			c.Out("%s:\n", d)
		}
		status = max(status, lsDir(c, f, d))
	}
	return status
}

func lsDir(c *shell.Call, f *flags, name string) int {
	list, err := c.Machine.FS.ReadDir(c.Cred, c.Path(name))
	if err != nil {
		c.Fail("cannot open directory '%s': %s", name, message(err))
		return 2
	}
	if f.has("t") {
		slices.SortStableFunc(list, func(a, b *vfs.Info) int { return b.ModTime().Compare(a.ModTime()) })
	}
	if f.has("S") {
		slices.SortStableFunc(list, func(a, b *vfs.Info) int { return int(b.Size() - a.Size()) })
	}
	if f.has("r") {
		slices.Reverse(list)
	}
	if f.has("l") {
		c.Out("total %d\n", len(list)*4)
	}
	if f.has("a") {
		for _, dot := range []string{".", ".."} {
			if in, err := c.Machine.FS.Stat(c.Cred, c.Path(name)+"/"+dot); err == nil {
				lsLine(c, f, in, dot, c.Path(name))
			}
		}
	}
	status := 0
	for _, in := range list {
		if !strings.HasPrefix(in.Name(), ".") || f.has("a", "A") {
			lsLine(c, f, in, in.Name(), c.Path(name)+"/"+in.Name())
		}
	}
	if f.has("R") {
		for _, in := range list {
			if in.IsDir() {
				sub := path.Join(name, in.Name())
				c.Out("\n%s:\n", sub)
				status = max(status, lsDir(c, f, sub))
			}
		}
	}
	return status
}

func lsLine(c *shell.Call, f *flags, in *vfs.Info, name, file string) {
	if f.has("F", "p") && in.IsDir() {
		name += "/"
	}
	if !f.has("l", "n") {
		c.Out("%s\n", name)
		return
	}
	uid, gid := in.Owner()
	user, group := fmt.Sprint(uid), fmt.Sprint(gid)
	if !f.has("n") {
		user, group = c.Machine.UserName(uid), c.Machine.GroupName(gid)
	}
	if in.Mode()&fs.ModeSymlink != 0 {
		if target, err := c.Machine.FS.Readlink(c.Cred, file); err == nil {
			name += " -> " + target
		}
	}
	c.Out("%s %d %s %s %5d %s %s\n", modeString(in.Mode()), in.Links(), user, group, in.Size(), in.ModTime().Format("Jan _2 15:04"), name)
}

func stat(c *shell.Call) int {
	f := parse(c, "c:fLt", "format=c", "file-system=f", "dereference=L", "printf=")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	format := f.value["c"]
	end := "\n"
	if f.has("printf") {
		format, end = strings.NewReplacer(`\n`, "\n", `\t`, "\t").Replace(f.value["printf"]), ""
	}
	return each(f.args, func(name string) int {
		if f.has("f") {
			m, err := c.Machine.FS.MountOf(c.Cred, c.Path(name))
			if err != nil {
				return c.Fail("cannot read file system information for '%s': %s", name, message(err))
			}
			if format == "" {
				format = "  File: \"%n\"\n    Type: %T"
			}
			c.Out("%s%s", expand(format, func(verb byte) (string, bool) { return statFS(m, name, verb) }), end)
			return 0
		}
		look := c.Machine.FS.Lstat
		if f.has("L") {
			look = c.Machine.FS.Stat
		}
		in, err := look(c.Cred, c.Path(name))
		if err != nil {
			return c.Fail("cannot statx '%s': %s", name, message(err))
		}
		if format == "" {
			format = "  File: %n\n  Size: %s\t%F\nAccess: (%a/%A)  Uid: (%u/%U)   Gid: (%g/%G)\nModify: %y"
		}
		c.Out("%s%s", expand(format, func(verb byte) (string, bool) { return statFile(c, in, name, verb) }), end)
		return 0
	})
}

// expand replaces %x by what f says of x; verbs that f doesn't know become "?".
func expand(format string, f func(byte) (string, bool)) string {
	var b strings.Builder
	for i := 0; i < len(format); i++ {
		if format[i] != '%' || i+1 == len(format) {
			b.WriteByte(format[i])
			continue
		}
		i++
		if format[i] == '%' {
			b.WriteByte('%')
		} else if s, ok := f(format[i]); ok {
			b.WriteString(s)
		} else {
			b.WriteByte('?')
		}
	}
	return b.String()
}

func statFS(m vfs.Mount, name string, verb byte) (string, bool) {
	used, size := m.Tree.Usage()
	kind := m.Type
	if kind == "ext4" {
		kind = "ext2/ext3"
	}
	switch verb {
	case 'T':
		return kind, true
	case 'n':
		return name, true
	case 's', 'S':
		return "4096", true
	case 'b':
		return fmt.Sprint(size / 4096), true
	case 'f', 'a':
		return fmt.Sprint(max(0, size-used) / 4096), true
	}
	return "", false
}

func statFile(c *shell.Call, in *vfs.Info, name string, verb byte) (string, bool) {
	uid, gid := in.Owner()
	switch verb {
	case 'a':
		return fmt.Sprintf("%o", octal(in.Mode())), true
	case 'A':
		return modeString(in.Mode()), true
	case 'f':
		return fmt.Sprintf("%x", octal(in.Mode())), true
	case 's':
		return fmt.Sprint(in.Size()), true
	case 'n':
		return name, true
	case 'u':
		return fmt.Sprint(uid), true
	case 'g':
		return fmt.Sprint(gid), true
	case 'U':
		return c.Machine.UserName(uid), true
	case 'G':
		return c.Machine.GroupName(gid), true
	case 'h':
		return fmt.Sprint(in.Links()), true
	case 'i':
		return fmt.Sprint(in.Ino()), true
	case 'Y', 'X', 'Z':
		return fmt.Sprint(in.ModTime().Unix()), true
	case 'y', 'x', 'z':
		return in.ModTime().Format("2006-01-02 15:04:05.000000000 -0700"), true
	case 'F':
		switch {
		case in.IsDir():
			return "directory", true
		case in.Mode()&fs.ModeSymlink != 0:
			return "symbolic link", true
		case in.Mode()&fs.ModeCharDevice != 0:
			return "character special file", true
		case in.Size() == 0:
			return "regular empty file", true
		}
		return "regular file", true
	case 'N':
		return "'" + name + "'", true
	case 'm':
		m, err := c.Machine.FS.MountOf(c.Cred, c.Path(name))
		return m.Path, err == nil
	}
	return "", false
}
