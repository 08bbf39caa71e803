// Package audit is the data source sandbox_audit.
package audit

import (
	"bytes"
	"context"
	"fmt"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/audit/format"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var _ datasource.DataSourceWithConfigure = (*auditDataSource)(nil)

type auditDataSource struct{ base.DataSourceBase }

// NewDataSource returns sandbox_audit.
func NewDataSource() datasource.DataSource { return &auditDataSource{} }

func (d *auditDataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_audit"
}

func quoted[T ~string](list []T) string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = "`" + string(s) + "`"
	}
	return strings.Join(out, ", ")
}

func plain[T ~string](list []T) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = string(s)
	}
	return out
}

func (d *auditDataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	count := func(s string) schema.Attribute { return schema.Int64Attribute{MarkdownDescription: s, Computed: true} }
	list := func(s string) schema.Attribute {
		return schema.ListAttribute{MarkdownDescription: s, ElementType: types.StringType, Computed: true}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "How well a sandbox is closed: some fifty checks of its configuration on the server and of what is inside, each with how it was verified, what was seen and what to do, " +
			"a score and a grade. For `check` blocks and postconditions. It only reads, and waits for nothing: of a container that is stopped or can't be logged in to, the checks of the inside are `unknown`, which never counts as passed. " +
			"The inside is looked at over SSH, as the user of `guest_ssh`; one who isn't root sees less. It finds what was forgotten; what a hostile root hides inside, no look from inside finds. " +
			"Of a template only the configuration is looked at: the audit of its inside was made when it was built, see `sandbox_template`. The guide \"Audit\" lists the checks and the rule of the score.",
		Attributes: map[string]schema.Attribute{
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container or template, by its `id` (the vmid). One that doesn't carry the marker of the provider's owner is not entered.",
				Required:            true, Validators: base.ContainerIDValidators(),
			},
			"host_key": schema.StringAttribute{MarkdownDescription: base.HostKeyDescription, Optional: true, Validators: []validator.String{stringvalidator.LengthAtLeast(1)}},
			"configuration_only": schema.BoolAttribute{
				MarkdownDescription: "Whether only the configuration on the server is looked at; the score is then of that alone. Default `false`.", Optional: true,
			},
			"profile": schema.StringAttribute{
				MarkdownDescription: "What it should be hardened for, of " + quoted(audit.Profiles()) + ". Default: its template's, else `standard`.",
				Optional:            true, Computed: true, Validators: []validator.String{stringvalidator.OneOf(plain(audit.Profiles())...)},
			},
			"allowed_keys": schema.ListAttribute{
				MarkdownDescription: "Public keys that may log in, as in authorized_keys, beside the provider's own. Any other key fails the check `G3.2`. Default: keys are listed in its evidence and not judged.",
				ElementType:         types.StringType, Optional: true,
				Validators: []validator.List{listvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
			},
			"allowed_ports": schema.ListAttribute{
				MarkdownDescription: "TCP ports, beside 22, that may listen on more than the loopback. Default: none.",
				ElementType:         types.Int64Type, Optional: true,
				Validators: []validator.List{listvalidator.ValueInt64sAre(int64validator.Between(1, 65535))},
			},
			"agents": schema.MapAttribute{
				MarkdownDescription: "Versions of agents that must be installed, by name. Default: what the template's manifest says is looked at, whatever it is.",
				ElementType:         types.StringType, Optional: true,
			},
			"id":       text("The `container_id`."),
			"hostname": text("Name of the container."),
			"score":    count("Points, 0 to 100."),
			"grade":    text("Grade, of " + quoted(audit.Grades()) + "."),
			"stage":    text("`template` for a template, else `guest`: some checks ask other things of one than of the other."),
			"passed":   count("How many checks passed."),
			"failed":   list("Ids of the checks that failed, in order."),
			"unknown":  list("Ids of the checks that could not be made."),
			"caps":     list("Ids of the checks that hold the grade down, whatever the score."),
			"findings": schema.ListNestedAttribute{
				MarkdownDescription: "Every check that applies here or doesn't, in order.", Computed: true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"id":          text("Stable id of the check, such as `C1` or `G13.2`."),
					"title":       text("What is so when the check passes."),
					"group":       text("What it belongs to."),
					"severity":    text("`critical`, `high`, `medium` or `low`."),
					"status":      text("`passed`, `failed`, `unknown` or `not_applicable`."),
					"verified_by": text("What was really looked at."),
					"evidence":    list("What was seen, or why it could not be; never a secret."),
					"remedy":      text("What to do; null unless it failed or is unknown."),
				}},
			},
			"report": text("The whole report as JSON, with a `schema_version`: for a file or another program."),
		},
	}
}

var findingTypes = map[string]attr.Type{
	"id": types.StringType, "title": types.StringType, "group": types.StringType, "severity": types.StringType, "status": types.StringType,
	"verified_by": types.StringType, "evidence": types.ListType{ElemType: types.StringType}, "remedy": types.StringType,
}

type model struct {
	ContainerID       types.String `tfsdk:"container_id"`
	HostKey           types.String `tfsdk:"host_key"`
	ConfigurationOnly types.Bool   `tfsdk:"configuration_only"`
	Profile           types.String `tfsdk:"profile"`
	AllowedKeys       types.List   `tfsdk:"allowed_keys"`
	AllowedPorts      types.List   `tfsdk:"allowed_ports"`
	Agents            types.Map    `tfsdk:"agents"`
	ID                types.String `tfsdk:"id"`
	Hostname          types.String `tfsdk:"hostname"`
	Score             types.Int64  `tfsdk:"score"`
	Grade             types.String `tfsdk:"grade"`
	Stage             types.String `tfsdk:"stage"`
	Passed            types.Int64  `tfsdk:"passed"`
	Failed            types.List   `tfsdk:"failed"`
	Unknown           types.List   `tfsdk:"unknown"`
	Caps              types.List   `tfsdk:"caps"`
	Findings          types.List   `tfsdk:"findings"`
	Report            types.String `tfsdk:"report"`
}

func (d *auditDataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := d.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	prior, err := base.Inside(m.ContainerID, m.HostKey)
	if err != nil {
		base.AddError(&resp.Diagnostics, "audit", "container "+m.ContainerID.ValueString(), err)
		return
	}
	spec := sandbox.AuditSpec{Prior: prior, ConfigurationOnly: m.ConfigurationOnly.ValueBool(), Profile: m.Profile.ValueString()}
	if !m.AllowedKeys.IsNull() {
		spec.AllowedKeys = []string{}
		resp.Diagnostics.Append(m.AllowedKeys.ElementsAs(ctx, &spec.AllowedKeys, false)...)
	}
	if !m.AllowedPorts.IsNull() {
		resp.Diagnostics.Append(m.AllowedPorts.ElementsAs(ctx, &spec.Ports, false)...)
	}
	if !m.Agents.IsNull() {
		resp.Diagnostics.Append(m.Agents.ElementsAs(ctx, &spec.Agents, false)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	audited, err := manager.Audit(ctx, spec)
	if err != nil {
		base.AddError(&resp.Diagnostics, "audit", "container "+m.ContainerID.ValueString(), err)
		return
	}
	if err := m.fill(audited); err != nil {
		base.AddError(&resp.Diagnostics, "audit", "container "+m.ContainerID.ValueString(), err)
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

func (m *model) fill(a sandbox.Audited) error {
	m.ID, m.Hostname = m.ContainerID, types.StringValue(a.Hostname)
	m.Profile, m.Stage = types.StringValue(string(a.Profile)), types.StringValue(string(a.Stage))
	m.Score, m.Grade = types.Int64Value(int64(a.Score)), types.StringValue(string(a.Grade))
	m.Passed = types.Int64Value(int64(a.Count(audit.Passed)))
	m.Failed, m.Unknown = value.TextList(a.IDs(audit.Failed)), value.TextList(a.IDs(audit.Unknown))
	var caps []string
	for _, c := range a.Caps {
		caps = append(caps, c.ID)
	}
	m.Caps = value.TextList(caps)
	findings := make([]attr.Value, 0, len(a.Findings))
	for _, f := range a.Findings {
		remedy := types.StringNull()
		if f.Status == audit.Failed || f.Status == audit.Unknown {
			remedy = types.StringValue(f.Remedy)
		}
		findings = append(findings, types.ObjectValueMust(findingTypes, map[string]attr.Value{
			"id": types.StringValue(f.ID), "title": types.StringValue(f.Title), "group": types.StringValue(f.Group),
			"severity": types.StringValue(string(f.Severity)), "status": types.StringValue(string(f.Status)),
			"verified_by": types.StringValue(f.VerifiedBy), "evidence": value.TextList(f.Evidence), "remedy": remedy,
		}))
	}
	m.Findings = types.ListValueMust(types.ObjectType{AttrTypes: findingTypes}, findings)
	var report bytes.Buffer
	if err := format.Write(&report, format.JSON, a.Report, fmt.Sprintf("container %d (%s)", a.VMID, a.Hostname)); err != nil {
		return err
	}
	m.Report = types.StringValue(report.String())
	return nil
}
