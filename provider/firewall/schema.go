package firewall

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var limits = base.Timeouts{Create: 20 * time.Minute, Read: 5 * time.Minute, Update: 20 * time.Minute, Delete: 10 * time.Minute}

const inPlace = " A change is written in place, with as few calls as possible."

func (r *groupResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A security group of the datacenter: what the sandboxes that name it in `network.firewall_group` may reach. Its rules come from a `mode`, or are written out as `rule`.\n\n" +
			"Every mode lets SSH in from the provider's `management_cidrs` only, and closes what no sandbox should reach: private, link-local, carrier-grade NAT and tailnet ranges, multicast, " +
			"the metadata services of clouds, the cluster's own addresses, and the management ports of nodes. The guide on network modes has the table.\n\n" +
			"Rules are compared as an ordered list: one that is added, changed, switched off or moved by hand is drift. They are changed where they stand, each call against the list that was read; " +
			"IP sets are filled before they are emptied, so that what is allowed throughout never drops. A group that exists is never taken over, and one that is in use is not deleted.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "The name.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name in the datacenter: a letter, then letters, digits, `-` and `_`; 2 to 18 characters, Proxmox VE's limit. A change replaces the group; since one in use isn't deleted, that needs `create_before_destroy`.",
				Required:            true,
				Validators: []validator.String{
					stringvalidator.RegexMatches(regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{1,17}$`), "must begin with a letter and have 2 to 18 letters, digits, - and _: Proxmox VE takes no other name of a security group"),
				},
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"mode": schema.StringAttribute{
				MarkdownDescription: "What gets out: `off` (nothing, not even DNS), `web` (DNS to the resolvers, TCP 80 and 443), `nat` (everything that isn't closed), `allowlist` (DNS to the resolvers and what `allow` names). This or `rule` is required." + inPlace,
				Optional:            true,
				Validators: []validator.String{
					stringvalidator.OneOf(modeNames()...),
					stringvalidator.ExactlyOneOf(path.MatchRoot("mode"), path.MatchRoot("rule")),
				},
			},
			"rule": schema.ListNestedAttribute{
				MarkdownDescription: "The rules themselves, in their order: the first that matches decides. A list that would lock this provider out of the sandboxes is refused. The function `egress_rules` makes one to build on." + inPlace,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
				NestedObject:        schema.NestedAttributeObject{Attributes: ruleAttributes(false)},
			},
			"allow": schema.ListNestedAttribute{
				MarkdownDescription: "Exceptions. With `allowlist` they are all that gets out; with `web` and `nat` they open something beside the mode. One inside a closed range (a database at `10.5.0.7/32`) opens that much of it; " +
					"a wide one (`0.0.0.0/0`) opens nothing inside closed ranges. Metadata services and nodes stay closed. Their networks stand in IP sets, of any length. Default none." + inPlace,
				Optional:   true,
				Validators: []validator.List{listvalidator.ConflictsWith(path.MatchRoot("rule"))},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"to": schema.StringAttribute{
						MarkdownDescription: "Network in CIDR form, an address, or with `resolve` a domain. This or `cidrs` is required." + inPlace,
						Optional:            true,
						Validators: []validator.String{
							stringvalidator.LengthAtLeast(1),
							stringvalidator.ExactlyOneOf(path.MatchRelative().AtParent().AtName("to"), path.MatchRelative().AtParent().AtName("cidrs")),
						},
					},
					"cidrs": schema.ListAttribute{
						MarkdownDescription: "Networks in CIDR form or addresses, thousands if need be: Terraform is much faster with them here than with an element of `allow` for each." + inPlace,
						ElementType:         types.StringType,
						Optional:            true,
						Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.ConflictsWith(path.MatchRelative().AtParent().AtName("resolve"))},
					},
					"ports": schema.StringAttribute{
						MarkdownDescription: "Destination ports such as `443` or `80,443,8000:8100`; at most 15, where a range counts as two. Default all." + inPlace,
						Optional:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
					"protocol": schema.StringAttribute{
						MarkdownDescription: "One of " + listed(egress.Protocols()) + ". Default all; `tcp` where `ports` is set." + inPlace,
						Optional:            true,
						Validators:          []validator.String{stringvalidator.OneOf(egress.Protocols()...)},
					},
					"resolve": schema.StringAttribute{
						MarkdownDescription: "`apply`: `to` is a domain whose addresses are looked up by the machine that runs the apply, and pinned until an apply finds that they have moved. " +
							"Proxmox VE filters addresses, not names: a sandbox that gets another answer from its own resolver is blocked, other names at the same address are open, and a domain whose answers rotate shows drift at each plan. " +
							"An address in a closed range is refused, whoever has written it into the domain's records." + inPlace,
						Optional:   true,
						Validators: []validator.String{stringvalidator.OneOf("apply")},
					},
				}},
			},
			"deny": schema.ListAttribute{
				MarkdownDescription: "Networks in CIDR form or addresses that are dropped before any exception, DNS to the resolvers apart. Default none." + inPlace,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.UniqueValues(), listvalidator.ConflictsWith(path.MatchRoot("rule"))},
			},
			"resolvers": schema.ListAttribute{
				MarkdownDescription: "Addresses of the DNS servers that may be asked on port 53, in private ranges too. With `web` and `allowlist` no other is reached. Default none." + inPlace,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.UniqueValues(), listvalidator.ConflictsWith(path.MatchRoot("rule"))},
			},
			"rules": schema.ListNestedAttribute{
				MarkdownDescription: "The rules as the server holds them, in their order; in a plan, as they are to be.",
				Computed:            true,
				NestedObject:        schema.NestedAttributeObject{Attributes: ruleAttributes(true)},
			},
			"ip_sets": schema.MapAttribute{
				MarkdownDescription: "Members of the IP sets that the rules name, sorted, by the set's name.",
				ElementType:         listOfText,
				Computed:            true,
			},
			"resolved": schema.MapAttribute{
				MarkdownDescription: "Addresses that are pinned for the domains in `allow`, by domain.",
				ElementType:         setOfText,
				Computed:            true,
			},
			"moved": schema.SetAttribute{
				MarkdownDescription: "Domains in `allow` that have other addresses now than those which are pinned, as the last refresh saw it. A domain in it is drift: the next apply pins its new addresses.",
				ElementType:         types.StringType,
				Computed:            true,
			},
			"timeouts": limits.Attribute(),
		},
	}
}

func modeNames() []string {
	var out []string
	for _, m := range egress.Modes() {
		out = append(out, string(m))
	}
	return out
}

func listed(names []string) string { return "`" + strings.Join(names, "`, `") + "`" }

// ruleAttributes are those of a rule that is written, or of one that is read.
func ruleAttributes(computed bool) map[string]schema.Attribute {
	attribute := func(description string, required bool, validators ...validator.String) schema.StringAttribute {
		if computed {
			return schema.StringAttribute{MarkdownDescription: description, Computed: true}
		}
		return schema.StringAttribute{MarkdownDescription: description + inPlace, Required: required, Optional: !required, Validators: append(validators, stringvalidator.LengthAtLeast(1))}
	}
	enabled := "Whether the rule counts. Default `true`."
	if !computed {
		enabled += inPlace
	}
	addresses := "address, network in CIDR form, range `a-b`, IP set `+dc/name` or alias; several addresses or networks of one IP version are joined by commas. Default any."
	return map[string]schema.Attribute{
		"direction":    attribute("`in` or `out`, as the guest sees it.", true, stringvalidator.OneOf(egress.In, egress.Out)),
		"action":       attribute("`ACCEPT`, `DROP` or `REJECT`.", true, stringvalidator.OneOf(egress.Accept, egress.Drop, egress.Reject)),
		"protocol":     attribute("Protocol: `tcp`, `udp`, `icmp`, `ipv6-icmp`, … Default any.", false),
		"macro":        attribute("Macro of Proxmox VE, which says protocol and ports itself: `DNS`, `SSH`, `HTTPS`, … Default none.", false),
		"from":         attribute("Where it comes from: "+addresses, false),
		"to":           attribute("Where it goes: "+addresses, false),
		"ports":        attribute("Destination ports such as `80,443,8000:8100`; they need a protocol. Default any.", false),
		"source_ports": attribute("Source ports, in the same form. Default any.", false),
		"icmp_type":    attribute("Type of an ICMP message, such as `echo-request`. Default any.", false),
		"log":          attribute(fmt.Sprintf("Level to log at, one of %s. Default none.", listed(logLevels)), false, stringvalidator.OneOf(logLevels...)),
		"comment":      attribute("Comment, one line. Default none.", false),
		"enabled": schema.BoolAttribute{
			MarkdownDescription: enabled,
			Optional:            !computed,
			Computed:            computed,
		},
	}
}

var logLevels = []string{"emerg", "alert", "crit", "err", "warning", "notice", "info", "debug", "nolog"}
