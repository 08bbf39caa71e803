package redact

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"strings"
)

const (
	// shortest is the length below which a known value isn't looked for: it would tear up ordinary words.
	shortest = 4
	// shortestLine is the same for one line of a longer value: "EOF", "true" and "-----END" are no secrets.
	shortestLine = 8
	// shortestEncoded is the same for what is left of an encoded value.
	shortestEncoded = 5
)

// form is one way in which a secret may be written.
type form struct {
	text string
	// wrapped says that line breaks may stand in it, as encoders put them in.
	wrapped bool
}

// forms lists every way in which the values may be written, whole and line by line.
func forms(values []string) []form {
	seen := map[form]bool{}
	var out []form
	add := func(text string, least int, wrapped bool) {
		f := form{text, wrapped}
		if len(text) >= least && !seen[f] {
			seen[f] = true
			out = append(out, f)
		}
	}
	for _, plain := range plains(values) {
		add(plain, shortest, false)
		for _, escaped := range escapes(plain) {
			add(escaped, shortest, false)
		}
		for _, encoded := range encodings(plain) {
			add(encoded, shortestEncoded, true)
		}
		for _, separator := range []string{":", " "} {
			spread := hexBytes(plain, separator)
			add(spread, shortestEncoded, false)
			add(strings.ToUpper(spread), shortestEncoded, false)
		}
	}
	return out
}

// plains are the values, and their lines where they have several.
func plains(values []string) []string {
	var out []string
	for _, value := range values {
		whole := strings.TrimSpace(value)
		if len(whole) < shortest {
			continue
		}
		out = append(out, whole)
		if value != whole {
			out = append(out, value) // encoded with its last line break, it is another text
		}
		if !strings.Contains(whole, "\n") {
			continue
		}
		for _, line := range strings.Split(whole, "\n") {
			line = strings.TrimSpace(line)
			if len(line) >= shortestLine && !strings.HasPrefix(line, "-----") {
				out = append(out, line)
			}
		}
	}
	return out
}

// escapes are the forms in which a text stands inside another language: JSON (and what quotes as it does), shells, XML and URLs.
func escapes(plain string) []string {
	out := []string{
		strings.ReplaceAll(plain, "'", `'\''`), strings.ReplaceAll(plain, "'", `'"'"'`),
		strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", `\$`, "`", "\\`").Replace(plain),
		strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&#34;", "'", "&#39;").Replace(plain),
		strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`, "&quot;").Replace(plain),
		strings.ReplaceAll(plain, "\n", "\r\n"),
	}
	for _, html := range []bool{true, false} {
		var b bytes.Buffer
		e := json.NewEncoder(&b)
		e.SetEscapeHTML(html)
		if e.Encode(plain) == nil {
			quoted := strings.TrimSuffix(b.String(), "\n")
			out = append(out, quoted[1:len(quoted)-1])
		}
	}
	goQuoted := fmt.Sprintf("%q", plain)
	out = append(out, goQuoted[1:len(goQuoted)-1])

	var all strings.Builder
	for i := range len(plain) {
		fmt.Fprintf(&all, "%%%02X", plain[i])
	}
	for _, percent := range []string{url.QueryEscape(plain), url.PathEscape(plain), strings.ReplaceAll(url.QueryEscape(plain), "+", "%20"), all.String()} {
		out = append(out, percent, lowerPercent(percent))
	}
	return out
}

// lowerPercent writes the digits of percent escapes small, as some encoders do.
func lowerPercent(text string) string {
	b := []byte(text)
	for i := 0; i+2 < len(b); i++ {
		if b[i] == '%' {
			copy(b[i+1:i+3], bytes.ToLower(b[i+1:i+3]))
			i += 2
		}
	}
	return string(b)
}

// encodings are hexadecimal, and base64 in both alphabets as it comes out when 0, 1 or 2 bytes stand before the text in
// the group of three: without the characters that depend on what is before and after.
func encodings(plain string) []string {
	out := []string{hex.EncodeToString([]byte(plain)), strings.ToUpper(hex.EncodeToString([]byte(plain)))}
	for _, alphabet := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
		for before, cut := range []int{0, 2, 3} {
			encoded := alphabet.EncodeToString(append(make([]byte, before), plain...))
			whole := (before + len(plain)) * 8 / 6
			if cut < whole {
				out = append(out, encoded[cut:whole])
			}
		}
		out = append(out, alphabet.EncodeToString([]byte(plain)))
	}
	return out
}

func hexBytes(plain, separator string) string {
	pairs := make([]string, len(plain))
	for i := range len(plain) {
		pairs[i] = hex.EncodeToString([]byte{plain[i]})
	}
	return strings.Join(pairs, separator)
}
