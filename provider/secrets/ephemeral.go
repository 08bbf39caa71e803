package secrets

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-log/tflog"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ ephemeral.EphemeralResourceWithConfigure = (*ephemeralSecrets)(nil)

type ephemeralSecrets struct{ base.EphemeralBase }

// NewEphemeralResource returns ephemeral sandbox_secrets.
func NewEphemeralResource() ephemeral.EphemeralResource { return &ephemeralSecrets{} }

func (e *ephemeralSecrets) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_secrets"
}

func (e *ephemeralSecrets) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"values": schema.MapAttribute{
			MarkdownDescription: "The secrets by name, for write-only arguments such as `secrets_wo`. They stand in no plan and no state.",
			ElementType:         types.StringType,
			Computed:            true,
			Sensitive:           true,
		},
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
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Reads secrets for as long as a run of Terraform needs them, from the environment, dotenv or JSON files, age or sops files, and hands them to write-only arguments. " +
			"They never stand in a plan, a state or a log. Sources may be combined; a name that stands in two of them is an error. " +
			"The data source of the same name reads the same and shows names and fingerprints only: its `version` is what to set beside a write-only argument. " +
			"It needs Terraform 1.10 or OpenTofu 1.11.",
		Attributes: attributes,
	}
}

type ephemeralModel struct {
	sources
	Values types.Map `tfsdk:"values"`
}

// Open reads the sources. Nothing is contacted but what sops itself asks for keys, and nothing is left to close.
func (e *ephemeralSecrets) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m ephemeralModel
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	set, ok := m.load(ctx, &resp.Diagnostics)
	if !ok {
		return
	}
	values, diags := types.MapValueFrom(ctx, types.StringType, map[string]string(set))
	resp.Diagnostics.Append(diags...)
	m.Values = values
	tflog.Info(ctx, "secrets were read", map[string]any{"names": set.Names(), "fingerprints": set.Fingerprints()})
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

const (
	describeEnvironment = "Names of variables in the environment of the machine that applies. One that is unset or empty is an error. One of `environment`, `file`, `age` and `sops` is required."
	describeFile        = "A file of names and values. One that others can read warns."
	describeAge         = "A file that age has encrypted (`age --encrypt`), armored or not."
	describeSops        = "A file that sops has encrypted, of any of its formats; the names must be at its top. The command `sops` decrypts it and must be installed."
	describePath        = "Path of the file; a leading `~/` is the home folder."
	describeFormat      = "`dotenv` or `json`; `json` must be one object of texts, numbers and truth values. Default by the file's name: `json` for `.json`, else `dotenv`."
	describeIdentity    = "File with the age identity that can decrypt it, as `age-keygen` writes it; a leading `~/` is the home folder."
	describeOnly        = "The names to take; one that is in no source is an error. Default all."
	describeNames       = "The names, sorted."
	describePrints      = "For each name 8 hexadecimal digits that are others when the value is: enough to see a change, too few to guess the value from."
	describeVersion     = "A number that is another one when a name or a value is, for the version argument beside a write-only one."
)

func notEmpty() []validator.String { return []validator.String{stringvalidator.LengthAtLeast(1)} }

func formats() []validator.String {
	return []validator.String{stringvalidator.OneOf("dotenv", "json")}
}

func names() []validator.List {
	return []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(), listvalidator.ValueStringsAre(validName{})}
}

func environmentValidators() []validator.List {
	return append(names(), listvalidator.AtLeastOneOf(path.MatchRoot("environment"), path.MatchRoot("file"), path.MatchRoot("age"), path.MatchRoot("sops")))
}
