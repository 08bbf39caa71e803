// Package file is the resource and the data source sandbox_file.
package file

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"unicode/utf8"

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
	_ resource.ResourceWithConfigure   = (*fileResource)(nil)
	_ resource.ResourceWithIdentity    = (*fileResource)(nil)
	_ resource.ResourceWithImportState = (*fileResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*fileResource)(nil)
)

// importLimit bounds the content that an import takes into the state, in bytes.
const importLimit = 1 << 20

type fileResource struct{ base.ResourceBase }

// NewResource returns sandbox_file, the resource.
func NewResource() resource.Resource { return &fileResource{} }

func (r *fileResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_file"
}

func (r *fileResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"container_id": identityschema.StringAttribute{Description: "The container's id.", RequiredForImport: true},
			"path":         identityschema.StringAttribute{Description: "Absolute path of the file.", RequiredForImport: true},
		},
	}
}

// identify sets the identity; every path of Create, Read and Update does so first.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity == nil || m.ContainerID.IsUnknown() || m.Path.IsUnknown() {
		return
	}
	diags.Append(identity.SetAttribute(ctx, path.Root("container_id"), m.ContainerID)...)
	diags.Append(identity.SetAttribute(ctx, path.Root("path"), m.Path)...)
}

func (r *fileResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan, config Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	if r.write(ctx, manager, &plan, &config, resp.Private, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *fileResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan, state, config Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	resp.Diagnostics.Append(req.Config.Get(ctx, &config)...)
	identify(ctx, resp.Identity, &plan, &resp.Diagnostics)
	if resp.Diagnostics.HasError() {
		return
	}
	if onlyLocal(&plan, &state) {
		plan.ContentWO = types.StringNull()
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok {
		return
	}
	ctx, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	if r.write(ctx, manager, &plan, &config, resp.Private, &resp.Diagnostics) {
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// onlyLocal tells whether a change touches nothing inside the container.
func onlyLocal(plan, state *Model) bool {
	return !plan.SHA256.IsUnknown() && plan.SHA256.Equal(state.SHA256) && !plan.SHA256.IsNull() &&
		plan.Owner.Equal(state.Owner) && plan.Mode.Equal(state.Mode) && !plan.Size.IsUnknown()
}

// write writes the file and reads it back into the plan; false after an error.
func (r *fileResource) write(ctx context.Context, manager *sandbox.Manager, plan, config *Model, p private, diags *diag.Diagnostics) bool {
	inside, err := base.Inside(plan.ContainerID, plan.HostKey)
	if err != nil {
		diags.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return false
	}
	mode, err := parseMode(plan.Mode.ValueString())
	if err != nil {
		diags.AddAttributeError(path.Root("mode"), "Invalid mode", err.Error())
		return false
	}
	content, done, err := openContent(plan, config)
	if err != nil {
		diags.AddAttributeError(path.Root("source"), "Unable to read the source", err.Error())
		return false
	}
	defer done()
	info, err := manager.WriteFile(ctx, inside, sandbox.File{
		Path:      plan.Path.ValueString(),
		Content:   content,
		Mode:      mode,
		Owner:     plan.Owner.ValueString(),
		MakeDirs:  true,
		TmpfsOnly: plan.secret(),
	})
	if err != nil {
		base.AddError(diags, "write", plan.thing(), err)
		return false
	}
	if want := plan.SHA256; value.Known(want) && want.ValueString() != info.SHA256 {
		diags.AddAttributeError(path.Root("source"), "The source has changed since the plan",
			fmt.Sprintf("%s had the SHA-256 %s when this was planned, and %s when it was written. Plan and apply again.", plan.Source.ValueString(), want.ValueString(), info.SHA256))
		// What was written is in the container now: the state says so, tainted or stale, and the next plan corrects it.
		plan.SHA256 = types.StringNull()
	}
	plan.fill(info)
	rememberWrite(ctx, p, diags, plan, info)
	return true
}

func (r *fileResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &state, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(state.ContainerID, state.HostKey)
	if err != nil {
		base.AddCoded(&resp.Diagnostics, "Invalid container", err.Error(), sandbox.CodeConfiguration)
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	info, err := manager.StatFile(limited, inside, state.Path.ValueString(), !state.secret())
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, sandbox.ErrGone):
		resp.State.RemoveResource(ctx)
		return
	case errors.Is(err, sandbox.ErrNotRunning) && state.secret():
		// Memory ends with the run: the file is gone for certain.
		resp.State.RemoveResource(ctx)
		return
	case errors.Is(err, sandbox.ErrNotRunning), errors.Is(err, sandbox.ErrNotReady):
		resp.Diagnostics.AddWarning("Unable to look at "+state.thing(),
			fmt.Sprintf("The state keeps what was known of it: %v.", err))
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	state.fill(info)
	if wasRewritten(ctx, req.Private, &resp.Diagnostics, &state, info) {
		state.ContentWOVersion = types.Int64Null() // differs from the configuration, so that it is written again
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *fileResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(state.ContainerID, state.HostKey)
	if err != nil {
		base.AddCoded(&resp.Diagnostics, "Invalid container", err.Error(), sandbox.CodeConfiguration)
		return
	}
	ctx, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	err = manager.RemoveFile(ctx, inside, state.Path.ValueString())
	switch {
	case err == nil, errors.Is(err, sandbox.ErrGone):
	case errors.Is(err, sandbox.ErrNotRunning):
		// An error would keep a fleet with one stopped container from being destroyed.
		resp.Diagnostics.AddWarning("Left behind: "+state.thing(),
			"The container doesn't run, so nothing in it can be removed. The file is no longer managed, and stays on the container's disk.")
	default:
		base.AddError(&resp.Diagnostics, "remove", state.thing(), err)
	}
}

// ImportState takes "vmid/path" or the identity. The content comes into the state if it is text of at most a MiB, so
// that a configuration with the same content plans nothing.
func (r *fileResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		var m Model
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("container_id"), &m.ContainerID)...)
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("path"), &m.Path)...)
		id = fileID(m.ContainerID.ValueString(), m.Path.ValueString())
	}
	containerID, name, err := parseFileID(id)
	if err != nil {
		base.AddCoded(&resp.Diagnostics, "Invalid import id", err.Error()+".", sandbox.CodeConfiguration)
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	m := &Model{ContainerID: types.StringValue(containerID), Path: types.StringValue(name), Timeouts: base.NullTimeouts()}
	inside, err := base.Inside(m.ContainerID, m.HostKey)
	if err != nil {
		base.AddCoded(&resp.Diagnostics, "Invalid import id", err.Error(), sandbox.CodeConfiguration)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	info, err := manager.StatFile(ctx, inside, name, true)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", m.thing(), err)
		return
	}
	if info.Size <= importLimit {
		content, err := manager.ReadFile(ctx, inside, name, importLimit)
		if err != nil {
			base.AddError(&resp.Diagnostics, "import", m.thing(), err)
			return
		}
		if utf8.Valid(content) {
			m.Content = types.StringValue(string(content))
		}
	}
	m.fill(info)
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
