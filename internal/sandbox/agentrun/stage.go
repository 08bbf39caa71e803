package agentrun

import (
	"context"
	"log/slog"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/redact"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Stage is something that is done around a run by the machine that applies.
//
// Before is called in the order of Spec.Stages, and only where a run is really
// going to be started: not when one is found that was started earlier. An error
// ends the matter before anything has started.
//
// After is called in reverse order once the run has ended, whatever its status
// but lost, by whoever collects the result: the same process, or a later one
// that found the run. It may therefore rely on nothing that Before left in
// memory, only on Spec and on what is in the sandbox. It adds what it found to
// the report; its error becomes the collector's, and the result stays
// uncollected.
type Stage interface {
	// Name is for messages and timings: "source", "checkpoint".
	Name() string
	Before(ctx context.Context, s *Session) error
	After(ctx context.Context, s *Session, r *Report) error
}

// Session is one visit to the sandbox for one run.
type Session struct {
	*sandbox.Inside
	// Spec is what was asked for. A Before may change Dir and add to
	// Environment.
	Spec *Spec
	// RunID is the run's id in the sandbox; empty in Before.
	RunID string
	// Redact takes the run's secrets, as far as they are known, out of texts.
	Redact *redact.Redactor
	Log    *slog.Logger
	// Warn tells the user something that is no error.
	Warn func(summary, detail string)

	engine *Engine
	run    *Run
}

// Renew does what takes the sandbox from under everybody, such as a rollback:
// meanwhile no work is noted to be under way there, and afterwards the session
// is a new one. For Before only.
func (s *Session) Renew(ctx context.Context, do func() error) error {
	s.run.begun()
	err := do()
	s.run.begun = s.Begin()
	if err != nil {
		return err
	}
	inside, err := s.engine.sandboxes.Inside(ctx, s.run.Prior())
	if err == nil {
		s.Inside, s.run.inside = inside, inside
	}
	return err
}
