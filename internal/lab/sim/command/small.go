package command

import (
	"fmt"
	"math"
	"path"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() {
	register(map[string]shell.Command{"true": nothing, "false": func(*shell.Call) int { return 1 }, "echo": echo, "basename": basename, "dirname": dirname,
		"readlink": readlink, "realpath": readlink, "seq": seq, "sleep": sleep, "date": date, "pwd": func(c *shell.Call) int { c.Out("%s\n", path.Clean(c.Dir)); return 0 },
		"printf": viaShell, "test": viaShell, "[": viaShell, "which": which, "nologin": nologin, "clear": nothing})
}

// viaShell runs what the shell has built in as a program of its own.
func viaShell(c *shell.Call) int {
	return c.Again(append([]string{"/bin/sh", "-c", `"$0" "$@"`}, append([]string{c.Name()}, c.Argv[1:]...)...))
}

func nologin(c *shell.Call) int {
	c.Out("This account is currently not available.\n")
	return 1
}

func echo(c *shell.Call) int {
	args, end := c.Argv[1:], "\n"
	if len(args) > 0 && args[0] == "-n" {
		args, end = args[1:], ""
	}
	c.Out("%s%s", strings.Join(args, " "), end)
	return 0
}

func basename(c *shell.Call) int {
	if len(c.Argv) < 2 {
		return c.Fail("missing operand")
	}
	name := path.Base(c.Argv[1])
	if len(c.Argv) > 2 && name != c.Argv[2] {
		name = strings.TrimSuffix(name, c.Argv[2])
	}
	c.Out("%s\n", name)
	return 0
}

func dirname(c *shell.Call) int {
	if len(c.Argv) < 2 {
		return c.Fail("missing operand")
	}
	return each(c.Argv[1:], func(a string) int { c.Out("%s\n", path.Dir(a)); return 0 })
}

func readlink(c *shell.Call) int {
	f := parse(c, "femnqs", "canonicalize=f", "canonicalize-existing=e", "canonicalize-missing=m", "no-newline=n")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	return each(f.args, func(name string) int {
		var s string
		var err error
		if c.Name() == "realpath" || f.has("f", "e", "m") {
			s, err = c.Machine.FS.RealPath(c.Cred, c.Path(name))
			if err == nil && f.has("e") {
				_, err = c.Machine.FS.Stat(c.Cred, s)
			}
			if err != nil && f.has("m") {
				s, err = path.Clean(c.Path(name)), nil
			}
		} else {
			s, err = c.Machine.FS.Readlink(c.Cred, c.Path(name))
		}
		if err != nil {
			if c.Name() == "realpath" {
				c.FailFile(name, err)
			}
			return 1
		}
		c.Out("%s", s)
		if !f.has("n") {
			c.Out("\n")
		}
		return 0
	})
}

func seq(c *shell.Call) int {
	args, sep, width := c.Argv[1:], "\n", false
	for len(args) > 0 && (args[0] == "-w" || strings.HasPrefix(args[0], "-s")) {
		if args[0] == "-w" {
			width = true
			args = args[1:]
		} else if attached := args[0][2:]; attached != "" {
			sep, args = attached, args[1:]
		} else if len(args) > 1 {
			sep, args = args[1], args[2:]
		} else {
			return c.Fail("option requires an argument -- 's'")
		}
	}
	v := []float64{1, 1, 1}
	at := map[int][]int{1: {2}, 2: {0, 2}, 3: {0, 1, 2}}[len(args)]
	if at == nil {
		return c.Fail("missing operand")
	}
	digits := 0
	for i, a := range args {
		n, err := strconv.ParseFloat(a, 64)
		if err != nil {
			return c.Fail("invalid floating point argument: '%s'", a)
		}
		if _, frac, ok := strings.Cut(a, "."); ok {
			digits = max(digits, len(frac))
		}
		v[at[i]] = n
	}
	if v[1] == 0 {
		return c.Fail("invalid Zero increment value: '0'")
	}
	steps := int(math.Floor((v[2]-v[0])/v[1] + 1e-9))
	pad := 0
	if width {
		pad = max(len(args[0]), len(args[len(args)-1]))
	}
	for i := 0; i <= steps && c.Err() == nil; i++ {
		if i > 0 {
			c.Out("%s", sep)
		}
		c.Out("%0*.*f", pad, digits, v[0]+float64(i)*v[1])
	}
	if steps >= 0 {
		c.Out("\n")
	}
	return 0
}

// parseDuration reads 5, 0.2, 3s, 2m, 1h, 1d.
func parseDuration(s string) (time.Duration, error) {
	unit := time.Second
	if s != "" {
		if u, ok := map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour}[s[len(s)-1]]; ok {
			unit, s = u, s[:len(s)-1]
		}
	}
	if s == "inf" || s == "infinity" {
		return math.MaxInt64, nil
	}
	v, err := strconv.ParseFloat(s, 64)
	if err != nil || v < 0 {
		return 0, fmt.Errorf("invalid time interval '%s'", s)
	}
	return time.Duration(v * float64(unit)), nil
}

func sleep(c *shell.Call) int {
	if len(c.Argv) < 2 {
		return c.Fail("missing operand")
	}
	var total time.Duration
	for _, a := range c.Argv[1:] {
		d, err := parseDuration(a)
		if err != nil {
			return c.Fail("%v", err)
		}
		total += d
	}
	c.Sleep(total)
	return 0
}

// parseDate reads what date -d is usually given.
func parseDate(s string, now time.Time) (time.Time, error) {
	if epoch, ok := strings.CutPrefix(s, "@"); ok {
		n, err := strconv.ParseFloat(epoch, 64)
		return time.UnixMilli(int64(n * 1000)).UTC(), err
	}
	switch s {
	case "now", "":
		return now, nil
	}
	for _, layout := range []string{time.RFC3339Nano, time.RFC3339, "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02", time.RFC1123Z, time.RFC1123} {
		if t, err := time.Parse(layout, s); err == nil {
			return t, nil
		}
	}
	fields := strings.Fields(strings.TrimPrefix(s, "+"))
	sign := 1
	if len(fields) == 3 && fields[2] == "ago" {
		sign, fields = -1, fields[:2]
	}
	if len(fields) == 2 {
		n, err := strconv.Atoi(fields[0])
		unit, known := map[string]time.Duration{"second": time.Second, "sec": time.Second, "minute": time.Minute, "min": time.Minute, "hour": time.Hour, "day": 24 * time.Hour, "week": 7 * 24 * time.Hour}[strings.TrimSuffix(fields[1], "s")]
		if err == nil && known {
			return now.Add(time.Duration(sign*n) * unit), nil
		}
	}
	return time.Time{}, fmt.Errorf("invalid date '%s'", s)
}

func date(c *shell.Call) int {
	f := parse(c, "ud:I:Rr:", "utc=u", "date=d", "iso-8601=", "rfc-email=R", "reference=r")
	if f == nil {
		return 1
	}
	at := c.Machine.Clock.Now().UTC() // guests keep UTC
	if f.has("d") {
		t, err := parseDate(f.value["d"], at)
		if err != nil {
			return c.Fail("%v", err)
		}
		at = t.UTC()
	}
	if f.has("r") {
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(f.value["r"]))
		if err != nil {
			return c.FailFile(f.value["r"], err)
		}
		at = in.ModTime().UTC()
	}
	format := "%a %b %e %H:%M:%S UTC %Y"
	if len(f.args) > 0 && strings.HasPrefix(f.args[0], "+") {
		format = f.args[0][1:]
	}
	switch f.value["I"] + f.value["iso-8601"] {
	case "s", "seconds":
		format = "%Y-%m-%dT%H:%M:%S+00:00"
	default:
		if f.has("I", "iso-8601") {
			format = "%F"
		}
	}
	c.Out("%s\n", strftime(format, at))
	return 0
}

func strftime(format string, t time.Time) string {
	format = strings.NewReplacer("%3N", fmt.Sprintf("%03d", t.Nanosecond()/1e6), "%6N", fmt.Sprintf("%06d", t.Nanosecond()/1e3), "%-", "%").Replace(format)
	layouts := map[byte]string{'Y': "2006", 'm': "01", 'd': "02", 'e': "_2", 'H': "15", 'M': "04", 'S': "05", 'y': "06", 'j': "002", 'p': "PM", 'I': "03",
		'a': "Mon", 'A': "Monday", 'b': "Jan", 'B': "January", 'F': "2006-01-02", 'T': "15:04:05", 'D': "01/02/06", 'R': "15:04", 'z': "-0700", 'Z': "MST", 'c': "Mon Jan _2 15:04:05 2006"}
	return expand(format, func(verb byte) (string, bool) {
		switch verb {
		case 's':
			return fmt.Sprint(t.Unix()), true
		case 'N':
			return fmt.Sprintf("%09d", t.Nanosecond()), true
		case 'u':
			return fmt.Sprint((int(t.Weekday())+6)%7 + 1), true
		case 'n':
			return "\n", true
		}
		l, ok := layouts[verb]
		return t.Format(l), ok
	})
}

func which(c *shell.Call) int {
	return each(c.Argv[1:], func(name string) int {
		if strings.HasPrefix(name, "-") {
			return 0
		}
		file, err := c.LookPath(name)
		if err != nil {
			return 1
		}
		c.Out("%s\n", file)
		return 0
	})
}
