package snapshot

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var _ datasource.DataSourceWithConfigure = (*snapshotsDataSource)(nil)

type snapshotsDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_snapshots.
func NewDataSource() datasource.DataSource { return &snapshotsDataSource{} }

func (d *snapshotsDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_snapshots"
}

func (d *snapshotsDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	resp.Schema = schema.Schema{
		MarkdownDescription: "The snapshots of a container, oldest first, whoever took them. It costs one request per container.",
		Attributes: map[string]schema.Attribute{
			"id": text("Same as `container_id`."),
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container, by its `id` (the vmid). It may be anybody's that the token may see.",
				Required:            true,
				Validators:          base.ContainerIDValidators(),
			},
			"names": schema.ListAttribute{
				MarkdownDescription: "The snapshots' names.",
				ElementType:         types.StringType,
				Computed:            true,
			},
			"parent": text("Name of the snapshot that the present state comes from: the one that was taken last, or that was rolled back to; null without snapshots."),
			"snapshots": schema.ListNestedAttribute{
				MarkdownDescription: "The snapshots.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":        text("Name."),
					"description": text("Notes; null when it has none."),
					"created_at":  text("When it was taken, in RFC 3339, by the server's clock."),
					"parent":      text("Name of the snapshot before it; null for the first."),
				}},
			},
		},
	}
}

var snapshotTypes = map[string]attr.Type{
	"name": types.StringType, "description": types.StringType, "created_at": types.StringType, "parent": types.StringType,
}

type listModel struct {
	ID          types.String `tfsdk:"id"`
	ContainerID types.String `tfsdk:"container_id"`
	Names       types.List   `tfsdk:"names"`
	Parent      types.String `tfsdk:"parent"`
	Snapshots   types.List   `tfsdk:"snapshots"`
}

func (d *snapshotsDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m listModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	_, vmid, err := sandbox.ParseContainerID(m.ContainerID.ValueString())
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	list, err := manager.ListSnapshots(ctx, vmid, "")
	if err != nil {
		base.AddError(&resp.Diagnostics, "list", "the snapshots of container "+m.ContainerID.ValueString(), err)
		return
	}
	m.ID, m.Parent = m.ContainerID, value.TextOrNull(list.Parent)
	names, snapshots := []attr.Value{}, []attr.Value{}
	for _, s := range list.Snapshots {
		names = append(names, types.StringValue(s.Name))
		snapshots = append(snapshots, types.ObjectValueMust(snapshotTypes, map[string]attr.Value{
			"name": types.StringValue(s.Name), "description": value.TextOrNull(s.Description),
			"created_at": timeOrNull(s.Created), "parent": value.TextOrNull(s.Parent),
		}))
	}
	m.Names = types.ListValueMust(types.StringType, names)
	m.Snapshots = types.ListValueMust(types.ObjectType{AttrTypes: snapshotTypes}, snapshots)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}
