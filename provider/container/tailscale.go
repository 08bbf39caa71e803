package container

import (
	"context"
	"fmt"
	"regexp"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// tailscaleTypes is the shape of the attribute tailscale.
var tailscaleTypes = map[string]attr.Type{
	"auth_key_wo": types.StringType, "auth_key_wo_version": types.Int64Type, "hostname": types.StringType, "tags": types.ListType{ElemType: types.StringType},
}

type tailscaleModel struct {
	AuthKeyWO        types.String `tfsdk:"auth_key_wo"`
	AuthKeyWOVersion types.Int64  `tfsdk:"auth_key_wo_version"`
	Hostname         types.String `tfsdk:"hostname"`
	Tags             types.List   `tfsdk:"tags"`
}

func tailscaleAttribute() schema.Attribute {
	const joins = " A change has the container join anew, with the key of that apply."
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Has the container join a tailnet when it is made, so that it can be reached by its name there. `tailscale` must be installed in the template, and `network.mode` must let it out. " +
			"Where the container has no `/dev/net/tun`, it joins by userspace networking. Taken out, it logs out. Default none.",
		Optional: true,
		Attributes: map[string]schema.Attribute{
			"auth_key_wo": schema.StringAttribute{
				MarkdownDescription: "Auth key, normally of `ephemeral.sandbox_tailscale_key`; a key that is shared by many is the same attribute. It travels over SSH into a file in memory that is gone when the container has joined, and stands in no plan, state, command line or disk. A change is only seen when `auth_key_wo_version` changes too.",
				Required:            true,
				WriteOnly:           true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"auth_key_wo_version": schema.Int64Attribute{
				MarkdownDescription: "Version of `auth_key_wo`, any number." + joins,
				Required:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"hostname": schema.StringAttribute{
				MarkdownDescription: "Name in the tailnet. Default `<owner>-<vmid>`, as a DNS label." + joins,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$`), "must be a DNS label in lower case")},
			},
			"tags": schema.ListAttribute{
				MarkdownDescription: "Tags to advertise, such as `tag:sandbox`; the key must allow them. Default those of the key." + joins,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues(), listvalidator.ValueStringsAre(stringvalidator.RegexMatches(regexp.MustCompile(`^tag:[a-zA-Z][a-zA-Z0-9-]*$`), "must be a tag such as tag:sandbox"))},
			},
		},
	}
}

// checkTailscale refuses what can't work: only a container that runs can join.
func (m *Model) checkTailscale(diags *diag.Diagnostics) {
	if !m.Tailscale.IsNull() && value.Known(m.Started) && !m.Started.ValueBool() {
		diags.AddAttributeError(path.Root("tailscale"), "A stopped container can't join a tailnet", "tailscale needs started = true. Set it, or leave tailscale out until the container is started.")
	}
}

// tailnet has the container join, join anew or leave, where the plan differs from the state (nil for a new container).
// again joins also where nothing differs.
func (m *Model) tailnet(ctx context.Context, manager *sandbox.Manager, s sandbox.Sandbox, config, state *Model, again bool, diags *diag.Diagnostics) bool {
	had := types.ObjectNull(tailscaleTypes)
	if state != nil {
		had = state.Tailscale
	}
	prior := sandbox.Prior{Ref: s.Ref, SSHHostKey: s.SSH.HostKey}
	thing := fmt.Sprintf("container %d", s.VMID)
	switch {
	case m.Tailscale.IsNull() && had.IsNull(), !m.Tailscale.IsNull() && m.Tailscale.Equal(had) && !again:
		return true
	case m.Tailscale.IsNull():
		if s.Status != sandbox.StatusRunning {
			return true // it is in no tailnet while it doesn't run
		}
		if err := manager.LeaveTailnet(ctx, prior); err != nil {
			base.AddError(diags, "take out of its tailnet", thing, err)
			return false
		}
		return true
	}
	t := as[tailscaleModel](ctx, diags, config.Tailscale)
	if diags.HasError() {
		return false
	}
	err := manager.JoinTailnet(ctx, prior, sandbox.TailnetSpec{AuthKey: t.AuthKeyWO.ValueString(), Hostname: t.Hostname.ValueString(), Tags: value.Texts(t.Tags)})
	if err != nil {
		base.AddError(diags, "join to the tailnet", thing, err)
		return false
	}
	return true
}
