package exposure

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ datasource.DataSourceWithConfigure = (*dataSource)(nil)

type dataSource struct{ base.DataSourceBase }

// NewDataSource returns data.sandbox_port_exposures.
func NewDataSource() datasource.DataSource { return &dataSource{} }

func (d *dataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_port_exposures"
}

func (d *dataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(description string) schema.Attribute {
		return schema.StringAttribute{MarkdownDescription: description, Computed: true}
	}
	number := func(description string) schema.Attribute {
		return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The port exposures on the nodes, of all owners, as the nodes themselves have them; also those whose container is gone. It needs `node_ssh`.",
		Attributes: map[string]schema.Attribute{
			"node_name":    schema.StringAttribute{MarkdownDescription: "Only those on this node. Default those on all nodes that sandboxes may be placed on and that are online.", Optional: true},
			"container_id": schema.StringAttribute{MarkdownDescription: "Only those of this container, by its `id` (the vmid). Default those of all.", Optional: true, Validators: base.ContainerIDValidators()},
			"exposures": schema.ListNestedAttribute{
				MarkdownDescription: "The exposures, by node and name.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"name":         text("Name, `sbx-<vmid>-<port>`."),
					"node_name":    text("Node that it is on."),
					"container_id": text("The vmid that it was made for."),
					"owner":        text("Owner in the marker of the container that has the id now; null without one."),
					"port":         number("Port in the container."),
					"via":          text("`loopback`, `tailscale` or `address`."),
					"address":      text("Address that the node listens on."),
					"host_port":    number("Port on the node."),
					"host":         text("Name or address that it is reached by; null where Tailscale can't say."),
					"target":       text("Where it leads, `address:port`."),
					"state":        text("`listening`, `inactive`, `unpublished`, `stale` (the container is on another node) or `orphaned` (its container is gone, or the id is another's by now)."),
				}},
			},
		},
	}
}

type listModel struct {
	NodeName    types.String `tfsdk:"node_name"`
	ContainerID types.String `tfsdk:"container_id"`
	Exposures   []entryModel `tfsdk:"exposures"`
}

type entryModel struct {
	Name        types.String `tfsdk:"name"`
	NodeName    types.String `tfsdk:"node_name"`
	ContainerID types.String `tfsdk:"container_id"`
	Owner       types.String `tfsdk:"owner"`
	Port        types.Int64  `tfsdk:"port"`
	Via         types.String `tfsdk:"via"`
	Address     types.String `tfsdk:"address"`
	HostPort    types.Int64  `tfsdk:"host_port"`
	Host        types.String `tfsdk:"host"`
	Target      types.String `tfsdk:"target"`
	State       types.String `tfsdk:"state"`
}

func (d *dataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m listModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, limits.Read)
	defer cancel()
	nodes := []string{m.NodeName.ValueString()}
	if m.NodeName.IsNull() {
		var err error
		if nodes, err = manager.NodeNames(ctx); err != nil {
			base.AddError(&resp.Diagnostics, "list", "the nodes", err)
			return
		}
	}
	m.Exposures = []entryModel{}
	for _, node := range nodes {
		list, warnings, err := manager.Exposures(ctx, node)
		base.AddWarnings(&resp.Diagnostics, warnings)
		if err != nil {
			base.AddError(&resp.Diagnostics, "list", "the exposures of node "+node, err)
			return
		}
		for _, x := range list {
			if m.ContainerID.IsNull() || m.ContainerID.ValueString() == strconv.Itoa(x.VMID) {
				m.Exposures = append(m.Exposures, entryOf(x))
			}
		}
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func entryOf(x sandbox.Exposure) entryModel {
	orNull := func(text string) types.String {
		if text == "" {
			return types.StringNull()
		}
		return types.StringValue(text)
	}
	return entryModel{
		Name: types.StringValue(x.Name), NodeName: types.StringValue(x.Container.Node), ContainerID: types.StringValue(strconv.Itoa(x.VMID)),
		Owner: orNull(x.Container.Owner), Port: types.Int64Value(int64(x.Port)), Via: types.StringValue(string(x.Via())),
		Address: types.StringValue(x.Listen.Addr().String()), HostPort: types.Int64Value(int64(x.Listen.Port())), Host: orNull(x.Host),
		Target: types.StringValue(x.Target.String()), State: types.StringValue(x.State),
	}
}
