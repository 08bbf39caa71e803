package mission

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// Strategy is how the members work together.
type Strategy string

// The strategies.
const (
	Parallel Strategy = "parallel"
	Pipeline Strategy = "pipeline"
	Debate   Strategy = "debate"
	Arena    Strategy = "arena"
)

// Strategies lists them.
func Strategies() []string {
	return []string{string(Parallel), string(Pipeline), string(Debate), string(Arena)}
}

// Stop is what ends a mission before everybody has had a turn.
type Stop string

// The stop rules.
const (
	StopNever        Stop = "never"
	StopFirstSuccess Stop = "first_success"
	StopFirstFailure Stop = "first_failure"
)

// Stops lists the stop rules.
func Stops() []string {
	return []string{string(StopNever), string(StopFirstSuccess), string(StopFirstFailure)}
}

// The roles that have a prefix of their own for the prompt. Any other text is
// taken as it is.
var roles = map[string]string{
	"architect": "You are the architect. Decide how the task is to be solved: structure, interfaces, order of work. Write down decisions and reasons; leave the implementation to others.",
	"developer": "You are the developer. Implement the task completely, in the style of what is there, and leave it working.",
	"tester":    "You are the tester. Find out whether the work does what the task asks for: write and run tests, also for what can go wrong, and report what fails.",
	"reviewer":  "You are the reviewer. Read the work critically: correctness, security, clarity. Name each problem with its place and how to repair it.",
	"judge":     "You are the judge. Weigh the answers of the others against the task and against each other, decide, and give the final answer.",
}

// Member is one who works.
type Member struct {
	Name string
	// Role is one of architect, developer, tester, reviewer and judge, or words
	// of the user's own that go before the task; empty for none.
	Role string
	// Prior is the member's sandbox.
	Prior sandbox.Prior
	// Run is how the member works; its Name and Prompt are the mission's.
	Run agentrun.Spec
}

// Spec is a mission.
type Spec struct {
	Name     string
	Strategy Strategy
	Task     string
	// Members in the order of a pipeline.
	Members []Member
	// Judge is the name of the member that closes a debate; empty for none.
	Judge string
	// Rounds of a debate or an arena; 0 means 1.
	Rounds int
	// ScoreCommand is run in each member's sandbox after an arena's round; the
	// last line of its output is the score, and more is better.
	ScoreCommand string
	// Snapshot is what each member's sandbox is rolled back to before an arena's
	// round; empty for none.
	Snapshot string
	Stop     Stop
	// Timeout is the limit of all together; the members' own are in Run.
	Timeout time.Duration
}

// MaxMembers bounds a mission: each has a connection and a process.
const MaxMembers = 64

// Check finds what can't be right, in the words of sandbox_mission.
func (s *Spec) Check() []sandbox.Problem {
	var problems []sandbox.Problem
	bad := func(attribute, summary, detail string) {
		problems = append(problems, sandbox.Problem{Attribute: attribute, Summary: summary, Detail: detail})
	}
	names := s.names()
	if len(names) == 0 || len(names) > MaxMembers {
		bad("members", "The mission needs members", fmt.Sprintf("It has %d, and may have 1 to %d.", len(names), MaxMembers))
	}
	if len(s.Task) > agentrun.MaxPrompt/2 {
		bad("task", "The task is too long", fmt.Sprintf("It has %d bytes, at most %d are possible: members are told each other's answers too.", len(s.Task), agentrun.MaxPrompt/2))
	}
	if s.Judge != "" && !slices.Contains(names, s.Judge) {
		bad("judge", "There is no such member", fmt.Sprintf("%q isn't one of %s.", s.Judge, strings.Join(names, ", ")))
	}
	if s.Judge != "" && s.Strategy != Debate {
		bad("judge", "Only a debate has a judge", fmt.Sprintf("The strategy is %q. Leave judge out.", s.Strategy))
	}
	if s.Strategy == Debate && len(names) < 2 || s.Strategy == Debate && s.Judge != "" && len(names) < 3 {
		bad("members", "A debate needs two members", "And the judge beside them, where there is one.")
	}
	if s.Strategy == Arena && s.ScoreCommand == "" {
		bad("score_command", "An arena needs a score", "Set score_command to shell code whose last line of output is a number: more is better.")
	}
	if s.Strategy != Arena && (s.ScoreCommand != "" || s.Snapshot != "") {
		bad("strategy", "Only an arena has scores and snapshots", fmt.Sprintf("The strategy is %q. Leave score_command and snapshot_name out, or set strategy = \"arena\".", s.Strategy))
	}
	if s.Rounds > 1 && s.Strategy != Debate && s.Strategy != Arena {
		bad("rounds", "Only debates and arenas have rounds", fmt.Sprintf("The strategy is %q. Leave rounds out.", s.Strategy))
	}
	if s.Rounds > 1 && s.Strategy == Arena && s.Snapshot == "" {
		bad("snapshot_name", "An arena of several rounds needs a snapshot", "Each round must begin with the same files. Set snapshot_name to a snapshot that each member's container has.")
	}
	if s.Snapshot != "" {
		seen := map[int]string{}
		for _, m := range s.Members {
			if other := seen[m.Prior.Ref.VMID]; other != "" && m.Prior.Ref.VMID != 0 {
				bad("snapshot_name", "Two members share a container", fmt.Sprintf("%s and %s are both in container %d; a rollback for one would take the other's work away.", other, m.Name, m.Prior.Ref.VMID))
			}
			seen[m.Prior.Ref.VMID] = m.Name
		}
	}
	return problems
}

func (s *Spec) names() []string {
	names := make([]string, len(s.Members))
	for i, m := range s.Members {
		names[i] = m.Name
	}
	return names
}

func (s *Spec) rounds() int { return max(1, s.Rounds) }
