package pool

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var (
	_ resource.ResourceWithValidateConfig = (*poolResource)(nil)

	limitsTypes     = typesOf(limitsAttribute())
	overcommitTypes = typesOf(overcommitAttribute())
	updateTypes     = typesOf(updateAttribute())
	memberTypes     = typesOf(memberAttribute())
)

func typesOf(a schema.Attribute) map[string]attr.Type {
	object, _ := a.GetType().(types.ObjectType)
	return object.AttrTypes
}

// imported is the model of a pool that no configuration has described yet.
func imported(size int64) *Model {
	return &Model{
		Member: types.ObjectNull(memberTypes), Size: types.Int64Value(size), Limits: types.ObjectNull(limitsTypes), Overcommit: types.ObjectNull(overcommitTypes),
		Update: types.ObjectNull(updateTypes), Placement: types.StringValue(string(placement.Spread)), Nodes: types.ListNull(types.StringType),
		Attest: types.StringValue(string(sandbox.AttestAll)), Force: types.BoolValue(false), Members: types.MapNull(entryType), Timeouts: base.NullTimeouts(),
	}
}

// ValidateConfig says on each plan what a configuration gives away.
func (r *poolResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var network types.Object
	at := path.Root("member").AtName("network")
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, at, &network)...)
	n := as[networkModel](ctx, &resp.Diagnostics, network)
	if n.Mode.ValueString() == string(sandbox.ModeUnmanaged) {
		resp.Diagnostics.AddAttributeWarning(at.AtName("mode"), "The members have no managed firewall",
			`With mode = "unmanaged" they reach whatever their bridge and their template's firewall let them reach: the node, other guests and your network among them. Choose nat, web, allowlist or off.`)
	}
}

// ModifyPlan plans a refill where the state shows that members are missing or have to be mended, and checks what the
// plan asks for: by itself first, then against the server. It looks only at configuration and state, apart from that
// last check.
func (r *poolResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
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
	}
	if resp.Diagnostics.HasError() {
		return
	}
	if !plan.Name.IsUnknown() {
		plan.ID = plan.Name
	}
	changed := state == nil || !plan.sameConfiguration(state)
	if changed || state.needsWork(ctx, &resp.Diagnostics) {
		plan.Members, plan.Ready, plan.Claimed, plan.Headroom = types.MapUnknown(entryType), types.Int64Unknown(), types.Int64Unknown(), types.Int64Unknown()
	} else {
		plan.Members, plan.Ready, plan.Claimed, plan.Headroom = state.Members, state.Ready, state.Claimed, state.Headroom
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if plan.Members.IsUnknown() {
		r.check(ctx, &resp.Diagnostics, &plan, &config, state)
	}
}

func (m *Model) sameConfiguration(o *Model) bool {
	return m.Name.Equal(o.Name) && m.Comment.Equal(o.Comment) && m.Member.Equal(o.Member) && m.Size.Equal(o.Size) && m.Limits.Equal(o.Limits) &&
		m.Overcommit.Equal(o.Overcommit) && m.Update.Equal(o.Update) && m.Placement.Equal(o.Placement) && m.Nodes.Equal(o.Nodes) &&
		m.Attest.Equal(o.Attest) && m.Force.Equal(o.Force) && m.Timeouts.Equal(o.Timeouts)
}

// needsWork tells whether the state shows a pool that isn't as it should be. A member whose node is away counts as
// there; a pool that its limits keep from being full has nothing to do.
func (m *Model) needsWork(ctx context.Context, diags *diag.Diagnostics) bool {
	there := int64(0)
	for _, member := range m.prior(ctx, diags).Members {
		if member.Status != sandbox.MemberReady && member.Status != sandbox.MemberUnknown {
			return true
		}
		there++
	}
	size := m.Size.ValueInt64()
	bounded := value.Known(m.Headroom) && m.Headroom.ValueInt64() == 0
	return there < size && !bounded || there > size
}

// check refuses at plan what an apply would refuse later.
func (r *poolResource) check(ctx context.Context, diags *diag.Diagnostics, plan, config, state *Model) {
	if !r.Data.Known() {
		return
	}
	if r.Data.Settings.Owner == "" {
		diags.AddError("The provider has no owner",
			"Every pool and every member carries an ownership marker, so the provider needs to know whose it is before it changes anything. "+
				"Set owner in the provider block, or SANDBOX_OWNER.")
		return
	}
	for _, v := range []attr.Value{config.Name, config.Comment, config.Member, config.Size, config.Limits, config.Overcommit, config.Update, config.Nodes} {
		if holdsUnknown(v) {
			return // the apply checks
		}
	}
	spec := plan.spec(ctx, diags, r.Data.Settings)
	problems := r.Data.Manager.CheckPool(*spec)
	base.AddProblems(diags, problems)
	if diags.HasError() {
		return
	}
	ctx, cancel := limits.ForRead(ctx, plan.Timeouts, diags)
	defer cancel()
	held := 0
	if state != nil {
		held = len(state.prior(ctx, diags).Members)
	}
	problems, err := r.Data.Manager.CheckPoolServer(ctx, *spec, held, state == nil || !plan.Member.Equal(state.Member))
	if err != nil {
		base.AddError(diags, "check", plan.thing(), err)
		return
	}
	base.AddProblems(diags, problems)
}

// holdsUnknown tells whether a value or anything in it is unknown.
func holdsUnknown(v attr.Value) bool {
	if v.IsUnknown() {
		return true
	}
	var inner []attr.Value
	switch v := v.(type) {
	case types.Object:
		for _, a := range v.Attributes() {
			inner = append(inner, a)
		}
	case interface{ Elements() []attr.Value }:
		inner = v.Elements()
	}
	for _, v := range inner {
		if holdsUnknown(v) {
			return true
		}
	}
	return false
}
