package egress_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// The guide's table is the table: what is closed is documented, and nothing else is.
func TestTheGuideShowsTheTableOfClosedRanges(t *testing.T) {
	t.Parallel()
	guide, err := os.ReadFile("../../../templates/guides/network-modes.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	rows := 0
	for _, line := range strings.Split(string(guide), "\n") {
		if strings.HasPrefix(line, "| `") && strings.Contains(line, "/") {
			rows++
		}
	}
	for _, r := range egress.Denied() {
		text := r.Prefix.String()
		if r.Prefix.Addr().Is4In6() {
			text = "::ffff:0:0/96"
		}
		if row := fmt.Sprintf("| `%s` | %s | %s |\n", text, r.Kind, r.Source); !strings.Contains(string(guide), row) {
			t.Errorf("the guide lacks %s", row)
		}
	}
	if want := len(egress.Denied()); rows != want {
		t.Errorf("the guide has %d rows, the table %d", rows, want)
	}
	for _, port := range strings.Split(egress.ManagementPorts(), ",") {
		if !strings.Contains(string(guide), port) {
			t.Errorf("the guide doesn't name port %s", port)
		}
	}
}
