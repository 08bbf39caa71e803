// Package datacenterfirewall is the resource sandbox_datacenter_firewall: the switch without which no firewall rule of a
// cluster counts.
package datacenterfirewall

import (
	"context"
	"net/netip"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/identityschema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/tfsdk"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ resource.ResourceWithConfigure   = (*switchResource)(nil)
	_ resource.ResourceWithIdentity    = (*switchResource)(nil)
	_ resource.ResourceWithImportState = (*switchResource)(nil)
	_ resource.ResourceWithModifyPlan  = (*switchResource)(nil)
)

const (
	id      = "datacenter"
	keep    = "keep"
	disable = "disable"
)

var limits = base.Timeouts{Create: 10 * time.Minute, Read: 5 * time.Minute, Update: 10 * time.Minute, Delete: 10 * time.Minute}

type switchResource struct{ base.ResourceBase }

// NewResource returns sandbox_datacenter_firewall.
func NewResource() resource.Resource { return &switchResource{} }

// Model is sandbox_datacenter_firewall.
type Model struct {
	ID            types.String   `tfsdk:"id"`
	Enabled       types.Bool     `tfsdk:"enabled"`
	SourceAddress types.String   `tfsdk:"source_address"`
	AcceptGuests  types.Set      `tfsdk:"accept_guests"`
	OnDestroy     types.String   `tfsdk:"on_destroy"`
	Timeouts      timeouts.Value `tfsdk:"timeouts"`
}

const thing = "the datacenter's firewall"

func (r *switchResource) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_datacenter_firewall"
}

func (r *switchResource) IdentitySchema(_ context.Context, _ resource.IdentitySchemaRequest, resp *resource.IdentitySchemaResponse) {
	resp.IdentitySchema = identityschema.Schema{
		Attributes: map[string]identityschema.Attribute{
			"id": identityschema.StringAttribute{Description: "Always \"datacenter\".", RequiredForImport: true},
		},
	}
}

func identify(ctx context.Context, identity *tfsdk.ResourceIdentity, diags *diag.Diagnostics) {
	if identity != nil {
		diags.Append(identity.SetAttribute(ctx, path.Root("id"), id)...)
	}
}

func (r *switchResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Turns the datacenter's firewall on, without which no rule of a guest or node counts, and keeps it on: somebody turning it off is drift. There is one per cluster.\n\n" +
			"The switch concerns everybody: nodes drop what no rule, local network or `management` set lets in, and every guest whose own firewall is on begins to be filtered. " +
			"So it is turned only when it is shown that the address this provider comes from keeps its access to every node, and that no guest loses any: sandboxes of this owner must keep SSH from the management networks, guests of others must lose nothing. " +
			"Whatever can't be read isn't shown. The data source `sandbox_preflight` prints beforehand what would change.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "Always `datacenter`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"enabled": schema.BoolAttribute{
				MarkdownDescription: "Whether the firewall is on, as the last refresh saw it.",
				Computed:            true,
			},
			"source_address": schema.StringAttribute{
				MarkdownDescription: "Address that the nodes see this provider come from, where a proxy or address translation stands in between. Default the address that this machine reaches the endpoint from. A change touches nothing.",
				Optional:            true,
				Validators:          []validator.String{address{}},
			},
			"accept_guests": schema.SetAttribute{
				MarkdownDescription: "Vmids of guests of others that may begin to be filtered. Default none. A change touches nothing.",
				ElementType:         types.Int64Type,
				Optional:            true,
			},
			"on_destroy": schema.StringAttribute{
				MarkdownDescription: "What a destroy does: `keep` (default) leaves the firewall on, `disable` turns it off, unless a guest is filtered by it. A change touches nothing.",
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(keep),
				Validators:          []validator.String{stringvalidator.OneOf(keep, disable)},
			},
			"timeouts": limits.Attribute(),
		},
	}
}

type address struct{}

func (address) Description(context.Context) string             { return "must be an IPv4 or IPv6 address" }
func (a address) MarkdownDescription(c context.Context) string { return a.Description(c) }

func (a address) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if req.ConfigValue.IsNull() || req.ConfigValue.IsUnknown() {
		return
	}
	if _, err := netip.ParseAddr(req.ConfigValue.ValueString()); err != nil {
		resp.Diagnostics.AddAttributeError(req.Path, "Not an address", req.Path.String()+" "+a.Description(ctx)+", got "+req.ConfigValue.ValueString()+".")
	}
}

func (m *Model) spec(ctx context.Context, diags *diag.Diagnostics) sandbox.DatacenterSpec {
	var s sandbox.DatacenterSpec
	if !m.SourceAddress.IsNull() && !m.SourceAddress.IsUnknown() {
		s.Source, _ = netip.ParseAddr(m.SourceAddress.ValueString())
	}
	if !m.AcceptGuests.IsNull() && !m.AcceptGuests.IsUnknown() {
		var ids []int64
		diags.Append(m.AcceptGuests.ElementsAs(ctx, &ids, false)...)
		for _, vmid := range ids {
			s.AcceptGuests = append(s.AcceptGuests, int(vmid))
		}
	}
	return s
}

// ModifyPlan says beforehand who would lose access. It is a warning: what the same apply does before it may be the cure.
func (r *switchResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	wasOn := false
	if !req.State.Raw.IsNull() {
		var state Model
		resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
		wasOn = state.Enabled.ValueBool()
	}
	plan.Enabled = types.BoolValue(true)
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
	if resp.Diagnostics.HasError() || wasOn || !r.Data.Known() || plan.SourceAddress.IsUnknown() || plan.AcceptGuests.IsUnknown() {
		return
	}
	r.Data.Manager.ExpectDatacenterFirewall()
	limited, cancel := limits.ForRead(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	state, err := r.Data.Manager.ReadDatacenter(limited)
	if err != nil {
		base.AddError(&resp.Diagnostics, "read", thing, err)
		return
	}
	if state.Enabled {
		return
	}
	objections, err := r.Data.Manager.Objections(limited, plan.spec(ctx, &resp.Diagnostics), state)
	if err != nil {
		base.AddError(&resp.Diagnostics, "check", thing, err)
		return
	}
	if len(objections) > 0 {
		resp.Diagnostics.AddWarning("Somebody would be locked out",
			"The apply will refuse to turn the firewall on unless these are seen to by then:\n  - "+strings.Join(objections, "\n  - ")+
				"\n\nGuests of others that may begin to be filtered are named in accept_guests.")
	}
}

func (r *switchResource) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limited, cancel := limits.ForCreate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	if r.enable(limited, &plan, "turn on", &resp.Diagnostics) {
		identify(ctx, resp.Identity, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

// enable turns the switch on, and says whether it is.
func (r *switchResource) enable(ctx context.Context, plan *Model, verb string, diags *diag.Diagnostics) bool {
	manager, ok := r.Manager(diags)
	if !ok || diags.HasError() {
		return false
	}
	spec := plan.spec(ctx, diags)
	if diags.HasError() {
		return false
	}
	if _, err := manager.EnableDatacenter(ctx, spec); err != nil {
		base.AddError(diags, verb, thing, err)
		return false
	}
	plan.ID, plan.Enabled = types.StringValue(id), types.BoolValue(true)
	return true
}

func (r *switchResource) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	identify(ctx, resp.Identity, &resp.Diagnostics)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	limited, cancel := limits.ForRead(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	now, err := manager.ReadDatacenter(limited)
	if err != nil {
		base.AddError(&resp.Diagnostics, "read", thing, err)
		return
	}
	state.ID, state.Enabled = types.StringValue(id), types.BoolValue(now.Enabled)
	resp.Diagnostics.Append(resp.State.Set(ctx, &state)...)
}

func (r *switchResource) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	limited, cancel := limits.ForUpdate(ctx, plan.Timeouts, &resp.Diagnostics)
	defer cancel()
	if r.enable(limited, &plan, "turn on", &resp.Diagnostics) {
		identify(ctx, resp.Identity, &resp.Diagnostics)
		resp.Diagnostics.Append(resp.State.Set(ctx, &plan)...)
	}
}

func (r *switchResource) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	var state Model
	resp.Diagnostics.Append(req.State.Get(ctx, &state)...)
	manager, ok := r.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	if state.OnDestroy.ValueString() != disable {
		resp.Diagnostics.AddWarning("The datacenter's firewall stays on",
			`Sandboxes and guests of others may rely on it, so a destroy leaves it on. To turn it off: on_destroy = "disable" before the destroy, or on a node: pvesh set /cluster/firewall/options --enable 0`)
		return
	}
	limited, cancel := limits.ForDelete(ctx, state.Timeouts, &resp.Diagnostics)
	defer cancel()
	if err := manager.DisableDatacenter(limited); err != nil {
		base.AddError(&resp.Diagnostics, "turn off", thing, err)
	}
}

// ImportState takes "datacenter": there is one.
func (r *switchResource) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	wanted := req.ID
	if wanted == "" && req.Identity != nil {
		var v types.String
		resp.Diagnostics.Append(req.Identity.GetAttribute(ctx, path.Root("id"), &v)...)
		wanted = v.ValueString()
	}
	if wanted != id {
		resp.Diagnostics.AddError("Invalid import id", `There is one firewall per cluster; its id is "datacenter".`)
		return
	}
	identify(ctx, resp.Identity, &resp.Diagnostics)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("id"), id)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("on_destroy"), keep)...)
	resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root("timeouts"), base.NullTimeouts())...)
}
