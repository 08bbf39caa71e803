package agentrun

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// MaxPrompt is the longest prompt, in bytes.
const MaxPrompt = 64 << 10

// Program says what to run: an agent of the registry, or code of the user's own.
type Program struct {
	Agent      string // name of a known agent; empty where one of the others is set
	Definition string // JSON record of an agent that the registry doesn't have
	Model      string // of the agent; empty leaves it to the agent
	Command    string // shell code
}

// promptMark stands for the prompt's file in a rendered command line, until
// the guest knows where that is.
const promptMark = "\x01prompt"

func (p Program) agent() (agents.Agent, error) {
	if p.Definition != "" {
		return agents.Parse([]byte(p.Definition))
	}
	return agents.Find(p.Agent)
}

// Use makes a specification run the program. Problems name the attributes
// agent, agent_definition, prompt, user and secrets_wo; where secrets aren't known yet
// (nil), keys aren't asked for.
func (p Program) Use(s *Spec, secretsKnown bool) []sandbox.Problem {
	var problems []sandbox.Problem
	bad := func(attribute, summary, detail string) {
		problems = append(problems, sandbox.Problem{Attribute: attribute, Summary: summary, Detail: detail})
	}
	if len(s.Prompt) > MaxPrompt {
		bad("prompt", "The prompt is too long", fmt.Sprintf("It has %d bytes, at most %d are possible. Put what is long into a file of the container (sandbox_file) and name it in the prompt.", len(s.Prompt), MaxPrompt))
	}
	if strings.ContainsRune(s.Prompt, 0) {
		bad("prompt", "The prompt holds a NUL byte", "It is text; leave the byte out.")
	}
	for _, name := range slices.Sorted(maps.Keys(s.Secrets)) {
		if _, both := s.Environment[name]; both {
			bad("environment", fmt.Sprintf("Variable %s is there twice", name), "It stands in environment and in secrets_wo. Leave it out of environment.")
		}
	}
	if p.Agent == "" && p.Definition == "" {
		s.Command = Command{Script: p.Command, PromptStdin: true}
		return problems
	}
	a, err := p.agent()
	if err != nil {
		if p.Definition != "" {
			bad("agent_definition", "Invalid agent", err.Error())
		} else {
			bad("agent", "Unknown agent", err.Error()+". One of your own goes into agent_definition.")
		}
		return problems
	}
	if s.Prompt == "" {
		bad("prompt", "The agent has no task", fmt.Sprintf("Say in prompt what %s is to do.", a.Title))
	}
	if a.RefusesRoot && s.User == "root" {
		bad("user", "The agent refuses to run as root", fmt.Sprintf("%s does no work as root. Set user to an ordinary user of the template; agent is the default.", a.Title))
	}
	if secretsKnown {
		have := slices.Concat(slices.Collect(maps.Keys(s.Secrets)), slices.Collect(maps.Keys(s.Environment)))
		if missing := a.MissingKeys(have); len(missing) > 0 {
			bad("secrets_wo", "A key is missing", fmt.Sprintf("%s needs %s. Give it in secrets_wo; nothing was started.", a.Title, strings.Join(missing, " and ")))
		}
	}
	c := a.Command(agents.Invocation{PromptFile: promptMark, Model: p.Model, AutoApprove: true})
	s.Command = Command{Argv: c.Argv, Environment: c.Environment, PromptStdin: c.StdinFile == promptMark}
	if at := slices.Index(c.Argv, promptMark); at > 0 && c.PromptArg == at {
		s.Command.PromptArg = at
	} else if at > 0 {
		s.Command.PromptFileArg = at
	}
	s.Agent = &Agent{Name: a.Name, Binary: a.Binary, ParseVersion: a.InstalledVersion}
	if len(a.Version.Arguments) > 0 {
		s.Agent.VersionCommand = append([]string{a.Binary}, a.Version.Arguments...)
	}
	return problems
}
