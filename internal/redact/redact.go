// Package redact takes secrets out of texts that people are asked to pass on: by value where they are known, else by their
// shape and by the names that stand before them. It would rather take too much.
package redact

import (
	"regexp"
	"strings"
)

// Mark stands in the place of a secret.
const Mark = "[redacted]"

// Redactor takes out known values, and what looks like a secret. It is safe for concurrent use.
type Redactor struct{ known index }

// New returns a redactor that also knows these values, whole and line by line, in every form in which programs pass text
// on: as it is, JSON, shell and URL escaped, hexadecimal, and base64 wherever it begins in what was encoded (forms.go).
// A value shorter than 4 bytes is not looked for: it would tear up ordinary words.
func New(values ...string) *Redactor { return &Redactor{known: newIndex(forms(values))} }

// secretName are words in a name whose value is nobody's business.
const secretName = `[\w.-]*(?:passw(?:or)?d|passphrase|secret|token|credential|api[_-]?key|private[_-]?key|auth[_-]?key|access[_-]?key|csrf|cookie)[\w.-]*` //nolint:gosec // the pattern of secrets' names, none itself

// shapes are what secrets look like; $1 is what stays.
var shapes = []*regexp.Regexp{
	regexp.MustCompile(`(?s)()-----BEGIN [A-Z0-9 ]*PRIVATE KEY-----.*?(?:-----END [A-Z0-9 ]*PRIVATE KEY-----|\z)`),
	regexp.MustCompile(`(?i)((?:proxy-)?authorization["']?\s*[:=]\s*["']?)[^\r\n"']+`),
	regexp.MustCompile(`(PVEAPIToken=[^=\s]+=)[^\s"',;]+`),
	regexp.MustCompile(`([\w.-]+@[\w.-]+![\w.-]+=)[0-9a-fA-F-]{36}`),
	regexp.MustCompile(`()PVE(?:Auth|:)[^\s"';]*::?[^\s"';]+`),
	regexp.MustCompile(`([a-zA-Z][\w+.-]*://[^/\s:@]*:)[^/\s@]+(@)`),
	// name: value, name=value, "name": "value", --name value
	regexp.MustCompile(`(?i)(\b` + secretName + `["']?\s*[:=]\s*)(?:"(?:[^"\\]|\\.)*"|'[^']*'|[^\s,;&}]+)`),
	regexp.MustCompile(`(?i)(--?` + secretName + `\s+)[^\s-]\S*`),
	// Tokens that services mark as theirs.
	regexp.MustCompile(`()\b(?:sk-[A-Za-z0-9_-]{16,}|gh[pousr]_[A-Za-z0-9]{20,}|github_pat_[A-Za-z0-9_]{20,}|glpat-[A-Za-z0-9_-]{16,}|` +
		`xox[abeoprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|ASIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|tskey-[A-Za-z0-9-]{10,}|npm_[A-Za-z0-9]{30,}|hf_[A-Za-z0-9]{20,}|` +
		`AGE-SECRET-KEY-1[A-Z0-9]{20,}|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]+)`),
}

// Text returns text without the known values and without what looks like a secret. Where it is about to be cut to a
// limit, it must be redacted first: half a secret is not found.
func (r *Redactor) Text(text string) string {
	text = r.Known(text)
	for _, shape := range shapes {
		replacement := "${1}" + Mark
		if shape.NumSubexp() > 1 {
			replacement += "${2}"
		}
		text = shape.ReplaceAllString(text, replacement)
	}
	return text
}

// Known returns text without the known values only.
func (r *Redactor) Known(text string) string { return r.Replace(text, Mark) }

// Replace is Known with another mark.
func (r *Redactor) Replace(text, mark string) string {
	s := scan{index: &r.known, mark: mark, final: true}
	if !s.index.maybe(text) {
		return text
	}
	out, _ := s.redact(nil, []byte(text))
	return string(out)
}

// Lines is Text for each line.
func (r *Redactor) Lines(lines []string) []string {
	// Together: a key in PEM form has many lines.
	return strings.Split(r.Text(strings.Join(lines, "\n")), "\n")
}
