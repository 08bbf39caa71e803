package base_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// The guide "Errors" lists every code as the program knows it, in order, and no other.
func TestTheGuideListsEveryCode(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile("../../templates/guides/errors.md.tmpl")
	if err != nil {
		t.Fatal(err)
	}
	var want strings.Builder
	for _, c := range sandbox.Codes() {
		fmt.Fprintf(&want, "\n## %s: %s\n\n%s\n\n**Remedy:** %s\n", c.Code, c.Title, c.Means, c.Remedy)
	}
	_, got, _ := strings.Cut(string(content), "\n## ")
	if got = "\n## " + got; got != want.String() {
		t.Errorf("the guide's sections must be:\n%s", want.String())
	}
}
