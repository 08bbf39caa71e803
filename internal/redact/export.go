package redact

import (
	"slices"
	"strings"
)

// Forms lists the texts, longest first, that a Redactor of these values looks for, for a tool elsewhere that goes
// through a text line by line. What an encoder may have broken into lines is listed in pieces too, so that little of it
// is left wherever it was broken.
func Forms(values ...string) []string {
	const (
		line  = 60 // encoders break no earlier
		piece = 16
	)
	var out []string
	for _, f := range forms(values) {
		if !strings.ContainsAny(f.text, "\r\n") {
			out = append(out, f.text)
		}
		for at := 0; f.wrapped && len(f.text) > line && at+piece <= len(f.text); at += piece {
			out = append(out, f.text[at:at+piece])
		}
	}
	slices.Sort(out)
	out = slices.Compact(out)
	slices.SortStableFunc(out, func(a, b string) int { return len(b) - len(a) })
	return out
}
