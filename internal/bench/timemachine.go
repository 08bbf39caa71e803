package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/hashicorp/terraform-exec/tfexec"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// Bounds of the area time.
const (
	maxSnapshot  = 3   // requests: configuration, snapshot, list
	maxRollback  = 1.2 // of the server's own time, the configuration aside
	listSize     = 100
	configBudget = 2 // a read and a write of the configuration, which come on top
)

// snapshots is a fleet of stopped containers with a snapshot of each, and a rollback of the first when it is asked for.
const snapshots = `
resource "sandbox_snapshot" "clean" {
  count        = var.snapshots ? var.size : 0
  container_id = sandbox_container.c[count.index].id
  name         = "clean"
}

resource "sandbox_rollback" "undo" {
  count         = var.rollback ? 1 : 0
  container_id  = sandbox_container.c[0].id
  snapshot_name = sandbox_snapshot.clean[0].name
}

variable "snapshots" {
  type    = bool
  default = false
}

variable "rollback" {
  type    = bool
  default = false
}

output "rollback" {
  value = try(sandbox_rollback.undo[0].timings, null)
}
`

func measureTime(ctx context.Context, log io.Writer, report func(Metric)) (err error) {
	provider, err := builtProvider(ctx)
	if provider != "" {
		defer func() { err = errors.Join(err, os.RemoveAll(provider)) }()
	}
	if err != nil {
		return err
	}
	if err := measureSnapshots(ctx, provider, log, report); err != nil {
		return err
	}
	return measureRollback(ctx, provider, log, report)
}

// timeWorkspace is a workspace of the stage whose containers are stopped and may have snapshots.
func (s *stage) timeWorkspace() (dir string, err error) {
	s.spaces++
	dir = filepath.Join(s.dir, fmt.Sprintf("time-%d", s.spaces))
	source := filepath.Join(dir, "source")
	if err := os.MkdirAll(source, 0o700); err != nil {
		return "", err
	}
	stopped := strings.Replace(configuration, "memory   = 256", "memory   = 256\n  started  = false", 1) + snapshots
	return dir, os.WriteFile(filepath.Join(source, "main.tf"), []byte(stopped), 0o600)
}

// measureSnapshots counts what taking the snapshots of a fleet costs, and what a refresh that lists them does.
func measureSnapshots(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	s, err := newStage(ctx, provider, lab.Fast())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.timeSpace()
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, size(listSize)); err != nil {
		return err
	}
	plan := filepath.Join(w.Dir, "snapshots.plan")
	if _, err := w.Plan(ctx, size(listSize), variable("snapshots"), tfexec.Out(plan)); err != nil {
		return err
	}
	if err := s.resetRequests(ctx); err != nil {
		return err
	}
	if err := w.Apply(ctx, tfexec.DirOrPlan(plan)); err != nil {
		return err
	}
	taken, _, err := s.requests(ctx)
	if err != nil {
		return err
	}
	work, polls := split(taken)
	fmt.Fprintf(log, "%d snapshots: %s; and %d polls\n", listSize, describe(taken), polls)
	// What is asked once for the whole fleet, the cluster's list, is no snapshot's own; more than one of it would be.
	perSnapshot := (work - 1 + listSize - 1) / listSize
	report(atMost("snapshot_create_requests", perSnapshot, maxSnapshot))

	if err := s.resetRequests(ctx); err != nil {
		return err
	}
	changed, err := w.Plan(ctx, size(listSize), variable("snapshots"))
	if err != nil {
		return err
	}
	if changed {
		return errors.New("the plan after taking the snapshots isn't empty")
	}
	refreshed, _, err := s.requests(ctx)
	if err != nil {
		return err
	}
	fmt.Fprintf(log, "refresh of %d with their snapshots: %s\n", listSize, describe(refreshed))
	report(atMost(fmt.Sprintf("snapshot_list_%d_requests", listSize), len(only(refreshed, "/snapshot")), listSize))
	return nil
}

// measureRollback compares a rollback of a stopped container with the server's own part of it, at a real server's times.
func measureRollback(ctx context.Context, provider string, log io.Writer, report func(Metric)) (err error) {
	delays := lab.Real()
	s, err := newStage(ctx, provider, delays)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w, err := s.timeSpace()
	if err != nil {
		return err
	}
	if err := w.Apply(ctx, size(1), variable("snapshots")); err != nil {
		return err
	}
	if err := w.Apply(ctx, size(1), variable("snapshots"), variable("rollback")); err != nil {
		return err
	}
	outputs, err := w.Output(ctx)
	if err != nil {
		return err
	}
	server, total, err := rollbackTimes(outputs["rollback"].Value)
	if err != nil {
		return err
	}
	// The server is told to be done by polls, whose pauses are part of its time as the provider sees it.
	ideal := time.Duration(float64(delays.Rollback)*maxRollback) + configBudget*delays.Config
	fmt.Fprintf(log, "rollback of a stopped container: %d ms, of which the server %d ms; its own time is %d ms\n",
		total.Milliseconds(), server.Milliseconds(), delays.Rollback.Milliseconds())
	report(shown("rollback_stopped", fmt.Sprintf("%dms", total.Milliseconds())))
	report(ratioAtMost("rollback_stopped_wall", total.Seconds()/ideal.Seconds(), 1))
	return nil
}

// only keeps the requests whose path holds a part.
func only(requests []control.Request, part string) []control.Request {
	var kept []control.Request
	for _, r := range requests {
		if strings.Contains(r.Path, part) && !isPoll(r) {
			kept = append(kept, r)
		}
	}
	return kept
}

// timeSpace is a working directory for the configuration of this area.
func (s *stage) timeSpace() (*tfcli.Workspace, error) {
	dir, err := s.timeWorkspace()
	if err != nil {
		return nil, err
	}
	return s.cli.NewWorkspace(tfcli.WorkspaceOptions{
		Config: filepath.Join(dir, "source"), Dir: dir, ProviderDir: filepath.Dir(s.dir), Environment: s.target.Variables(),
	})
}

// variable switches one of the configuration's variables on.
func variable(name string) *tfexec.VarOption { return tfexec.Var(name + "=true") }

// rollbackTimes reads the timings of a sandbox_rollback.
func rollbackTimes(output json.RawMessage) (server, total time.Duration, err error) {
	var timings struct{ Rollback, Total int64 }
	if err := json.Unmarshal(output, &timings); err != nil || timings.Total == 0 {
		return 0, 0, fmt.Errorf("the rollback's timings are %s (%w)", output, err)
	}
	return time.Duration(timings.Rollback) * time.Millisecond, time.Duration(timings.Total) * time.Millisecond, nil
}
