package container

import (
	"context"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var _ datasource.DataSourceWithConfigure = (*containersDataSource)(nil)

type containersDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_containers.
func NewDataSource() datasource.DataSource { return &containersDataSource{} }

func (d *containersDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_containers"
}

func (d *containersDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	filter := func(s string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: s, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The containers that carry an ownership marker. Filters narrow the list; each that is left out lets everything through, apart from `owner`.",
		Attributes: map[string]schema.Attribute{
			"owner":   filter("Only containers of this owner. Default the provider's `owner`; `*` means any."),
			"pool_id": filter("Only members of this Proxmox pool."),
			"tag":     filter("Only containers with this tag."),
			"kind":    filter("Only guests of this kind, as `kind` of the result has it. Default everything but the holders of workspaces."),
			"unfinished": schema.BoolAttribute{
				MarkdownDescription: "`true`: only containers whose creation hasn't ended, or was cut; `false`: only those that are ready. Default both.",
				Optional:            true,
			},
			"expired": schema.BoolAttribute{
				MarkdownDescription: "`true`: only containers whose lease is over by this machine's clock; `false`: all others, those without a lease too. Default both.",
				Optional:            true,
			},
			"expires_before": schema.StringAttribute{
				MarkdownDescription: "Only containers whose lease ends before this time, in RFC 3339 such as `2026-12-01T18:00:00Z`; with `timeadd(plantimestamp(), \"1h\")`, within the next hour. Those without a lease are left out.",
				Optional:            true,
				Validators:          []validator.String{rfc3339()},
			},
			"containers": schema.ListNestedAttribute{
				MarkdownDescription: "The containers, by ascending vmid.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id":           text("The vmid as text, as `sandbox_container` has it."),
					"vmid":         schema.Int64Attribute{MarkdownDescription: "The vmid.", Computed: true},
					"hostname":     text("Hostname."),
					"node_name":    text("Node that the container is on."),
					"pool_id":      text("Proxmox pool; null if none."),
					"owner":        text("Owner in the marker."),
					"claim":        text("Claim in the marker."),
					"kind":         text("What it is for: `container`, `member` (of a pool of sandboxes), `holder` (of a workspace) or `template`."),
					"unfinished":   schema.BoolAttribute{MarkdownDescription: "Whether its creation hasn't ended, or was cut.", Computed: true},
					"expires_at":   text("End of the lease, RFC 3339 in UTC; null without one."),
					"expired":      schema.BoolAttribute{MarkdownDescription: "Whether the lease is over.", Computed: true},
					"keepalive":    schema.BoolAttribute{MarkdownDescription: "Whether it is kept when its lease is over.", Computed: true},
					"status":       text("Power state: `running`, `stopped` or `unknown`."),
					"tags":         schema.ListAttribute{MarkdownDescription: "Tags, without the provider's own.", ElementType: types.StringType, Computed: true},
					"template_id":  schema.Int64Attribute{MarkdownDescription: "Template that it was cloned from; null if it was made from a file.", Computed: true},
					"ipv4_address": text("IPv4 address when it is a fixed one; null otherwise: guests aren't asked."),
				}},
			},
		},
	}
}

var listedTypes = map[string]attr.Type{
	"id": types.StringType, "vmid": types.Int64Type, "hostname": types.StringType, "node_name": types.StringType,
	"pool_id": types.StringType, "owner": types.StringType, "claim": types.StringType, "kind": types.StringType,
	"unfinished": types.BoolType, "status": types.StringType, "tags": types.ListType{ElemType: types.StringType},
	"template_id": types.Int64Type, "ipv4_address": types.StringType,
	"expires_at": types.StringType, "expired": types.BoolType, "keepalive": types.BoolType,
}

type containersModel struct {
	Owner      types.String `tfsdk:"owner"`
	PoolID     types.String `tfsdk:"pool_id"`
	Tag        types.String `tfsdk:"tag"`
	Kind       types.String `tfsdk:"kind"`
	Unfinished types.Bool   `tfsdk:"unfinished"`
	Expired    types.Bool   `tfsdk:"expired"`
	Before     types.String `tfsdk:"expires_before"`
	Containers types.List   `tfsdk:"containers"`
}

func (d *containersDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m containersModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	before, _ := time.Parse(time.RFC3339, m.Before.ValueString()) // the validator has read it; zero where it is left out
	found, err := manager.ListContainers(ctx, sandbox.Filter{
		Owner:      m.Owner.ValueString(),
		PoolID:     m.PoolID.ValueString(),
		Tag:        m.Tag.ValueString(),
		Kind:       sandbox.Kind(m.Kind.ValueString()),
		Unfinished: m.Unfinished.ValueBoolPointer(),
		Expired:    m.Expired.ValueBoolPointer(),

		ExpiresBefore: before,
	})
	if err != nil {
		base.AddError(&resp.Diagnostics, "list", "containers", err)
		return
	}
	items := make([]attr.Value, 0, len(found))
	for _, s := range found {
		items = append(items, listed(s))
	}
	m.Containers = types.ListValueMust(types.ObjectType{AttrTypes: listedTypes}, items)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func listed(s sandbox.Sandbox) types.Object {
	kind, unfinished := types.StringNull(), false
	end := types.StringNull()
	if s.Lease != nil {
		end = types.StringValue(s.ExpiresAt.Format(time.RFC3339))
	}
	if s.Marker != nil {
		kind = value.TextOrNull(string(s.Marker.Kind))
		unfinished = s.Marker.Phase == sandbox.PhaseCreating
	}
	return types.ObjectValueMust(listedTypes, map[string]attr.Value{
		"id":           types.StringValue(strconv.Itoa(s.VMID)),
		"vmid":         types.Int64Value(int64(s.VMID)),
		"hostname":     value.TextOrNull(s.Hostname),
		"node_name":    value.TextOrNull(s.Node),
		"pool_id":      value.TextOrNull(s.PoolID),
		"owner":        value.TextOrNull(s.Owner),
		"claim":        value.TextOrNull(s.Claim),
		"kind":         kind,
		"unfinished":   types.BoolValue(unfinished),
		"expires_at":   end,
		"expired":      types.BoolValue(s.Expired()),
		"keepalive":    types.BoolValue(s.Lease != nil && s.Lease.Keepalive),
		"status":       types.StringValue(string(s.Status)),
		"tags":         value.TextList(s.Tags),
		"template_id":  numberOrNull(s.Source.TemplateID),
		"ipv4_address": addressOrNull(s.IPv4),
	})
}
