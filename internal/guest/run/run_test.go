package run_test

import (
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest/run"
)

func TestARunGoesThroughItsLife(t *testing.T) {
	t.Parallel()
	b := newBox(t)
	r := request(`echo "as $(id -un) in $PWD: $A $SECRET"; cat; echo; exit 7`)
	r.Agent.Env = map[string]string{"A": "it's a"}
	r.Agent.PromptStdin = true
	r.Prompt = "do 'it'\n\"now\""
	r.Secrets, r.Forms = map[string]string{"SECRET": "hunter2!"}, []string{"hunter2!"}
	started := b.start(r)
	s := b.end(started.ID)
	if s.Status != run.Failed || s.Code != 7 || string(s.Output) != "as agent in /home/agent: it's a [redacted]\ndo 'it'\n\"now\"\n" {
		t.Errorf("%+v\n%s", s, s.Output)
	}
	if len(s.Steps) != 1 || s.Steps[0].Code != 7 || s.Steps[0].Test {
		t.Errorf("steps %+v", s.Steps)
	}
	if got := b.sh("grep -r hunter2 /var /run /home /tmp /etc; ls /run/sandbox/runs/*"); strings.Contains(got, "hunter2") || strings.Contains(got, "secrets") {
		t.Errorf("left in the guest: %s", got)
	}
}
