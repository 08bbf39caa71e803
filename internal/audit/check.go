package audit

import (
	"fmt"
	"strings"
	"unicode"
)

// Status is how a check ended.
type Status string

// The statuses.
const (
	Passed        Status = "passed"
	Failed        Status = "failed"
	NotApplicable Status = "not_applicable" // there is nothing to check
	Unknown       Status = "unknown"        // it could not be checked
)

// Severity is how much a check weighs.
type Severity string

// The severities, and what each weighs in the score.
const (
	Critical Severity = "critical" // 20
	High     Severity = "high"     // 10
	Medium   Severity = "medium"   // 5
	Low      Severity = "low"      // 2
)

var weights = map[Severity]int{Critical: 20, High: 10, Medium: 5, Low: 2}

// Part is what a check looks at.
type Part string

// The parts of a sandbox.
const (
	PartContainer Part = "container" // its configuration on the server
	PartGuest     Part = "guest"     // what is inside
)

// Check is what is checked, whatever the outcome.
type Check struct {
	// ID is stable: "C1", "G13.2".
	ID       string
	Title    string // what is so when the check passes
	Severity Severity
	Part     Part
	// Group is the heading that it stands under.
	Group string
	// How says by what it is verified.
	How string
	// Remedy says what to do when it fails.
	Remedy string
	// Cap is the best grade that a failure leaves; empty for no cap.
	Cap Grade
}

// Finding is a check with its outcome.
type Finding struct {
	Check
	Status Status
	// VerifiedBy says what was really looked at: "sshd -T", "/etc/shadow".
	VerifiedBy string
	// Evidence is what was seen, a line each, never a secret; or why it wasn't.
	Evidence []string
}

// verdict is what a check's function says.
type verdict struct {
	status   Status
	by       string
	evidence []string
}

func passed(by string, evidence ...string) verdict { return verdict{Passed, by, evidence} }
func failed(by string, evidence ...string) verdict { return verdict{Failed, by, evidence} }
func unknown(by, why string) verdict               { return verdict{Unknown, by, []string{why}} }
func notApplicable(why string) verdict             { return verdict{NotApplicable, "", []string{why}} }

// judge fails with what was found, and passes with nothing.
func judge(by string, found []string, good ...string) verdict {
	if len(found) > 0 {
		return failed(by, found...)
	}
	return passed(by, good...)
}

const (
	maxEvidence     = 20
	maxEvidenceText = 300
)

// shorten makes evidence fit to be shown: few lines, none too long, and nothing
// that moves a terminal's cursor.
func shorten(evidence []string) []string {
	out := make([]string, 0, min(len(evidence), maxEvidence+1))
	for i, e := range evidence {
		if i == maxEvidence {
			out = append(out, fmt.Sprintf("and %d more", len(evidence)-i))
			break
		}
		out = append(out, printable(e))
	}
	return out
}

func printable(s string) string {
	s = strings.ToValidUTF8(s, "\uFFFD")
	s = strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
	if len(s) > maxEvidenceText {
		s = strings.ToValidUTF8(s[:maxEvidenceText], "") + "…"
	}
	return s
}
