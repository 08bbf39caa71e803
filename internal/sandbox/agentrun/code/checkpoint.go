package code

import (
	"context"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// Method is how a checkpoint is made.
type Method string

// The methods; an empty one is Copy where a workspace is attached, which a snapshot would pin, else Snapshot.
const (
	Snapshot Method = "snapshot" // of the whole container
	Copy     Method = "copy"     // of the working folder, into its .checkpoints
)

// Sides of a run that a checkpoint can be made on.
const (
	BeforeRun = "before"
	AfterRun  = "after"
)

// Checkpoint makes states that can be gone back to.
type Checkpoint struct {
	AtBefore, AtAfter bool
	Method            Method
}

// Name is for messages.
func (c *Checkpoint) Name() string { return "checkpoint" }

// Before makes the checkpoint before the run.
func (c *Checkpoint) Before(ctx context.Context, s *agentrun.Session) error {
	if !c.AtBefore {
		return nil
	}
	_, err := c.make(ctx, s, BeforeRun)
	return err
}

// After makes the checkpoint after the run, and tells both.
func (c *Checkpoint) After(ctx context.Context, s *agentrun.Session, r *agentrun.Report) error {
	r.Checkpoints = nil
	if c.AtBefore {
		method, err := c.method(ctx, s)
		if err != nil {
			return err
		}
		made, err := describe(s, method, BeforeRun)
		if err != nil {
			return err
		}
		r.Checkpoints = append(r.Checkpoints, made)
	}
	if c.AtAfter {
		made, err := c.make(ctx, s, AfterRun)
		if err != nil {
			return err
		}
		r.Checkpoints = append(r.Checkpoints, made)
	}
	return nil
}

func (c *Checkpoint) method(ctx context.Context, s *agentrun.Session) (Method, error) {
	if c.Method != "" {
		return c.Method, nil
	}
	has, err := s.HasWorkspaces(ctx)
	if has {
		return Copy, err
	}
	return Snapshot, err
}

// describe names a checkpoint: by its side and the run's name, so that the next run of that name replaces it.
func describe(s *agentrun.Session, method Method, side string) (agentrun.Checkpoint, error) {
	out := agentrun.Checkpoint{When: side, Method: string(method), Name: PlaceOf(s).Dir + "/" + workcopy.Checkpoints + "/" + side}
	if method == Copy {
		return out, nil
	}
	name, err := sandbox.SnapshotName("run-" + s.Spec.Name + "-" + side)
	out.Name = name
	return out, err
}

func (c *Checkpoint) make(ctx context.Context, s *agentrun.Session, side string) (agentrun.Checkpoint, error) {
	method, err := c.method(ctx, s)
	if err != nil {
		return agentrun.Checkpoint{}, err
	}
	made, err := describe(s, method, side)
	if err != nil {
		return made, err
	}
	if method == Copy {
		_, err = workcopy.MakeCheckpoint(ctx, PlaceOf(s), side)
		return made, err
	}
	warnings, err := s.Checkpoint(ctx, made.Name, fmt.Sprintf("Checkpoint %s the run %q", side, s.Spec.Name))
	for _, w := range warnings {
		s.Warn(w.Summary, w.Detail)
	}
	return made, err
}

// Restore goes back to the copy that was made on a side of a run.
func Restore(ctx context.Context, in workcopy.Guest, user, dir, side string) error {
	return workcopy.RestoreCheckpoint(ctx, placeAt(in, user, dir), side)
}
