// Package sshkey is the ephemeral resource sandbox_ssh_key: a key pair that lives as long as a run of Terraform.
package sshkey

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var _ ephemeral.EphemeralResourceWithConfigure = (*sshKey)(nil)

type sshKey struct{ base.EphemeralBase }

// NewEphemeralResource returns ephemeral sandbox_ssh_key.
func NewEphemeralResource() ephemeral.EphemeralResource { return &sshKey{} }

func (k *sshKey) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_ssh_key"
}

func (k *sshKey) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Makes an Ed25519 key pair that exists for one run of Terraform: a new one in each plan and in each apply, kept nowhere. " +
			"Its public half goes into `authorized_keys_wo` of a container, with an `authorized_keys_wo_version` that is raised when a new key is to be let in; its private half to whatever logs in during the same apply. " +
			"For a login that must last longer, give the public key of one that you keep. It needs Terraform 1.10 or OpenTofu 1.11.",
		Attributes: map[string]schema.Attribute{
			"comment": schema.StringAttribute{
				MarkdownDescription: "Comment at the end of the public key. Default `sandbox`.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[[:graph:]]{1,200}$`), "must be printable ASCII without blanks, at most 200 characters")},
			},
			"private_key": schema.StringAttribute{
				MarkdownDescription: "The private key in OpenSSH's PEM form, not encrypted.",
				Computed:            true,
				Sensitive:           true,
			},
			"public_key": schema.StringAttribute{
				MarkdownDescription: "The public key as a line of `authorized_keys`, without a line end.",
				Computed:            true,
			},
			"fingerprint": schema.StringAttribute{
				MarkdownDescription: "SHA-256 fingerprint of the public key, as `ssh-keygen -l` shows it.",
				Computed:            true,
			},
		},
	}
}

type model struct {
	Comment     types.String `tfsdk:"comment"`
	PrivateKey  types.String `tfsdk:"private_key"`
	PublicKey   types.String `tfsdk:"public_key"`
	Fingerprint types.String `tfsdk:"fingerprint"`
}

func (k *sshKey) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	if resp.Diagnostics.HasError() {
		return
	}
	if err := m.generate(); err != nil {
		base.AddError(&resp.Diagnostics, "make", "an SSH key", err)
		return
	}
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

func (m *model) generate() error {
	comment := "sandbox"
	if !m.Comment.IsNull() {
		comment = m.Comment.ValueString()
	}
	public, private, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	block, err := ssh.MarshalPrivateKey(private, comment)
	if err != nil {
		return err
	}
	key, err := ssh.NewPublicKey(public)
	if err != nil {
		return err
	}
	m.PrivateKey = types.StringValue(string(pem.EncodeToMemory(block)))
	m.PublicKey = types.StringValue(strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n") + " " + comment)
	m.Fingerprint = types.StringValue(ssh.FingerprintSHA256(key))
	return nil
}
