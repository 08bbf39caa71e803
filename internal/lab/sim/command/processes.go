package command

import (
	"context"
	"io"
	"path"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/machine"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() {
	register(map[string]shell.Command{"ps": ps, "kill": kill, "pgrep": pgrep, "pkill": pgrep, "timeout": timeout, "nohup": detached, "setsid": detached,
		"xargs": xargs, "nice": nice, "ionice": nice, "stdbuf": nice, "time": nice})
}

func ps(c *shell.Call) int {
	// BSD and Unix options differ too much to be parsed: what matters is -o and -p.
	var columns []string
	pids := map[string]bool{}
	full, header := false, true
	args := c.Argv[1:]
	for i, a := range args {
		next := ""
		if i+1 < len(args) {
			next = args[i+1]
		}
		switch {
		case a == "-o" || a == "-eo" || a == "-Ao" || a == "--format":
			for col := range strings.SplitSeq(next, ",") {
				name, title, titled := strings.Cut(col, "=")
				columns = append(columns, name)
				header = header && !(titled && title == "")
			}
		case a == "-p":
			for p := range strings.SplitSeq(next, ",") {
				pids[p] = true
			}
		case strings.Contains(a, "f") || strings.Contains(a, "aux"):
			full = true
		}
	}
	if columns == nil {
		if columns = []string{"pid", "tty", "time", "comm"}; full {
			columns = []string{"user", "pid", "ppid", "stime", "args"}
		}
	}
	if header {
		c.Out("%s\n", strings.ToUpper(strings.Join(columns, " ")))
	}
	found := len(pids) == 0
	for _, p := range c.Machine.Processes() {
		if len(pids) > 0 && !pids[strconv.Itoa(p.PID)] {
			continue
		}
		found = true
		var row []string
		for _, col := range columns {
			row = append(row, psColumn(c, p, col))
		}
		c.Out("%s\n", strings.Join(row, " "))
	}
	if !found {
		return 1
	}
	return 0
}

func psColumn(c *shell.Call, p *machine.Process, name string) string {
	switch name {
	case "pid":
		return strconv.Itoa(p.PID)
	case "ppid":
		return strconv.Itoa(p.PPID)
	case "pgid", "pgrp":
		return strconv.Itoa(p.Group)
	case "sid", "sess", "session":
		return strconv.Itoa(p.Session)
	case "user", "euser", "ruser":
		return c.Machine.UserName(p.Cred.UID)
	case "uid", "euid":
		return strconv.Itoa(p.Cred.UID)
	case "comm", "ucmd":
		return path.Base(p.Argv[0])
	case "args", "cmd", "command":
		return strings.Join(p.Argv, " ")
	case "stime", "start", "lstart":
		return p.Started.UTC().Format("15:04")
	case "etimes":
		return strconv.Itoa(int(c.Machine.Clock.Now().Sub(p.Started).Seconds()))
	case "stat", "s", "state":
		return "S"
	case "time":
		return "00:00:00"
	}
	return "?"
}

// signalNumber reads TERM, SIGTERM or 15.
func signalNumber(s string) (int, bool) {
	if n, err := strconv.Atoi(s); err == nil {
		return n, n >= 0 && n < 65
	}
	n, ok := machine.Signals[strings.TrimPrefix(strings.ToUpper(s), "SIG")]
	return n, ok
}

func kill(c *shell.Call) int {
	args, sig := c.Argv[1:], machine.SIGTERM
	if len(args) > 0 && args[0] == "-l" {
		c.Out("HUP INT QUIT KILL USR1 USR2 PIPE ALRM TERM\n")
		return 0
	}
	if len(args) > 1 && len(args[0]) > 1 && args[0][0] == '-' && args[0] != "--" {
		name := args[0][1:]
		args = args[1:]
		if name == "s" || name == "n" {
			name, args = args[0], args[1:]
		}
		n, ok := signalNumber(name)
		if !ok {
			return c.Fail("%s: invalid signal specification", name)
		}
		sig = n
	}
	if len(args) > 0 && args[0] == "--" {
		args = args[1:]
	}
	if len(args) == 0 {
		return c.Usage("usage: kill [-s sigspec | -signum] pid ...")
	}
	return each(args, func(a string) int {
		pid, err := strconv.Atoi(a)
		if err != nil {
			return c.Fail("%s: arguments must be process or job IDs", a)
		}
		switch {
		case pid == 0:
			err = c.Machine.SignalGroup(c.Cred, c.Process.Group, sig)
		case pid < -1:
			err = c.Machine.SignalGroup(c.Cred, -pid, sig)
		default:
			err = c.Machine.Signal(c.Cred, pid, sig)
		}
		if err != nil {
			return c.Fail("(%d) - %s", pid, message(err))
		}
		return 0
	})
}

func pgrep(c *shell.Call) int {
	sig := machine.SIGTERM
	if len(c.Argv) > 1 && c.Name() == "pkill" && strings.HasPrefix(c.Argv[1], "-") {
		if n, ok := signalNumber(c.Argv[1][1:]); ok {
			sig = n
			c.Argv = append(c.Argv[:1:1], c.Argv[2:]...)
		}
	}
	f := parse(c, "fxlau:", "full=f", "exact=x", "signal=")
	if f == nil {
		return 2
	}
	if n, ok := signalNumber(f.value["signal"]); ok {
		sig = n
	}
	want := -1
	if f.has("u") {
		uid, _, ok := findOwner(c, f.value["u"])
		if !ok {
			return c.Usage("invalid user name: %s", f.value["u"])
		}
		want = uid
	}
	status := 1
	for _, p := range c.Machine.Processes() {
		text := path.Base(p.Argv[0])
		if f.has("f") {
			text = strings.Join(p.Argv, " ")
		}
		match := len(f.args) == 0 || strings.Contains(text, f.args[0]) && !f.has("x") || len(f.args) > 0 && text == f.args[0]
		if p.PID == c.Process.PID || !match || want >= 0 && p.Cred.UID != want {
			continue
		}
		status = 0
		if c.Name() == "pgrep" {
			c.Out("%d\n", p.PID)
		} else if err := c.Machine.Signal(c.Cred, p.PID, sig); err != nil {
			c.Fail("killing pid %d failed: %s", p.PID, message(err))
		}
	}
	return status
}

// timeout ends a program with a signal after a time on the lab's clock: 124, or 137 for KILL.
func timeout(c *shell.Call) int {
	f := parse(c, "+s:k:vp", "signal=s", "kill-after=k", "foreground", "preserve-status=p")
	if f == nil || len(f.args) < 2 {
		return 125
	}
	d, err := parseDuration(f.args[0])
	if err != nil {
		c.Fail("%v", err)
		return 125
	}
	sig := machine.SIGTERM
	if s := f.value["s"]; s != "" {
		n, ok := signalNumber(s)
		if !ok {
			c.Fail("%s: invalid signal", s)
			return 125
		}
		sig = n
	}
	ctx, cancel := context.WithCancelCause(c)
	defer cancel(nil)
	if d > 0 {
		go func() {
			if c.Machine.Clock.Sleep(ctx, d) == nil {
				cancel(machine.Killed(sig))
			}
		}()
	}
	p := c.Program
	p.Argv = f.args[1:]
	status := c.Child(ctx, p)
	if ctx.Err() != nil && c.Err() == nil && !f.has("p") {
		if sig == machine.SIGKILL {
			return 137
		}
		return 124
	}
	return status
}

// detached runs a program that outlives the session: a hang-up doesn't reach it, other signals do.
func detached(c *shell.Call) int {
	args, background := c.Argv[1:], false
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		background = background || strings.Contains(args[0], "f")
		args = args[1:]
	}
	if len(args) == 0 {
		return c.Fail("missing operand")
	}
	ctx, cancel := context.WithCancelCause(c.Machine.Down)
	stop := context.AfterFunc(c, func() {
		if machine.KilledBy(c) != machine.SIGHUP {
			cancel(context.Cause(c))
		}
	})
	p := c.Program
	p.Argv, p.NewSession = args, c.Name() == "setsid"
	if background {
		stop()
		p.Stdin = nil
		go func() { // ends with the program, at the latest when the machine goes down
			c.Child(ctx, p)
			cancel(nil)
		}()
		return 0
	}
	defer cancel(nil)
	defer stop()
	return c.Child(ctx, p)
}

// nice and its like run a program as it is.
func nice(c *shell.Call) int {
	args := c.Argv[1:]
	for len(args) > 0 && strings.HasPrefix(args[0], "-") {
		if len(args[0]) == 2 && len(args) > 1 && c.Name() != "time" {
			args = args[1:]
		}
		args = args[1:]
	}
	if len(args) == 0 {
		return 0
	}
	return c.Again(args)
}

func xargs(c *shell.Call) int {
	f := parse(c, "+0n:I:rtP:d:L:", "null=0", "no-run-if-empty=r", "max-args=n", "replace=I", "max-procs=P")
	if f == nil {
		return 1
	}
	all, err := io.ReadAll(c.In)
	if err != nil {
		return 1
	}
	text := string(all)
	var items []string
	switch {
	case f.has("0"):
		items = strings.FieldsFunc(text, func(r rune) bool { return r == 0 })
	case f.has("I", "L"), f.value["d"] == `\n`:
		items = strings.FieldsFunc(text, func(r rune) bool { return r == '\n' })
	default:
		items = strings.Fields(strings.NewReplacer(`"`, "", `'`, "").Replace(text))
	}
	command := f.args
	if len(command) == 0 {
		command = []string{"echo"}
	}
	if len(items) == 0 && (f.has("r") || f.has("I")) {
		return 0
	}
	size := max(1, len(items))
	if n, err := strconv.Atoi(f.value["n"] + f.value["L"]); err == nil && n > 0 {
		size = n
	}
	c.Stdin = nil
	status := 0
	run := func(argv []string) {
		if s := c.Again(argv); s != 0 {
			status = 123
		}
	}
	if token := f.value["I"]; token != "" {
		for _, item := range items {
			argv := make([]string, len(command))
			for i := range command {
				argv[i] = strings.ReplaceAll(command[i], token, item)
			}
			run(argv)
		}
		return status
	}
	for first := true; first || len(items) > 0; first = false {
		n := min(size, len(items))
		run(append(append([]string{}, command...), items[:n]...))
		items = items[n:]
	}
	return status
}
