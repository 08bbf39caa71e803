package agents

import (
	"slices"
	"strings"
	"testing"
)

func TestCommandLines(t *testing.T) {
	t.Parallel()
	const prompt = "/run/sandbox/runs/x/prompt"
	for _, tt := range []struct {
		agent string
		in    Invocation
		argv  string
		stdin string
		arg   int
	}{
		{"claude-code", Invocation{PromptFile: prompt, AutoApprove: true, Model: "opus"},
			"claude -p --no-session-persistence --dangerously-skip-permissions --model opus", prompt, -1},
		{"claude-code", Invocation{PromptFile: prompt}, "claude -p --no-session-persistence", prompt, -1},
		{"codex", Invocation{PromptFile: prompt, ExtraArgs: []string{"--json"}}, "codex exec --skip-git-repo-check --ephemeral --json -", prompt, -1},
		{"aider", Invocation{PromptFile: prompt, AutoApprove: true},
			"aider --no-pretty --no-stream --yes-always --no-check-update --analytics-disable --message-file " + prompt, "", -1},
		{"goose", Invocation{PromptFile: prompt}, "goose run --no-session -i " + prompt, "", -1},
		{"kimi-code", Invocation{PromptFile: prompt, AutoApprove: true}, "kimi --auto -p " + prompt, "", 3},
		{"cursor", Invocation{PromptFile: prompt}, "agent -p --trust " + prompt, "", 3},
		{"crush", Invocation{PromptFile: prompt, Model: "not-taken"}, "crush run --quiet", prompt, -1},
		{"opencode", Invocation{}, "opencode run", "", -1},
	} {
		a, err := Find(tt.agent)
		if err != nil {
			t.Fatal(err)
		}
		c := a.Command(tt.in)
		if got := strings.Join(c.Argv, " "); got != tt.argv || c.StdinFile != tt.stdin || c.PromptArg != tt.arg {
			t.Errorf("%s %+v:\n got %q stdin %q prompt argument %d\nwant %q stdin %q prompt argument %d", tt.agent, tt.in, got, c.StdinFile, c.PromptArg, tt.argv, tt.stdin, tt.arg)
		}
	}
}

// Two runs rendered side by side must not share memory with the registry.
func TestACommandIsTheCallersOwn(t *testing.T) {
	t.Parallel()
	a, err := Find("claude-code")
	if err != nil {
		t.Fatal(err)
	}
	one := a.Command(Invocation{AutoApprove: true})
	one.Argv[1], one.Environment["DISABLE_AUTOUPDATER"] = "changed", "changed"
	two := a.Command(Invocation{AutoApprove: true})
	if two.Argv[1] != "-p" || two.Environment["DISABLE_AUTOUPDATER"] != "1" {
		t.Errorf("the second command has the first one's changes: %+v", two)
	}
}

func TestMissingKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		agent string
		have  []string
		want  []string
	}{
		{"claude-code", nil, []string{"ANTHROPIC_API_KEY, ANTHROPIC_AUTH_TOKEN or CLAUDE_CODE_OAUTH_TOKEN"}},
		{"claude-code", []string{"ANTHROPIC_AUTH_TOKEN"}, nil},
		{"goose", []string{"OPENAI_API_KEY", "GOOSE_MODEL"}, []string{"GOOSE_PROVIDER"}},
		{"amp", nil, []string{"AMP_API_KEY"}},
	} {
		a, err := Find(tt.agent)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.MissingKeys(tt.have); !slices.Equal(got, tt.want) {
			t.Errorf("%s with %v lacks %q, wanted %q", tt.agent, tt.have, got, tt.want)
		}
	}
}

func TestCheckNamesEveryFault(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name, record string
		wants        []string
	}{
		{"nothing", `{}`, []string{"name:", "binary:", "source.kind:", "headless.prompt_via:"}},
		{"unknown field", `{"colour": "x"}`, []string{"unknown field"}},
		{"a key among the switches", `{"name":"x","binary":"x","source":{"kind":"installed"},"headless":{"prompt_via":"stdin"},
			"keys":{"any_of":["MY_KEY"]},"telemetry_off":{"environment":{"MY_KEY":"1"}}}`, []string{"MY_KEY is a key"}},
		{"an unpinned binary", `{"name":"x","binary":"x","source":{"kind":"binary","version":"1.0","url":"https://example.com/latest"},
			"version":{"arguments":["--version"],"pattern":"(.*)"},"licence":{"name":"MIT"},"headless":{"prompt_via":"stdin"}}`, []string{"source.url:"}},
		{"http", `{"name":"x","binary":"x","source":{"kind":"binary","version":"1.0","url":"http://example.com/{version}"},
			"version":{"arguments":["--version"],"pattern":"(.*)"},"licence":{"name":"MIT"},"headless":{"prompt_via":"stdin"}}`, []string{"must be https"}},
		{"no way to tell the version", `{"name":"x","binary":"x","source":{"kind":"npm","package":"x","version":"1.0"},"licence":{"name":"MIT"},
			"headless":{"prompt_via":"stdin"}}`, []string{"version.arguments:"}},
		{"outside of home", `{"name":"x","binary":"x","source":{"kind":"installed"},"headless":{"prompt_via":"stdin"},"state_dirs":["~/../etc"]}`, []string{"leaves the home directory"}},
		{"a path for a command", `{"name":"x","binary":"../x","source":{"kind":"installed"},"headless":{"prompt_via":"stdin"}}`, []string{"binary:"}},
		{"a shell's idea", `{"name":"x","binary":"x","source":{"kind":"installed"},"headless":{"prompt_via":"argument","arguments":["$(id)"]}}`, []string{"taken literally"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := Parse([]byte(tt.record))
			if err == nil {
				t.Fatal("no fault was found")
			}
			for _, want := range tt.wants {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v doesn't say %q", err, want)
				}
			}
		})
	}
	own := `{"name":"my-agent","binary":"my-agent","source":{"kind":"installed"},"headless":{"arguments":["--once"],"prompt_via":"stdin"},"keys":{"any_of":["MY_KEY"]}}`
	if _, err := Parse([]byte(own)); err != nil {
		t.Errorf("a user's own agent: %v", err)
	}
}
