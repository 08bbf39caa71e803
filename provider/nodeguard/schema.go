package nodeguard

import (
	"context"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var limits = base.Timeouts{Create: 5 * time.Minute, Read: 5 * time.Minute, Update: 5 * time.Minute, Delete: 5 * time.Minute}

func (r *guardResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	replace := []planmodifier.String{stringplanmodifier.RequiresReplace()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A node's own input rules towards sandboxes. No rule of a guest covers traffic to the node that it runs on: the node answers for its own addresses on every bridge, and lets its whole local network in to its management ports. " +
			"The guard lets DHCP and DNS to the resolver in, and drops the rest of the node, over a bridge or from a network.\n\n" +
			"Its rules are known by their comments, stand on top of the node's list, and are changed each against the list that was read; the rules of others are never touched, and one that is put above the guard is drift. " +
			"A guard that would cut off this provider or another node is refused. Without the privilege (`Sys.Modify` on the node) the error has the commands for an administrator.\n\n" +
			"`bridge` is exported, so that containers which take their bridge from here are made after their guard.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`<node>/<bridge>` or `<node>/<network>`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"node_name": schema.StringAttribute{
				MarkdownDescription: "The node. A change makes a guard there and removes this one.",
				Required:            true,
				PlanModifiers:       replace,
			},
			"bridge": schema.StringAttribute{
				MarkdownDescription: "Bridge of the sandboxes, such as `vmbr1`: whatever comes in over it is guarded against. Not the bridge of the node's own network, whose users would be cut off. This or `subnet` is required; with `subnet` it is the bridge that has that network, where one can be seen. A change replaces the guard.",
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.ExactlyOneOf(path.MatchRoot("bridge"), path.MatchRoot("subnet"))},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown(), stringplanmodifier.RequiresReplaceIfConfigured()},
			},
			"subnet": schema.StringAttribute{
				MarkdownDescription: "Network of the sandboxes in CIDR form, for a bridge that they share with others. One who forges an address outside it isn't guarded against, so it goes with `network.mode`, which filters addresses. A change replaces the guard.",
				Optional:            true,
				PlanModifiers:       replace,
			},
			"dhcp": schema.BoolAttribute{
				MarkdownDescription: "Let requests to a DHCP server on the node in. Default `true`. A change is written in place.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(true),
			},
			"resolvers": schema.ListAttribute{
				MarkdownDescription: "Addresses of the node on which a DNS server answers sandboxes; port 53 is let in to them. Default none. A change is written in place.",
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.UniqueValues()},
			},
			"allow": schema.ListNestedAttribute{
				MarkdownDescription: "What else of the node sandboxes may reach: a package proxy, a Git mirror. Default nothing. A change is written in place.",
				Optional:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"ports": schema.StringAttribute{
						MarkdownDescription: "Ports such as `3128` or `80,443,8000:8100`. They or a protocol without ports are required. A change is written in place.",
						Optional:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"protocol": schema.StringAttribute{
						MarkdownDescription: "One of `" + strings.Join(egress.Protocols(), "`, `") + "`. Default `tcp`. A change is written in place.",
						Optional:            true,
						Validators:          []validator.String{stringvalidator.OneOf(egress.Protocols()...)},
					},
					"to": schema.StringAttribute{
						MarkdownDescription: "Address of the node that it is let in to. Default all. A change is written in place.",
						Optional:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
				}},
			},
			"rules": schema.ListAttribute{
				MarkdownDescription: "The guard's rules as the node holds them, one line each; in a plan, as they are to be.",
				ElementType:         types.StringType,
				Computed:            true,
			},
			"above": schema.Int64Attribute{
				MarkdownDescription: "How many rules of others stand above the guard; what they accept it doesn't stop. Anything but 0 is drift, and the next apply moves the guard back to the top.",
				Computed:            true,
			},
			"timeouts": limits.Attribute(),
		},
	}
}
