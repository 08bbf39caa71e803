package backup

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// ModifyPlan says what a new backup changes, and refuses at plan what an apply would refuse later.
func (r *backupResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	making := req.State.Raw.IsNull()
	if !making {
		var state Model
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		if resp.Diagnostics.HasError() {
			return
		}
		making = !plan.ContainerID.Equal(state.ContainerID)
		if needsNew(&plan, &state) {
			making = true
			plan.ID, plan.VolID, plan.CreatedAt = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
			plan.Size, plan.NodeName = types.Int64Unknown(), types.StringUnknown()
			resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		}
	}
	r.check(ctx, &plan, making, &resp.Diagnostics)
}

func (r *backupResource) check(ctx context.Context, plan *Model, making bool, diags *diag.Diagnostics) {
	if !r.Data.Known() {
		return
	}
	if r.Data.Settings.Owner == "" {
		diags.AddError("The provider has no owner",
			"Every backup carries an ownership marker, so the provider needs to know whose it is before it changes anything. Set owner in the provider block, or SANDBOX_OWNER.")
		return
	}
	for _, v := range []attr.Value{plan.Storage, plan.Mode, plan.Compression, plan.Notes} {
		if v.IsUnknown() {
			return
		}
	}
	spec := plan.spec()
	problems := r.Data.Manager.CheckBackup(spec)
	base.AddProblems(diags, problems)
	if diags.HasError() || !making || plan.ContainerID.IsUnknown() {
		return
	}
	limited, cancel := limits.ForRead(ctx, plan.Timeouts, diags)
	defer cancel()
	problems, err := r.Data.Manager.CheckBackupServer(limited, spec)
	if err != nil {
		base.AddError(diags, "check", plan.thing(), err)
		return
	}
	base.AddProblems(diags, problems)
}
