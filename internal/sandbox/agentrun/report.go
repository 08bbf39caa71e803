package agentrun

import (
	"encoding/json"
	"time"
)

// SchemaVersion is the version of Report's JSON. It grows when a field changes
// its meaning or goes; new fields don't change it.
const SchemaVersion = 1

// Status is how a run stands.
type Status string

// The states of a run.
const (
	Running   Status = "running"
	Succeeded Status = "succeeded" // exit code 0, and the tests passed where there are any
	Failed    Status = "failed"    // another exit code, failed tests, or it was stopped
	TimedOut  Status = "timed_out" // its time limit ended it
	Lost      Status = "lost"      // the sandbox was destroyed, stopped or rolled back under it
)

// Ended says whether the state is final.
func (s Status) Ended() bool { return s != Running && s != "" }

// Report is the result of a run, or how it stands.
type Report struct {
	SchemaVersion int    `json:"schema_version"`
	ID            string `json:"id"` // in the sandbox: sbx-run status ID
	Name          string `json:"name"`
	ContainerID   int    `json:"container_id"`
	Status        Status `json:"status"`
	// ExitCode is that of the last step (agent or tests); 128 + n when signal n
	// ended it. Absent while it runs and when it is lost.
	ExitCode *int `json:"exit_code"`
	// Reason says more where the status alone doesn't: "stopped", "tests failed".
	Reason  string     `json:"reason,omitempty"`
	Agent   *AgentInfo `json:"agent,omitempty"`
	User    string     `json:"user"`
	Attempt int        `json:"attempt"` // how many runs of this key there were, this one included
	// Attempts are the agent's runs with their tests: one, and one for each repair.
	Attempts []Attempt `json:"attempts"`
	// StartedAt and FinishedAt are on the clock of the machine that applies.
	StartedAt  *time.Time `json:"started_at"`
	FinishedAt *time.Time `json:"finished_at"`
	DurationMS int64      `json:"duration_ms"` // measured in the sandbox, by its monotonic clock
	Timings    Timings    `json:"timings"`
	// ClockOffsetMS is how far the sandbox's clock is ahead of ours.
	ClockOffsetMS int64 `json:"clock_offset_ms"`
	OutputBytes   int64 `json:"output_bytes"`
	// OutputDropped says that the sandbox kept only the beginning and the end.
	OutputDropped bool `json:"output_dropped"`
	// OutputTail is the redacted end of the output.
	OutputTail string `json:"output_tail"`

	// What stages bring out.
	Commit    string     `json:"commit,omitempty"` // that the run began at
	Diff      *Diff      `json:"diff,omitempty"`
	Artifacts []Artifact `json:"artifacts,omitempty"`
	// ArtifactsLeftOut are files that a pattern matched and that stayed in the
	// sandbox, and patterns without a match, with the reason.
	ArtifactsLeftOut map[string]string `json:"artifacts_left_out,omitempty"`
	Checkpoints      []Checkpoint      `json:"checkpoints,omitempty"`
	// Score is what a mission's score_command said.
	Score *float64 `json:"score,omitempty"`
}

// AgentInfo names the agent.
type AgentInfo struct {
	Name    string `json:"name"`
	Version string `json:"version,omitempty"`
}

// Attempt is one run of the agent, and of the tests after it.
type Attempt struct {
	ExitCode     int   `json:"exit_code"`
	DurationMS   int64 `json:"duration_ms"`
	TestExitCode *int  `json:"test_exit_code,omitempty"`
	TestMS       int64 `json:"test_duration_ms,omitempty"`
}

// Timings are what the machine that applies spent, in ms.
type Timings struct {
	PrepareMS int64 `json:"prepare_ms"` // login, checks and the stages before
	StartMS   int64 `json:"start_ms"`
	CollectMS int64 `json:"collect_ms"` // the stages after
	// RoundTrips are the commands that the engine itself sent, Polls included.
	RoundTrips int `json:"round_trips"`
	Polls      int `json:"polls"`
}

// Diff sums up what the run changed.
type Diff struct {
	Files      int    `json:"files"`
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Stat       string `json:"stat"`
	// Paths say it file by file; of very many, the first.
	Paths []ChangedPath `json:"paths"`
	// PatchSHA256 is the hash of the patch, which Patch has whole when it is short and known to hold no secret.
	PatchSHA256 string `json:"patch_sha256"`
	Patch       string `json:"patch"`
	PatchFile   string `json:"patch_file"`
	// LeftOut are paths that are otherwise than before and stayed in the sandbox, with the reason.
	LeftOut map[string]string `json:"left_out,omitempty"`
	// Withheld are paths that hold a secret of the run: nothing was written, applied or pushed.
	Withheld []string `json:"withheld,omitempty"`
	// Applied says that the source folder has the changes; Pushed that Branch has them, as PushedCommit.
	Applied      bool   `json:"applied"`
	Branch       string `json:"branch"`
	Pushed       bool   `json:"pushed"`
	PushedCommit string `json:"pushed_commit"`
}

// ChangedPath is what happened to one path.
type ChangedPath struct {
	Path       string `json:"path"`
	Kind       string `json:"kind"` // added, changed, removed
	Insertions int    `json:"insertions"`
	Deletions  int    `json:"deletions"`
	Binary     bool   `json:"binary,omitempty"`
}

// Artifact is a file that was brought out.
type Artifact struct {
	Path        string `json:"path"`        // in the sandbox
	Destination string `json:"destination"` // on the machine that applies
	Size        int64  `json:"size"`        // bytes
	SHA256      string `json:"sha256"`
}

// Checkpoint is a state that can be gone back to.
type Checkpoint struct {
	When   string `json:"when"`   // before or after
	Method string `json:"method"` // snapshot or copy
	Name   string `json:"name"`   // of the snapshot, or the copy's path
}

// JSON is the report as it stands in a state.
func (r *Report) JSON() (string, error) {
	b, err := json.Marshal(r)
	return string(b), err
}

// ParseReport reads what JSON wrote.
func ParseReport(text string) (*Report, error) {
	r := &Report{}
	err := json.Unmarshal([]byte(text), r)
	return r, err
}
