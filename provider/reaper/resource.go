// Package reaper is the resource sandbox_reaper: it destroys what leases and cut runs have left.
package reaper

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure      = (*reaperResource)(nil)
	_ resource.ResourceWithModifyPlan     = (*reaperResource)(nil)
	_ resource.ResourceWithValidateConfig = (*reaperResource)(nil)
)

type reaperResource struct{ base.ResourceBase }

// NewResource returns sandbox_reaper.
func NewResource() resource.Resource { return &reaperResource{} }

func (r *reaperResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_reaper"
}

// ValidateConfig refuses a backup that has nowhere to go.
func (r *reaperResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var config model
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	if config.SnapshotBeforeReap.ValueBool() && config.BackupStorage.IsNull() {
		resp.Diagnostics.AddAttributeError(path.Root("backup_storage"), "No storage for the backups",
			"snapshot_before_reap saves each guest as a backup: name a storage with the content type backup in backup_storage.")
	}
}

// ModifyPlan turns candidates of the state into a plan. It looks only at the state: Read is what looks at the clock.
func (r *reaperResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy, which leaves the server alone
	}
	if r.Data.Known() && r.Data.Settings.Owner == "" {
		base.AddError(&resp.Diagnostics, "plan", "a reaper", &sandbox.Error{Op: "reap", Kind: sandbox.ErrNoOwner, What: "a reaper destroys what its owner's mark proves"})
		return
	}
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() {
		return
	}
	r.check(ctx, &resp.Diagnostics, &plan)
	if req.State.Raw.IsNull() {
		return
	}
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	due := state.due(ctx, &resp.Diagnostics)
	changed := !plan.DryRun.Equal(state.DryRun) || !plan.KeepClaims.Equal(state.KeepClaims) || !plan.Grace.Equal(state.Grace) ||
		!plan.MaxDestroy.Equal(state.MaxDestroy) || !plan.SnapshotBeforeReap.Equal(state.SnapshotBeforeReap) || !plan.BackupStorage.Equal(state.BackupStorage)
	reaps := len(due) > 0 && !plan.DryRun.ValueBool()
	plan.Candidates, plan.Kept, plan.Reaped = state.Candidates, state.Kept, state.Reaped
	if changed || reaps {
		plan.Candidates, plan.Kept = types.ListUnknown(candidateType), types.ListUnknown(keptType)
	}
	switch {
	case reaps:
		plan.Reaped = types.ListUnknown(candidateType)
		first := due[:min(len(due), int(plan.MaxDestroy.ValueInt64()))]
		text := "This plan destroys, unless it has changed by then:" + lines(first)
		if rest := len(due) - len(first); rest > 0 {
			text += fmt.Sprintf("\n\n%d more are due; max_destroy leaves them for the next apply.", rest)
		}
		resp.Diagnostics.AddAttributeWarning(path.Root("candidates"), fmt.Sprintf("%d sandboxes are reaped", len(first)), text)
	case len(due) > 0:
		resp.Diagnostics.AddAttributeWarning(path.Root("candidates"), fmt.Sprintf("%d sandboxes could be reaped", len(due)),
			"With dry_run = false this would be destroyed:"+lines(due))
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// check refuses what an apply would refuse.
func (r *reaperResource) check(ctx context.Context, diags *diag.Diagnostics, plan *model) {
	if !r.Data.Known() || plan.BackupStorage.IsUnknown() {
		return
	}
	base.AddProblems(diags, r.Data.Manager.CheckReap(plan.spec(ctx, diags)))
}

// Create only looks: nobody has seen yet what there is to destroy.
func (r *reaperResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	if !r.look(limited, manager, &plan, &resp.Diagnostics) {
		return
	}
	if due := plan.due(ctx, &resp.Diagnostics); len(due) > 0 && !plan.DryRun.ValueBool() {
		resp.Diagnostics.AddAttributeWarning(path.Root("candidates"), fmt.Sprintf("%d sandboxes are due", len(due)),
			"The apply that makes a reaper destroys nothing, because no plan has shown what. The next plan does:"+lines(due))
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// look fills the model with what is due now, and tells whether it could.
func (r *reaperResource) look(ctx context.Context, manager *sandbox.Manager, m *model, diags *diag.Diagnostics) bool {
	found, err := manager.FindReapable(ctx, m.spec(ctx, diags))
	base.AddWarnings(diags, found.Warnings)
	if err != nil {
		base.AddError(diags, "look for", "what to reap", err)
		return false
	}
	m.fill(r.Data.Settings.Owner, found)
	return !diags.HasError()
}

func (r *reaperResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	if r.look(limited, manager, &state, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
	}
}

// Update destroys what the plan has named, and looks anew.
func (r *reaperResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	if due := state.due(ctx, &resp.Diagnostics); len(due) > 0 && !plan.DryRun.ValueBool() {
		out, err := manager.Reap(limited, plan.spec(ctx, &resp.Diagnostics), due)
		base.AddWarnings(&resp.Diagnostics, out.Warnings)
		for _, left := range out.Left {
			resp.Diagnostics.AddWarning(fmt.Sprintf("Container %d (%s) was not reaped", left.VMID, left.Hostname), "It was left alone: "+left.Why+".")
		}
		plan.Reaped = candidateList(out.Reaped)
		// What was destroyed is written down all the same.
		for _, failed := range out.Failed {
			base.AddError(&resp.Diagnostics, "reap", fmt.Sprintf("container %d (%s)", failed.VMID, failed.Hostname), failed.Err)
		}
		if err != nil && len(out.Failed) == 0 {
			base.AddError(&resp.Diagnostics, "reap", "what is due", err)
		}
	}
	var looked diag.Diagnostics
	seen := r.look(ctx, manager, &plan, &looked)
	resp.Diagnostics.Append(looked...)
	if seen {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// Delete leaves the server alone.
func (r *reaperResource) Delete(context.Context, resource.DeleteRequest, *resource.DeleteResponse) {}
