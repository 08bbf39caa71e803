// Package secrets is the ephemeral resource sandbox_secrets, which reads secrets for write-only arguments, and the data
// source of the same name, which reads the same and shows only names and fingerprints.
package secrets

import (
	"context"
	"io/fs"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/secrets"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// sources are what both have in common.
type sources struct {
	Environment types.List  `tfsdk:"environment"`
	File        *fileModel  `tfsdk:"file"`
	Age         *ageModel   `tfsdk:"age"`
	Sops        *sopsModel  `tfsdk:"sops"`
	Only        types.List  `tfsdk:"only"`
	Names       types.List  `tfsdk:"names"`
	Prints      types.Map   `tfsdk:"fingerprints"`
	Version     types.Int64 `tfsdk:"version"`
}

type fileModel struct {
	Path   types.String `tfsdk:"path"`
	Format types.String `tfsdk:"format"`
}

type ageModel struct {
	Path         types.String `tfsdk:"path"`
	Format       types.String `tfsdk:"format"`
	IdentityFile types.String `tfsdk:"identity_file"`
}

type sopsModel struct {
	Path types.String `tfsdk:"path"`
}

// load reads the sources and fills what may be shown.
func (m *sources) load(ctx context.Context, diags *diag.Diagnostics) (secrets.Set, bool) {
	var environment, only []string
	if !m.Environment.IsNull() {
		diags.Append(m.Environment.ElementsAs(ctx, &environment, false)...)
	}
	if !m.Only.IsNull() {
		diags.Append(m.Only.ElementsAs(ctx, &only, false)...)
	}
	var from []secrets.Source
	if len(environment) > 0 {
		from = append(from, secrets.Environment{Variables: environment})
	}
	if f := m.File; f != nil {
		from = append(from, secrets.File{Path: f.Path.ValueString(), Format: secrets.Format(f.Format.ValueString()), Open: func(mode fs.FileMode) {
			if secrets.ReadableByOthers(mode) {
				diags.AddAttributeWarning(base.AttributePath("file.path"), "Others can read the secrets",
					f.Path.ValueString()+" can be read by other users of this machine. Run: chmod 600 "+f.Path.ValueString())
			}
		}})
	}
	if a := m.Age; a != nil {
		from = append(from, secrets.Age{Path: a.Path.ValueString(), Format: secrets.Format(a.Format.ValueString()), IdentityFile: a.IdentityFile.ValueString()})
	}
	if s := m.Sops; s != nil {
		from = append(from, secrets.Sops{Path: s.Path.ValueString()})
	}
	if diags.HasError() {
		return nil, false
	}
	set, err := secrets.Load(ctx, from, only)
	if err != nil {
		base.AddError(diags, "read", "secrets", err)
		return nil, false
	}
	var d diag.Diagnostics
	m.Names, d = types.ListValueFrom(ctx, types.StringType, set.Names())
	diags.Append(d...)
	m.Prints, d = types.MapValueFrom(ctx, types.StringType, set.Fingerprints())
	diags.Append(d...)
	m.Version = types.Int64Value(set.Version())
	return set, !diags.HasError()
}
