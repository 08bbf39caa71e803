package code

import (
	"context"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/workcopy"
)

// Artifacts brings files out of the working folder.
type Artifacts struct{ Wanted []workcopy.Wanted }

// Name is for messages.
func (a *Artifacts) Name() string { return "artifacts" }

// Before does nothing.
func (a *Artifacts) Before(context.Context, *agentrun.Session) error { return nil }

// After writes the files to this machine, whatever became of the run: a failed one's logs are worth most.
func (a *Artifacts) After(ctx context.Context, s *agentrun.Session, r *agentrun.Report) error {
	return within(ctx, s, artifactsLimit, "Artifacts stay in the container", func(ctx context.Context) error { return a.after(ctx, s, r) })
}

func (a *Artifacts) after(ctx context.Context, s *agentrun.Session, r *agentrun.Report) error {
	brought, left, err := workcopy.BringOut(ctx, PlaceOf(s), a.Wanted)
	r.Artifacts = nil
	for _, b := range brought {
		r.Artifacts = append(r.Artifacts, agentrun.Artifact{Path: valid(b.Path), Destination: b.Destination, Size: b.Size, SHA256: b.SHA256})
	}
	if err != nil {
		return uncollected(s, "Artifacts stay in the container", err)
	}
	if r.ArtifactsLeftOut = reasons(left); len(left) > 0 {
		s.Warn("Artifacts stay in the container", fmt.Sprintf("These were not brought out of %s:\n%s", s.Spec.Dir, listed(left)))
	}
	return nil
}
