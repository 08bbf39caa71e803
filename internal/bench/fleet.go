package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// Bounds of the area fleet. Where a figure has a counterpart, another public provider doing the same work on a real
// server, the comment names that.
const (
	maxCloneWall    = 1.3 // of n clones one after another and one start; the other: 37 s for 10
	maxCreate       = 8   // 19: list, clone, PUT, start, interfaces, config, status; one more for a disk that grows
	maxConnections  = 10  // 170 to 206, refreshing 200
	maxDestroy      = 6   // 16, the refresh included
	refreshSize     = 20
	connectionsSize = 200
	memorySize      = 1000
	execRuns        = 30
)

func measureFleet(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	provider, err := builtProvider(ctx)
	if provider != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(provider)) }()
	}
	if err != nil {
		return err
	}
	for _, measure := range []func(context.Context, string, io.Writer, func(Metric)) error{
		measureStartup, measureRequests, measureTenClones, measureFiftyClones, measureFirstExec, measureMany,
	} {
		if err := measure(ctx, provider, log, report); err != nil {
			return err
		}
	}
	return nil
}

// measureStartup is the time from starting the provider's process to its schema, the best of some runs.
func measureStartup(ctx context.Context, provider string, _ io.Writer, report func(Metric)) error {
	var best time.Duration
	for range 5 {
		p, took, err := startProvider(ctx, provider, nil)
		if err != nil {
			return err
		}
		p.end()
		if best == 0 || took < best {
			best = took
		}
	}
	report(shown("startup_to_schema", fmt.Sprintf("%dms", best.Milliseconds())))
	return nil
}

// measureRequests counts the requests of a creation, of a destruction with its refresh, and of a refresh.
func measureRequests(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Fast())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	one, err := s.workspace()
	if err != nil {
		return err
	}
	if err := s.countCreate(ctx, one, log, report); err != nil {
		return err
	}
	if err := s.resetRequests(ctx); err != nil {
		return err
	}
	if err := one.Destroy(ctx, size(1)); err != nil {
		return err
	}
	destroyed, _, err := s.requests(ctx)
	if err != nil {
		return err
	}
	work, polls := split(destroyed)
	fmt.Fprintf(log, "destroy: %s; and %d polls\n", describe(destroyed), polls)
	report(atMost("destroy_requests", work, maxDestroy))

	many, err := s.workspace()
	if err != nil {
		return err
	}
	if made, err := s.apply(ctx, many, refreshSize); err != nil || made.failed > 0 {
		return errors.Join(err, made.failure)
	}
	refreshed, _, err := s.refresh(ctx, many, refreshSize)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "refresh of %d: %s\n", refreshSize, describe(refreshed))
	report(atMost(fmt.Sprintf("refresh_%d_requests", refreshSize), len(refreshed), refreshSize+1+len(s.target.Nodes)))
	return nil
}

// countCreate plans the creation of one and applies that plan, which is what a creation costs. What the plan asked to check
// the configuration against the server is shown beside it.
func (s *stage) countCreate(ctx context.Context, w *tfcli.Workspace, log io.Writer, report func(Metric)) error {
	if err := s.resetRequests(ctx); err != nil {
		return err
	}
	plan := filepath.Join(w.Dir, "create.plan")
	if _, err := w.Plan(ctx, size(1), tfexec.Out(plan)); err != nil {
		return err
	}
	planned, _, err := s.requests(ctx)
	if err != nil {
		return err
	}
	if err := s.resetRequests(ctx); err != nil {
		return err
	}
	if err := w.Apply(ctx, tfexec.DirOrPlan(plan)); err != nil {
		return err
	}
	created, _, err := s.requests(ctx)
	if err != nil {
		return err
	}
	work, polls := split(created)
	fmt.Fprintf(log, "plan of one: %s\ncreate: %s; and %d polls\n", describe(planned), describe(created), polls)
	report(shown("create_plan_requests", fmt.Sprint(len(planned))))
	report(atMost("create_requests", work, maxCreate))
	return nil
}

// refresh plans without changes and returns what it asked, and over how many connections. Every request counts: a refresh
// has nothing to poll for.
func (s *stage) refresh(ctx context.Context, w planner, n int, options ...tfexec.PlanOption) ([]control.Request, int, error) {
	if err := s.resetRequests(ctx); err != nil {
		return nil, 0, err
	}
	changed, err := w.Plan(ctx, append(options, size(n))...)
	if err != nil {
		return nil, 0, err
	}
	if changed {
		return nil, 0, errors.New("the plan after an apply isn't empty")
	}
	return s.requests(ctx)
}

type planner interface {
	Plan(ctx context.Context, opts ...tfexec.PlanOption) (bool, error)
}

// measureTenClones makes ten at once with a real server's times.
func measureTenClones(ctx context.Context, provider string, log io.Writer, report func(Metric)) error {
	return measureClones(ctx, provider, 10, lab.Real(), log, report)
}

// measureFiftyClones makes fifty at once while each clone locks the template for a second.
func measureFiftyClones(ctx context.Context, provider string, log io.Writer, report func(Metric)) error {
	delays := lab.Real()
	delays.CloneLinked = time.Second
	return measureClones(ctx, provider, 50, delays, log, report)
}

// measureClones compares n at once with one alone, in the same lab.
func measureClones(ctx context.Context, provider string, n int, delays lab.Delays, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, delays)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()

	alone, err := s.workspace()
	if err != nil {
		return err
	}
	single, err := s.apply(ctx, alone, 1)
	if err = errors.Join(err, single.failure); err != nil {
		return err
	}
	fleet, err := s.workspace()
	if err != nil {
		return err
	}
	many, err := s.apply(ctx, fleet, n)
	if err != nil {
		return err
	}
	if many.failure != nil {
		fmt.Fprintf(log, "%d clones: %v\n", n, many.failure)
	}
	ideal := time.Duration(n)*single.clone + single.start
	fmt.Fprintf(log, "%d clones: %.1f s in all; one alone clones in %.2f s and starts in %.2f s\n",
		n, many.wall.Seconds(), single.clone.Seconds(), single.start.Seconds())
	report(atMost(fmt.Sprintf("clone_%d_failed", n), many.failed, 0))
	report(ratioAtMost(fmt.Sprintf("clone_%d_wall", n), many.wall.Seconds()/ideal.Seconds(), maxCloneWall))
	return nil
}
