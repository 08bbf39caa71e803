// Package backup is the resource sandbox_backup.
package backup

import (
	"context"
	"encoding/json"
	"errors"

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
	_ resource.ResourceWithConfigure   = (*backupResource)(nil)
	_ resource.ResourceWithIdentity    = (*backupResource)(nil)
	_ resource.ResourceWithImportState = (*backupResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*backupResource)(nil)
)

// keyTask is the key of the private state that holds the task that makes the backup, while nobody knows how it ended.
const keyTask = "task"

type backupResource struct{ base.ResourceBase }

// NewResource returns sandbox_backup.
func NewResource() resource.Resource { return &backupResource{} }

func (r *backupResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_backup"
	// A new backup has another name; the resource stays the same.
	resp.ResourceBehavior.MutableIdentity = true
}

func (r *backupResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"volid":     identityschema.StringAttribute{Description: "Volume id of the backup.", RequiredForImport: true},
			"node_name": identityschema.StringAttribute{Description: "Node that has the backup. Where it is left out, all nodes with such a storage are asked.", OptionalForImport: true},
		},
	}
}

// identify sets the identity; every path of Create, Read and Update does so first.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity == nil || m.NodeName.IsUnknown() || m.VolID.IsUnknown() {
		return
	}
	diags.Append(identity.SetAttribute(ctx, path.Root("volid"), m.VolID)...)
	diags.Append(identity.SetAttribute(ctx, path.Root("node_name"), m.NodeName)...)
}

func (r *backupResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	made, warnings, err := manager.CreateBackup(limited, plan.spec(), "", func(ref sandbox.BackupRef, upid string) {
		// From here on there may be a backup. Whatever happens next, the state must lead to it.
		tracked := plan
		tracked.track(ref)
		identify(ctx, resp.Identity, &tracked, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &tracked)...)
		text, err := json.Marshal(upid)
		if err != nil {
			resp.Diagnostics.AddError("Unable to write the private state", err.Error())
			return
		}
		resp.Diagnostics.Append(resp.Private.SetKey(ctx, keyTask, text)...)
	})
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		// Tainted where the server has accepted it: the next apply removes what has come of it.
		base.AddError(&resp.Diagnostics, "create", plan.thing(), err)
		return
	}
	plan.fill(made)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.Private.SetKey(ctx, keyTask, nil)...)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *backupResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	if state.VolID.IsNull() {
		return // tainted: what has come of it is looked for when it is removed
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	b, err := manager.ReadBackup(limited, state.ref())
	switch {
	case errors.Is(err, sandbox.ErrGone):
		resp.State.RemoveResource(ctx)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	// Which node answers for a shared storage is no property of the backup.
	node := state.NodeName
	state.fill(b)
	if !node.IsNull() {
		state.NodeName = node
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *backupResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
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
	var now sandbox.Backup
	var warnings []sandbox.Warning
	var err error
	if needsNew(&plan, &state) {
		now, warnings, err = manager.RenewBackup(limited, state.ref(), state.spec(), plan.spec())
	} else {
		now, warnings, err = manager.UpdateBackup(limited, state.ref(), changeOf(&plan, &state), int(plan.KeepLast.ValueInt64()))
		now.Node = state.NodeName.ValueString()
	}
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		// The state stays as it was: the backup that it names is still there.
		base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
		return
	}
	plan.fill(now)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

// changeOf is what differs of what can be changed about a backup that exists.
func changeOf(plan, state *Model) sandbox.BackupChange {
	var change sandbox.BackupChange
	if !plan.Notes.Equal(state.Notes) {
		notes := plan.Notes.ValueString()
		change.Notes = &notes
	}
	if !plan.Protected.Equal(state.Protected) {
		protected := plan.Protected.ValueBool()
		change.Protected = &protected
	}
	return change
}

func (r *backupResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	text, d := req.Private.GetKey(ctx, keyTask)
	resp.Diagnostics.Append(d...)
	var task string
	if len(text) > 0 {
		if err := json.Unmarshal(text, &task); err != nil {
			resp.Diagnostics.AddError("Unable to read the private state", err.Error())
			return
		}
	}
	warnings, err := manager.DestroyBackup(limited, state.ref(), task)
	base.AddWarnings(&resp.Diagnostics, warnings)
	if err != nil {
		base.AddError(&resp.Diagnostics, "remove", state.thing(), err)
	}
}

// ImportState takes "volid", "node/volid" or the identity.
func (r *backupResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		var volid, node types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("volid"), &volid)...)
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("node_name"), &node)...)
		id = volid.ValueString()
		if node.ValueString() != "" {
			id = node.ValueString() + "/" + id
		}
	}
	if _, _, err := sandbox.ParseBackupImportID(id); err != nil {
		resp.Diagnostics.AddError("Invalid import id", "A backup is imported by its volume id, or \"node/volid\": "+err.Error()+".")
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	b, err := manager.ImportBackup(limited, id)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "backup "+id, err)
		return
	}
	m := imported(b)
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
