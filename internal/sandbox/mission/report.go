package mission

import (
	"encoding/json"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// SchemaVersion is the version of Report's JSON, see agentrun.SchemaVersion.
const SchemaVersion = 1

// Skipped is the status of a member who had no turn.
const Skipped agentrun.Status = "skipped"

// Report is what came of a mission.
type Report struct {
	SchemaVersion int             `json:"schema_version"`
	Name          string          `json:"name"`
	Strategy      Strategy        `json:"strategy"`
	Status        agentrun.Status `json:"status"`
	DurationMS    int64           `json:"duration_ms"`
	Members       []Result        `json:"members"`
	// Ranking are the members of an arena, the best first; Winner is the one
	// before whom nobody stands.
	Ranking []string `json:"ranking,omitempty"`
	Winner  string   `json:"winner,omitempty"`
	// Answer is the last word: of the pipeline's last member, of the judge, or
	// of the winner.
	Answer string `json:"answer"`
	// Runs are all runs in the order in which they began, scoring included.
	Runs []RunResult `json:"runs"`
}

// Result is what one member did.
type Result struct {
	Name        string          `json:"name"`
	Role        string          `json:"role,omitempty"`
	Agent       string          `json:"agent,omitempty"`
	ContainerID int             `json:"container_id"`
	Status      agentrun.Status `json:"status"` // of the last turn
	ExitCode    *int            `json:"exit_code"`
	DurationMS  int64           `json:"duration_ms"` // of all turns
	Turns       int             `json:"turns"`
	// Score is the best of an arena's rounds; Wins counts the rounds that were
	// won, a shared one by its share, and WinRate is that of all rounds.
	Score   *float64 `json:"score,omitempty"`
	Wins    float64  `json:"wins"`
	WinRate float64  `json:"win_rate"`
	Rank    int      `json:"rank,omitempty"` // equals share one
	Answer  string   `json:"answer"`
}

// RunResult is one run of a mission.
type RunResult struct {
	Member string           `json:"member"`
	Round  int              `json:"round"`
	Part   string           `json:"part"` // work, judgement or score
	Report *agentrun.Report `json:"report"`
}

// JSON is the report as it stands in a state.
func (r *Report) JSON() (string, error) {
	b, err := json.Marshal(r)
	return string(b), err
}
