package command

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

func init() { register(map[string]shell.Command{"sed": sed}) }

// sedCommand is one command of a script: s, d, p, q, a, i or c with one or two addresses.
type sedCommand struct {
	from, to sedAddress
	negate   bool
	verb     byte
	re       *regexp.Regexp
	with     string
	global   bool
	print    bool
	text     string
	inside   bool // between from and to
}

type sedAddress struct {
	line int
	last bool
	re   *regexp.Regexp
}

func (a sedAddress) set() bool { return a.line > 0 || a.last || a.re != nil }

func (a sedAddress) match(n int, last bool, line string) bool {
	switch {
	case a.re != nil:
		return a.re.MatchString(line)
	case a.last:
		return last
	}
	return a.line == n
}

func sed(c *shell.Call) int {
	f := parse(c, "nEre:f:isu", "quiet=n", "silent=n", "regexp-extended=E", "expression=e", "file=f", "in-place=i", "unbuffered=u")
	if f == nil {
		return 1
	}
	script := f.value["e"]
	switch {
	case f.has("f"):
		text, err := c.Machine.FS.ReadFile(c.Cred, c.Path(f.value["f"]))
		if err != nil {
			return c.Fail("couldn't open file %s: %s", f.value["f"], message(err))
		}
		script = strings.TrimPrefix(script+"\n"+string(text), "\n")
	case !f.has("e"):
		if !needOperand(c, f, 1) {
			return 1
		}
		script, f.args = f.args[0], f.args[1:]
	}
	commands, err := parseSed(script, f.has("E", "r"))
	if err != nil {
		return c.Fail("-e expression #1: %v", err)
	}
	if f.has("u") && !needsLast(commands) {
		return streamSed(c, f, commands)
	}
	if !f.has("i") {
		all, status := readLines(c, f.args)
		c.Out("%s", runSed(commands, all, f.has("n")))
		return status
	}
	return each(f.args, func(name string) int {
		in, err := c.Machine.FS.Stat(c.Cred, c.Path(name))
		if err != nil {
			return c.Fail("can't read %s: %s", name, message(err))
		}
		all, status := readLines(c, []string{name})
		if status != 0 {
			return status
		}
		if err := c.Machine.FS.WriteFile(c.Cred, c.Path(name), []byte(runSed(commands, all, f.has("n"))), in.Mode().Perm()); err != nil {
			return c.Fail("couldn't open file %s: %s", name, message(err))
		}
		return 0
	})
}

func needsLast(commands []*sedCommand) bool {
	return slices.ContainsFunc(commands, func(k *sedCommand) bool { return k.from.last || k.to.last })
}

// streamSed writes each line as it comes. Line numbers aren't known there: such scripts are few, and refused.
func streamSed(c *shell.Call, f *flags, commands []*sedCommand) int {
	if slices.ContainsFunc(commands, func(k *sedCommand) bool { return k.from.line > 0 || k.to.set() || k.verb == 'q' }) {
		return c.Fail("-u with line numbers, ranges or q isn't simulated")
	}
	return inputs(c, f.args, func(_ string, r io.Reader) int {
		return lines(c, r, func(line string) bool {
			c.Out("%s", runSed(commands, []string{line}, f.has("n")))
			return true
		})
	})
}

func parseSed(s string, extended bool) ([]*sedCommand, error) {
	var all []*sedCommand
	for s = strings.TrimLeft(s, " \t\n;"); s != ""; s = strings.TrimLeft(s, " \t\n;") {
		k := &sedCommand{}
		var err error
		if k.from, s, err = sedAddr(s, extended); err != nil {
			return nil, err
		}
		if strings.HasPrefix(s, ",") {
			if k.to, s, err = sedAddr(s[1:], extended); err != nil {
				return nil, err
			}
		}
		s = strings.TrimLeft(s, " ")
		if strings.HasPrefix(s, "!") {
			k.negate, s = true, strings.TrimLeft(s[1:], " ")
		}
		if s == "" {
			return nil, fmt.Errorf("missing command")
		}
		k.verb, s = s[0], s[1:]
		switch k.verb {
		case 's':
			if s, err = k.substitution(s, extended); err != nil {
				return nil, err
			}
		case 'd', 'p', 'q':
		case 'a', 'i', 'c':
			text, rest, _ := strings.Cut(strings.TrimLeft(strings.TrimPrefix(strings.TrimLeft(s, " "), "\\"), "\n "), "\n")
			k.text, s = text, rest
		default:
			return nil, fmt.Errorf("unknown command: `%c'", k.verb)
		}
		all = append(all, k)
	}
	return all, nil
}

func sedAddr(s string, extended bool) (a sedAddress, rest string, err error) {
	switch {
	case strings.HasPrefix(s, "$"):
		return sedAddress{last: true}, s[1:], nil
	case strings.HasPrefix(s, "/"):
		expr, rest, ok := delimited(s[1:], '/')
		if !ok {
			return a, s, fmt.Errorf("unterminated address regex")
		}
		a.re, err = sedRegexp(expr, extended, "")
		return a, rest, err
	}
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	a.line, _ = strconv.Atoi(s[:i])
	return a, s[i:], nil
}

func sedRegexp(s string, extended bool, flags string) (*regexp.Regexp, error) {
	if !extended {
		s = basic(s)
	}
	return regexp.Compile(flags + s)
}

// delimited reads up to an unescaped delimiter.
func delimited(s string, d byte) (text, rest string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch {
		case s[i] == '\\' && i+1 < len(s):
			if s[i+1] != d || d == '|' {
				b.WriteByte('\\')
			}
			if s[i+1] == d && d == '|' {
				// \| with | as the delimiter is a plain |
				b.WriteByte(d)
			} else {
				b.WriteByte(s[i+1])
			}
			i++
		case s[i] == d:
			return b.String(), s[i+1:], true
		default:
			b.WriteByte(s[i])
		}
	}
	return "", "", false
}

func (k *sedCommand) substitution(s string, extended bool) (rest string, err error) {
	if s == "" {
		return "", fmt.Errorf("unterminated `s' command")
	}
	d := s[0]
	expr, s, ok := delimited(s[1:], d)
	var with string
	if ok {
		with, s, ok = delimited(s, d)
	}
	if !ok {
		return "", fmt.Errorf("unterminated `s' command")
	}
	flags := ""
	for s != "" && strings.IndexByte("gpiI", s[0]) >= 0 {
		switch s[0] {
		case 'g':
			k.global = true
		case 'p':
			k.print = true
		default:
			flags = "(?i)"
		}
		s = s[1:]
	}
	k.with = with
	k.re, err = sedRegexp(expr, extended, flags)
	return s, err
}

// replace does one substitution: & and \1 stand for what matched.
func (k *sedCommand) replace(line string) (string, bool) {
	n := 1
	if k.global {
		n = -1
	}
	found := k.re.FindAllStringSubmatchIndex(line, n)
	if found == nil {
		return line, false
	}
	var b strings.Builder
	at := 0
	for _, m := range found {
		b.WriteString(line[at:m[0]])
		for i := 0; i < len(k.with); i++ {
			switch ch := k.with[i]; {
			case ch == '&':
				b.WriteString(line[m[0]:m[1]])
			case ch == '\\' && i+1 < len(k.with):
				i++
				if g := int(k.with[i] - '0'); g >= 0 && g <= 9 {
					if 2*g+1 < len(m) && m[2*g] >= 0 {
						b.WriteString(line[m[2*g]:m[2*g+1]])
					}
				} else if k.with[i] == 'n' {
					b.WriteByte('\n')
				} else if k.with[i] == 't' {
					b.WriteByte('\t')
				} else {
					b.WriteByte(k.with[i])
				}
			default:
				b.WriteByte(ch)
			}
		}
		at = m[1]
	}
	b.WriteString(line[at:])
	return b.String(), true
}

func (k *sedCommand) applies(n int, last bool, line string) bool {
	hit := true
	switch {
	case k.to.set():
		switch {
		case k.inside:
			k.inside = !k.to.match(n, last, line) && (k.to.line == 0 || n < k.to.line)
		case k.from.match(n, last, line):
			k.inside = k.to.line == 0 || n < k.to.line
		default:
			hit = false
		}
	case k.from.set():
		hit = k.from.match(n, last, line)
	}
	return hit != k.negate
}

func runSed(commands []*sedCommand, all []string, quiet bool) string {
	var out strings.Builder
	put := func(s string) { _, _ = io.WriteString(&out, s+"\n") }
	for _, k := range commands {
		k.inside = false
	}
	for i, line := range all {
		keep, stop, after := true, false, ""
		for _, k := range commands {
			if !k.applies(i+1, i == len(all)-1, line) {
				continue
			}
			switch k.verb {
			case 's':
				var did bool
				if line, did = k.replace(line); did && k.print {
					put(line)
				}
			case 'd':
				keep = false
			case 'p':
				put(line)
			case 'q':
				stop = true
			case 'i':
				put(k.text)
			case 'a':
				after += k.text + "\n"
			case 'c':
				put(k.text)
				keep = false
			}
			if !keep || stop {
				break
			}
		}
		if keep && !quiet {
			put(line)
		}
		out.WriteString(after)
		if stop {
			break
		}
	}
	return out.String()
}
