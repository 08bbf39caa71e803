package agentrun_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// mine is an agent that the registry doesn't have: a script that takes its
// prompt from a file and its key from the environment.
func mine(t *testing.T) string {
	t.Helper()
	raw, err := json.Marshal(map[string]any{
		"name": "mine", "title": "Mine", "binary": "mine", "source": map[string]any{"kind": "installed"},
		"version":  map[string]any{"arguments": []string{"--version"}, "pattern": `mine ([0-9.]+)`},
		"headless": map[string]any{"arguments": []string{"--once"}, "prompt_via": "file", "prompt_option": "-f", "model_option": "-m"},
		"keys":     map[string]any{"all_of": []string{"MINE_KEY"}}, "refuses_root": true,
		"telemetry_off": map[string]any{"environment": map[string]string{"MINE_QUIET": "1"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestAnAgentOfOnesOwnRunsByItsDefinition(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	p.sh(`cat >/usr/bin/mine <<'E'
#!/bin/sh
if [ "$1" = --version ]; then echo "mine 1.2.3"; exit; fi
echo "$1 $2 $3 $4 quiet=$MINE_QUIET key=${MINE_KEY:+there}"; cat "$5"
E
chmod 755 /usr/bin/mine`)
	r := p.run(values{"agent_definition": mine(t), "prompt": "do it\n", "model": "big", "secrets_wo": values{"MINE_KEY": "canary-4711"}, "secrets_wo_version": 1})
	if got := r.Text(t, "output_tail"); got != "--once -m big -f quiet=1 key=there\ndo it\n" {
		t.Errorf("output %q", got)
	}
	if rep := report(t, r); rep.Agent == nil || rep.Agent.Name != "mine" || rep.Agent.Version != "1.2.3" {
		t.Errorf("report %+v", rep.Agent)
	}
}

func TestADefinitionIsCheckedBeforeAnythingStarts(t *testing.T) {
	t.Parallel()
	p := newPlace(t)
	for want, config := range map[string]values{
		"Invalid agent":                    {"agent_definition": `{"name":"mine"}`, "prompt": "x"},
		"Mine needs MINE_KEY":              {"agent_definition": mine(t), "prompt": "x"},
		"The agent refuses to run as root": {"agent_definition": mine(t), "prompt": "x", "user": "root", "secrets_wo": values{"MINE_KEY": "k"}, "secrets_wo_version": 1},
		"One of your own goes into":        {"agent": "minee", "prompt": "x"},
	} {
		config["container_id"] = p.id
		r := p.NewResource(t, "sandbox_agent_run")
		plan := p.Plan(t, r, config)
		diags := plan.Diags
		if !protocoltest.HasErrors(diags) {
			diags = p.Apply(t, t.Context(), plan)
		}
		if !strings.Contains(protocoltest.Text(diags), want) {
			t.Errorf("%s isn't said:\n%s", want, protocoltest.Text(diags))
		}
	}
	if left := p.sh("ls /var/lib/sandbox/runs 2>/dev/null | wc -l"); left != "0\n" {
		t.Errorf("runs were started: %s", left)
	}
}
