package format_test

import (
	"bytes"
	"context"
	"encoding/json"
	"encoding/xml"
	"testing"

	"github.com/jstemmer/go-junit-report/v2/junit"
	"github.com/owenrumney/go-sarif/v3/pkg/report/v210/sarif"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit/format"
)

func report(t *testing.T) audit.Report {
	t.Helper()
	r, err := audit.Run(context.Background(), audit.Target{
		Container: &audit.Container{Hookscript: "local:snippets/\x1b[31m<x>&"}, Unreached: "it is stopped",
	}, audit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func write(t *testing.T, name string, r audit.Report) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := format.Write(&b, name, r, "container 100"); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func TestSARIFIsValidAndHasAResultForEveryCheck(t *testing.T) {
	t.Parallel()
	r := report(t)
	s, err := sarif.FromBytes(write(t, format.SARIF, r))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Validate(); err != nil {
		t.Error(err)
	}
	if len(s.Runs) != 1 || len(s.Runs[0].Results) != len(r.Findings) || len(s.Runs[0].Tool.Driver.Rules) != len(r.Findings) {
		t.Fatalf("%d runs", len(s.Runs))
	}
	for i, f := range r.Findings {
		want := map[audit.Status]string{audit.Passed: "pass", audit.Failed: "fail", audit.Unknown: "open", audit.NotApplicable: "notApplicable"}[f.Status]
		if got := s.Runs[0].Results[i]; *got.RuleID != f.ID || got.Kind != want || (got.Level == "none") != (f.Status != audit.Failed) {
			t.Errorf("%s %s: kind %s, level %s", f.ID, f.Status, got.Kind, got.Level)
		}
	}
}

func TestJUnitCountsWhatFailedAndWhatCouldNotBeChecked(t *testing.T) {
	t.Parallel()
	r := report(t)
	var suites junit.Testsuites
	if err := xml.Unmarshal(write(t, format.JUnit, r), &suites); err != nil {
		t.Fatal(err)
	}
	if suites.Tests != len(r.Findings) || suites.Failures != r.Count(audit.Failed) || suites.Errors != r.Count(audit.Unknown) || suites.Skipped != r.Count(audit.NotApplicable) {
		t.Errorf("%d tests, %d failures, %d errors, %d skipped", suites.Tests, suites.Failures, suites.Errors, suites.Skipped)
	}
	if r.Count(audit.Failed) == 0 || r.Count(audit.Unknown) == 0 {
		t.Error("the report has nothing to count")
	}
}

func TestJSONHasAVersionAndRemediesOfWhatFailed(t *testing.T) {
	t.Parallel()
	r := report(t)
	var d struct {
		SchemaVersion int                 `json:"schema_version"`
		Score         int                 `json:"score"`
		Grade         string              `json:"grade"`
		Counts        map[string]int      `json:"counts"`
		Findings      []map[string]any    `json:"findings"`
		Caps          []map[string]string `json:"caps"`
	}
	out := write(t, format.JSON, r)
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	if d.SchemaVersion != 1 || d.Score != r.Score || d.Grade != string(r.Grade) || len(d.Findings) != len(r.Findings) || d.Counts["failed"] != r.Count(audit.Failed) || len(d.Caps) == 0 {
		t.Errorf("got %+v", d)
	}
	for i, f := range d.Findings {
		if hasRemedy := f["remedy"] != nil; hasRemedy != (r.Findings[i].Status == audit.Failed || r.Findings[i].Status == audit.Unknown) {
			t.Errorf("%s %s has a remedy: %t", f["id"], f["status"], hasRemedy)
		}
	}
	if bytes.ContainsRune(out, '\x1b') {
		t.Error("what a guest says can move the terminal's cursor")
	}
}

func TestAFormatThatThereIsntIsAnError(t *testing.T) {
	t.Parallel()
	if err := format.Write(&bytes.Buffer{}, "yaml", audit.Report{}, "x"); err == nil {
		t.Error("yaml was written")
	}
}
