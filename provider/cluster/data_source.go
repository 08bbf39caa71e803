// Package cluster is the data source sandbox_cluster.
package cluster

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ datasource.DataSourceWithConfigure = (*clusterDataSource)(nil)

type clusterDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_cluster.
func NewDataSource() datasource.DataSource { return &clusterDataSource{} }

func (d *clusterDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_cluster"
}

func (d *clusterDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	flag := func(s string) schema.Attribute { return schema.BoolAttribute{MarkdownDescription: s, Computed: true} }
	whole := func(s string) schema.Attribute { return schema.Int64Attribute{MarkdownDescription: s, Computed: true} }
	number := func(s string) schema.Attribute {
		return schema.Float64Attribute{MarkdownDescription: s, Computed: true}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "The cluster behind the provider's endpoint: its nodes, whether it has quorum, and what it can hold. What the token may not see is missing.",
		Attributes: map[string]schema.Attribute{
			"id":      text("Name of the cluster, or of the node that is in none."),
			"name":    text("Name of the cluster; null for a node that is in none."),
			"quorate": flag("Whether enough nodes are up for the cluster to accept changes; always true for a node that is in no cluster."),
			"version": text("Version of Proxmox VE, such as `9.2.11`."),
			"nodes": schema.MapNestedAttribute{
				MarkdownDescription: "The nodes, by name.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"online":             flag("Whether the node is up. Of one that isn't, the rest is 0."),
					"cpus":               whole("CPU threads."),
					"cpu_used":           number("Share of them in use, 0 to 1."),
					"memory":             whole("Memory in MiB."),
					"memory_used":        whole("Memory in use, in MiB."),
					"uptime":             whole("Seconds since the node's boot."),
					"containers":         whole("Containers on the node, of any owner, without templates."),
					"running_containers": whole("Those that run."),
					"storages": schema.MapNestedAttribute{
						MarkdownDescription: "The node's storages, by name.",
						Computed:            true,
						NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
							"type":    text("Type, such as `dir`, `lvmthin`, `zfspool` or `btrfs`."),
							"shared":  flag("Whether other nodes see the same content."),
							"active":  flag("Whether it can be used now."),
							"content": schema.ListAttribute{MarkdownDescription: "What may be stored there, such as `rootdir` (root disks of containers) and `vztmpl` (template files).", ElementType: types.StringType, Computed: true},
							"size":    number("Size in GiB."),
							"used":    number("Space in use, in GiB."),
						}},
					},
				}},
			},
		},
	}
}

var storageTypes = map[string]attr.Type{
	"type": types.StringType, "shared": types.BoolType, "active": types.BoolType,
	"content": types.ListType{ElemType: types.StringType}, "size": types.Float64Type, "used": types.Float64Type,
}

var nodeTypes = map[string]attr.Type{
	"online": types.BoolType, "cpus": types.Int64Type, "cpu_used": types.Float64Type,
	"memory": types.Int64Type, "memory_used": types.Int64Type, "uptime": types.Int64Type,
	"containers": types.Int64Type, "running_containers": types.Int64Type,
	"storages": types.MapType{ElemType: types.ObjectType{AttrTypes: storageTypes}},
}

type model struct {
	ID      types.String `tfsdk:"id"`
	Name    types.String `tfsdk:"name"`
	Quorate types.Bool   `tfsdk:"quorate"`
	Version types.String `tfsdk:"version"`
	Nodes   types.Map    `tfsdk:"nodes"`
}

func (d *clusterDataSource) Read(ctx context.Context, _ datasource.ReadRequest, resp *datasource.ReadResponse) {
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok {
		return
	}
	state, err := manager.Cluster(ctx)
	if err != nil {
		base.AddError(&resp.Diagnostics, "read", "the cluster", err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, fromState(state))...)
}

func fromState(c sandbox.ClusterState) *model {
	m := &model{
		ID:      types.StringValue(c.Name),
		Name:    types.StringValue(c.Name),
		Quorate: types.BoolValue(c.Quorate),
		Version: types.StringValue(c.Version),
	}
	if c.Name == "" {
		m.Name = types.StringNull()
		for _, n := range c.Nodes {
			m.ID = types.StringValue(n.Name)
		}
	}
	nodes := make(map[string]attr.Value, len(c.Nodes))
	for _, n := range c.Nodes {
		nodes[n.Name] = nodeObject(n)
	}
	m.Nodes = types.MapValueMust(types.ObjectType{AttrTypes: nodeTypes}, nodes)
	return m
}

func nodeObject(n sandbox.NodeState) types.Object {
	storages := make(map[string]attr.Value, len(n.Storages))
	for _, s := range n.Storages {
		content := make([]attr.Value, 0, len(s.Content))
		for _, kind := range s.Content {
			content = append(content, types.StringValue(kind))
		}
		storages[s.Name] = types.ObjectValueMust(storageTypes, map[string]attr.Value{
			"type":    types.StringValue(s.Type),
			"shared":  types.BoolValue(s.Shared),
			"active":  types.BoolValue(s.Active),
			"content": types.ListValueMust(types.StringType, content),
			"size":    types.Float64Value(s.TotalGiB),
			"used":    types.Float64Value(s.UsedGiB),
		})
	}
	return types.ObjectValueMust(nodeTypes, map[string]attr.Value{
		"online":             types.BoolValue(n.Online),
		"cpus":               types.Int64Value(int64(n.CPUs)),
		"cpu_used":           types.Float64Value(n.CPUUsed),
		"memory":             types.Int64Value(n.MemoryMiB),
		"memory_used":        types.Int64Value(n.MemoryUsedMiB),
		"uptime":             types.Int64Value(int64(n.Uptime.Seconds())),
		"containers":         types.Int64Value(int64(n.Containers)),
		"running_containers": types.Int64Value(int64(n.RunningContainers)),
		"storages":           types.MapValueMust(types.ObjectType{AttrTypes: storageTypes}, storages),
	})
}
