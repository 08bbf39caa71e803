package agents

import (
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestEveryAgentKeepsItsOwnRules(t *testing.T) {
	t.Parallel()
	list, err := load()
	if err != nil {
		t.Fatal(err)
	}
	if len(list) < 16 {
		t.Errorf("the registry holds %d agents, wanted 16 or more", len(list))
	}
	binaries := map[string]string{}
	for _, a := range list {
		t.Run(a.Name, func(t *testing.T) {
			t.Parallel()
			if a.Title == "" || !strings.HasPrefix(a.Homepage, "https://") {
				t.Errorf("title %q and homepage %q: both are needed", a.Title, a.Homepage)
			}
			if len(a.Keys.AnyOf)+len(a.Keys.AllOf) == 0 {
				t.Error("keys: none is needed? then nothing can be said before a run starts")
			}
			if len(a.StateDirs) == 0 {
				t.Error("state_dirs: what it leaves in a home directory must be known to be wiped")
			}
			if a.Source.Kind == NPM && a.Needs.Python != "" || a.Source.Kind == PyPI && a.Needs.Python == "" {
				t.Errorf("needs %+v don't fit source %s", a.Needs, a.Source.Kind)
			}
			if a.PromptInArguments() && !strings.Contains(a.Notes, "list of processes") {
				t.Error("notes: must say that the prompt shows in the list of processes")
			}
			for _, argument := range a.AutoApprove.Arguments {
				if slices.Contains(a.Headless.Arguments, argument) {
					t.Errorf("%s approves without being asked to: it stands in headless.arguments too", argument)
				}
			}
		})
		if other, taken := binaries[a.Binary]; taken {
			t.Errorf("%s and %s have one command, %s", other, a.Name, a.Binary)
		}
		binaries[a.Binary] = a.Name
	}
}

func TestAFileIsCalledAsItsAgent(t *testing.T) {
	t.Parallel()
	names, err := fs.Glob(files, "registry/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		raw, err := fs.ReadFile(files, name)
		if err != nil {
			t.Fatal(err)
		}
		var a Agent
		if err := json.Unmarshal(raw, &a); err != nil {
			t.Fatal(err)
		}
		if want := a.Name + ".json"; path.Base(name) != want {
			t.Errorf("%s holds the agent %s, wanted %s", name, a.Name, want)
		}
	}
}

// What the makers' own programs printed for --version.
func TestVersionsAreFoundInWhatTheProgramsPrint(t *testing.T) {
	t.Parallel()
	for name, output := range map[string]string{
		"claude-code": "2.1.332 (Claude Code)",
		"codex":       "codex-cli 0.171.0",
		"gemini-cli":  "0.61.0",
		"opencode":    "1.18.33",
		"cline":       "3.0.65",
		"pi":          "1.6.0",
		"qwen-code":   "0.24.4",
		"continue":    "1.5.47",
		"copilot":     "GitHub Copilot CLI 1.0.102. Run 'copilot update' to check for updates.",
		"kimi-code":   "2.1.0",
		"auggie":      "0.36.0 (commit 7c61e5bb)",
	} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := a.InstalledVersion(output); got != a.Source.Version {
			t.Errorf("%s: found %q in %q, wanted %q", name, got, output, a.Source.Version)
		}
	}
	// What a package without its native binary prints, and ends with 0.
	amp, err := Find("amp")
	if err != nil {
		t.Fatal(err)
	}
	if got := amp.InstalledVersion("Error: Amp native binary not installed. Run postinstall manually"); got != "" {
		t.Errorf("found the version %q in an error", got)
	}
}

func TestAnUnknownAgentNamesTheNearest(t *testing.T) {
	t.Parallel()
	for name, nearest := range map[string]string{
		"claude": "claude-code", "claud-code": "claude-code", "Codex": "codex", "gemini": "gemini-cli", "cn": "continue",
		"@openai/codex": "codex", "opencod": "opencode", "something-else": "", "": "",
	} {
		_, err := Find(name)
		var unknown *UnknownError
		if !errors.As(err, &unknown) || unknown.Nearest != nearest {
			t.Errorf("%q: %v, wanted the nearest to be %q", name, err, nearest)
		}
	}
	if _, err := Find("nothing-like-it"); !regexp.MustCompile(`aider, amp,.*qwen-code`).MatchString(err.Error()) {
		t.Errorf("%v doesn't list what there is", err)
	}
}
