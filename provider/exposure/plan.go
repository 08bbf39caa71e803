package exposure

import (
	"context"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// repaired are the states that an apply mends.
var repaired = []string{exposure.StateInactive, exposure.StateUnpublished, exposure.StateStale}

// ModifyPlan says what will be known only after apply, plans a repair, and asks the node whether the port can be had.
func (r *exposureResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	var state *Model
	if !req.State.Raw.IsNull() {
		state = &Model{}
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	moves := state == nil || !plan.Via.Equal(state.Via) || !plan.Address.Equal(state.Address) || !plan.HostPort.Equal(state.HostPort)
	broken := state != nil && slices.Contains(repaired, state.State.ValueString())
	if state != nil && (moves || broken) {
		plan.State, plan.Target, plan.NodeName, plan.URL = types.StringUnknown(), types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
	}
	plan.foresee(state)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	r.check(ctx, req, resp, &plan, moves)
}

// foresee plans what follows from the configuration alone.
func (m *Model) foresee(state *Model) {
	if _, vmid, err := sandbox.ParseContainerID(m.ContainerID.ValueString()); err == nil && value.Known(m.ContainerID) && value.Known(m.Port) {
		m.Name = types.StringValue(exposure.Name(vmid, int(m.Port.ValueInt64())))
	}
	if state != nil && m.Protocol.Equal(state.Protocol) && !m.URL.IsUnknown() {
		return
	}
	m.URL = types.StringUnknown()
	if !value.Known(m.HostPort) || !value.Known(m.Protocol) {
		return
	}
	switch {
	case m.Via.ValueString() == string(exposure.ViaLoopback):
		m.URL = m.url("127.0.0.1")
	case m.Via.ValueString() == string(exposure.ViaAddress) && value.Known(m.Address):
		m.URL = m.url(m.Address.ValueString())
	}
}

// check looks for problems: in the configuration always, on the node where the port is to be taken anew.
func (r *exposureResource) check(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan *Model, moves bool) {
	if !r.Data.Known() || plan.Via.IsUnknown() || plan.Address.IsUnknown() || plan.AllowRisks.IsUnknown() || plan.Port.IsUnknown() {
		return
	}
	manager := r.Data.Manager
	if plan.ContainerID.IsUnknown() || plan.HostPort.IsUnknown() || !moves {
		base.AddProblems(&resp.Diagnostics, manager.CheckExposureSpec(plan.spec(ctx, sandbox.Ref{}, &resp.Diagnostics)))
		return
	}
	ref, ok := plan.ref(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	limited, cancel := limits.ForRead(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	problems, err := manager.CheckExposure(limited, plan.spec(limited, ref, &resp.Diagnostics))
	if err != nil {
		base.AddError(&resp.Diagnostics, "check", plan.thing(), err)
		return
	}
	base.AddProblems(&resp.Diagnostics, problems)
}
