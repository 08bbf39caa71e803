package workcopy

import "strings"

// wildmatch matches a path against one pattern of a .gitignore file, byte by byte as git does: * and ? don't cross a
// slash, ** between slashes does, [a-z], [!a] and [[:alpha:]] are sets, \ takes the next byte as it is.
func wildmatch(pattern, name string) bool {
	for p := 0; p < len(pattern); p++ {
		c := pattern[p]
		if c == '*' {
			return matchStar(pattern, p, name)
		}
		if name == "" {
			return false
		}
		switch c {
		case '?':
			if name[0] == '/' {
				return false
			}
		case '[':
			ok, end := matchSet(pattern, p, name[0])
			if !ok || name[0] == '/' {
				return false
			}
			p = end
		case '\\':
			if p++; p == len(pattern) || pattern[p] != name[0] {
				return false
			}
		default:
			if c != name[0] {
				return false
			}
		}
		name = name[1:]
	}
	return name == ""
}

// matchStar is wildmatch from a star on.
func matchStar(pattern string, at int, name string) bool {
	end := at
	for end < len(pattern) && pattern[end] == '*' {
		end++
	}
	rest := pattern[end:]
	crosses := false
	if end-at >= 2 && (at == 0 || pattern[at-1] == '/') {
		switch {
		case rest == "":
			return true
		case rest[0] == '/':
			crosses = true
			if wildmatch(rest[1:], name) { // "a/**/b" matches a/b too
				return true
			}
		}
	}
	for i := 0; ; i++ {
		if wildmatch(rest, name[i:]) {
			return true
		}
		if i == len(name) || !crosses && name[i] == '/' {
			return false
		}
	}
}

// matchSet says whether a byte is in the set that begins at pattern[at], and where that ends. A set without an end
// matches nothing.
func matchSet(pattern string, at int, c byte) (ok bool, end int) {
	p := at + 1
	not := p < len(pattern) && (pattern[p] == '!' || pattern[p] == '^')
	if not {
		p++
	}
	for first := true; p < len(pattern); first = false {
		if pattern[p] == ']' && !first {
			return ok != not, p
		}
		if name, after, is := setClass(pattern, p); is {
			class, known := classes[name]
			if !known {
				return false, len(pattern)
			}
			ok = ok || class(c)
			p = after
			continue
		}
		low, next := setByte(pattern, p)
		high := low
		if next+1 < len(pattern) && pattern[next] == '-' && pattern[next+1] != ']' {
			high, next = setByte(pattern, next+1)
		}
		ok = ok || low <= c && c <= high
		p = next
	}
	return false, len(pattern)
}

func setByte(pattern string, p int) (c byte, next int) {
	if pattern[p] == '\\' && p+1 < len(pattern) {
		p++
	}
	return pattern[p], p + 1
}

// setClass reads [:name:] inside a set.
func setClass(pattern string, p int) (name string, after int, ok bool) {
	if !strings.HasPrefix(pattern[p:], "[:") {
		return "", 0, false
	}
	length := strings.IndexByte(pattern[p+2:], ']')
	if length < 1 || pattern[p+2+length-1] != ':' {
		return "", 0, false
	}
	return pattern[p+2 : p+2+length-1], p + 2 + length + 1, true
}

var classes = map[string]func(byte) bool{
	"alnum":  func(c byte) bool { return isAlpha(c) || isDigit(c) },
	"alpha":  isAlpha,
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < 0x20 || c == 0x7f },
	"digit":  isDigit,
	"graph":  func(c byte) bool { return c > 0x20 && c < 0x7f },
	"lower":  func(c byte) bool { return 'a' <= c && c <= 'z' },
	"print":  func(c byte) bool { return c >= 0x20 && c < 0x7f },
	"punct":  func(c byte) bool { return c > 0x20 && c < 0x7f && !isAlpha(c) && !isDigit(c) },
	"space":  func(c byte) bool { return c == ' ' || '\t' <= c && c <= '\r' },
	"upper":  func(c byte) bool { return 'A' <= c && c <= 'Z' },
	"xdigit": func(c byte) bool { return isDigit(c) || 'a' <= c|0x20 && c|0x20 <= 'f' },
}

func isAlpha(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }
func isDigit(c byte) bool { return '0' <= c && c <= '9' }
