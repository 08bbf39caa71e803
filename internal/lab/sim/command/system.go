package command

import (
	"context"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() {
	register(map[string]shell.Command{"hostname": hostname, "uname": uname, "nproc": nproc, "free": free, "uptime": uptime, "systemctl": systemctl,
		"systemd-run": systemdRun, "journalctl": nothing, "logger": nothing, "systemd-detect-virt": detectVirt, "arch": func(c *shell.Call) int { c.Out("x86_64\n"); return 0 },
		"useradd": useradd, "groupadd": groupadd, "getconf": getconf})
}

func hostname(c *shell.Call) int {
	f := parse(c, "fsId", "fqdn=f", "short=s", "all-ip-addresses=I", "long=f")
	if f == nil {
		return 1
	}
	if len(f.args) > 0 {
		if c.Cred.UID != 0 {
			return c.Fail("you must be root to change the host name")
		}
		c.Machine.SetHostname(f.args[0])
		return 0
	}
	if f.has("I") {
		var all []string
		for _, i := range c.Machine.Network.Interfaces() {
			for _, a := range i.Addresses {
				ip, _, _ := strings.Cut(a, "/")
				if i.Name != "lo" && !strings.HasPrefix(ip, "fe80:") {
					all = append(all, ip)
				}
			}
		}
		c.Out("%s\n", strings.Join(all, " "))
		return 0
	}
	name := c.Machine.Hostname()
	if !f.has("f") {
		name, _, _ = strings.Cut(name, ".")
	}
	c.Out("%s\n", name)
	return 0
}

func uname(c *shell.Call) int {
	f := parse(c, "asnrvmpio", "all=a", "kernel-name=s", "nodename=n", "kernel-release=r", "machine=m", "operating-system=o")
	if f == nil {
		return 1
	}
	node, _, _ := strings.Cut(c.Machine.Hostname(), ".")
	parts := []struct{ flag, text string }{{"s", "Linux"}, {"n", node}, {"r", machine.KernelRelease}, {"v", "#1 SMP PREEMPT_DYNAMIC"}, {"m", "x86_64"}, {"o", "GNU/Linux"}}
	var out []string
	for _, p := range parts {
		if f.has("a", p.flag) || len(f.count) == 0 && p.flag == "s" {
			out = append(out, p.text)
		}
	}
	c.Out("%s\n", strings.Join(out, " "))
	return 0
}

func nproc(c *shell.Call) int {
	c.Out("%d\n", c.Machine.Cores())
	return 0
}

func getconf(c *shell.Call) int {
	if len(c.Argv) == 2 {
		switch c.Argv[1] {
		case "_NPROCESSORS_ONLN", "_NPROCESSORS_CONF":
			return nproc(c)
		case "PAGESIZE", "PAGE_SIZE":
			c.Out("4096\n")
			return 0
		case "LONG_BIT":
			c.Out("64\n")
			return 0
		}
	}
	return c.Fail("Unrecognized variable")
}

func free(c *shell.Call) int {
	f := parse(c, "bkmgh", "bytes=b", "kibi=k", "mebi=m", "gibi=g", "human=h")
	if f == nil {
		return 1
	}
	show := func(n int64) string {
		switch {
		case f.has("b"):
			return fmt.Sprint(n)
		case f.has("m"):
			return fmt.Sprint(n >> 20)
		case f.has("g"):
			return fmt.Sprint(n >> 30)
		case f.has("h"):
			return human(n)
		}
		return fmt.Sprint(n >> 10)
	}
	total, used := c.Machine.Memory(), c.Machine.MemoryUsed()
	swap := c.Machine.Config().Limits.SwapBytes
	c.Out("%15s %11s %11s %11s %11s %11s\n", "total", "used", "free", "shared", "buff/cache", "available")
	c.Out("Mem: %10s %11s %11s %11s %11s %11s\n", show(total), show(used), show(total-used), "0", "0", show(total-used))
	c.Out("Swap: %9s %11s %11s\n", show(swap), "0", show(swap))
	return 0
}

func uptime(c *shell.Call) int {
	f := parse(c, "sp", "since=s", "pretty=p")
	if f == nil {
		return 1
	}
	up := c.Machine.Uptime()
	switch {
	case f.has("s"):
		c.Out("%s\n", c.Machine.StartedAt.UTC().Format("2006-01-02 15:04:05"))
	case f.has("p"):
		c.Out("up %d minutes\n", int(up.Minutes()))
	default:
		c.Out(" %s up %d:%02d,  0 users,  load average: 0.00, 0.00, 0.00\n", c.Machine.Clock.Now().UTC().Format("15:04:05"), int(up.Hours()), int(up.Minutes())%60)
	}
	return 0
}

func detectVirt(c *shell.Call) int {
	c.Out("lxc\n")
	return 0
}

func unitName(s string) string {
	if s == "sshd" || s == "sshd.service" {
		s = "ssh"
	}
	if !strings.Contains(s, ".") {
		s += ".service"
	}
	return s
}

// systemctl knows units by what was started, stopped and enabled, and unit files in /etc/systemd/system. Starting one
// runs nothing.
func systemctl(c *shell.Call) int {
	f := parse(c, "qp:n:t:al", "quiet=q", "now", "no-pager", "wait", "property=p", "value", "no-block", "failed", "system", "no-legend", "all=a", "type=t")
	if f == nil {
		return 1
	}
	verb, units := "", []string(nil)
	if len(f.args) > 0 {
		verb, units = f.args[0], f.args[1:]
	}
	say := func(s string) {
		if !f.has("q") {
			c.Out("%s\n", s)
		}
	}
	known := func(u string) bool {
		_, ok := c.Machine.Unit(u)
		if _, err := c.Machine.FS.Stat(c.Cred, "/etc/systemd/system/"+u); err == nil {
			ok = true
		}
		return ok
	}
	change := func(active bool) int {
		return each(units, func(u string) int {
			if u = unitName(u); !known(u) {
				c.Fail("Failed to %s %s: Unit %s not found.", verb, u, u)
				return 5
			}
			if c.Cred.UID != 0 {
				return c.Fail("Failed to %s %s: Interactive authentication required.", verb, u)
			}
			c.Machine.SetUnit(u, active)
			return 0
		})
	}
	switch verb {
	case "is-system-running":
		say("running")
	case "is-active", "is-failed":
		status := 3
		for _, u := range units {
			active, _ := c.Machine.Unit(unitName(u))
			if active {
				say("active")
			} else {
				say("inactive")
			}
			if active == (verb == "is-active") && active {
				status = 0
			}
		}
		return status
	case "is-enabled":
		return each(units, func(u string) int {
			if !known(unitName(u)) {
				return c.Fail("Failed to get unit file state for %s: No such file or directory", u)
			}
			say("enabled")
			return 0
		})
	case "start", "restart", "reload", "reload-or-restart", "try-restart":
		return change(true)
	case "stop", "kill":
		return change(false)
	case "enable", "disable", "mask", "unmask", "preset":
		if f.has("now") {
			return change(verb == "enable")
		}
		return each(units, func(u string) int {
			if u = unitName(u); !known(u) && verb != "mask" {
				return c.Fail("Failed to %s unit: Unit file %s does not exist.", verb, u)
			}
			return 0
		})
	case "daemon-reload", "daemon-reexec", "reset-failed", "list-units", "list-timers", "list-unit-files", "status", "show", "cat", "":
	default:
		return c.Fail("Unknown command verb %s.", verb)
	}
	return 0
}

// systemdRun runs a program as a unit that outlives the session.
func systemdRun(c *shell.Call) int {
	f := parse(c, "+u:p:E:qrGtP", "unit=u", "property=p", "setenv=E", "uid=", "gid=", "working-directory=", "collect=G", "quiet=q", "wait", "pipe=P", "scope", "no-block", "slice=", "description=", "same-dir", "service-type=", "on-active=", "remain-after-exit=r", "user")
	if f == nil {
		return 1
	}
	if len(f.args) == 0 {
		return c.Fail("Command line to execute required.")
	}
	if f.has("on-active") {
		return c.Fail("timers are not simulated")
	}
	if c.Cred.UID != 0 {
		return c.Fail("Failed to start transient service unit: Interactive authentication required.")
	}
	unit := unitName(f.value["u"])
	if f.value["u"] == "" {
		unit = fmt.Sprintf("run-u%d.service", c.Process.PID)
	}
	if active, _ := c.Machine.Unit(unit); active {
		return c.Fail("Failed to start transient service unit: Unit %s was already loaded or has a fragment file.", unit)
	}
	p := c.Program
	p.Argv, p.Dir, p.Env = f.args, "/", []string{"PATH=" + shell.Getenv(c.Env, "PATH")}
	if kv := f.value["E"]; kv != "" {
		k, v, given := strings.Cut(kv, "=")
		if !given {
			v = shell.Getenv(c.Env, k)
		}
		p.Env = append(p.Env, k+"="+v)
	}
	if d := f.value["working-directory"]; d != "" {
		p.Dir = c.Path(d)
	}
	if name := f.value["uid"]; name != "" {
		u, ok := c.Machine.User(name)
		if !ok {
			return c.Fail("Failed to start transient service unit: unknown user %s", name)
		}
		p.Cred = c.Machine.Cred(u)
		p.Env = append(shell.UserEnv(u), p.Env[1:]...)
	}
	c.Machine.SetUnit(unit, true)
	if f.has("wait", "P", "scope") {
		defer c.Machine.SetUnit(unit, false)
		return c.Child(c, p)
	}
	p.Stdin, p.Stdout, p.Stderr = nil, nil, nil
	ctx, cancel := context.WithCancel(c.Machine.Down)
	go func() { // the unit ends with its program, at the latest when the machine goes down
		defer cancel()
		c.Child(ctx, p)
		c.Machine.SetUnit(unit, false)
	}()
	if !f.has("q") {
		_, _ = fmt.Fprintf(c.Stderr, "Running as unit: %s\n", unit)
	}
	return 0
}

// useradd adds a line to the user and group files, and a home.
func useradd(c *shell.Call) int {
	f := parse(c, "mMs:u:g:G:d:rUc:N", "create-home=m", "shell=s", "uid=u", "gid=g", "groups=G", "home-dir=d", "system=r", "user-group=U")
	if f == nil || !needOperand(c, f, 1) {
		return 2
	}
	if c.Cred.UID != 0 {
		return c.Fail("Permission denied.")
	}
	name := f.args[0]
	if _, ok := c.Machine.User(name); ok {
		c.Fail("user '%s' already exists", name)
		return 9
	}
	u := machine.User{Name: name, UID: 1000, Home: "/home/" + name, Shell: "/bin/sh"}
	for _, o := range c.Machine.Users() {
		if o.UID >= u.UID && o.UID < 60000 {
			u.UID = o.UID + 1
		}
	}
	if v := f.value["u"]; v != "" {
		if _, err := fmt.Sscan(v, &u.UID); err != nil {
			return c.Fail("invalid user ID '%s'", v)
		}
	}
	if v := f.value["d"]; v != "" {
		u.Home = v
	}
	if v := f.value["s"]; v != "" {
		u.Shell = v
	}
	u.GID = u.UID
	if v := f.value["g"]; v != "" {
		_, gid, ok := findOwner(c, ":"+v)
		if !ok {
			return c.Fail("group '%s' does not exist", v)
		}
		u.GID = gid
	} else if err := appendLine(c, "/etc/group", fmt.Sprintf("%s:x:%d:", name, u.GID)); err != nil {
		return c.FailFile("/etc/group", err)
	}
	if err := appendLine(c, "/etc/passwd", fmt.Sprintf("%s:x:%d:%d::%s:%s", name, u.UID, u.GID, u.Home, u.Shell)); err != nil {
		return c.FailFile("/etc/passwd", err)
	}
	if f.has("m") {
		if err := c.Machine.FS.MkdirAll(c.Cred, u.Home, 0o755); err != nil {
			return c.FailFile(u.Home, err)
		}
		if err := c.Machine.FS.Chown(c.Cred, u.Home, u.UID, u.GID, true); err != nil {
			return c.FailFile(u.Home, err)
		}
	}
	return 0
}

func appendLine(c *shell.Call, name, line string) error {
	b, err := c.Machine.FS.ReadFile(c.Cred, name)
	if err != nil {
		return err
	}
	return c.Machine.FS.WriteFile(c.Cred, name, append(b, line+"\n"...), 0o644)
}

func groupadd(c *shell.Call) int {
	f := parse(c, "g:rf", "gid=g", "system=r", "force=f")
	if f == nil || !needOperand(c, f, 1) {
		return 2
	}
	ids, _ := c.Machine.Groups()
	if _, ok := ids[f.args[0]]; ok {
		if f.has("f") {
			return 0
		}
		c.Fail("group '%s' already exists", f.args[0])
		return 9
	}
	gid := 1000
	for _, id := range ids {
		if id >= gid && id < 60000 {
			gid = id + 1
		}
	}
	if v := f.value["g"]; v != "" {
		if _, err := fmt.Sscan(v, &gid); err != nil {
			return c.Fail("invalid group ID '%s'", v)
		}
	}
	if err := appendLine(c, "/etc/group", fmt.Sprintf("%s:x:%d:", f.args[0], gid)); err != nil {
		return c.FailFile("/etc/group", err)
	}
	return 0
}
