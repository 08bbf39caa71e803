package demo

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// handOver applies examples/workspace for two sandboxes, one after the other: the second finds what the first has written,
// although nothing of the first is left.
func (r *run) handOver(ctx context.Context) (told []string, err error) {
	workspace, err := r.example("workspace")
	if err != nil {
		return nil, err
	}
	days := []string{"monday", "tuesday"}
	last := tfexec.Var("sandbox=" + days[0])
	defer func() { err = errors.Join(err, workspace.Destroy(context.WithoutCancel(ctx), last)) }()
	for i, day := range days {
		last = tfexec.Var("sandbox=" + day)
		if err := workspace.Apply(ctx, last); err != nil {
			return told, err
		}
		outputs, err := workspace.Output(ctx)
		if err != nil {
			return told, err
		}
		var log []string
		if err := json.Unmarshal(outputs["log"].Value, &log); err != nil {
			return told, fmt.Errorf("output log: %w", err)
		}
		if !slices.Equal(log, days[:i+1]) {
			return told, fmt.Errorf("%s reads %v in the workspace, expected %v", day, log, days[:i+1])
		}
		told = append(told, fmt.Sprintf("%-10s reads in the workspace: %s", day, strings.Join(log, ", ")))
	}
	return append(told, "Monday's sandbox is gone; its work went on in Tuesday's."), nil
}
