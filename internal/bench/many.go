package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
)

// measureMany grows one fleet to 200 and then to 1,000, and looks at connections and memory.
func measureMany(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Fast())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.workspace()
	if err != nil {
		return err
	}

	made, err := s.apply(ctx, w, connectionsSize)
	if err != nil || made.failed > 0 {
		return errors.Join(err, made.failure)
	}
	fmt.Fprintf(log, "%d made in %.0f s\n", connectionsSize, made.wall.Seconds())
	refreshed, connections, err := s.refresh(ctx, w, connectionsSize)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "refresh of %d: %d requests over %d connections\n", connectionsSize, len(refreshed), connections)
	report(atMost("refresh_200_connections", connections, maxConnections))

	made, err = s.apply(ctx, w, memorySize)
	if err != nil || made.failed > 0 {
		return errors.Join(err, made.failure)
	}
	fmt.Fprintf(log, "grown to %d in %.0f s\n", memorySize, made.wall.Seconds())
	peak, requests, err := s.refreshMemory(ctx, w, memorySize)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "refresh of %d: %d requests\n", memorySize, len(requests))
	if peak > 0 {
		report(shown("refresh_1000_peak_memory", fmt.Sprintf("%dMiB", peak>>20)))
	}
	return nil
}

// refreshMemory refreshes n containers with a provider process of its own, and returns the most memory that it had.
func (s *stage) refreshMemory(ctx context.Context, w planner, n int) (peak int64, requests []control.Request, err error) {
	p, _, err := startProvider(ctx, filepath.Dir(s.dir), s.target.Variables())
	if err != nil {
		return 0, nil, err
	}
	requests, _, err = s.refresh(ctx, w, n, tfexec.Reattach(p.reattach(s.cli)))
	return p.end(), requests, err
}
