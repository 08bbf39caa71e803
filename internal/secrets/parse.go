package secrets

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

func parse(text []byte, format Format, path string) (map[string]string, error) {
	if format == "" {
		format = FormatOf(path)
	}
	text = bytes.TrimPrefix(text, []byte("\xef\xbb\xbf"))
	if !utf8.Valid(text) {
		return nil, errors.New("it is not UTF-8 text")
	}
	switch format {
	case FormatJSON:
		return parseJSON(text)
	case FormatDotenv:
		return parseDotenv(string(text))
	}
	return nil, fmt.Errorf("the format %q is unknown: dotenv or json", format)
}

// parseJSON reads one object. Its own errors are told by their place: those of the library show characters.
func parseJSON(text []byte) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		var syntax *json.SyntaxError
		if errors.As(err, &syntax) {
			return nil, fmt.Errorf("it is not JSON, at line %d", 1+bytes.Count(text[:min(int(syntax.Offset), len(text))], []byte("\n")))
		}
		return nil, errors.New("it is not one JSON object")
	}
	out := make(map[string]string, len(members))
	for name, raw := range members {
		var text string
		switch raw = bytes.TrimSpace(raw); {
		case json.Unmarshal(raw, &text) == nil && raw[0] == '"':
			out[name] = text
		case raw[0] == '{', raw[0] == '[':
			return nil, fmt.Errorf("%q is an object or a list: only texts, numbers and truth values can be secrets", name)
		case string(raw) == "null":
			return nil, fmt.Errorf("%q is null", name)
		default: // a number, true or false, as it is written
			out[name] = string(raw)
		}
	}
	return out, nil
}

// parseDotenv reads NAME=value lines as most tools do: "export" in front, blank lines and comments (#) are left out; a
// value in single quotes is taken as it is, one in double quotes with \n, \r, \t, \", \$ and \\, both over several lines;
// one without quotes ends at the line's end or at " #". Nothing is expanded: $HOME stays what it is.
func parseDotenv(text string) (map[string]string, error) {
	out := map[string]string{}
	text = strings.ReplaceAll(text, "\r\n", "\n")
	line := 1
	for text != "" {
		var first string
		first, _, _ = strings.Cut(text, "\n")
		at := line
		if trimmed := strings.TrimSpace(first); trimmed == "" || trimmed[0] == '#' {
			text, line = after(text, len(first)), line+1
			continue
		}
		key, _, found := strings.Cut(first, "=")
		if !found {
			return nil, fmt.Errorf("line %d is no NAME=value", at)
		}
		rest := text[len(key)+1:]
		key = strings.TrimSpace(key)
		if export, ok := strings.CutPrefix(key, "export"); ok && strings.TrimLeft(export, " \t") != export {
			key = strings.TrimSpace(export)
		}
		if !ValidName(key) {
			return nil, fmt.Errorf("the name in line %d is none: letters, digits and _ only, no digit first", at)
		}
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("%s is there twice, again in line %d", key, at)
		}
		value, taken, err := dotenvValue(rest)
		if err != nil {
			return nil, fmt.Errorf("the value of %s, in line %d, %w", key, at, err)
		}
		line += 1 + strings.Count(rest[:taken], "\n")
		out[key], text = value, after(rest, taken)
	}
	return out, nil
}

// after is what follows n bytes and the line end behind them.
func after(text string, n int) string { return strings.TrimPrefix(text[n:], "\n") }

// dotenvValue reads a value and says how many bytes it takes, its line end not counted.
func dotenvValue(text string) (value string, taken int, err error) {
	lead := len(text) - len(strings.TrimLeft(text, " \t"))
	body := text[lead:]
	if body == "" || body[0] != '\'' && body[0] != '"' {
		value, _, _ = strings.Cut(body, "\n")
		taken = lead + len(value)
		for _, mark := range []string{" #", "\t#"} {
			value, _, _ = strings.Cut(value, mark)
		}
		return strings.TrimSpace(value), taken, nil
	}
	quote := body[0]
	var b strings.Builder
	for i := 1; i < len(body); i++ {
		switch c := body[i]; {
		case c == quote:
			trailing, _, _ := strings.Cut(body[i+1:], "\n")
			if t := strings.TrimSpace(trailing); t != "" && t[0] != '#' {
				return "", 0, errors.New("goes on after its quote")
			}
			return b.String(), lead + i + 1 + len(trailing), nil
		case c == '\\' && quote == '"' && i+1 < len(body):
			i++
			switch e := body[i]; e {
			case 'n':
				b.WriteByte('\n')
			case 'r':
				b.WriteByte('\r')
			case 't':
				b.WriteByte('\t')
			case '"', '\\', '$', '`':
				b.WriteByte(e)
			default:
				b.WriteByte('\\')
				b.WriteByte(e)
			}
		default:
			b.WriteByte(c)
		}
	}
	return "", 0, errors.New("has no closing quote")
}
