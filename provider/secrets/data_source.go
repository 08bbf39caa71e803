package secrets

import (
	"context"
	"fmt"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/secrets"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ datasource.DataSourceWithConfigure = (*dataSource)(nil)

type dataSource struct{ base.DataSourceBase }

// NewDataSource returns data.sandbox_secrets.
func NewDataSource() datasource.DataSource { return &dataSource{} }

func (d *dataSource) Metadata(_ context.Context, req datasource.MetadataRequest, resp *datasource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_secrets"
}

func (d *dataSource) Schema(_ context.Context, _ datasource.SchemaRequest, resp *datasource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Names and fingerprints of secrets, read as the ephemeral resource of the same name reads them, without their values. " +
			"Set `version` beside a write-only argument, and a changed secret is written again.",
		Attributes: map[string]schema.Attribute{
			"environment": schema.ListAttribute{
				MarkdownDescription: describeEnvironment,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          environmentValidators(),
			},
			"file": schema.SingleNestedAttribute{MarkdownDescription: describeFile, Optional: true, Attributes: map[string]schema.Attribute{
				"path":   schema.StringAttribute{MarkdownDescription: describePath, Required: true, Validators: notEmpty()},
				"format": schema.StringAttribute{MarkdownDescription: describeFormat, Optional: true, Validators: formats()},
			}},
			"age": schema.SingleNestedAttribute{MarkdownDescription: describeAge, Optional: true, Attributes: map[string]schema.Attribute{
				"path":          schema.StringAttribute{MarkdownDescription: describePath, Required: true, Validators: notEmpty()},
				"format":        schema.StringAttribute{MarkdownDescription: describeFormat, Optional: true, Validators: formats()},
				"identity_file": schema.StringAttribute{MarkdownDescription: describeIdentity, Required: true, Validators: notEmpty()},
			}},
			"sops": schema.SingleNestedAttribute{MarkdownDescription: describeSops, Optional: true, Attributes: map[string]schema.Attribute{
				"path": schema.StringAttribute{MarkdownDescription: describePath, Required: true, Validators: notEmpty()},
			}},
			"only": schema.ListAttribute{
				MarkdownDescription: describeOnly,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          names(),
			},
			"names":        schema.ListAttribute{MarkdownDescription: describeNames, ElementType: types.StringType, Computed: true},
			"fingerprints": schema.MapAttribute{MarkdownDescription: describePrints, ElementType: types.StringType, Computed: true},
			"version":      schema.Int64Attribute{MarkdownDescription: describeVersion, Computed: true},
		},
	}
}

func (d *dataSource) Read(ctx context.Context, req datasource.ReadRequest, resp *datasource.ReadResponse) {
	var m sources
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if _, ok := m.load(ctx, &resp.Diagnostics); !ok {
		return
	}
	resp.Diagnostics.Append(resp.State.Set(ctx, &m)...)
}

// validName refuses what no environment can hold.
type validName struct{}

func (validName) Description(context.Context) string {
	return "must be the name of an environment variable: letters, digits and _, no digit first"
}

func (v validName) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v validName) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if text := req.ConfigValue; !text.IsNull() && !text.IsUnknown() && !secrets.ValidName(text.ValueString()) {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid name", fmt.Sprintf("%q %s.", text.ValueString(), v.Description(ctx)))
	}
}
