// Package firewall is the resource sandbox_firewall_group: a security group of the datacenter.
package firewall

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

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
	_ resource.ResourceWithConfigure   = (*groupResource)(nil)
	_ resource.ResourceWithIdentity    = (*groupResource)(nil)
	_ resource.ResourceWithImportState = (*groupResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*groupResource)(nil)
)

// keyDigest holds, in the private state, the digest of the rules as they were read last. A change is sent against it, so
// that nothing has to be read first and nobody else's change is overwritten unseen.
const keyDigest = "digest"

type groupResource struct{ base.ResourceBase }

// NewResource returns sandbox_firewall_group.
func NewResource() resource.Resource { return &groupResource{} }

func (r *groupResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_firewall_group"
}

func (r *groupResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"name": identityschema.StringAttribute{Description: "The group's name.", RequiredForImport: true},
		},
	}
}

func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, name string, diags *diag.Diagnostics) {
	if identity != nil {
		diags.Append(identity.SetAttribute(ctx, path.Root("name"), name)...)
	}
}

type privateState interface {
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func (r *groupResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	spec := plan.spec(ctx, &resp.Diagnostics)
	r.stillPlanned(limited, &plan, spec, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	g, err := manager.CreateGroup(limited, spec)
	if g.Name != "" {
		// It exists from here on, also after a failure: the state must lead to it.
		plan.fill(ctx, g, &resp.Diagnostics)
		plan.Resolved, plan.Moved = resolvedValue(ctx, g.Resolved, &resp.Diagnostics), namesValue(nil)
		identify(ctx, resp.Identity, g.Name, &resp.Diagnostics)
		setDigest(ctx, resp.Private, g.Digest, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
	if err != nil {
		base.AddError(&resp.Diagnostics, "create", plan.thing(), err)
	}
}

func setDigest(ctx context.Context, private privateState, digest string, diags *diag.Diagnostics) {
	diags.Append(private.SetKey(ctx, keyDigest, []byte(strconv.Quote(digest)))...)
}

func (r *groupResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, state.Name.ValueString(), &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	g, err := manager.ReadGroup(limited, state.Name.ValueString())
	switch {
	case errors.Is(err, sandbox.ErrGone):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	state.fill(ctx, g, &resp.Diagnostics)
	if state.Resolved.IsNull() {
		state.Resolved = resolvedValue(ctx, nil, &resp.Diagnostics)
	}
	state.Moved = namesValue(r.moved(limited, manager, &state, &resp.Diagnostics))
	setDigest(ctx, resp.Private, g.Digest, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// moved looks up the domains and says which have an address that isn't pinned. A name that can't be looked up now has
// not moved: what is pinned stays.
func (r *groupResource) moved(ctx context.Context, manager *sandbox.Manager, state *Model, diags *diag.Diagnostics) []string {
	pinned := resolvedOf(ctx, state.Resolved, diags)
	var out []string
	for domain, addresses := range pinned {
		now, err := manager.LookUp(ctx, []string{domain})
		if err != nil {
			diags.AddWarning("Unable to look up "+domain, fmt.Sprintf("%v.\n\nThe addresses that are pinned for it in %s stay.", err, state.thing()))
			continue
		}
		for _, a := range now[domain] {
			if !slices.Contains(addresses, a) {
				out = append(out, domain)
				break
			}
		}
	}
	slices.Sort(out)
	return out
}

func (r *groupResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, state.Name.ValueString(), &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	spec := plan.spec(ctx, &resp.Diagnostics)
	r.stillPlanned(limited, &plan, spec, &resp.Diagnostics)
	quoted, d := req.Private.GetKey(ctx, keyDigest)
	resp.Diagnostics.Append(d...)
	have := sandbox.FirewallGroup{
		Name: state.Name.ValueString(), Rules: rulesOf(ctx, state.Rules, &resp.Diagnostics), Sets: setsOf(ctx, state.IPSets, &resp.Diagnostics),
		Resolved: resolvedOf(ctx, plan.Resolved, &resp.Diagnostics),
	}
	have.Digest, _ = strconv.Unquote(string(quoted))
	if resp.Diagnostics.HasError() {
		return
	}
	g, err := manager.UpdateGroup(limited, spec, have)
	if err != nil {
		base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
		return
	}
	plan.fill(ctx, g, &resp.Diagnostics)
	plan.Resolved, plan.Moved = resolvedValue(ctx, g.Resolved, &resp.Diagnostics), namesValue(nil)
	setDigest(ctx, resp.Private, g.Digest, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *groupResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	if err := manager.DeleteGroup(limited, state.Name.ValueString()); err != nil {
		base.AddError(&resp.Diagnostics, "destroy", state.thing(), err)
	}
}

// ImportState takes the name.
func (r *groupResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	name := req.ID
	if name == "" && req.Identity != nil {
		var v types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("name"), &v)...)
		name = v.ValueString()
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	g, err := manager.ReadGroup(ctx, name)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "security group "+name, err)
		return
	}
	m := &Model{
		Rule: types.ListNull(RuleType()), Allow: types.ListNull(allowType()), Deny: types.ListNull(types.StringType), Resolvers: types.ListNull(types.StringType),
		Moved: namesValue(nil), Timeouts: base.NullTimeouts(),
	}
	m.Resolved = resolvedValue(ctx, nil, &resp.Diagnostics)
	m.fill(ctx, g, &resp.Diagnostics)
	identify(ctx, resp.Identity, g.Name, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
