package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// undo applies examples/time-machine: a snapshot, an agent's mistake, a rollback, and the proof that the work is back. The
// example's own proof fails the apply when it isn't.
func (r *run) undo(ctx context.Context) (told []string, err error) {
	workspace, err := r.example("time-machine")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, workspace.Destroy(context.WithoutCancel(ctx))) }()
	if err := workspace.Apply(ctx); err != nil {
		return nil, err
	}
	outputs, err := workspace.Output(ctx)
	if err != nil {
		return nil, err
	}
	var proof string
	if err := json.Unmarshal(outputs["proof"].Value, &proof); err != nil {
		return nil, fmt.Errorf("output proof: %w", err)
	}
	var seconds float64
	if err := json.Unmarshal(outputs["seconds"].Value, &seconds); err != nil {
		return nil, fmt.Errorf("output seconds: %w", err)
	}
	return []string{
		"snapshot taken; then the agent deletes the work and leaves a mess",
		fmt.Sprintf("rolled back in %.1f s, most of it ext4's wait at the first start from a snapshot of a running container", seconds),
		"the work says: " + proof,
	}, nil
}
