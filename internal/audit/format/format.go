// Package format writes an audit's report for machines: JSON, SARIF 2.1.0 for
// code scanning, and JUnit XML for test reports.
package format

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
)

// Names of the formats.
const (
	JSON  = "json"
	SARIF = "sarif"
	JUnit = "junit"
)

// Write writes a report in one of the formats. subject is what was looked at.
func Write(w io.Writer, format string, r audit.Report, subject string) error {
	switch format {
	case JSON:
		return writeJSON(w, r, subject)
	case SARIF:
		return writeSARIF(w, r, subject)
	case JUnit:
		return writeJUnit(w, r, subject)
	}
	return fmt.Errorf("no format %q; there are %s, %s and %s", format, JSON, SARIF, JUnit)
}

type document struct {
	SchemaVersion int       `json:"schema_version"`
	Subject       string    `json:"subject"`
	At            string    `json:"at"`
	Profile       string    `json:"profile"`
	Stage         string    `json:"stage"`
	Score         int       `json:"score"`
	Grade         string    `json:"grade"`
	Caps          []limit   `json:"caps"`
	Counts        counts    `json:"counts"`
	Findings      []finding `json:"findings"`
}

type limit struct {
	ID    string `json:"id"`
	Grade string `json:"grade"`
}

type counts struct {
	Passed        int `json:"passed"`
	Failed        int `json:"failed"`
	Unknown       int `json:"unknown"`
	NotApplicable int `json:"not_applicable"`
}

type finding struct {
	ID         string   `json:"id"`
	Title      string   `json:"title"`
	Group      string   `json:"group"`
	Severity   string   `json:"severity"`
	Status     string   `json:"status"`
	VerifiedBy string   `json:"verified_by"`
	Evidence   []string `json:"evidence"`
	Remedy     string   `json:"remedy,omitempty"`
}

func writeJSON(w io.Writer, r audit.Report, subject string) error {
	d := document{
		SchemaVersion: audit.SchemaVersion, Subject: subject, At: r.At.Format(time.RFC3339), Profile: string(r.Profile), Stage: string(r.Stage),
		Score: r.Score, Grade: string(r.Grade), Caps: []limit{}, Findings: []finding{},
		Counts: counts{r.Count(audit.Passed), r.Count(audit.Failed), r.Count(audit.Unknown), r.Count(audit.NotApplicable)},
	}
	for _, c := range r.Caps {
		d.Caps = append(d.Caps, limit{c.ID, string(c.Grade)})
	}
	for _, f := range r.Findings {
		out := finding{
			ID: f.ID, Title: f.Title, Group: f.Group, Severity: string(f.Severity), Status: string(f.Status),
			VerifiedBy: f.VerifiedBy, Evidence: append([]string{}, f.Evidence...),
		}
		if f.Status == audit.Failed || f.Status == audit.Unknown {
			out.Remedy = f.Remedy
		}
		d.Findings = append(d.Findings, out)
	}
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(d)
}

const informationURI = "https://github.com/agentsandbox/terraform-provider-sandbox"

// levels are SARIF's names for severities.
var levels = map[audit.Severity]string{audit.Critical: "error", audit.High: "error", audit.Medium: "warning", audit.Low: "note"}

// writeSARIF has a result for each check: its kind says how it ended, as SARIF
// has it (pass, fail, open for unknown, notApplicable).
func writeSARIF(w io.Writer, r audit.Report, subject string) error {
	run := sarif.NewRunWithInformationURI("sandbox-audit", informationURI)
	run.WithProperties(sarif.NewPropertyBag().Add("score", r.Score).Add("grade", string(r.Grade)).Add("profile", string(r.Profile)).Add("stage", string(r.Stage)))
	for _, f := range r.Findings {
		rule := run.AddRule(f.ID).WithName(f.Title).WithDescription(f.Title).WithHelp(sarif.NewMultiformatMessageString().WithText(f.Remedy))
		rule.WithDefaultConfiguration(sarif.NewReportingConfiguration().WithLevel(levels[f.Severity]))
		rule.WithProperties(sarif.NewPropertyBag().Add("severity", string(f.Severity)).Add("group", f.Group))
		result := run.CreateResultForRule(f.ID)
		kind, level := "pass", "none"
		switch f.Status {
		case audit.Failed:
			kind, level = "fail", levels[f.Severity]
		case audit.Unknown:
			kind = "open"
		case audit.NotApplicable:
			kind = "notApplicable"
		}
		result.WithKind(kind).WithLevel(level).WithMessage(sarif.NewTextMessage(text(f)))
		result.AddLocation(sarif.NewLocation().AddLogicalLocation(sarif.NewLogicalLocation().WithFullyQualifiedName(subject).WithKind("resource")))
	}
	report := sarif.NewReport()
	report.AddRun(run)
	return report.PrettyWrite(w)
}

// writeJUnit has a test for each check: what failed is a failure, what couldn't
// be checked an error, what doesn't apply is skipped.
func writeJUnit(w io.Writer, r audit.Report, subject string) error {
	suites := junit.Testsuites{Name: "sandbox-audit"}
	var groups []string
	byGroup := map[string]*junit.Testsuite{}
	for _, f := range r.Findings {
		s := byGroup[f.Group]
		if s == nil {
			s = &junit.Testsuite{Name: f.Group, ID: len(groups), Package: subject, Time: "0"}
			s.SetTimestamp(r.At)
			s.AddProperty("score", fmt.Sprint(r.Score))
			s.AddProperty("grade", string(r.Grade))
			byGroup[f.Group] = s
			groups = append(groups, f.Group)
		}
		c := junit.Testcase{Name: f.ID + " " + f.Title, Classname: subject, Time: "0"}
		result := &junit.Result{Message: text(f), Type: string(f.Severity), Data: strings.Join(append(append([]string{}, f.Evidence...), f.Remedy), "\n")}
		switch f.Status {
		case audit.Failed:
			c.Failure = result
		case audit.Unknown:
			c.Error = result
		case audit.NotApplicable:
			c.Skipped = &junit.Result{Message: text(f)}
		}
		s.AddTestcase(c)
	}
	for _, g := range groups {
		suites.AddSuite(*byGroup[g])
	}
	return suites.WriteXML(w)
}

func text(f audit.Finding) string {
	return cmp.Or(strings.Join(f.Evidence, "; "), f.Title)
}
