package exposure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure   = (*exposureResource)(nil)
	_ resource.ResourceWithIdentity    = (*exposureResource)(nil)
	_ resource.ResourceWithImportState = (*exposureResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*exposureResource)(nil)
)

type exposureResource struct{ base.ResourceBase }

// NewResource returns sandbox_port_exposure.
func NewResource() resource.Resource { return &exposureResource{} }

func (r *exposureResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_port_exposure"
}

func (r *exposureResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"container_id": identityschema.StringAttribute{Description: "The container's id.", RequiredForImport: true},
			"port":         identityschema.Int64Attribute{Description: "The port in the container.", RequiredForImport: true},
		},
	}
}

// identify sets the identity; every path of Create, Read and Update does so first.
func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, m *Model, diags *diag.Diagnostics) {
	if identity == nil || m.ContainerID.IsUnknown() || m.Port.IsUnknown() {
		return
	}
	diags.Append(identity.SetAttribute(ctx, path.Root("container_id"), m.ContainerID)...)
	diags.Append(identity.SetAttribute(ctx, path.Root("port"), m.Port)...)
}

// keyContainer holds, in the private state, the container with its claim, by which the exposure is known to be its; and
// the node that the exposure is on.
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

func (r *exposureResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
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
	x, err := manager.Expose(limited, plan.spec(limited, ref, &resp.Diagnostics), false)
	if err != nil {
		base.AddError(&resp.Diagnostics, "make", plan.thing(), err)
		return // nothing of it is on the node
	}
	remember(ctx, resp.Private, &resp.Diagnostics, x.Container)
	plan.fill(x)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
}

func (r *exposureResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
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
	if ref.Node == "" {
		ref.Node = state.NodeName.ValueString()
	}
	x, err := manager.ReadExposure(limited, ref, int(state.Port.ValueInt64()))
	switch {
	case errors.Is(err, sandbox.ErrNoExposure):
		resp.State.RemoveResource(ctx)
		return
	case errors.Is(err, sandbox.ErrNodeSSH), errors.Is(err, sandbox.ErrNoNodeSSH):
		resp.Diagnostics.AddWarning("Unable to look at the "+state.thing(), fmt.Sprintf("The state keeps what was known of it: %v.", err))
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "read", state.thing(), err)
		return
	}
	remember(ctx, resp.Private, &resp.Diagnostics, x.Container)
	state.fill(x)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

// Update makes the exposure anew where it listens or leads elsewhere, or is broken; all else touches nothing.
func (r *exposureResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
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
	if !plan.State.IsUnknown() { // nothing on the node changes
		plan.URL = state.URL
		if x, err := manager.ReadExposure(limited, ref, int(plan.Port.ValueInt64())); err == nil {
			plan.URL = plan.url(x.Host)
		} else if !plan.Protocol.Equal(state.Protocol) {
			base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
			return
		}
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
		return
	}
	was := ref
	x, err := manager.Expose(limited, plan.spec(limited, ref, &resp.Diagnostics), true)
	if err != nil {
		base.AddError(&resp.Diagnostics, "update", plan.thing(), err)
		return
	}
	remember(ctx, resp.Private, &resp.Diagnostics, x.Container)
	plan.fill(x)
	resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	if was.Node != "" && was.Node != x.Container.Node { // the container has moved: what it left behind leads nowhere
		if err := manager.Unexpose(limited, was, x.Port); err != nil {
			resp.Diagnostics.AddWarning("Left behind on node "+was.Node+": "+x.Name, fmt.Sprintf("The container has moved to node %s, and its former exposure can't be removed: %v.", x.Container.Node, err))
		}
	}
}

func (r *exposureResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
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
	if err := manager.Unexpose(limited, ref, int(state.Port.ValueInt64())); err != nil {
		base.AddError(&resp.Diagnostics, "remove", state.thing(), err)
	}
}

// ImportState takes "vmid/port", "node/vmid/port" or the identity. The container must be ours, and the exposure its.
func (r *exposureResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	id := req.ID
	if id == "" && req.Identity != nil {
		var container types.String
		var port types.Int64
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("container_id"), &container)...)
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("port"), &port)...)
		id = container.ValueString() + "/" + strconv.FormatInt(port.ValueInt64(), 10)
	}
	at := strings.LastIndexByte(id, '/')
	node, vmid, err := sandbox.ParseContainerID(id[:max(at, 0)])
	port, portErr := strconv.Atoi(id[at+1:])
	if err != nil || portErr != nil || port < 1 || port > 65535 {
		resp.Diagnostics.AddError("Invalid import id", fmt.Sprintf("An exposure is imported by \"vmid/port\" or \"node/vmid/port\", for example 100012/8080; got %q.", id))
		return
	}
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	x, err := manager.ImportExposure(ctx, sandbox.Ref{VMID: vmid, Node: node}, port)
	if err != nil {
		base.AddError(&resp.Diagnostics, "import", "exposure "+exposure.Name(vmid, port), err)
		return
	}
	m := &Model{
		ContainerID: types.StringValue(strconv.Itoa(vmid)), Port: types.Int64Value(int64(port)), Protocol: types.StringValue("tcp"),
		AllowRisks: types.ListNull(riskType), Timeouts: base.NullTimeouts(),
	}
	m.fill(x)
	identify(ctx, resp.Identity, m, &resp.Diagnostics)
	remember(ctx, resp.Private, &resp.Diagnostics, x.Container)
	resp.Diagnostics.Append(resp.State.Set(ctx, m)...)
}
