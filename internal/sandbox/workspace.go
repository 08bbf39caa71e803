package sandbox

import (
	"errors"
	"fmt"
	"time"
)

// A workspace is a volume with a life of its own. Proxmox VE has no volume
// without a guest, so each workspace has a holder: a stopped clone of a
// template that is never started. While no sandbox has the volume it is the
// holder's mp0; a sandbox gets it by move_volume and hands it back the same
// way. The holder stays for as long as the workspace does, and its vmid is the
// workspace's id.
//
// Who has a volume is written down on both sides, in the markers: the holder's
// says at=<vmid>:<slot>, the sandbox's ws=<slot>:<holder>. Where the volume
// really is decides; a record alone decides nothing, so that a run that was cut
// between two requests leaves nothing that the next one can't see through.

// The kinds of failure that are a workspace's own. Use errors.Is.
var (
	// ErrHeld says that another sandbox has the workspace.
	ErrHeld = errors.New("the workspace is held by another sandbox")
	// ErrNoVolume says that neither the holder nor a sandbox has the volume.
	ErrNoVolume = errors.New("the workspace has no volume")
	// ErrNoHolder says that a volume can't be handed back because its holder is
	// gone.
	ErrNoHolder = errors.New("the workspace has no holder")
	// ErrWorkspaceExists says that the name is taken.
	ErrWorkspaceExists = errors.New("the workspace exists already")
	// ErrHasSnapshots says that snapshots of the holder pin the volume.
	ErrHasSnapshots = errors.New("snapshots hold the workspace's volume")
)

// Limits of workspaces.
const (
	// MaxWorkspaces is how many workspaces a sandbox may have: each takes room
	// in its marker.
	MaxWorkspaces = 8
	// DefaultWorkspaceWait is how long an attachment waits for another sandbox
	// to let go, so that moving a workspace in one apply works.
	DefaultWorkspaceWait = 30 * time.Second

	// WorkspaceTag is the tag of every holder, beside its owner's.
	WorkspaceTag = "sbx-workspace"

	// homeSlot is where a holder has its volume, and homePath the path that it
	// gets first. Nothing is ever mounted there: a holder doesn't run.
	homeSlot = "mp0"
	homePath = "/workspace"

	// attachTime is how long an attachment that is under way keeps others away
	// from a volume that is still with its holder.
	attachTime = 2 * time.Minute
)

// WorkspaceSpec is what a user wants of one workspace.
type WorkspaceSpec struct {
	Name string // a DNS label; the holder's hostname, unique per owner
	// SizeGiB grows only. 0 is for forks: the source's size.
	SizeGiB int
	// Storage takes the volume; empty is the provider's, else the template's.
	Storage string
	// NodeName is where the volume is, and with it the sandboxes that can have
	// it; empty is the template's node, or the source's of a fork.
	NodeName string
	// ForkOf is the id of the workspace whose content is copied; 0 for none.
	ForkOf int
}

// WorkspaceStatus says where a workspace's volume is.
type WorkspaceStatus string

// Where a volume can be.
const (
	// WorkspaceDetached: with its holder.
	WorkspaceDetached WorkspaceStatus = "detached"
	// WorkspaceAttached: with a sandbox.
	WorkspaceAttached WorkspaceStatus = "attached"
	// WorkspaceReleasing: a sandbox has let go, but still runs with it.
	WorkspaceReleasing WorkspaceStatus = "releasing"
	// WorkspaceMissing: nowhere where it should be.
	WorkspaceMissing WorkspaceStatus = "missing"
)

// Workspace is what the server says about one workspace.
type Workspace struct {
	Ref // of the holder
	// Unfinished says that its creation hasn't come to its end.
	Unfinished bool

	Name     string
	Storage  string
	SizeGiB  float64
	ForkOf   int
	Status   WorkspaceStatus
	Volume   string // volume id, of its present owner
	Attached *WorkspaceUser
}

// WorkspaceUser is the sandbox that has a workspace.
type WorkspaceUser struct {
	VMID     int
	Hostname string
	Path     string // where it is mounted; empty while it is being released
}

// Attachment is a workspace that a sandbox is to have.
type Attachment struct {
	Workspace int    // the workspace's id
	Path      string // absolute, where it is mounted
	// Wait is how long to wait for another sandbox to let go; 0 is
	// DefaultWorkspaceWait.
	Wait time.Duration
	// DropSnapshots deletes the holder's snapshots, which else forbid handing
	// the volume over.
	DropSnapshots bool
}

func (a Attachment) wait() time.Duration {
	if a.Wait == 0 {
		return DefaultWorkspaceWait
	}
	return a.Wait
}

// Attached is a workspace that a sandbox has.
type Attached struct {
	Workspace int
	Path      string
	Slot      string // mp0 …
}

// HeldError says who has a workspace that somebody else wants.
type HeldError struct {
	Workspace int
	Name      string
	By        WorkspaceUser
	// Releasing says that the other one has let go but runs on with it.
	Releasing bool
	Waited    time.Duration
}

func (e *HeldError) Error() string {
	s := fmt.Sprintf("workspace %d (%s) is held by container %d", e.Workspace, e.Name, e.By.VMID)
	if e.By.Hostname != "" {
		s += fmt.Sprintf(" (%s)", e.By.Hostname)
	}
	if e.Releasing {
		s += ", which lets go of it at its next restart"
	}
	if e.Waited > 0 {
		s += fmt.Sprintf("; waited %s", e.Waited.Round(100*time.Millisecond))
	}
	return s
}

// Unwrap gives the kind.
func (*HeldError) Unwrap() error { return ErrHeld }

func (e *HeldError) remedy() string {
	if e.Releasing {
		return fmt.Sprintf("restart or stop container %d, or set restart_when_needed = true on it, so that it lets go", e.By.VMID)
	}
	return fmt.Sprintf("take the workspace out of container %d's configuration, destroy that sandbox, or raise wait if it is about to let go", e.By.VMID)
}
