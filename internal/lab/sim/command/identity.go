package command

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/vfs"
)

func init() {
	register(map[string]shell.Command{"id": id, "whoami": whoami, "groups": groups, "logname": whoami, "env": env, "printenv": printenv, "su": su, "runuser": su, "setpriv": setpriv, "sudo": sudo, "getent": getent})
}

func whoami(c *shell.Call) int {
	c.Out("%s\n", c.Machine.UserName(c.Cred.UID))
	return 0
}

func id(c *shell.Call) int {
	f := parse(c, "ugGn", "user=u", "group=g", "groups=G", "name=n")
	if f == nil {
		return 1
	}
	cred := c.Cred
	if len(f.args) > 0 {
		u, ok := c.Machine.User(f.args[0])
		if !ok {
			return c.Fail("'%s': no such user", f.args[0])
		}
		cred = c.Machine.Cred(u)
	}
	all := append([]int{cred.GID}, slices.DeleteFunc(slices.Clone(cred.Groups), func(g int) bool { return g == cred.GID })...)
	user, group := fmt.Sprint(cred.UID), fmt.Sprint(cred.GID)
	if f.has("n") {
		user, group = c.Machine.UserName(cred.UID), c.Machine.GroupName(cred.GID)
	}
	switch {
	case f.has("u"):
		c.Out("%s\n", user)
	case f.has("g"):
		c.Out("%s\n", group)
	case f.has("G"):
		var names []string
		for _, g := range all {
			if f.has("n") {
				names = append(names, c.Machine.GroupName(g))
			} else {
				names = append(names, fmt.Sprint(g))
			}
		}
		c.Out("%s\n", strings.Join(names, " "))
	default:
		var names []string
		for _, g := range all {
			names = append(names, fmt.Sprintf("%d(%s)", g, c.Machine.GroupName(g)))
		}
		c.Out("uid=%d(%s) gid=%d(%s) groups=%s\n", cred.UID, c.Machine.UserName(cred.UID), cred.GID, c.Machine.GroupName(cred.GID), strings.Join(names, ","))
	}
	return 0
}

func groups(c *shell.Call) int {
	c.Argv = append([]string{"id", "-Gn"}, c.Argv[1:]...)
	return id(c)
}

func env(c *shell.Call) int {
	f := parse(c, "+iu:0C:S:", "ignore-environment=i", "unset=u", "chdir=C", "null=0")
	if f == nil {
		return 125
	}
	if f.has("i") {
		c.Env = nil
	}
	if name := f.value["u"]; name != "" {
		c.Env = slices.DeleteFunc(slices.Clone(c.Env), func(kv string) bool { return strings.HasPrefix(kv, name+"=") })
	}
	if d := f.value["C"]; d != "" {
		c.Dir = c.Path(d)
	}
	args := f.args
	for len(args) > 0 && strings.Contains(args[0], "=") {
		k, v, _ := strings.Cut(args[0], "=")
		c.Env = shell.Setenv(c.Env, k, v)
		args = args[1:]
	}
	if len(args) > 0 {
		return c.Again(args)
	}
	end := "\n"
	if f.has("0") {
		end = "\x00"
	}
	for _, kv := range c.Env {
		c.Out("%s%s", kv, end)
	}
	return 0
}

func printenv(c *shell.Call) int {
	if len(c.Argv) == 1 {
		return env(c)
	}
	return each(c.Argv[1:], func(name string) int {
		if !slices.ContainsFunc(c.Env, func(kv string) bool { return strings.HasPrefix(kv, name+"=") }) {
			return 1
		}
		c.Out("%s\n", shell.Getenv(c.Env, name))
		return 0
	})
}

// as runs a program as another user.
func as(c *shell.Call, u machine.User, argv []string, login, keepEnv bool) int {
	p := c.Program
	p.Cred, p.Argv = c.Machine.Cred(u), argv
	if login {
		p.Env, p.Dir = shell.UserEnv(u), u.Home
	} else if !keepEnv {
		for k, v := range map[string]string{"HOME": u.Home, "SHELL": u.Shell, "USER": u.Name, "LOGNAME": u.Name} {
			p.Env = shell.Setenv(p.Env, k, v)
		}
	}
	return c.Child(c, p)
}

// setpriv runs a program with other ids, which need be nobody's.
func setpriv(c *shell.Call) int {
	p, args := c.Program, c.Argv[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		option, value, given := strings.Cut(args[0], "=")
		if args = args[1:]; option == "--" {
			break
		}
		switch option {
		case "--clear-groups":
			p.Cred.Groups = nil
			continue
		case "--no-new-privs": // nothing here is setuid
			continue
		case "--init-groups":
			continue
		case "--reuid", "--regid":
		default:
			return c.Fail("%s is not simulated", option)
		}
		if !given && len(args) > 0 {
			value, args = args[0], args[1:]
		}
		id, err := strconv.Atoi(value)
		if u, ok := c.Machine.User(value); err != nil && ok {
			if id, err = u.UID, nil; option == "--regid" {
				id = u.GID
			}
		}
		switch {
		case err != nil:
			return c.Fail("failed to parse %s", strings.TrimPrefix(option, "--"))
		case c.Cred.UID != 0:
			return c.Fail("setresuid failed: Operation not permitted")
		case option == "--reuid":
			p.Cred.UID = id
		default:
			p.Cred.GID = id
		}
	}
	if len(args) == 0 {
		return c.Fail("No program specified")
	}
	p.Argv = args
	return c.Child(c, p)
}

// su and runuser: [-] [-s SHELL] [-c COMMAND] USER [ARGS], and runuser -u USER -- COMMAND.
func su(c *shell.Call) int {
	var user, sh, command string
	login, keep, direct := false, false, false
	var rest []string
	args := c.Argv[1:]
	for len(args) > 0 {
		a := args[0]
		args = args[1:]
		value := func() string {
			if len(args) == 0 {
				return ""
			}
			v := args[0]
			args = args[1:]
			return v
		}
		switch {
		case a == "-" || a == "-l" || a == "--login":
			login = true
		case a == "-s" || a == "--shell":
			sh = value()
		case a == "-c" || a == "--command":
			command = value()
		case a == "-p" || a == "-m" || a == "--preserve-environment":
			keep = true
		case a == "-u" && c.Name() == "runuser":
			user, direct = value(), true
		case a == "--":
			rest, args = append(rest, args...), nil
		case strings.HasPrefix(a, "-"):
			return c.Fail("invalid option -- '%s'", strings.TrimLeft(a, "-"))
		case user == "":
			user = a
		default:
			rest = append(rest, a)
			if direct {
				rest, args = append(rest, args...), nil
			}
		}
	}
	if user == "" {
		user = "root"
	}
	u, ok := c.Machine.User(user)
	if !ok {
		return c.Fail("user %s does not exist or the user entry does not contain all the required fields", user)
	}
	if c.Cred.UID != 0 && c.Cred.UID != u.UID {
		return c.Fail("Authentication failure")
	}
	if direct {
		if len(rest) == 0 {
			return c.Fail("no command was specified")
		}
		return as(c, u, rest, false, true)
	}
	if sh == "" {
		if sh = u.Shell; sh == "" {
			sh = "/bin/sh"
		}
	}
	argv := []string{sh}
	if login {
		argv = append(argv, "-l")
	}
	if command != "" {
		argv = append(argv, "-c", command)
	}
	return as(c, u, append(argv, rest...), login, keep)
}

// sudo lets root and members of the group sudo run programs as others, without a password.
func sudo(c *shell.Call) int {
	f := parse(c, "+u:g:nEHiSs", "user=u", "non-interactive=n", "preserve-env=E", "set-home=H", "login=i")
	if f == nil {
		return 1
	}
	user := "root"
	if f.has("u") {
		user = f.value["u"]
	}
	u, ok := c.Machine.User(user)
	if !ok {
		return c.Fail("unknown user %s", user)
	}
	ids, _ := c.Machine.Groups()
	if g, ok := ids["sudo"]; c.Cred.UID != 0 && !(ok && slices.Contains(c.Cred.Groups, g)) {
		return c.Fail("a password is required")
	}
	args := f.args
	p := c.Program
	p.Env = shell.UserEnv(u)
	if f.has("E") {
		p.Env = append(p.Env, c.Env...)
	}
	for len(args) > 0 && strings.Contains(args[0], "=") && !strings.Contains(args[0], "/") {
		k, v, _ := strings.Cut(args[0], "=")
		p.Env = shell.Setenv(p.Env, k, v)
		args = args[1:]
	}
	if f.has("i") {
		p.Dir = u.Home
	}
	if len(args) == 0 {
		if !f.has("i", "s") {
			return c.Fail("no command was specified")
		}
		args = []string{u.Shell}
	}
	p.Argv, p.Cred = args, c.Machine.Cred(u)
	return c.Child(c, p)
}

// getent reads passwd, group and hosts.
func getent(c *shell.Call) int {
	if len(c.Argv) < 2 {
		return c.Fail("wrong number of arguments")
	}
	file := map[string]string{"passwd": "/etc/passwd", "group": "/etc/group", "hosts": "/etc/hosts", "shadow": "/etc/shadow", "ahosts": "/etc/hosts", "ahostsv4": "/etc/hosts"}[c.Argv[1]]
	if file == "" {
		return c.Fail("Unknown database: %s", c.Argv[1])
	}
	b, err := c.Machine.FS.ReadFile(vfs.Root, file)
	if err != nil {
		return 2
	}
	found := len(c.Argv) == 2
	for line := range strings.Lines(string(b)) {
		line = strings.TrimSpace(line)
		hit := len(c.Argv) == 2
		for _, key := range c.Argv[2:] {
			fields := strings.Split(line, ":")
			hosts := strings.Fields(line)
			switch {
			case strings.HasSuffix(file, "hosts"):
				hit = hit || slices.Contains(hosts, key)
			case len(fields) > 2:
				hit = hit || fields[0] == key || fields[2] == key
			}
		}
		if hit && line != "" {
			found = true
			c.Out("%s\n", line)
		}
	}
	if !found {
		return 2
	}
	return 0
}
