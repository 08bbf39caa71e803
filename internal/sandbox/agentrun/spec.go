package agentrun

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"io"
	"time"
)

// Spec is a run as its caller wants it.
type Spec struct {
	// Name tells runs apart that are otherwise alike; part of the key.
	Name string
	// Agent describes the agent, or nil where Command is code of the user's own.
	Agent *Agent
	// Command is what is run; the same again for each repair, with another prompt.
	Command Command
	// User is the guest's user that the run belongs to.
	User string
	// Prompt is the task. It goes by a file, never by a command line.
	Prompt string
	// Dir is the absolute path to run in; empty means the user's home.
	Dir string
	// Environment is not secret.
	Environment map[string]string
	// Secrets are environment too, but stand in memory only. They are no part
	// of the key.
	Secrets map[string]string
	// Timeout is how long all attempts together may take; the guest enforces it.
	Timeout time.Duration
	// TestCommand is shell code that decides whether the work is done; empty
	// for none. MaxRepairs is how often the agent is run again with its output.
	TestCommand string
	MaxRepairs  int
	// Triggers and Inputs belong to the key; Inputs is for what stages are
	// made of.
	Triggers map[string]string
	Inputs   map[string]string
	// LogFile is a local file that the redacted output is appended to, or empty.
	LogFile string
	// Stages surround the run, from the outermost to the innermost.
	Stages []Stage
}

// Agent is what the engine needs to know of an agent.
type Agent struct {
	Name string
	// Binary must be found in the PATH of the run's user.
	Binary string
	// VersionCommand prints the version that stands in the report; nil for none.
	VersionCommand []string
	// ParseVersion finds the version in its first line; nil takes the line.
	ParseVersion func(string) string
}

// Command is how the program is called.
type Command struct {
	// Script is shell code; else Argv is a program with its arguments.
	Script string
	Argv   []string
	// PromptArg is the place in Argv that the prompt's text is put at for an
	// agent that takes it no other way; 0 for none.
	PromptArg int
	// PromptFileArg is the place in Argv that the path of the prompt's file is
	// put at; 0 for none.
	PromptFileArg int
	// PromptStdin has the prompt on standard input, which is empty else.
	PromptStdin bool
	// Environment that the command line needs.
	Environment map[string]string
}

// keyVersion changes when equal specifications would no longer make equal runs.
const keyVersion = 1

// key is what a run is found by in the sandbox of a claim: 24 hex digits.
func (s *Spec) key(claim string) string {
	agent := ""
	if s.Agent != nil {
		agent = s.Agent.Name
	}
	sum := sha256.New()
	// Maps are written in the order of their keys.
	_ = json.NewEncoder(io.Writer(sum)).Encode([]any{keyVersion, claim, s.Name, agent, s.Command, s.User, s.Prompt, s.Dir, s.Environment,
		s.TestCommand, s.MaxRepairs, s.Triggers, s.Inputs})
	return hex.EncodeToString(sum.Sum(nil)[:12])
}
