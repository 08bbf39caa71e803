package command

import (
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/sim/shell"
)

// followEvery is how often tail -f looks, on the lab's clock.
const followEvery = 100 * time.Millisecond

func init() {
	register(map[string]shell.Command{"grep": grep, "egrep": grep, "fgrep": grep, "sort": sortCommand, "uniq": uniq, "cut": cut, "tr": tr})
}

// basic turns a basic regular expression into Go's syntax.
func basic(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch ch := s[i]; ch {
		case '\\':
			i++
			if i == len(s) {
				b.WriteString(`\\`)
				break
			}
			if strings.IndexByte("(){}+?|", s[i]) >= 0 {
				b.WriteByte(s[i])
			} else if strings.IndexByte("<>", s[i]) >= 0 {
				b.WriteString(`\b`)
			} else {
				b.WriteByte('\\')
				b.WriteByte(s[i])
			}
		case '(', ')', '{', '}', '+', '?', '|':
			b.WriteByte('\\')
			b.WriteByte(ch)
		case '[':
			end := strings.IndexByte(s[i+1:], ']')
			if strings.HasPrefix(s[i+1:], "[:") || strings.HasPrefix(s[i+1:], "^[:") {
				if j := strings.Index(s[i:], ":]]"); j >= 0 {
					end = j + 1
				}
			}
			if end < 0 {
				b.WriteString(`\[`)
				break
			}
			b.WriteString(strings.ReplaceAll(s[i:i+end+2], `\`, `\\`))
			i += end + 1
		default:
			b.WriteByte(ch)
		}
	}
	return b.String()
}

func grep(c *shell.Call) int {
	f := parse(c, "EFPivncqloshHwxrRm:e:A:B:C:", "extended-regexp=E", "fixed-strings=F", "ignore-case=i", "invert-match=v", "quiet=q", "silent=q",
		"count=c", "only-matching=o", "line-number=n", "files-with-matches=l", "no-messages=s", "word-regexp=w", "line-regexp=x", "regexp=e", "recursive=r", "max-count=m", "color=")
	if f == nil {
		return 2
	}
	pattern, given := f.value["e"], f.has("e")
	if !given {
		if len(f.args) == 0 {
			return c.Usage("missing pattern")
		}
		pattern, f.args = f.args[0], f.args[1:]
	}
	if f.has("A", "B", "C") {
		return c.Usage("context lines are not simulated")
	}
	var alternatives []string
	for p := range strings.SplitSeq(pattern, "\n") {
		switch {
		case f.has("F") || c.Name() == "fgrep":
			p = regexp.QuoteMeta(p)
		case !f.has("E", "P") && c.Name() != "egrep":
			p = basic(p)
		}
		if f.has("w") {
			p = `\b(?:` + p + `)\b`
		}
		if f.has("x") {
			p = "^(?:" + p + ")$"
		}
		alternatives = append(alternatives, "(?:"+p+")")
	}
	expr := strings.Join(alternatives, "|")
	if f.has("i") {
		expr = "(?i)" + expr
	}
	re, err := regexp.Compile(expr)
	if err != nil {
		return c.Usage("%v", err)
	}
	files := f.args
	if f.has("r", "R") {
		files = filesBelow(c, files)
	}
	limit, _ := strconv.Atoi(f.value["m"])
	found := false
	inputsStatus := inputs(c, files, func(name string, r io.Reader) int {
		n, number := 0, 0
		prefix := ""
		if (len(files) > 1 || f.has("H")) && !f.has("h") {
			prefix = name + ":"
		}
		lines(c, r, func(line string) bool {
			number++
			if re.MatchString(line) == f.has("v") {
				return true
			}
			n++
			found = true
			if f.has("q", "l") {
				return false
			}
			if !f.has("c") {
				at := prefix
				if f.has("n") {
					at += fmt.Sprintf("%d:", number)
				}
				shown := []string{line}
				if f.has("o") {
					shown = re.FindAllString(line, -1)
				}
				for _, s := range shown {
					c.Out("%s%s\n", at, s)
				}
			}
			return limit == 0 || n < limit
		})
		if f.has("c") {
			c.Out("%s%d\n", prefix, n)
		}
		if f.has("l") && n > 0 {
			c.Out("%s\n", name)
		}
		return 0
	})
	failed := inputsStatus != 0
	switch {
	case found && (f.has("q") || !failed):
		return 0
	case failed:
		return 2
	}
	return 1
}

func filesBelow(c *shell.Call, roots []string) []string {
	if len(roots) == 0 {
		roots = []string{"."}
	}
	var all []string
	for _, r := range roots {
		below(c, r, true, func(name string) int {
			if in, err := c.Machine.FS.Stat(c.Cred, c.Path(name)); err == nil && in.Mode().IsRegular() {
				all = append(all, name)
			}
			return 0
		})
	}
	return all
}

// readLines reads all lines of all files.
func readLines(c *shell.Call, names []string) (all []string, status int) {
	status = inputs(c, names, func(_ string, r io.Reader) int {
		return lines(c, r, func(line string) bool { all = append(all, line); return true })
	})
	return all, status
}

func sortCommand(c *shell.Call) int {
	f := parse(c, "runk:t:sfbVo:z", "reverse=r", "unique=u", "numeric-sort=n", "key=k", "field-separator=t", "version-sort=V", "output=o")
	if f == nil {
		return 2
	}
	all, status := readLines(c, f.args)
	numeric := f.has("n") || strings.Contains(f.value["k"], "n")
	first, last := 0, 0
	if f.has("k") {
		if n, _ := fmt.Sscanf(strings.Map(func(r rune) rune {
			if r == ',' {
				return ' '
			}
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, f.value["k"]), "%d %d", &first, &last); n == 0 {
			return c.Usage("invalid key: '%s'", f.value["k"])
		}
	}
	key := func(s string) string {
		if first == 0 {
			return s
		}
		parts := strings.Fields(s)
		if f.has("t") {
			parts = strings.Split(s, f.value["t"])
		}
		to := len(parts)
		if last > 0 {
			to = min(to, last)
		}
		if first > to {
			return ""
		}
		return strings.Join(parts[first-1:to], " ")
	}
	number := func(s string) float64 {
		m := leadingNumber.FindString(strings.TrimSpace(s))
		v, _ := strconv.ParseFloat(m, 64)
		return v
	}
	compare := func(a, b string) int {
		ka, kb := key(a), key(b)
		if f.has("f") {
			ka, kb = strings.ToUpper(ka), strings.ToUpper(kb)
		}
		if numeric {
			if d := number(ka) - number(kb); d != 0 {
				return map[bool]int{true: -1, false: 1}[d < 0]
			}
			if f.has("u") {
				return 0
			}
		}
		if n := strings.Compare(ka, kb); n != 0 || f.has("u", "s") {
			return n
		}
		return strings.Compare(a, b)
	}
	slices.SortStableFunc(all, compare)
	if f.has("u") {
		all = slices.CompactFunc(all, func(a, b string) bool { return compare(a, b) == 0 })
	}
	if f.has("r") {
		slices.Reverse(all)
	}
	text := strings.Join(all, "\n")
	if len(all) > 0 {
		text += "\n"
	}
	if o := f.value["o"]; o != "" {
		if err := c.Machine.FS.WriteFile(c.Cred, c.Path(o), []byte(text), 0o644); err != nil {
			return c.FailFile(o, err)
		}
		return status
	}
	c.Out("%s", text)
	return status
}

var leadingNumber = regexp.MustCompile(`^-?[0-9]*\.?[0-9]*`)

func uniq(c *shell.Call) int {
	f := parse(c, "cdui", "count=c", "repeated=d", "unique=u")
	if f == nil {
		return 1
	}
	all, status := readLines(c, f.args)
	for i := 0; i < len(all); {
		j := i + 1
		for j < len(all) && (all[j] == all[i] || f.has("i") && strings.EqualFold(all[j], all[i])) {
			j++
		}
		n := j - i
		if !(f.has("d") && n == 1 || f.has("u") && n > 1) {
			if f.has("c") {
				c.Out("%7d ", n)
			}
			c.Out("%s\n", all[i])
		}
		i = j
	}
	return status
}

// ranges reads 1,3-5,7-.
func ranges(s string) (func(int) bool, error) {
	type span struct{ from, to int }
	var spans []span
	for part := range strings.SplitSeq(s, ",") {
		lo, hi, dash := strings.Cut(part, "-")
		sp := span{1, 1 << 30}
		var err error
		if lo != "" {
			sp.from, err = strconv.Atoi(lo)
		}
		if err == nil && !dash {
			sp.to = sp.from
		} else if err == nil && hi != "" {
			sp.to, err = strconv.Atoi(hi)
		}
		if err != nil || sp.from < 1 {
			return nil, fmt.Errorf("invalid range %q", part)
		}
		spans = append(spans, sp)
	}
	return func(n int) bool {
		return slices.ContainsFunc(spans, func(s span) bool { return n >= s.from && n <= s.to })
	}, nil
}

func cut(c *shell.Call) int {
	f := parse(c, "d:f:c:b:s", "delimiter=d", "fields=f", "characters=c", "only-delimited=s", "output-delimiter=")
	if f == nil {
		return 1
	}
	list := f.value["f"] + f.value["c"] + f.value["b"]
	want, err := ranges(list)
	if err != nil {
		return c.Fail("%v", err)
	}
	d := "\t"
	if f.has("d") {
		d = f.value["d"]
	}
	out := d
	if f.has("output-delimiter") {
		out = f.value["output-delimiter"]
	}
	return inputs(c, f.args, func(_ string, r io.Reader) int {
		return lines(c, r, func(line string) bool {
			var kept []string
			if f.has("f") {
				if !strings.Contains(line, d) {
					if !f.has("s") {
						c.Out("%s\n", line)
					}
					return true
				}
				for i, p := range strings.Split(line, d) {
					if want(i + 1) {
						kept = append(kept, p)
					}
				}
				c.Out("%s\n", strings.Join(kept, out))
				return true
			}
			for i := range len(line) {
				if want(i + 1) {
					kept = append(kept, line[i:i+1])
				}
			}
			c.Out("%s\n", strings.Join(kept, ""))
			return true
		})
	})
}

// trSet expands a-z, [:upper:] and escapes.
func trSet(s string) []byte {
	for name, set := range map[string]string{"[:lower:]": "a-z", "[:upper:]": "A-Z", "[:digit:]": "0-9", "[:alpha:]": "A-Za-z", "[:alnum:]": "A-Za-z0-9", "[:space:]": " \t\n\r\v\f", "[:punct:]": "!-/:-@\\[-`{-~", "[:cntrl:]": "\x00-\x1f\x7f"} {
		s = strings.ReplaceAll(s, name, set)
	}
	var raw []byte
	escaped := map[int]bool{}
	for i := 0; i < len(s); i++ {
		b := s[i]
		if b == '\\' && i+1 < len(s) {
			i++
			switch s[i] {
			case 'n':
				b = '\n'
			case 't':
				b = '\t'
			case 'r':
				b = '\r'
			case '0':
				b = 0
				for i+1 < len(s) && s[i+1] >= '0' && s[i+1] <= '7' {
					i++
					b = b*8 + s[i] - '0'
				}
			default:
				b = s[i]
			}
			escaped[len(raw)] = true
		}
		raw = append(raw, b)
	}
	var set []byte
	for i := 0; i < len(raw); i++ {
		if i+2 < len(raw) && raw[i+1] == '-' && !escaped[i+1] && raw[i] <= raw[i+2] {
			for b := int(raw[i]); b <= int(raw[i+2]); b++ {
				set = append(set, byte(b))
			}
			i += 2
			continue
		}
		set = append(set, raw[i])
	}
	return set
}

func tr(c *shell.Call) int {
	f := parse(c, "+dscC", "delete=d", "squeeze-repeats=s", "complement=c")
	if f == nil || !needOperand(c, f, 1) {
		return 1
	}
	from := trSet(f.args[0])
	if f.has("c", "C") {
		var rest []byte
		for b := range 256 {
			if !slices.Contains(from, byte(b)) {
				rest = append(rest, byte(b))
			}
		}
		from = rest
	}
	var to []byte
	if len(f.args) > 1 {
		to = trSet(f.args[1])
	}
	all, err := io.ReadAll(c.In)
	if err != nil {
		return 1
	}
	squeeze := to
	if len(f.args) == 1 {
		squeeze = from
	}
	var out []byte
	for _, b := range all {
		if i := slices.Index(from, b); i >= 0 {
			if f.has("d") {
				continue
			}
			if len(to) > 0 {
				b = to[min(i, len(to)-1)]
			}
		}
		if f.has("s") && len(out) > 0 && out[len(out)-1] == b && slices.Contains(squeeze, b) {
			continue
		}
		out = append(out, b)
	}
	c.Out("%s", out)
	return 0
}
