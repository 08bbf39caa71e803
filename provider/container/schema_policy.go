package container

import (
	"context"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

var _ resource.ResourceWithValidateConfig = (*containerResource)(nil)

// The shapes of the elements of network.allow and allow_risks.
var (
	allowType = types.ObjectType{AttrTypes: map[string]attr.Type{"to": types.StringType, "ports": types.StringType, "protocol": types.StringType, "resolve": types.StringType}}
	riskType  = types.ObjectType{AttrTypes: map[string]attr.Type{"rule": types.StringType, "reason": types.StringType}}
)

// policyAttributes are the exceptions from what a sandbox must be.
func policyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"allow_risks": schema.ListNestedAttribute{
			MarkdownDescription: "Exceptions from the policy, each with its reason. A new container is refused that is privileged (`privileged`), mounts folders of the node (`host_mount`), has devices of the node (`device`), " +
				"raw lines or a hookscript (`raw_config`) by its template, or that could use all cores of its node (`no_cpu_limit`). Default none." + local,
			Optional:   true,
			Validators: []validator.List{listvalidator.SizeAtLeast(1)},
			NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
				"rule": schema.StringAttribute{
					MarkdownDescription: "Rule of the policy: `" + strings.Join(sandbox.Rules(), "`, `") + "`." + local,
					Required:            true,
					Validators:          []validator.String{stringvalidator.OneOf(sandbox.Rules()...)},
				},
				"reason": schema.StringAttribute{
					MarkdownDescription: "Why this container may have the risk." + local,
					Required:            true,
					Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
				},
			}},
		},
	}
}

// ValidateConfig says on each plan what a configuration gives away.
func (r *containerResource) ValidateConfig(ctx context.Context, req resource.ValidateConfigRequest, resp *resource.ValidateConfigResponse) {
	var network types.Object
	resp.Diagnostics.Append(req.Config.GetAttribute(ctx, path.Root("network"), &network)...)
	if !value.Known(network) {
		return
	}
	n := as[NetworkModel](ctx, &resp.Diagnostics, network)
	if n.Mode.ValueString() == string(sandbox.ModeUnmanaged) {
		resp.Diagnostics.AddAttributeWarning(path.Root("network").AtName("mode"), "The container has no managed firewall",
			`With mode = "unmanaged" it reaches whatever its bridge and its template's firewall let it reach: the node, other guests and your network among them. Choose nat, web, allowlist or off.`)
	}
	if n.Proof.ValueString() == string(sandbox.ProofNone) {
		resp.Diagnostics.AddAttributeWarning(path.Root("network").AtName("proof"), "The firewall is not proved",
			`With proof = "none" the container runs unfiltered for up to 10 seconds after its first start, and nothing tries whether its rules count. Leave proof out for "guarded".`)
	}
}

// checkSwitch says at every plan when the switch that all of a container's rules depend on is off. What is about to be
// made or changed is refused elsewhere; here it is about one that is left as it is.
func (r *containerResource) checkSwitch(ctx context.Context, resp *resource.ModifyPlanResponse, plan *Model) {
	if !r.Data.Known() || r.Data.Settings.Owner == "" {
		return
	}
	n := as[NetworkModel](ctx, &resp.Diagnostics, plan.Network)
	if !sandbox.NetworkMode(n.Mode.ValueString()).Managed() {
		return
	}
	on, err := r.Data.Manager.DatacenterFirewall(ctx)
	if err != nil || on {
		return // a server that can't be asked is told by what needs it
	}
	resp.Diagnostics.AddAttributeWarning(path.Root("network").AtName("mode"), "The datacenter's firewall is off",
		"Somebody has switched it off: the rules of this container, and of every other, don't count until it is on again (on a node: pvesh set /cluster/firewall/options --enable 1).")
}
