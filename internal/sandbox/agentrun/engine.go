package agentrun

import (
	"context"
	"log/slog"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Sandboxes is how sandboxes are entered; a *sandbox.Manager.
type Sandboxes interface {
	Inside(ctx context.Context, prior sandbox.Prior) (*sandbox.Inside, error)
	Peek(ctx context.Context, prior sandbox.Prior) (*sandbox.Inside, error)
}

// Engine starts, follows and collects runs. Safe for concurrent use.
type Engine struct {
	sandboxes Sandboxes
	clock     sandbox.Clock
	log       *slog.Logger
}

// Run is a run that was started or found.
type Run struct {
	// Ref and HostKey say in which sandbox it is; ID names it there.
	Ref     sandbox.Ref
	HostKey string
	ID      string
	// Adopted says that it was found, not started.
	Adopted bool
	Report  *Report
}
