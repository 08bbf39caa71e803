// Package snapshot is the resource sandbox_snapshot, a state of a sandbox to come back to, and the data source
// sandbox_snapshots.
package snapshot

import (
	"context"
	"encoding/json"
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
	_ resource.ResourceWithConfigure   = (*snapshotResource)(nil)
	_ resource.ResourceWithIdentity    = (*snapshotResource)(nil)
	_ resource.ResourceWithImportState = (*snapshotResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*snapshotResource)(nil)
)

type snapshotResource struct{ base.ResourceBase }

// NewResource returns sandbox_snapshot.
func NewResource() resource.Resource { return &snapshotResource{} }

func (r *snapshotResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_snapshot"
}

func (r *snapshotResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"container_id": identityschema.StringAttribute{Description: "The container's id.", RequiredForImport: true},
			"name":         identityschema.StringAttribute{Description: "Name of the snapshot.", RequiredForImport: true},
		},
	}
}

// identify sets the identity; every path of Create, Read and Update does so first.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity == nil || m.ContainerID.IsUnknown() || m.Name.IsUnknown() {
		return
	}
	diags.Append(identity.SetAttribute(ctx, path.Root("container_id"), m.ContainerID)...)
	diags.Append(identity.SetAttribute(ctx, path.Root("name"), m.Name)...)
}

// keyContainer holds, in the private state, the node and the claim of the container: the node spares a refresh the
// search, and the claim tells the container from another one that has got its id.
const keyContainer = "container"

type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

func remember(ctx context.Context, p private, diags *diag.Diagnostics, ref sandbox.Ref) {
	text, err := json.Marshal(ref)
	if err != nil {
		diags.AddError("Unable to write the private state", err.Error())
		return
	}
	diags.Append(p.SetKey(ctx, keyContainer, text)...)
}

// ref is the container, by its id and by what is remembered of it.
func (m *Model) ref(ctx context.Context, p private, diags *diag.Diagnostics) (sandbox.Ref, bool) {
	_, vmid, err := sandbox.ParseContainerID(m.ContainerID.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return sandbox.Ref{}, false
	}
	var ref sandbox.Ref
	text, d := p.GetKey(ctx, keyContainer)
	diags.Append(d...)
	if len(text) > 0 {
		if err := json.Unmarshal(text, &ref); err != nil {
			diags.AddError("Unable to read the private state", err.Error())
			return sandbox.Ref{}, false
		}
	}
	if ref.VMID != vmid {
		ref = sandbox.Ref{VMID: vmid}
	}
	return ref, true
}

// ModifyPlan checks a snapshot that is to be made against the server, where the container is known already.
func (r *snapshotResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() || !req.State.Raw.IsNull() || !r.Data.Known() {
		return
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	if resp.Diagnostics.HasError() || plan.ContainerID.IsUnknown() || plan.Name.IsUnknown() || plan.IncludeWorkspaces.IsUnknown() {
		return
	}
	ref, ok := plan.ref(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	limited, cancel := limits.ForRead(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	_, problems, err := r.Data.Manager.CheckSnapshot(limited, ref, plan.spec())
	if err != nil {
		base.AddError(&resp.Diagnostics, "check", plan.thing(), err)
		return
	}
	base.AddProblems(&resp.Diagnostics, problems)
}

func (r *snapshotResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ref, ok := plan.ref(ctx, resp.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	out, err := manager.CreateSnapshot(limited, ref, plan.spec())
	base.AddWarnings(&resp.Diagnostics, out.Warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "take", plan.thing(), err)
	}
	if err != nil && !out.Accepted {
		return
	}
	// The server has begun: after an error the state is tainted, and the next apply deletes what has come of it first.
	remember(ctx, resp.Private, &resp.Diagnostics, out.Snapshot.Ref)
	if out.Unfinished {
		resp.Diagnostics.AddWarning("Unfinished: "+plan.thing(), "The apply was interrupted while the server took the snapshot. The next refresh says whether it is there.")
	}
	plan.fill(out.Snapshot)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *snapshotResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ref, ok := state.ref(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	s, err := manager.ReadSnapshot(limited, ref, state.Name.ValueString())
	switch {
	case errors.Is(err, sandbox.ErrGone), errors.Is(err, sandbox.ErrNoSnapshot):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	if s.Node != ref.Node {
		remember(ctx, resp.Private, &resp.Diagnostics, s.Ref)
	}
	state.fill(s)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Update changes the description; everything else that can change without a replacement touches nothing.
func (r *snapshotResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ref, ok := plan.ref(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	limited, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	var s sandbox.Snapshot
	var err error
	if plan.Description.Same(state.Description) {
		s, err = manager.ReadSnapshot(limited, ref, plan.Name.ValueString())
	} else {
		s, err = manager.DescribeSnapshot(limited, ref, plan.Name.ValueString(), plan.spec().Description)
	}
	if err != nil {
		base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
		return
	}
	plan.fill(s)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *snapshotResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ref, ok := state.ref(ctx, req.Private, &resp.Diagnostics)
	if !ok {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	warnings, err := manager.DestroySnapshot(limited, ref, state.Name.ValueString())
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "delete", state.thing(), err)
	}
}

// ImportState takes "vmid/name", "node/vmid/name" or the identity.
func (r *snapshotResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		var container, name types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("container_id"), &container)...)
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("name"), &name)...)
		id = container.ValueString() + "/" + name.ValueString()
	}
	container, name, _ := cutLast(id)
	node, vmid, err := sandbox.ParseContainerID(container)
	if err != nil || name == "" {
		resp.Diagnostics.AddError("Invalid import id", fmt.Sprintf("A snapshot is imported by \"vmid/name\" or \"node/vmid/name\", for example 100012/clean; got %q.", id))
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	s, err := manager.ImportSnapshot(ctx, sandbox.Ref{VMID: vmid, Node: node}, name)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "snapshot "+id, err)
		return
	}
	m := &Model{
		ContainerID: types.StringValue(fmt.Sprint(vmid)), Name: types.StringValue(name), Description: value.DescriptionType.Null(),
		IncludeWorkspaces: types.BoolValue(false), Timeouts: base.NullTimeouts(),
	}
	m.fill(s)
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	remember(ctx, resp.Private, &resp.Diagnostics, s.Ref)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}

// cutLast splits at the last slash.
func cutLast(id string) (before, after string, found bool) {
	i := strings.LastIndexByte(id, '/')
	if i < 0 {
		return id, "", false
	}
	return id[:i], id[i+1:], true
}
