package harden_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/harden"
)

// The guide "Hardening" lists every step in its order, every profile, and every program that may be setuid.
func TestTheGuideListsStepsProfilesAndSetuidPrograms(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../templates/guides/hardening.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	guide := string(content)
	var rows strings.Builder
	for _, s := range harden.Steps() {
		checks := strings.Join(s.Checks, ", ")
		if checks == "" {
			checks = "–"
		}
		fmt.Fprintf(&rows, "| `%s` | %s | %s |\n", s.ID, s.Title, checks)
	}
	if !strings.Contains(guide, rows.String()) {
		t.Errorf("the guide's rows of steps must be:\n%s", rows.String())
	}
	for _, p := range audit.Profiles() {
		if !strings.Contains(guide, "| `"+string(p)+"` |") {
			t.Errorf("the guide has no row for the profile %s", p)
		}
		for _, f := range audit.SetuidAllowed(p) {
			if !strings.Contains(guide, "`"+f+"`") {
				t.Errorf("the guide doesn't name %s", f)
			}
		}
	}
}
