package audit

import (
	"flag"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the tables of checks and grades into the guide")

// The guide "Audit" lists every check as the program knows it, and the rule of the score. After a change:
// go test ./internal/audit -run Guide -update
func TestTheGuideListsEveryCheckAndTheRuleOfTheScore(t *testing.T) {
	t.Parallel()
	const file = "../../templates/guides/audit.md.tmpl"
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	guide := string(content)
	for name, want := range map[string]string{"checks": Table(), "score": ScoreRule()} {
		begin, end := "<!-- "+name+": made by a test -->\n\n", "\n<!-- end of "+name+" -->"
		head, rest, ok := strings.Cut(guide, begin)
		got, tail, ok2 := strings.Cut(rest, end)
		if !ok || !ok2 {
			t.Fatalf("the guide has no place for the %s", name)
		}
		if got != want && !*update {
			t.Errorf("the guide's %s must be (go test ./internal/audit -run Guide -update writes it):\n%s", name, want)
		}
		guide = head + begin + want + end + tail
	}
	for _, c := range Checks() {
		if c.Cap != "" && !strings.Contains(guide, ", at most "+string(c.Cap)) {
			t.Errorf("the cap of %s is not in the guide", c.ID)
		}
	}
	if *update {
		if err := os.WriteFile(file, []byte(guide), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
