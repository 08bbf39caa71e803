// Package rollback is the resource sandbox_rollback: a sandbox put back to a snapshot.
package rollback

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure  = (*rollbackResource)(nil)
	_ resource.ResourceWithModifyPlan = (*rollbackResource)(nil)
)

type rollbackResource struct{ base.ResourceBase }

// NewResource returns sandbox_rollback.
func NewResource() resource.Resource { return &rollbackResource{} }

func (r *rollbackResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_rollback"
}

type model struct {
	ID                types.String   `tfsdk:"id"`
	ContainerID       types.String   `tfsdk:"container_id"`
	HostKey           types.String   `tfsdk:"host_key"`
	SnapshotName      types.String   `tfsdk:"snapshot_name"`
	Triggers          types.Map      `tfsdk:"triggers"`
	Power             types.String   `tfsdk:"power"`
	WaitFor           types.String   `tfsdk:"wait_for"`
	DiscardNewer      types.Bool     `tfsdk:"discard_newer"`
	IncludeWorkspaces types.Bool     `tfsdk:"include_workspaces"`
	Force             types.Bool     `tfsdk:"force"`
	RolledBackAt      types.String   `tfsdk:"rolled_back_at"`
	Discarded         types.List     `tfsdk:"discarded"`
	Timings           types.Object   `tfsdk:"timings"`
	Timeouts          timeouts.Value `tfsdk:"timeouts"`
}

func (m *model) spec() sandbox.RollbackSpec {
	return sandbox.RollbackSpec{
		Snapshot:          m.SnapshotName.ValueString(),
		Power:             sandbox.RollbackPower(m.Power.ValueString()),
		WaitFor:           sandbox.WaitFor(m.WaitFor.ValueString()),
		DiscardNewer:      m.DiscardNewer.ValueBool(),
		IncludeWorkspaces: m.IncludeWorkspaces.ValueBool(),
		Force:             m.Force.ValueBool(),
	}
}

func (m *model) thing() string {
	return "container " + m.ContainerID.ValueString() + " to the snapshot " + m.SnapshotName.ValueString()
}

// ModifyPlan checks a rollback against the server, where the container is known already.
func (r *rollbackResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || !req.State.Raw.IsNull() || !r.Data.Known() {
		return
	}
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	for _, v := range []attr.Value{plan.ContainerID, plan.SnapshotName, plan.DiscardNewer, plan.IncludeWorkspaces, plan.Force} {
		if v.IsUnknown() {
			return
		}
	}
	inside, err := base.Inside(plan.ContainerID, plan.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	limited, cancel := limits.ForRead(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	problems, err := r.Data.Manager.CheckRollback(limited, inside.Ref, plan.spec())
	if err != nil {
		base.AddError(&resp.Diagnostics, "check the rollback of", plan.thing(), err)
		return
	}
	base.AddProblems(&resp.Diagnostics, problems)
}

// Create rolls back. One that fails or is cut leaves no state, so the next apply rolls back again, as a whole.
func (r *rollbackResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(plan.ContainerID, plan.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	out, err := manager.Rollback(limited, inside, plan.spec())
	base.AddWarnings(&resp.Diagnostics, out.Warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "roll back", plan.thing(), err)
		return
	}
	now := r.Data.Now().UTC()
	plan.ID = types.StringValue(plan.ContainerID.ValueString() + "/" + now.Format(time.RFC3339Nano))
	plan.RolledBackAt = types.StringValue(now.Format(time.RFC3339))
	discarded := []attr.Value{}
	for _, name := range out.Discarded {
		discarded = append(discarded, types.StringValue(name))
	}
	plan.Discarded = types.ListValueMust(types.StringType, discarded)
	plan.Timings = types.ObjectValueMust(timingTypes, map[string]attr.Value{
		"rollback": types.Int64Value(out.Timings.Server.Milliseconds()),
		"start":    types.Int64Value(out.Timings.Start.Milliseconds()),
		"total":    types.Int64Value(out.Timings.Total.Milliseconds()),
	})
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// Read does nothing: a rollback has happened, and what the container has become since is its own resource's business.
func (r *rollbackResource) Read(context.Context, resource.ReadRequest, *resource.ReadResponse) {}

// Update is only called for attributes that matter at the next rollback.
func (r *rollbackResource) Update(_ context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	resp.State.Raw = req.Plan.Raw
}

// Delete does nothing: a rollback can't be undone.
func (r *rollbackResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {
}
