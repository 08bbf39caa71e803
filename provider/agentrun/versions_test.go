package agentrun_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents/install"
)

// Agents that a template says it has are there, for the user that runs belong to, at the version that it says. The lab's
// template has none, a server's may.
func TestAgentsOfTheTemplateSayTheirVersions(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	record := p.sh("cat " + install.Record + " 2>/dev/null || true")
	if strings.TrimSpace(record) == "" {
		t.Skipf("the template has no %s: no agent was installed into it", install.Record)
	}
	installed, err := install.ParseRecord([]byte(record))
	if err != nil {
		t.Fatal(err)
	}
	for name, have := range installed.Agents {
		a, err := agents.Find(name)
		if err != nil || len(a.Version.Arguments) == 0 {
			t.Logf("%s is one of the template's own", name)
			continue
		}
		r := p.run(values{"name": name, "command": strings.Join(append([]string{a.Binary}, a.Version.Arguments...), " "), "timeout": "2m"})
		if got := a.InstalledVersion(r.Text(t, "output_tail")); got != have.Version || r.Get(t, "status") != "succeeded" {
			t.Errorf("%s: %v, version %q, wanted %q; it said:\n%s", name, r.Get(t, "status"), got, have.Version, r.Text(t, "output_tail"))
		}
	}
}
