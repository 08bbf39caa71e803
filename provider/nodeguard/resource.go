// Package nodeguard is the resource sandbox_node_guard: a node's own input rules towards sandboxes.
package nodeguard

import (
	"context"
	"errors"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure   = (*guardResource)(nil)
	_ resource.ResourceWithIdentity    = (*guardResource)(nil)
	_ resource.ResourceWithImportState = (*guardResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*guardResource)(nil)
)

type guardResource struct{ base.ResourceBase }

// NewResource returns sandbox_node_guard.
func NewResource() resource.Resource { return &guardResource{} }

func (r *guardResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_node_guard"
}

func (r *guardResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"node_name": identityschema.StringAttribute{Description: "The node.", RequiredForImport: true},
			"guards":    identityschema.StringAttribute{Description: "The bridge, or the network in CIDR form.", RequiredForImport: true},
		},
	}
}

func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity == nil {
		return
	}
	node, key, ok := strings.Cut(m.ID.ValueString(), "/")
	if ok {
		diags.Append(identity.SetAttribute(ctx, path.Root("node_name"), node)...)
		diags.Append(identity.SetAttribute(ctx, path.Root("guards"), key)...)
	}
}

// ModifyPlan renders the rules, so that the plan shows them and what is different on the node is a change.
func (r *guardResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
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
	plan.Rules, plan.Above = types.ListUnknown(types.StringType), types.Int64Value(0)
	if plan.known(ctx) {
		spec := plan.spec(ctx, &resp.Diagnostics)
		base.AddProblems(&resp.Diagnostics, spec.Check())
		if resp.Diagnostics.HasError() {
			return
		}
		plan.Rules = linesOf(spec.Render())
		plan.ID = types.StringValue(spec.NodeName + "/" + spec.Key())
		changed := state == nil || !plan.Rules.Equal(state.Rules)
		if changed && r.Data.Known() {
			r.check(ctx, &plan, spec, &resp.Diagnostics)
		}
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

func (r *guardResource) check(ctx context.Context, plan *Model, spec sandbox.GuardSpec, diags *diag.Diagnostics) {
	ctx, cancel := limits.ForRead(ctx, plan.Timeouts, diags)
	defer cancel()
	if r.Data.Settings.Owner == "" {
		diags.AddError("The provider has no owner", "Set owner in the provider block, or SANDBOX_OWNER: it is required for any write.")
		return
	}
	problems, err := r.Data.Manager.CheckGuard(ctx, spec)
	if err != nil {
		base.AddError(diags, "check", plan.thing(), err)
		return
	}
	base.AddProblems(diags, problems)
}

func (r *guardResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	spec := plan.spec(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	g, err := manager.CreateGuard(limited, spec)
	if len(g.Rules) > 0 { // some are there, also after a failure: the state must lead to them
		plan.fill(g)
		plan.settleBridge(limited, manager, spec)
		identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
	if err != nil {
		base.AddError(&resp.Diagnostics, "create", plan.thing(), err)
	}
}

func (r *guardResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	node, key, _ := strings.Cut(state.ID.ValueString(), "/")
	g, err := manager.ReadGuard(limited, node, key)
	switch {
	case errors.Is(err, sandbox.ErrGone):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	state.fill(g)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *guardResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	spec := plan.spec(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	g, err := manager.UpdateGuard(limited, spec)
	if err != nil {
		base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
		return
	}
	plan.fill(g)
	plan.settleBridge(limited, manager, spec)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *guardResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	node, key, _ := strings.Cut(state.ID.ValueString(), "/")
	if err := manager.DeleteGuard(limited, node, key); err != nil {
		base.AddError(&resp.Diagnostics, "destroy", state.thing(), err)
	}
}

// ImportState takes <node>/<bridge> or <node>/<network>.
func (r *guardResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	node, key, ok := strings.Cut(req.ID, "/")
	if req.ID == "" && req.Identity != nil {
		var n, k types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("node_name"), &n)...)
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("guards"), &k)...)
		node, key, ok = n.ValueString(), k.ValueString(), true
	}
	if !ok {
		resp.Diagnostics.AddError("Invalid import id", "It is <node>/<bridge> or <node>/<network in CIDR form>, such as pve1/vmbr1.")
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	g, err := manager.ReadGuard(ctx, node, key)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "guard of "+key+" on node "+node, err)
		return
	}
	m := &Model{
		Resolvers: types.ListNull(types.StringType), Allow: types.ListNull(types.ObjectType{AttrTypes: map[string]attr.Type{"to": types.StringType, "ports": types.StringType, "protocol": types.StringType}}),
		DHCP: types.BoolValue(true), Timeouts: base.NullTimeouts(),
	}
	if g.Bridge == "" {
		m.Subnet = types.StringValue(key)
	}
	m.fill(g)
	if spec := m.spec(ctx, &resp.Diagnostics); spec.Subnet.IsValid() {
		m.Bridge = types.StringUnknown()
		m.settleBridge(ctx, manager, spec)
	}
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
