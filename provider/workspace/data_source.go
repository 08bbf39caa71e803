package workspace

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var _ datasource.DataSourceWithConfigure = (*workspaceDataSource)(nil)

type workspaceDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_workspace, the data source.
func NewDataSource() datasource.DataSource { return &workspaceDataSource{} }

func (d *workspaceDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_workspace"
}

func (d *workspaceDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	resp.Schema = schema.Schema{
		MarkdownDescription: "A workspace and what is wrong with it: whether the volume is missing, with a stranger, attached twice, or in another slot than the records say. " +
			"It compares the records of the holder and of every sandbox of the provider's owner, so it costs a request for each of them.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "Vmid of the holder, as text. This or `name` is required.",
				Optional:            true,
				Computed:            true,
				Validators:          append(base.ContainerIDValidators(), stringvalidator.ExactlyOneOf(path.MatchRoot("id"), path.MatchRoot("name"))),
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the workspace, among those of the provider's owner.",
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"size":         schema.Float64Attribute{MarkdownDescription: "Size in GiB; null of a volume that isn't found.", Computed: true},
			"storage":      text("Storage of the volume; null of one that isn't found."),
			"node_name":    text("Node of the holder."),
			"fork_of":      text("Workspace that it was forked from, by its id; null if none."),
			"volume":       text("Volume id; it changes with every attachment, because a volume is named after the guest that has it. Null if it isn't found."),
			"status":       text("Where the volume is: `detached`, `attached`, `releasing` or `missing`."),
			"container_id": text("Sandbox that has it, by its vmid; null if none."),
			"path":         text("Where that sandbox has it mounted; null if it hasn't."),
			"healthy":      schema.BoolAttribute{MarkdownDescription: "Whether nothing was found.", Computed: true},
			"problems": schema.ListNestedAttribute{
				MarkdownDescription: "What was found.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"check":   text("What it is about: `volume` (missing), `user` (with a stranger, attached twice), `slot` (not where the records say), `holder` or `snapshots`."),
					"summary": text("What is wrong, one sentence."),
					"remedy":  text("What to do about it."),
				}},
			},
		},
	}
}

var problemTypes = map[string]attr.Type{"check": types.StringType, "summary": types.StringType, "remedy": types.StringType}

type dataModel struct {
	ID          types.String  `tfsdk:"id"`
	Name        types.String  `tfsdk:"name"`
	Size        types.Float64 `tfsdk:"size"`
	Storage     types.String  `tfsdk:"storage"`
	NodeName    types.String  `tfsdk:"node_name"`
	ForkOf      types.String  `tfsdk:"fork_of"`
	Volume      types.String  `tfsdk:"volume"`
	Status      types.String  `tfsdk:"status"`
	ContainerID types.String  `tfsdk:"container_id"`
	Path        types.String  `tfsdk:"path"`
	Healthy     types.Bool    `tfsdk:"healthy"`
	Problems    types.List    `tfsdk:"problems"`
}

func (d *workspaceDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m dataModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	var w sandbox.Workspace
	var findings []sandbox.WorkspaceFinding
	var err error
	thing := "workspace " + m.Name.ValueString()
	if value.Known(m.ID) {
		thing = "workspace " + m.ID.ValueString()
		w, findings, err = manager.InspectWorkspace(ctx, number(m.ID))
	} else {
		w, findings, err = manager.InspectWorkspaceByName(ctx, m.Name.ValueString())
	}
	if err != nil {
		base.AddError(&resp.Diagnostics, "read", thing, err)
		return
	}
	m.fill(w, findings)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *dataModel) fill(w sandbox.Workspace, findings []sandbox.WorkspaceFinding) {
	var r Model
	r.fill(w)
	m.ID, m.Name, m.Storage, m.NodeName = r.ID, r.Name, r.Storage, r.NodeName
	m.Status, m.ContainerID, m.Path = r.Status, r.ContainerID, r.Path
	m.Size, m.Volume, m.ForkOf = types.Float64Null(), value.TextOrNull(w.Volume), types.StringNull()
	if w.SizeGiB > 0 {
		m.Size = types.Float64Value(w.SizeGiB)
	}
	if w.ForkOf != 0 {
		m.ForkOf = types.StringValue(strconv.Itoa(w.ForkOf))
	}
	m.Healthy = types.BoolValue(len(findings) == 0)
	items := make([]attr.Value, 0, len(findings))
	for _, f := range findings {
		items = append(items, types.ObjectValueMust(problemTypes, map[string]attr.Value{
			"check": types.StringValue(f.Check), "summary": types.StringValue(f.Summary), "remedy": types.StringValue(f.Remedy),
		}))
	}
	m.Problems = types.ListValueMust(types.ObjectType{AttrTypes: problemTypes}, items)
}
