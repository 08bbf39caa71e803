package sandbox

import (
	"fmt"
	"strings"
)

// Problem is one thing that is wrong with a specification, found before
// anything is changed.
type Problem struct {
	// Attribute names the setting in the public interface's words, e.g.
	// "network.ipv4", "vmid", or "provider.address_range" for the provider
	// block.
	Attribute string
	Summary   string // one line: what is wrong
	Detail    string // why, and what to do
	// Warning marks a problem that stops nothing.
	Warning bool
}

func (p Problem) String() string {
	return fmt.Sprintf("%s: %s. %s", p.Attribute, p.Summary, p.Detail)
}

// ProblemsError carries problems to a caller that has to fail.
type ProblemsError struct{ Problems []Problem }

func (e *ProblemsError) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, p := range e.Problems {
		lines = append(lines, p.String())
	}
	return strings.Join(lines, "\n")
}

// asError returns nil when problems holds nothing but warnings.
func asError(problems []Problem) error {
	var hard []Problem
	for _, p := range problems {
		if !p.Warning {
			hard = append(hard, p)
		}
	}
	if len(hard) == 0 {
		return nil
	}
	return &ProblemsError{Problems: hard}
}
