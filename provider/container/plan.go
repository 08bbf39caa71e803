package container

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// ModifyPlan sets the defaults that depend on the provider block, decides what a change replaces, turns drift that no
// attribute shows (posture, an unfinished creation, a new build of the template) into a plan, and checks what the plan
// asks for: by itself first, then against the server.
//
// It looks only at configuration, state and private state, apart from that last check: what is computed plans nothing
// by itself.
func (r *containerResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy
	}
	var plan, config Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	var state *Model
	if !req.State.Raw.IsNull() {
		state = &Model{}
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
		r.Data.Track(state.VMID.ValueInt64())
	}
	if resp.Diagnostics.HasError() {
		return
	}

	r.planSource(&plan, &config, state)
	r.planPool(&plan, &config, state)
	plan.planClaimed(&config, state)
	r.planNetwork(ctx, &resp.Diagnostics, &plan, &config, state)
	plan.checkTailscale(&resp.Diagnostics)
	changed := true
	if state != nil {
		// The framework has marked everything computed as unknown if anything differed, also what differed only in
		// spelling. Whether there is a change is decided here, from the state's values on.
		plan.takeComputed(state)
		plan.keepLease(state)
		if plan.Started.ValueBool() && !state.Started.ValueBool() && rests(&plan, state) {
			plan.Started = state.Started // nothing starts it before its lease is renewed
		}
		changed = differs(ctx, &resp.Diagnostics, resp.Plan, req.State, &plan)
		forced := r.planRepairs(ctx, req, resp, &plan, state)
		changed = changed || forced
		if changed {
			planComputed(ctx, &resp.Diagnostics, &plan, state)
			if recall[bool](ctx, req.Private, &resp.Diagnostics, keyUnfinished) {
				plan.forgetUnread(&config, state)
			}
		}
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if changed {
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	} else {
		resp.Plan.Raw = req.State.Raw // the same, without working it out once more for each of a fleet
	}
	resp.RequiresReplace = append(resp.RequiresReplace, sourceReplacements(&plan, state)...)
	if changed {
		r.check(ctx, &resp.Diagnostics, &plan, &config, state)
	} else {
		r.checkSwitch(ctx, resp, &plan)
	}
}

// planSource decides what the container is made from.
func (r *containerResource) planSource(plan, config, state *Model) {
	switch {
	case !config.TemplateFileID.IsNull(), !config.RestoreFrom.IsNull():
		plan.TemplateID = types.Int64Null()
	case !config.TemplateID.IsNull():
		// as configured
	case !r.Data.Known():
		if state != nil {
			plan.TemplateID = state.TemplateID
		}
	case r.Data.Settings.TemplateID != 0:
		plan.TemplateID = types.Int64Value(int64(r.Data.Settings.TemplateID))
	case state != nil:
		plan.TemplateID = state.TemplateID
		plan.TemplateFileID = state.TemplateFileID
	default:
		plan.TemplateID = types.Int64Null()
	}
	if state == nil || plan.OnTemplateChange.ValueString() != keepOnChange {
		return
	}
	// Keeping a container means keeping what it was made from, whatever the configuration says now. An attribute that
	// isn't in the configuration can't hold a value that isn't computed, hence the two conditions.
	if !state.TemplateID.IsNull() && config.TemplateFileID.IsNull() && config.RestoreFrom.IsNull() {
		plan.TemplateID = state.TemplateID
	}
	if !state.TemplateFileID.IsNull() && !config.TemplateFileID.IsNull() {
		plan.TemplateFileID = state.TemplateFileID
	}
	if !state.RestoreFrom.IsNull() && !config.RestoreFrom.IsNull() {
		plan.RestoreFrom = state.RestoreFrom
	}
}

// sourceReplacements lists what was a creation's argument and can't be changed afterwards. A state that doesn't know
// an argument (after an import) can't differ from the configuration.
func sourceReplacements(plan, state *Model) path.Paths {
	if state == nil {
		return nil
	}
	var out path.Paths
	add := func(name string, differs bool) {
		if differs {
			out = append(out, path.Root(name))
		}
	}
	if plan.claims() {
		// What a member was made from is its pool's business. An id that isn't known yet is no other pool.
		add("claim_from_pool_id", state.claims() && value.Known(plan.ClaimFromPoolID) && !plan.ClaimFromPoolID.Equal(state.ClaimFromPoolID))
		return out
	}
	add("template_id", !state.TemplateID.IsNull() && !plan.TemplateID.Equal(state.TemplateID))
	add("template_file_id", !state.TemplateFileID.IsNull() && !plan.TemplateFileID.Equal(state.TemplateFileID))
	// A container that was cloned and is to be made from a file: both attributes change, one of them from null.
	add("template_file_id", state.TemplateFileID.IsNull() && !state.TemplateID.IsNull() && !plan.TemplateFileID.IsNull())
	add("restore_from", !state.RestoreFrom.IsNull() && !plan.RestoreFrom.Equal(state.RestoreFrom))
	add("restore_from", state.RestoreFrom.IsNull() && !plan.RestoreFrom.IsNull() && !(state.TemplateID.IsNull() && state.TemplateFileID.IsNull()))
	add("full_clone", !state.FullClone.IsNull() && plan.FullClone.ValueBool() != state.FullClone.ValueBool() ||
		!state.FullClone.IsNull() && plan.FullClone.IsUnknown())
	add("storage", !state.Storage.IsNull() && !plan.Storage.Equal(state.Storage))
	return out
}

// planPool: a pool that the configuration doesn't name is the provider's, or none.
func (r *containerResource) planPool(plan, config, state *Model) {
	switch {
	case !config.PoolID.IsNull():
	case r.Data.Known():
		plan.PoolID = value.TextOrNull(r.Data.Settings.PoolID)
	case state != nil:
		plan.PoolID = state.PoolID
	}
}

// planRepairs turns what no attribute of the configuration shows into a plan, and tells whether it did.
func (r *containerResource) planRepairs(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, plan, state *Model) bool {
	forced := false
	if recall[bool](ctx, req.Private, &resp.Diagnostics, keyUnfinished) {
		resp.Diagnostics.AddWarning(fmt.Sprintf("Container %s is unfinished", state.ID.ValueString()),
			"Its creation was interrupted. This plan finishes it in place.")
		forced = true
	}
	if name := recall[string](ctx, req.Private, &resp.Diagnostics, keyRollback); name != "" {
		resp.Diagnostics.AddWarning(fmt.Sprintf("A rollback of container %s is unfinished", state.ID.ValueString()), fmt.Sprintf(
			"Its rollback to the snapshot %q was cut off, so that it may be without what has changed since the snapshot. This plan puts that back.", name))
		forced = true
	}
	if postureIsForced(ctx, req, resp, state) {
		forced = true
	}
	if plan.RestartWhenNeeded.ValueBool() && hasPending(state) {
		forced = true
	}
	if leaseIsForced(ctx, resp, plan, state) {
		forced = true
	}
	if !plan.claims() && plan.OnTemplateChange.ValueString() == replaceOnChange && !state.TemplateCurrent.IsNull() && !state.TemplateCurrent.ValueBool() {
		plan.TemplateCurrent = types.BoolUnknown()
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("template_current"))
		forced = true
	}
	return forced
}

// postureIsForced compares the posture with the baseline. What the API can't repair replaces the container.
func postureIsForced(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse, state *Model) bool {
	want := baseline(ctx, req.Private, &resp.Diagnostics)
	is, ok := postureOf(state.Posture)
	if want == nil || !ok {
		return false
	}
	changes := is.Diff(*want)
	if len(changes) == 0 {
		return false
	}
	var lines []string
	replace := false
	for _, change := range changes {
		how := "repaired in place"
		if !change.Repairable {
			how, replace = "only a replacement repairs it", true
		}
		lines = append(lines, fmt.Sprintf("- %s (%s)", change.What, how))
	}
	resp.Diagnostics.AddAttributeWarning(path.Root("posture"), fmt.Sprintf("The isolation of container %s has changed", state.ID.ValueString()),
		"Since it was made, somebody has changed what bears on its isolation:\n"+strings.Join(lines, "\n"))
	if replace {
		resp.RequiresReplace = append(resp.RequiresReplace, path.Root("posture"))
	}
	return true
}

func hasPending(state *Model) bool {
	if !value.Known(state.Posture) {
		return false
	}
	pending, ok := state.Posture.Attributes()["pending"].(types.List)
	return ok && len(pending.Elements()) > 0
}

// differs tells whether the plan, as the model has it now, asks for anything that the state hasn't.
func differs(ctx context.Context, diags *diag.Diagnostics, like tfsdk.Plan, state tfsdk.State, plan *Model) bool {
	candidate := tfsdk.Plan{Schema: like.Schema, Raw: like.Raw}
	diags.Append(candidate.Set(ctx, plan)...)
	return !candidate.Raw.Equal(state.Raw)
}

// takeComputed takes over what the state knows of the attributes that only the server sets.
func (m *Model) takeComputed(state *Model) {
	m.IPv4Address = state.IPv4Address
	m.IPv6Address = state.IPv6Address
	m.SSH = state.SSH
	m.Status = state.Status
	m.ExpiresAt, m.Expired = state.ExpiresAt, state.Expired
	m.TemplateCurrent = state.TemplateCurrent
	m.Posture = state.Posture
	m.Timings = state.Timings
}

// planComputed marks what an update may change. An address that is the configuration's own stays known through an
// update that doesn't touch it, so that what depends on it isn't planned anew with every change of a description.
func planComputed(ctx context.Context, diags *diag.Diagnostics, plan, state *Model) {
	plan.Posture = types.ObjectUnknown(postureTypes)
	plan.TemplateCurrent = types.BoolUnknown()
	is, was := as[NetworkModel](ctx, diags, plan.Network), as[NetworkModel](ctx, diags, state.Network)
	moved := !plan.Network.Equal(state.Network) || !plan.NodeName.Equal(state.NodeName) || !plan.Started.Equal(state.Started)
	asksForOne := is.IPv4.ValueString() == sandbox.AddressDHCP
	if state.IPv4Address.IsNull() || !is.IPv4.Equal(was.IPv4) || asksForOne {
		plan.IPv4Address = types.StringUnknown()
	}
	if moved || is.IPv6.ValueString() != sandbox.AddressNone {
		plan.IPv6Address = types.StringUnknown()
	}
	// A key that is pinned stays; one that isn't is pinned by the first login, which the update may bring.
	if login := as[sshModel](ctx, diags, state.SSH); plan.IPv4Address.IsUnknown() || login.HostKey.IsNull() {
		plan.SSH = types.ObjectUnknown(sshTypes)
	}
	plan.Status = types.StringUnknown()
	plan.planLease()
}

// check refuses at plan what an apply would refuse later. Findings about values that the configuration doesn't know
// yet wait.
func (r *containerResource) check(ctx context.Context, diags *diag.Diagnostics, plan, config, state *Model) {
	if !r.Data.Known() {
		return
	}
	if r.Data.Settings.Owner == "" {
		diags.AddError("The provider has no owner",
			"Every container carries an ownership marker, so the provider needs to know whose it is before it changes anything. "+
				"Set owner in the provider block, or SANDBOX_OWNER.")
		return
	}
	spec := plan.asked(ctx, config, diags)
	withKeys(&spec, plan, config)
	waits := waiting(config)
	problems := r.checkAlone(plan, spec, state)
	base.AddProblems(diags, waits.decided(problems))
	if diags.HasError() || waits.any() {
		return
	}
	ctx, cancel := limits.ForRead(ctx, plan.Timeouts, diags)
	defer cancel()
	var before *sandbox.Sandbox
	if state != nil {
		before = state.sandbox(ctx, diags)
	}
	problems, err := r.checkServer(ctx, plan, spec, before)
	if err != nil {
		base.AddError(diags, "check", "container "+plan.Hostname.ValueString(), err)
		return
	}
	if state == nil && r.Data.Tracks(plan.VMID.ValueInt64()) {
		// The id is taken by the container that this one replaces. What else may have it shows at the apply.
		problems = slices.DeleteFunc(problems, func(p sandbox.Problem) bool { return p.Attribute == "vmid" })
	}
	base.AddProblems(diags, problems)
}

// checkAlone checks a specification without asking the server.
func (r *containerResource) checkAlone(plan *Model, spec sandbox.Spec, state *Model) []sandbox.Problem {
	if plan.claims() && state == nil {
		return r.Data.Manager.CheckClaim(plan.claimSpec(), spec)
	}
	return r.Data.Manager.Check(spec)
}

// checkServer checks it against what the server holds.
func (r *containerResource) checkServer(ctx context.Context, plan *Model, spec sandbox.Spec, before *sandbox.Sandbox) ([]sandbox.Problem, error) {
	if plan.claims() && before == nil {
		return r.Data.Manager.CheckClaimServer(ctx, spec)
	}
	return r.Data.Manager.CheckServer(ctx, spec, before)
}

// forgetUnread: a container that was read while it was being cloned had not yet all that its template gives it. What the
// configuration leaves to the template is known when the creation has been finished.
func (m *Model) forgetUnread(config, state *Model) {
	if config.Storage.IsNull() && state.Storage.IsNull() {
		m.Storage = types.StringUnknown()
	}
	for _, number := range []struct{ plan, config *types.Int64 }{{&m.Cores, &config.Cores}, {&m.CPUUnits, &config.CPUUnits}, {&m.Memory, &config.Memory}, {&m.Swap, &config.Swap}} {
		if number.config.IsNull() {
			*number.plan = types.Int64Unknown()
		}
	}
	for _, number := range []struct{ plan, config *types.Float64 }{{&m.CPULimit, &config.CPULimit}, {&m.Disk, &config.Disk}} {
		if number.config.IsNull() {
			*number.plan = types.Float64Unknown()
		}
	}
	if config.Nesting.IsNull() {
		m.Nesting = types.BoolUnknown()
	}
}
