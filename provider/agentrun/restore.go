package agentrun

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun/code"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// restore goes back to a checkpoint where the plan's restore_triggers differ from the state's.
func (r *runResource) restore(ctx context.Context, plan, state *model, k kept, diags *diag.Diagnostics) {
	wanted := object[checkpointModel](ctx, plan.Checkpoint, diags)
	had := object[checkpointModel](ctx, state.Checkpoint, diags)
	if wanted.Restore.IsNull() || had.RestoreTriggers.IsNull() || wanted.RestoreTriggers.Equal(had.RestoreTriggers) {
		return
	}
	at := path.Root("checkpoint").AtName("restore_triggers")
	side := wanted.Restore.ValueString()
	if !agentrun.Status(state.Status.ValueString()).Ended() {
		diags.AddAttributeError(at, "The run is under way", fmt.Sprintf("The folder that %s works in can't be restored under it. Apply again when it has ended.", state.thing()))
		return
	}
	report := state.report()
	if report == nil {
		diags.AddError("Unable to read the report", "The state's report isn't one. Replace the run.")
		return
	}
	for _, c := range report.Checkpoints {
		if c.When == side && c.Method == string(code.Snapshot) {
			diags.AddAttributeError(at, "A snapshot is restored by sandbox_rollback", fmt.Sprintf("The checkpoint %s the run is the snapshot %q. Go back to it by sandbox_rollback, or set method = \"copy\".", side, c.Name))
			return
		}
	}
	manager, ok := r.Manager(diags)
	if !ok {
		return
	}
	inside, err := manager.Inside(ctx, k.run(state).Prior())
	if err == nil {
		err = code.Restore(ctx, inside, state.User.ValueString(), state.spec(ctx, state.Secrets, diags).Dir, side)
	}
	if err != nil {
		base.AddError(diags, "restore the working folder of", state.thing(), err)
	}
}
