// Package workspace is the resource sandbox_workspace, a volume that outlives sandboxes, and the data source of the same
// name, which looks for what is wrong with one.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"strconv"

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
	_ resource.ResourceWithConfigure   = (*workspaceResource)(nil)
	_ resource.ResourceWithIdentity    = (*workspaceResource)(nil)
	_ resource.ResourceWithImportState = (*workspaceResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*workspaceResource)(nil)
)

// keyTask holds, in the private state, the UPID of the task that makes the holder.
const keyTask = "task"

type workspaceResource struct{ base.ResourceBase }

// NewResource returns sandbox_workspace, the resource.
func NewResource() resource.Resource { return &workspaceResource{} }

func (r *workspaceResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_workspace"
}

func (r *workspaceResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"vmid": identityschema.Int64Attribute{Description: "The holder's id.", RequiredForImport: true},
		},
	}
}

// identify sets the identity; every path of Create, Read and Update does so first.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity != nil && value.Known(m.ID) {
		diags.Append(identity.SetAttribute(ctx, path.Root("vmid"), int64(number(m.ID)))...)
	}
}

// ModifyPlan marks what the apply finds out, plans the repair of a holder that is gone, and checks what is asked for.
func (r *workspaceResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
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
	if state != nil {
		changed := !plan.Name.Equal(state.Name) || !plan.Size.Equal(state.Size) || !plan.Storage.Equal(state.Storage) || !plan.NodeName.Equal(state.NodeName) ||
			!plan.ForkOf.Equal(state.ForkOf) || !plan.Timeouts.Equal(state.Timeouts)
		repair := state.Status.ValueString() == statusHolderMissing
		if repair {
			resp.Diagnostics.AddWarning("The holder of "+state.thing()+" is gone", fmt.Sprintf(
				"Somebody has deleted container %s. The volume is safe with container %s, and the apply makes a new holder for it.", state.ID.ValueString(), state.ContainerID.ValueString()))
		}
		if changed || repair {
			plan.Status, plan.ContainerID, plan.Path = types.StringUnknown(), types.StringUnknown(), types.StringUnknown()
		} else {
			plan.Status, plan.ContainerID, plan.Path = state.Status, state.ContainerID, state.Path
		}
		if repair {
			plan.Claim = types.StringUnknown()
		}
		resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
		if !changed {
			return
		}
	}
	r.check(ctx, &resp.Diagnostics, &plan, &config, state)
}

// check refuses at plan what an apply would refuse later.
func (r *workspaceResource) check(ctx context.Context, diags *diag.Diagnostics, plan, config, state *Model) {
	if !r.Data.Known() {
		return
	}
	if r.Data.Settings.Owner == "" {
		diags.AddError("The provider has no owner",
			"Every workspace carries an ownership marker, so the provider needs to know whose it is before it changes anything. "+
				"Set owner in the provider block, or SANDBOX_OWNER.")
		return
	}
	for _, v := range []interface{ IsUnknown() bool }{config.Name, config.Size, config.Storage, config.NodeName, config.ForkOf} {
		if v.IsUnknown() {
			return // the apply checks
		}
	}
	spec := plan.spec()
	if problems := r.Data.Manager.CheckWorkspace(spec); len(problems) > 0 {
		base.AddProblems(diags, problems)
		return
	}
	ctx, cancel := limits.ForRead(ctx, plan.Timeouts, diags)
	defer cancel()
	var before *sandbox.Workspace
	if state != nil {
		before = &sandbox.Workspace{Ref: state.ref(), SizeGiB: float64(state.Size.ValueInt64())}
	}
	problems, err := r.Data.Manager.CheckWorkspaceServer(ctx, spec, before)
	if err != nil {
		base.AddError(diags, "check", plan.thing(), err)
		return
	}
	base.AddProblems(diags, problems)
}

func (r *workspaceResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	w, warnings, err := manager.CreateWorkspace(limited, plan.spec(), func(ref sandbox.Ref, upid string) {
		// From here on the holder exists. Whatever happens next, the state must lead to it.
		tracked := plan
		tracked.track(ref)
		tracked.settle()
		identify(ctx, resp.Identity, &tracked, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &tracked)...)
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, keyTask, []byte(strconv.Quote(upid)))...)
	})
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		// Tainted, where it exists: there is nothing in it yet that would be lost by doing it again.
		base.AddError(&resp.Diagnostics, "create", plan.thing(), err)
		return
	}
	plan.fill(w)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, keyTask, nil)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *workspaceResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	w, err := manager.ReadWorkspace(limited, state.ref())
	switch {
	case errors.Is(err, sandbox.ErrGone):
		_, _, orphanErr := manager.Orphaned(limited, number(state.ID), number(state.ContainerID))
		switch {
		case errors.Is(orphanErr, sandbox.ErrGone):
			resp.State.RemoveResource(ctx)
		case orphanErr != nil:
			base.AddError(&resp.Diagnostics, "read", state.thing(), orphanErr)
		default:
			state.Status = types.StringValue(statusHolderMissing)
			resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
		}
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	state.fill(w)
	if w.Status == sandbox.WorkspaceMissing && !w.Unfinished {
		resp.Diagnostics.AddWarning("The volume of "+state.thing()+" is missing",
			"It is neither with its holder nor with the sandbox that should have it. The data source sandbox_workspace says what was found and what to do; nothing is changed by itself.")
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *workspaceResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
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
	ref := state.ref()
	if state.Status.ValueString() == statusHolderMissing {
		restored, warnings, err := manager.RestoreHolder(limited, ref, number(state.ContainerID), state.spec(), nil)
		base.AddWarnings(&resp.Diagnostics, warnings)
		if err != nil {
			base.AddError(&resp.Diagnostics, "make a new holder for", state.thing(), err)
			return
		}
		ref = restored.Ref
	}
	w, warnings, err := manager.UpdateWorkspace(limited, ref, plan.spec())
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "update", state.thing(), err)
		return
	}
	plan.fill(w)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *workspaceResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	task := ""
	quoted, d := req.Private.GetKey(ctx, keyTask)
	resp.Diagnostics.Append(d...)
	if len(quoted) > 0 {
		task, _ = strconv.Unquote(string(quoted))
	}
	warnings, err := manager.DestroyWorkspace(limited, state.ref(), task)
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "destroy", state.thing(), err)
	}
}

// ImportState takes the id (the holder's vmid), the name, or the identity.
func (r *workspaceResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		var vmid types.Int64
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("vmid"), &vmid)...)
		id = strconv.FormatInt(vmid.ValueInt64(), 10)
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	var w sandbox.Workspace
	var err error
	if vmid, notNumber := strconv.Atoi(id); notNumber == nil {
		w, err = manager.ImportWorkspace(ctx, vmid)
	} else {
		w, err = manager.FindWorkspace(ctx, id)
	}
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "workspace "+id, err)
		return
	}
	m := &Model{Timeouts: base.NullTimeouts()}
	m.fill(w)
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
