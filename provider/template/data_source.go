// Package template is the data source sandbox_template.
package template

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
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

var _ datasource.DataSourceWithConfigure = (*templateDataSource)(nil)

type templateDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_template.
func NewDataSource() datasource.DataSource { return &templateDataSource{} }

func (d *templateDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_template"
}

func (d *templateDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	nonEmpty := []validator.String{stringvalidator.LengthAtLeast(1)}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A container template, by name or tags, with what its marker says of how it was built: the Packer plugin's builder writes it there. " +
			"With `newest = true`, a sandbox follows each rebuild of its template (`on_template_change` says how). Templates that are still being built are left out. " +
			"Each template that the lists don't rule out costs one request. What isn't known of a template that was made by hand is null.",
		Attributes: map[string]schema.Attribute{
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the template (its hostname). At least one of `name`, `tags` and `owner` is required.", Optional: true, Computed: true,
				Validators: append(nonEmpty, stringvalidator.AtLeastOneOf(path.MatchRoot("name"), path.MatchRoot("tags"), path.MatchRoot("owner"))),
			},
			"tags": schema.SetAttribute{
				MarkdownDescription: "Tags that it must all have; upper and lower case are the same. All of its tags are in `all_tags`.", Optional: true, CustomType: value.NewTagsType(), ElementType: types.StringType,
				Validators: []validator.Set{setvalidator.SizeAtLeast(1), setvalidator.ValueStringsAre(nonEmpty...)},
			},
			"owner": schema.StringAttribute{
				MarkdownDescription: "Owner in the template's marker. Default: any, also a template that carries no marker.", Optional: true, Computed: true, Validators: nonEmpty,
			},
			"node_name": schema.StringAttribute{
				MarkdownDescription: "Node that it must be on. Default: any.", Optional: true, Computed: true, Validators: nonEmpty,
			},
			"newest": schema.BoolAttribute{
				MarkdownDescription: "Whether the newest is taken when several match, by the time in their markers; those without a time come last. Default `false`: several are an error.", Optional: true,
			},
			"id":              schema.Int64Attribute{MarkdownDescription: "Id of the template, for `template_id`.", Computed: true},
			"all_tags":        schema.SetAttribute{MarkdownDescription: "All of its tags.", ElementType: types.StringType, Computed: true},
			"description":     text("Its description, without the marker."),
			"build_id":        text("Build that it is: sandboxes remember it, and show in `template_current` whether it still is."),
			"built_at":        text("When it was built (RFC 3339, UTC)."),
			"os":              text("Distribution and version, such as `debian:12`."),
			"source":          text("What it was built from."),
			"profile":         text("What it was hardened for: `strict`, `standard` or `docker`."),
			"grade":           text("Grade of its audit at the build, `A+` to `F`."),
			"score":           schema.Int64Attribute{MarkdownDescription: "Points of that audit, 0 to 100.", Computed: true},
			"agents":          schema.MapAttribute{MarkdownDescription: "Versions of the agents in it, by name.", ElementType: types.StringType, Computed: true},
			"manifest_sha256": text("SHA-256 of `/etc/sandbox/template.json` in it. `sandbox_audit` compares a sandbox's with it."),
			"storage":         text("Storage of its root disk."),
			"disk":            schema.Float64Attribute{MarkdownDescription: "Size of its root disk in GiB: the least that a sandbox can have.", Computed: true},
			"unprivileged":    schema.BoolAttribute{MarkdownDescription: "Whether its clones are unprivileged.", Computed: true},
			"features":        schema.ListAttribute{MarkdownDescription: "Features that its clones inherit, such as `nesting=1`.", ElementType: types.StringType, Computed: true},
		},
	}
}

type model struct {
	Name           types.String  `tfsdk:"name"`
	Tags           value.Tags    `tfsdk:"tags"`
	Owner          types.String  `tfsdk:"owner"`
	NodeName       types.String  `tfsdk:"node_name"`
	Newest         types.Bool    `tfsdk:"newest"`
	ID             types.Int64   `tfsdk:"id"`
	AllTags        types.Set     `tfsdk:"all_tags"`
	Description    types.String  `tfsdk:"description"`
	BuildID        types.String  `tfsdk:"build_id"`
	BuiltAt        types.String  `tfsdk:"built_at"`
	OS             types.String  `tfsdk:"os"`
	Source         types.String  `tfsdk:"source"`
	Profile        types.String  `tfsdk:"profile"`
	Grade          types.String  `tfsdk:"grade"`
	Score          types.Int64   `tfsdk:"score"`
	Agents         types.Map     `tfsdk:"agents"`
	ManifestSHA256 types.String  `tfsdk:"manifest_sha256"`
	Storage        types.String  `tfsdk:"storage"`
	Disk           types.Float64 `tfsdk:"disk"`
	Unprivileged   types.Bool    `tfsdk:"unprivileged"`
	Features       types.List    `tfsdk:"features"`
}

func (d *templateDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	filter := sandbox.TemplateFilter{Name: m.Name.ValueString(), Owner: m.Owner.ValueString(), Node: m.NodeName.ValueString()}
	if !m.Tags.IsNull() {
		resp.Diagnostics.Append(m.Tags.ElementsAs(ctx, &filter.Tags, false)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	t, err := manager.FindTemplate(ctx, filter, m.Newest.ValueBool())
	if err != nil {
		base.AddError(&resp.Diagnostics, "find", "the template", err)
		return
	}
	m.fill(t)
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *model) fill(t sandbox.Template) {
	m.ID, m.Name, m.NodeName = types.Int64Value(int64(t.VMID)), types.StringValue(t.Name), types.StringValue(t.Node)
	m.Description, m.Storage, m.Disk = types.StringValue(t.Text), value.TextOrNull(t.Storage), types.Float64Value(t.DiskGiB)
	m.Unprivileged, m.Features = types.BoolValue(t.Unprivileged), types.ListValueMust(types.StringType, values(t.Features))
	m.AllTags = types.SetValueMust(types.StringType, values(t.Tags))
	m.Owner = types.StringNull()
	if t.Marker != nil && t.Marker.VMID == t.VMID {
		m.Owner = types.StringValue(t.Marker.Owner)
	}
	m.Agents, m.Score, m.BuiltAt = types.MapNull(types.StringType), types.Int64Null(), types.StringNull()
	var s sandbox.TemplateSummary
	if t.Summary != nil {
		s = *t.Summary
		agents := make(map[string]attr.Value, len(s.Agents))
		for name, version := range s.Agents {
			agents[name] = types.StringValue(version)
		}
		m.Agents = types.MapValueMust(types.StringType, agents)
	}
	if s.Grade != "" {
		m.Score = types.Int64Value(int64(s.Score))
	}
	if !s.BuiltAt.IsZero() {
		m.BuiltAt = types.StringValue(s.BuiltAt.UTC().Format(time.RFC3339))
	}
	m.BuildID, m.OS, m.Source, m.Profile = value.TextOrNull(s.BuildID), value.TextOrNull(s.OS), value.TextOrNull(s.Source), value.TextOrNull(s.Profile)
	m.Grade, m.ManifestSHA256 = value.TextOrNull(s.Grade), value.TextOrNull(s.Digest)
}

func values(list []string) []attr.Value {
	out := make([]attr.Value, len(list))
	for i, s := range list {
		out[i] = types.StringValue(s)
	}
	return out
}
