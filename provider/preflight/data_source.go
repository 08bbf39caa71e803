// Package preflight is the data source sandbox_preflight.
package preflight

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ datasource.DataSourceWithConfigure = (*preflightDataSource)(nil)

type preflightDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_preflight.
func NewDataSource() datasource.DataSource { return &preflightDataSource{} }

func (d *preflightDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_preflight"
}

func names(features []preflight.Feature) []string {
	out := make([]string, len(features))
	for i, f := range features {
		out[i] = string(f)
	}
	return out
}

func quoted(list []string) string { return "`" + strings.Join(list, "`, `") + "`" }

func (d *preflightDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	nameOf := func(what, fallback string) schema.Attribute {
		return schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("%s Default: %s.", what, fallback), Optional: true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(1)},
		}
	}
	attributes := map[string]schema.Attribute{
		"features": schema.SetAttribute{
			MarkdownDescription: fmt.Sprintf("Parts of the provider that shall work: their privileges are looked at and planned for. Of %s. Default: %s.",
				quoted(names(preflight.Features())), quoted(names(preflight.DefaultFeatures()))),
			ElementType: types.StringType, Optional: true,
			Validators: []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.ValueStringsAre(stringvalidator.OneOf(names(preflight.Features())...))},
		},
		"pool_id": nameOf("Proxmox pool that the containers are in.", "the provider's `pool_id`, else none, and rights on all guests (`/vms`) are looked for"),
		"template_id": schema.Int64Attribute{
			MarkdownDescription: "Template that is cloned. Default: the provider's `template_id`.", Optional: true,
			Validators: []validator.Int64{int64validator.Between(sandbox.MinVMID, sandbox.MaxVMID)},
		},
		"storage":        nameOf("Storage of root disks.", "the provider's `storage`; that of the template's disk is looked at too, for linked clones"),
		"backup_storage": nameOf("Storage of backups.", "every storage that takes them"),
		"file_storage":   nameOf("Storage of template files.", "every storage that takes them"),
		"bridge":         nameOf("Bridge of the containers.", "the provider's `bridge`"),
		"role_prefix": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("What the names of the planned roles begin with. Default `%s`.", preflight.DefaultPrefix), Optional: true,
			Validators: []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{0,30}$`), "must be letters, digits, \"-\" and \"_\", a letter first")},
		},
	}
	for name, attribute := range computed() {
		attributes[name] = attribute
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Whether the server is ready for sandboxes and the provider's token may do what it has to: version, quorum, nodes with their bridges and what their storages can do, the datacenter's firewall, clocks, " +
			"who the token is, and every privilege that the wanted features need, on which path, and whether it is there. What is missing is a warning at every plan, with the `pveum` commands that grant it; " +
			"a `check` or `postcondition` on `ok` makes it an error. It only reads, and needs no privilege itself: what it may not see it says. For Proxmox VE 8 and 9.",
		Attributes: attributes,
	}
}

type model struct {
	Features      types.Set    `tfsdk:"features"`
	PoolID        types.String `tfsdk:"pool_id"`
	TemplateID    types.Int64  `tfsdk:"template_id"`
	Storage       types.String `tfsdk:"storage"`
	BackupStorage types.String `tfsdk:"backup_storage"`
	FileStorage   types.String `tfsdk:"file_storage"`
	Bridge        types.String `tfsdk:"bridge"`
	RolePrefix    types.String `tfsdk:"role_prefix"`

	ID              types.String  `tfsdk:"id"`
	OK              types.Bool    `tfsdk:"ok"`
	Version         types.String  `tfsdk:"version"`
	Quorate         types.Bool    `tfsdk:"quorate"`
	ClockDifference types.Float64 `tfsdk:"clock_difference"`
	Nodes           types.Map     `tfsdk:"nodes"`
	Firewall        types.Object  `tfsdk:"datacenter_firewall"`
	Identity        types.Object  `tfsdk:"identity"`
	Privileges      types.List    `tfsdk:"privileges"`
	Missing         types.List    `tfsdk:"missing"`
	Roles           types.Map     `tfsdk:"roles"`
	Commands        types.List    `tfsdk:"commands"`
	Findings        types.List    `tfsdk:"findings"`
}

func (d *preflightDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	spec := sandbox.PreflightSpec{
		PoolID: m.PoolID.ValueString(), TemplateID: int(m.TemplateID.ValueInt64()), Storage: m.Storage.ValueString(),
		BackupStorage: m.BackupStorage.ValueString(), FileStorage: m.FileStorage.ValueString(), Bridge: m.Bridge.ValueString(),
		RolePrefix: m.RolePrefix.ValueString(),
	}
	var features []string
	if !m.Features.IsNull() {
		resp.Diagnostics.Append(m.Features.ElementsAs(ctx, &features, false)...)
	}
	for _, f := range preflight.Features() { // in their own order: a set has none
		for _, name := range features {
			if string(f) == name {
				spec.Features = append(spec.Features, f)
			}
		}
	}
	seen, err := manager.Preflight(ctx, spec)
	if err != nil {
		base.AddError(&resp.Diagnostics, "look at", "the server", err)
		return
	}
	addFindings(&resp.Diagnostics, seen)
	m.fill(seen)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// addFindings shows each finding. They are warnings: a data source that fails could not be looked at.
func addFindings(diags *diag.Diagnostics, seen sandbox.Preflight) {
	for _, f := range seen.Findings {
		diags.AddWarning(f.Summary, f.Remedy)
	}
}
