package agents

import (
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Invocation is one run of an agent.
type Invocation struct {
	// PromptFile is where the prompt stands in the guest.
	PromptFile string
	// Model is the model's name; empty leaves it to the agent.
	Model string
	// AutoApprove lets the agent work without asking.
	AutoApprove bool
	// ExtraArgs are added before the prompt.
	ExtraArgs []string
}

// Command is what a supervisor starts.
type Command struct {
	// Argv is the command and its arguments.
	Argv []string
	// StdinFile is redirected to standard input; empty means none (/dev/null).
	StdinFile string
	// PromptArg is the index in Argv whose value must be replaced with the
	// prompt file's content, by the process that executes it: the agent takes a
	// prompt in no other way, so it shows in the list of processes. -1 = none.
	PromptArg int
	// Environment are the agent's switches; never a key.
	Environment map[string]string
}

// Command renders the command line of a run.
func (a Agent) Command(in Invocation) Command {
	c := Command{Argv: []string{a.Binary}, PromptArg: -1, Environment: map[string]string{}}
	add := func(s Switch) {
		c.Argv = append(c.Argv, s.Arguments...)
		maps.Copy(c.Environment, s.Environment)
	}
	c.Argv = append(c.Argv, a.Headless.Arguments...)
	if in.AutoApprove {
		add(a.AutoApprove)
	}
	add(a.AutoUpdateOff)
	add(a.TelemetryOff)
	if in.Model != "" && a.Headless.ModelOption != "" {
		c.Argv = append(c.Argv, a.Headless.ModelOption, in.Model)
	}
	c.Argv = append(c.Argv, in.ExtraArgs...)
	if in.PromptFile == "" {
		return c
	}
	switch a.Headless.PromptVia {
	case ViaStdin:
		c.StdinFile = in.PromptFile
		// An option that says "read standard input", such as "-".
		if a.Headless.PromptOption != "" {
			c.Argv = append(c.Argv, a.Headless.PromptOption)
		}
	case ViaFile, ViaArgument:
		if a.Headless.PromptOption != "" {
			c.Argv = append(c.Argv, a.Headless.PromptOption)
		}
		c.Argv = append(c.Argv, in.PromptFile)
		if a.Headless.PromptVia == ViaArgument {
			c.PromptArg = len(c.Argv) - 1
		}
	}
	return c
}

// PromptInArguments says that the prompt of this agent can be read in the
// guest's list of processes.
func (a Agent) PromptInArguments() bool { return a.Headless.PromptVia == ViaArgument }

// MissingKeys names what an agent lacks when it is given the variables in
// have: "A or B" where one of several is enough. Empty means nothing.
func (a Agent) MissingKeys(have []string) []string {
	var missing []string
	for _, key := range a.Keys.AllOf {
		if !slices.Contains(have, key) {
			missing = append(missing, key)
		}
	}
	any := a.Keys.AnyOf
	if len(any) > 0 && !slices.ContainsFunc(any, func(key string) bool { return slices.Contains(have, key) }) {
		missing = append(missing, joinOr(any))
	}
	return missing
}

// InstalledVersion finds the version in what the version command printed;
// empty when there is none.
func (a Agent) InstalledVersion(output string) string {
	pattern, err := regexp.Compile("(?m)" + a.Version.Pattern)
	if err != nil || pattern.NumSubexp() != 1 {
		return ""
	}
	if found := pattern.FindStringSubmatch(strings.TrimSpace(output)); found != nil {
		return found[1]
	}
	return ""
}
