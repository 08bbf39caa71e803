package agents_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// start serves a provider that was told nothing: the registry needs no server.
func start(t *testing.T) *protocoltest.Server {
	return protocoltest.Start(t, provider.NewWith(provider.Options{Version: "test", Getenv: protocoltest.NoEnvironment}))
}

func TestAgentsAreListedWithWhatARunNeeds(t *testing.T) {
	t.Parallel()
	got := start(t).ReadData(t, "sandbox_agents", nil, "").(map[string]any)
	agents := got["agents"].(map[string]any)
	if len(agents) < 16 {
		t.Errorf("%d agents", len(agents))
	}
	claude := agents["claude-code"].(map[string]any)
	if claude["refuses_root"] != true || claude["redistributable"] != false || claude["prompt_via"] != "stdin" || claude["binary"] != "claude" {
		t.Errorf("claude-code is %v", claude)
	}
	if command := claude["command"].([]any); command[0] != "claude" || slices.Contains(command, any("PROMPT")) {
		t.Errorf("its command is %v", command)
	}
	if domains := got["egress_domains"].([]any); !slices.Contains(domains, any("api.anthropic.com")) {
		t.Errorf("egress_domains are %v", domains)
	}
}

func TestAgentsByNameAndOfOnesOwn(t *testing.T) {
	t.Parallel()
	server := start(t)
	own := `{"name":"mine","binary":"mine","source":{"kind":"installed"},"headless":{"arguments":["--once"],"prompt_via":"file","prompt_option":"-f"},"keys":{"all_of":["MINE_KEY"]},"egress_domains":["mine.example.com"]}`
	got := server.ReadData(t, "sandbox_agents", values{"names": []any{"pi", "mine"}, "definitions": []any{own}}, "").(map[string]any)
	if agents := got["agents"].(map[string]any); len(agents) != 2 || agents["mine"].(map[string]any)["version"] != nil {
		t.Errorf("agents are %v", agents)
	}
	if domains := got["egress_domains"].([]any); len(domains) != 1 || domains[0] != "mine.example.com" {
		t.Errorf("egress_domains are %v", domains)
	}

	for want, config := range map[string]values{
		`did you mean "claude-code"`: {"names": []any{"claude"}},
		`binary:`:                    {"definitions": []any{`{"name":"mine","source":{"kind":"installed"},"headless":{"prompt_via":"stdin"}}`}},
		`unknown field "colour"`:     {"definitions": []any{`{"colour":"mine"}`}},
	} {
		if _, diags := server.Data(t, "sandbox_agents", config); !strings.Contains(protocoltest.Text(diags), want) {
			t.Errorf("%v: the error doesn't say %s:\n%s", config, want, protocoltest.Text(diags))
		}
	}
}
