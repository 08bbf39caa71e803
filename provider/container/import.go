package container

import (
	"context"
	"errors"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// ImportState takes "vmid", "node/vmid" or the identity. The posture is compared with the template's from then on: what
// somebody has added to the container since is drift, not the new normal.
func (r *containerResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		var vmid types.Int64
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("vmid"), &vmid)...)
		id = strconv.FormatInt(vmid.ValueInt64(), 10)
	}
	if _, _, err := sandbox.ParseContainerID(id); err != nil {
		resp.Diagnostics.AddError("Invalid import id", "A container is imported by \"vmid\" or \"node/vmid\", for example 100012 or pve1/100012: "+err.Error()+".")
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	s, err := manager.Import(ctx, id)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "container "+id, err)
		return
	}
	model := imported()
	model.fill(s)
	if s.Marker != nil {
		model.ClaimFromPoolID = value.TextOrNull(s.Marker.Pool)
	}
	identify(ctx, resp.Identity, model.VMID, &resp.Diagnostics)

	switch posture, err := manager.SourcePosture(ctx, s.Ref); {
	case err == nil:
		takeBaseline(ctx, resp.Private, &resp.Diagnostics, posture)
	case errors.Is(err, sandbox.ErrGone) || s.Source.TemplateID == 0:
		resp.Diagnostics.AddWarning("Nothing to compare the container's isolation with",
			"The template of container "+id+" is gone or unknown, so its present posture (privileges, features, mounts, devices, raw lines) counts as right from now on. Have a look at the attribute posture.")
		takeBaseline(ctx, resp.Private, &resp.Diagnostics, s.Posture)
	default:
		base.AddError(&resp.Diagnostics, "read", "the template of container "+id, err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, model)...)
}
