package sandbox

import (
	"context"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
)

// CheckServer validates a specification against what the server holds now,
// for use at plan. prior is what Read said, nil for a creation. It only reads.
// The error is a failure to ask, not a finding.
func (m *Manager) CheckServer(ctx context.Context, spec Spec, prior *Sandbox) ([]Problem, error) {
	panic("todo")
}

// Accepted is called as soon as the server has accepted the creation of a
// container and before anything is waited for, so that a caller can save what
// it needs to find the container again. The UPID is empty when the answer was
// lost and the container was found by its claim.
type Accepted func(ref Ref, upid string)

// Create makes a sandbox. After an error with a Ref in the outcome (VMID not
// 0) the container exists or may exist: save it as tainted.
func (m *Manager) Create(ctx context.Context, spec Spec, accepted Accepted) (Outcome, error) {
	panic("todo")
}

// Prior is what a caller remembers of a sandbox beside its Ref.
type Prior struct {
	Ref Ref
	// SSHHostKey is the pinned key in authorized_keys format, empty if none.
	SSHHostKey string
	// Baseline is the posture at creation (or the template's after an import).
	// Update undoes deviations from it that the API can undo; nil leaves the
	// posture alone. Read doesn't look at it.
	Baseline *Posture
	// WithPending asks Read for the settings that wait for a restart (one
	// request more).
	WithPending bool
	// WithTemplate asks Read for TemplateCurrent where it needs the template's
	// configuration (one request per template and run).
	WithTemplate bool
}

// Read says what the server says now. It never waits. ErrGone is returned only
// when the server said so directly; ErrForeign when the id belongs to another
// guest now.
func (m *Manager) Read(ctx context.Context, prior Prior) (Sandbox, error) { panic("todo") }

// Update brings a sandbox from one specification to another, and finishes a
// creation that was stopped. from is the specification as it was last
// applied; it is only used to tell what changed where the server can't say
// (authorized keys).
func (m *Manager) Update(ctx context.Context, prior Prior, from, to Spec) (Outcome, error) {
	panic("todo")
}

// SourcePosture is the posture of the template that the sandbox's marker names:
// the baseline after an import. ErrGone means that the template is gone.
func (m *Manager) SourcePosture(ctx context.Context, ref Ref) (Posture, error) { panic("todo") }

// Destroy removes a sandbox and proves that it is gone. pendingUPID is the
// task that may still be making it, or empty. A sandbox that is gone already
// is a success.
func (m *Manager) Destroy(ctx context.Context, ref Ref, pendingUPID string) ([]Warning, error) {
	panic("todo")
}

// Import finds a container by "vmid" or "node/vmid" for a state that doesn't
// hold it yet. A container without our marker is ErrUnmarked unless
// Settings.Adopt is set: then the marker is written. Another owner's is
// ErrForeign.
func (m *Manager) Import(ctx context.Context, id string) (Sandbox, error) { panic("todo") }

// Filter selects containers; zero fields select all.
type Filter struct {
	Owner         string // empty means the manager's own; "*" any
	PoolID        string // a Proxmox pool
	Tag           string
	ExpiresBefore time.Time
	// Unfinished selects creations that are not ready (true) or ready ones
	// (false).
	Unfinished *bool
	// VMIDs selects by id.
	VMIDs []int
}

// ListContainers finds the containers that carry a marker.
func (m *Manager) ListContainers(ctx context.Context, filter Filter) ([]Sandbox, error) {
	panic("todo")
}

// ClusterState is what the cluster looks like.
type ClusterState struct {
	Name    string // empty on a node that is in no cluster
	Quorate bool
	Version string // of Proxmox VE, e.g. "9.2.11"
	Nodes   []NodeState
}

// NodeState is one node and its capacity.
type NodeState struct {
	Name              string
	Online            bool
	CPUs              int
	CPUUsed           float64 // 0 to 1
	MemoryMiB         int64
	MemoryUsedMiB     int64
	Uptime            time.Duration
	Containers        int // of any owner, templates excluded
	RunningContainers int
	Storages          []StorageState
}

// StorageState is one storage as a node sees it.
type StorageState struct {
	Name     string
	Type     string
	Shared   bool
	Active   bool
	Content  []string
	TotalGiB float64
	UsedGiB  float64
}

// Cluster says what the cluster looks like.
func (m *Manager) Cluster(ctx context.Context) (ClusterState, error) { panic("todo") }

// What happens inside a sandbox is the guest package's; the names are repeated
// here so that a caller of the domain needs no other package.
type (
	// Command is a command to run inside a sandbox.
	Command = guest.Command
	// CommandResult is how it ended.
	CommandResult = guest.Result
	// File is a file to be written.
	File = guest.File
	// FileInfo is what the guest says of a file.
	FileInfo = guest.FileInfo
)

// Login is the SSH side of a sandbox that was reached.
type Login struct {
	Ref
	HostKey string // authorized_keys format, to be kept
}

// Exec runs a command in a sandbox whose marker is read back first. A command
// that ran is no error, whatever its exit code. An empty prior.SSHHostKey pins
// the key on first contact; the login says which it was.
func (m *Manager) Exec(ctx context.Context, prior Prior, cmd Command) (CommandResult, Login, error) {
	panic("todo")
}

// WriteFile writes a file so that readers see the old content or the new.
func (m *Manager) WriteFile(ctx context.Context, prior Prior, file File) (FileInfo, error) {
	panic("todo")
}

// ReadFile reads a file of at most limit bytes. A missing file is
// fs.ErrNotExist.
func (m *Manager) ReadFile(ctx context.Context, prior Prior, path string, limit int64) ([]byte, error) {
	panic("todo")
}

// StatFile looks at a file and, with hash, at its content. A missing file is
// fs.ErrNotExist.
func (m *Manager) StatFile(ctx context.Context, prior Prior, path string, hash bool) (FileInfo, error) {
	panic("todo")
}

// RemoveFile removes a file; a missing one is a success.
func (m *Manager) RemoveFile(ctx context.Context, prior Prior, path string) error { panic("todo") }

// Close ends what the manager holds open.
func (m *Manager) Close() error { panic("todo") }
