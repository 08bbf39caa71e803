package command

import (
	"crypto/rand"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func message(err error) string { return machine.Message(err) }

func randomName(n int) string {
	const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	for i := range b {
		b[i] = letters[int(b[i])%len(letters)]
	}
	return string(b)
}

// below calls f for a path and, with deep, for everything in it.
func below(c *shell.Call, name string, deep bool, f func(string) int) int {
	status := f(name)
	if !deep {
		return status
	}
	in, err := c.Machine.FS.Lstat(c.Cred, c.Path(name))
	if err != nil || !in.IsDir() {
		return status
	}
	list, err := c.Machine.FS.ReadDir(c.Cred, c.Path(name))
	if err != nil {
		return c.FailFile(name, err)
	}
	for _, e := range list {
		status = max(status, below(c, path.Join(name, e.Name()), e.Mode()&fs.ModeSymlink == 0, f))
	}
	return status
}

func chmod(c *shell.Call) int {
	// A mode may begin with a minus, so options are taken by hand.
	deep, args := false, c.Argv[1:]
	for len(args) > 0 && (args[0] == "-R" || args[0] == "--recursive" || args[0] == "--" || args[0] == "-v" || args[0] == "-f") {
		deep = deep || strings.HasPrefix(args[0], "-R") || args[0] == "--recursive"
		args = args[1:]
	}
	if len(args) < 2 {
		return c.Fail("missing operand")
	}
	return each(args[1:], func(name string) int { return changeMode(c, name, args[0], deep) })
}

func changeMode(c *shell.Call, name, mode string, deep bool) int {
	return below(c, name, deep, func(name string) int {
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(name))
		if err != nil {
			return c.Fail("cannot access '%s': %s", name, message(err))
		}
		m, ok := applyMode(in.Mode(), mode, c.Umask)
		if !ok {
			return c.Fail("invalid mode: '%s'", mode)
		}
		if err := c.Machine.FS.Chmod(c.Cred, c.Path(name), m); err != nil {
			return c.Fail("changing permissions of '%s': %s", name, message(err))
		}
		return 0
	})
}

// octal is a mode as chmod and stat write it.
func octal(m fs.FileMode) int {
	n := int(m.Perm())
	for bit, value := range map[fs.FileMode]int{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if m&bit != 0 {
			n |= value
		}
	}
	return n
}

func fromOctal(n int) fs.FileMode {
	m := fs.FileMode(n & 0o777)
	for bit, value := range map[fs.FileMode]int{fs.ModeSetuid: 0o4000, fs.ModeSetgid: 0o2000, fs.ModeSticky: 0o1000} {
		if n&value != 0 {
			m |= bit
		}
	}
	return m
}

// applyMode reads 0640, u+x, go-rwx, a=rX.
func applyMode(old fs.FileMode, mode string, umask int) (fs.FileMode, bool) {
	if n, err := strconv.ParseUint(mode, 8, 13); err == nil {
		return fromOctal(int(n)), true
	}
	now := octal(old)
	for clause := range strings.SplitSeq(mode, ",") {
		i := strings.IndexAny(clause, "+-=")
		if i < 0 {
			return 0, false
		}
		who, bits, mask := clause[:i], 0, 0o777
		if who == "" {
			who, mask = "a", 0o777&^umask
		}
		for _, p := range clause[i+1:] {
			switch p {
			case 'r':
				bits |= 0o444
			case 'w':
				bits |= 0o222
			case 'x':
				bits |= 0o111
			case 'X':
				if old.IsDir() || now&0o111 != 0 {
					bits |= 0o111
				}
			case 's':
				bits |= 0o6000
			case 't':
				bits |= 0o1000
			default:
				return 0, false
			}
		}
		class := 0
		for _, w := range who {
			switch w {
			case 'u':
				class |= 0o4700
			case 'g':
				class |= 0o2070
			case 'o':
				class |= 0o1007
			case 'a':
				class |= 0o7777
			default:
				return 0, false
			}
		}
		bits &= class & (mask | 0o7000)
		switch clause[i] {
		case '+':
			now |= bits
		case '-':
			now &^= bits
		case '=':
			now = now&^(class&0o777) | bits
		}
	}
	return fromOctal(now), true
}

func chown(c *shell.Call) int {
	f := parse(c, "Rhvf", "recursive=R", "no-dereference=h", "reference=")
	if f == nil {
		return 1
	}
	owner := ""
	if ref := f.value["reference"]; ref != "" {
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(ref))
		if err != nil {
			return c.FailFile(ref, err)
		}
		uid, gid := in.Owner()
		owner = fmt.Sprintf("%d:%d", uid, gid)
	} else {
		if !needOperand(c, f, 2) {
			return 1
		}
		owner, f.args = f.args[0], f.args[1:]
		if c.Name() == "chgrp" {
			owner = ":" + owner
		}
	}
	return each(f.args, func(name string) int { return changeOwner(c, name, owner, f.has("R"), f.has("h")) })
}

func changeOwner(c *shell.Call, name, owner string, deep, link bool) int {
	uid, gid, ok := findOwner(c, owner)
	if !ok {
		return c.Fail("invalid user: '%s'", owner)
	}
	return below(c, name, deep, func(name string) int {
		if err := c.Machine.FS.Chown(c.Cred, c.Path(name), uid, gid, !link && !deep); err != nil {
			return c.Fail("changing ownership of '%s': %s", name, message(err))
		}
		return 0
	})
}

// findOwner reads user, user:group, user: and :group, by name or number; -1 is what isn't named.
func findOwner(c *shell.Call, s string) (uid, gid int, ok bool) {
	uid, gid = -1, -1
	user, group, both := strings.Cut(s, ":")
	if user != "" {
		u, known := c.Machine.User(user)
		n, err := strconv.Atoi(user)
		switch {
		case known:
			uid = u.UID
			if both && group == "" {
				gid = u.GID
			}
		case err == nil:
			uid = n
		default:
			return 0, 0, false
		}
	}
	if group != "" {
		ids, _ := c.Machine.Groups()
		id, known := ids[group]
		n, err := strconv.Atoi(group)
		switch {
		case known:
			gid = id
		case err == nil:
			gid = n
		default:
			return 0, 0, false
		}
	}
	return uid, gid, true
}
