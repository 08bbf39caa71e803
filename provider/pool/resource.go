// Package pool is the resource sandbox_pool.
package pool

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var (
	_ resource.ResourceWithConfigure   = (*poolResource)(nil)
	_ resource.ResourceWithIdentity    = (*poolResource)(nil)
	_ resource.ResourceWithImportState = (*poolResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*poolResource)(nil)
)

type poolResource struct{ base.ResourceBase }

// NewResource returns sandbox_pool.
func NewResource() resource.Resource { return &poolResource{} }

func (r *poolResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_pool"
}

func (r *poolResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"name": identityschema.StringAttribute{Description: "The pool's name.", RequiredForImport: true},
		},
	}
}

// identify sets the identity; every path of Create, Read and Update does so first.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity != nil && value.Known(m.Name) {
		diags.Append(identity.SetAttribute(ctx, path.Root("name"), m.Name)...)
	}
}

func (r *poolResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	spec := plan.spec(ctx, &resp.Diagnostics, r.Data.Settings)
	if resp.Diagnostics.HasError() {
		return
	}
	p, err := manager.CreatePool(limited, *spec, func(claim string) {
		// From here on the Proxmox pool exists. Whatever happens next, the state must lead to it.
		tracked := plan
		tracked.fill(sandbox.Pool{Name: spec.Name, Comment: spec.Comment, Claim: claim, Headroom: -1})
		identify(ctx, resp.Identity, &tracked, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &tracked)...)
	})
	base.AddWarnings(&resp.Diagnostics, p.Warnings)
	if p.Claim == "" {
		if err == nil {
			err = errors.New("the server was not asked for a pool")
		}
		base.AddError(&resp.Diagnostics, "create", plan.thing(), err)
		return
	}
	plan.fill(p)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	switch {
	case err != nil && errors.Is(ctx.Err(), context.Canceled):
		// Stopped, not failed: an error would taint the pool, and the next apply would replace what it can fill.
		resp.Diagnostics.AddWarning("Unfinished: "+plan.thing(), fmt.Sprintf("The creation was interrupted when %d of %d members were ready. They are in the state, and the next apply makes the others.", p.Ready(), spec.Size))
	case err != nil:
		base.AddError(&resp.Diagnostics, "fill", plan.thing(), err)
		resp.Diagnostics.AddWarning(fmt.Sprintf("%d of %d members of %s are ready", p.Ready(), spec.Size, plan.thing()),
			"They are in the state. Terraform replaces a resource whose creation failed; to keep the members that are ready and have the next apply make only those that are missing, untaint it first: terraform untaint sandbox_pool.<name>.")
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *poolResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	p, err := manager.ReadPool(limited, state.prior(ctx, &resp.Diagnostics), state.spec(ctx, &resp.Diagnostics, r.Data.Settings))
	switch {
	case errors.Is(err, sandbox.ErrGone):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	base.AddWarnings(&resp.Diagnostics, p.Warnings)
	report(&resp.Diagnostics, &state, p)
	state.fill(p)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// report names the members that aren't as they should be.
func report(diags *diag.Diagnostics, m *Model, p sandbox.Pool) {
	var mend, away []string
	for _, member := range p.Members {
		line := fmt.Sprintf("- %s (%d): %s: %s", member.Hostname, member.VMID, member.Status, member.Why)
		switch member.Status {
		case sandbox.MemberReady:
		case sandbox.MemberUnknown:
			away = append(away, line)
		default:
			mend = append(mend, line)
		}
	}
	if len(mend) > 0 {
		diags.AddWarning(fmt.Sprintf("%d members of %s are not as they should be", len(mend), m.thing()),
			strings.Join(mend, "\n")+"\nThe next apply mends or replaces them.")
	}
	if len(away) > 0 {
		diags.AddWarning(fmt.Sprintf("Nothing is known of %d members of %s", len(away), m.thing()),
			strings.Join(away, "\n")+"\nThey are neither used nor replaced until their node is back.")
	}
}

func (r *poolResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
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
	spec := plan.spec(ctx, &resp.Diagnostics, r.Data.Settings)
	prior := state.prior(ctx, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	p, err := manager.UpdatePool(limited, prior, *spec)
	base.AddWarnings(&resp.Diagnostics, p.Warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
		if p.Members == nil && len(prior.Members) > 0 {
			return // the pool was never looked at: the state stays as it was
		}
	}
	plan.Claim = state.Claim
	plan.fill(p)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *poolResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	warnings, err := manager.DestroyPool(limited, state.prior(ctx, &resp.Diagnostics), state.Force.ValueBool())
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "destroy", state.thing(), err)
	}
}

// ImportState takes the pool's name or the identity. What only a configuration can say (the members' shape) comes with
// the first apply, which changes nothing on the server where the members were made with the same settings.
func (r *poolResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
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
	p, err := manager.ImportPool(ctx, name)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", fmt.Sprintf("pool %q", name), err)
		return
	}
	m := imported(int64(len(p.Members)))
	m.fill(p)
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
