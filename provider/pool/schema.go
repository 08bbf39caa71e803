package pool

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// What a change of an attribute does, the last sentence of its description.
const (
	live     = " A change is applied to the members in place."
	rolls    = " A change replaces the members that nobody has claimed, see `update`."
	nextTime = " A change counts for members that are made from then on."
	local    = " A change touches nothing on the server."
)

var limits = base.Timeouts{
	Create: 30 * time.Minute,
	Read:   5 * time.Minute,
	Update: 60 * time.Minute,
	Delete: 30 * time.Minute,
}

func (r *poolResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A pool of sandboxes that are ready to be claimed: `size` members of one shape run, are reachable over SSH and have their firewall in force. " +
			"A `sandbox_container` with `claim_from_pool_id` takes one in about the time of a login; the next apply of the pool makes another.\n\n" +
			"It is a Proxmox pool, too, which members stay in when they are claimed, so that a token with rights on that pool alone can do all of this. " +
			"A member that is released (its container is destroyed) is destroyed, never used again. Guests of others in the Proxmox pool are never touched.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "Name of the pool; the import id, and what `claim_from_pool_id` takes.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"claim": schema.StringAttribute{
				MarkdownDescription: "Random text of 26 characters in the ownership mark at the end of the Proxmox pool's comment. The provider touches the pool only while the mark holds it.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name of the pool, and of the Proxmox pool that is made for it: letters, digits and `-_.`, with a slash for a pool within another, which must exist. A change replaces the pool.",
				Required:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 255)},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"comment": schema.StringAttribute{
				MarkdownDescription: "Comment of the Proxmox pool, one line. The ownership mark follows it on the server and isn't shown here. Default none. A change is applied in place.",
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 1024)},
			},
			"member": memberAttribute(),
			"size": schema.Int64Attribute{
				MarkdownDescription: "How many members are kept ready. Claimed ones don't count. A larger size makes more, a smaller one removes members that nobody has claimed.",
				Required:            true,
				Validators:          []validator.Int64{int64validator.Between(0, 10000)},
			},
			"limits":     limitsAttribute(),
			"overcommit": overcommitAttribute(),
			"update":     updateAttribute(),
			"placement": schema.StringAttribute{
				MarkdownDescription: "On which of the nodes a new member goes: `spread` (default) takes the one with the fewest members of the pool, then the most free memory; `pack` the one with the most members that has room. " +
					"Only nodes that can reach the template count: its own, and with shared storage all that have the storage." + nextTime,
				Optional:   true,
				Computed:   true,
				Default:    stringdefault.StaticString(string(placement.Spread)),
				Validators: []validator.String{stringvalidator.OneOf(placement.Strategies()...)},
			},
			"nodes": schema.ListAttribute{
				MarkdownDescription: "Nodes that members may be placed on. Default the provider's `nodes`, else all." + nextTime,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()},
			},
			"attest": schema.StringAttribute{
				MarkdownDescription: "Which members a refresh looks at closely (settings, isolation, and firewall where it is managed; one request for each and two for a firewall): `all` (default), or `sample`, one in twenty, at least 20 and at most 50, " +
					"others each time. Whether the rest is there and runs is seen in the lists, which cost the same for any size. An apply looks at all." + local,
				Optional:   true,
				Computed:   true,
				Default:    stringdefault.StaticString(string(sandbox.AttestAll)),
				Validators: []validator.String{stringvalidator.OneOf(string(sandbox.AttestAll), string(sandbox.AttestSample))},
			},
			"force": schema.BoolAttribute{
				MarkdownDescription: "Let a destroy of the pool destroy claimed members too, whoever works in them. With `false` (default) it is refused while there are any. It has to be applied before the destroy." + local,
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
			"members": schema.MapNestedAttribute{
				MarkdownDescription: "The members that nobody has claimed, by hostname.",
				Computed:            true,
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"vmid":         schema.Int64Attribute{MarkdownDescription: "Id of the container.", Computed: true},
					"node_name":    schema.StringAttribute{MarkdownDescription: "Node that it is on.", Computed: true},
					"ipv4_address": schema.StringAttribute{MarkdownDescription: "IPv4 address; null where only the guest knows it.", Computed: true},
					"claim":        schema.StringAttribute{MarkdownDescription: "Text in its ownership marker; a claim of the member writes another.", Computed: true},
					"status": schema.StringAttribute{
						MarkdownDescription: "`ready`; `unknown` while its node is away; else what the next apply mends: `stopped`, `drifted` (somebody has changed it), `outdated` (of a template or settings of before), `unfinished` (a run was cut).",
						Computed:            true,
					},
				}},
			},
			"ready":    schema.Int64Attribute{MarkdownDescription: "How many members can be claimed. Fewer than `size` plans a refill.", Computed: true},
			"claimed":  schema.Int64Attribute{MarkdownDescription: "How many containers in the Proxmox pool were claimed and aren't released yet.", Computed: true},
			"headroom": schema.Int64Attribute{MarkdownDescription: "How many members more the `limits` allow beside what is there, claimed ones included; null without limits.", Computed: true},
			"timeouts": limits.Attribute(),
		},
	}
}

func limitsAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Bounds for the whole pool, claimed members included. A size that can't fit is refused at plan; where claims leave less, the pool is filled as far as they allow. Default none. A change is checked at plan, and removes nothing that is claimed.",
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"members": schema.Int64Attribute{
				MarkdownDescription: "Number of members, claimed ones included. Default no limit. A change takes effect at once.",
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"cores": schema.Float64Attribute{
				MarkdownDescription: "Cores of all members (`cpu_limit` where that is less). Default no limit. A change takes effect at once.",
				Optional:            true,
				Validators:          []validator.Float64{float64validator.AtLeast(0)},
			},
			"memory": schema.Int64Attribute{
				MarkdownDescription: "Memory of all members, in MiB. Default no limit. A change takes effect at once.",
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"disk": schema.Float64Attribute{
				MarkdownDescription: "Root disks of all members, in GiB, as large as the guests see them. Default no limit. A change takes effect at once.",
				Optional:            true,
				Validators:          []validator.Float64{float64validator.AtLeast(0)},
			},
		},
	}
}

func overcommitAttribute() schema.Attribute {
	ratio := func(text string, otherwise string) schema.Attribute {
		return schema.Float64Attribute{
			MarkdownDescription: text + " `0` leaves it unchecked. Default `" + otherwise + "`." + nextTime,
			Optional:            true,
			Validators:          []validator.Float64{float64validator.Between(0, 1000)},
		}
	}
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How often what a node has may be promised. A plan says what new members would exceed, by how much, and on which node." + nextTime,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"cores":  ratio("Cores that running guests of the node may use, against those that it has.", "16"),
			"memory": ratio("Memory that running guests of the node may use, against what it has. More than 1 counts on that they don't all use it; when they do, the kernel kills some.", "1"),
			"disk":   ratio("Root disks of new members, against what is free on their storage. A linked clone begins with no data of its own and may grow to its full size.", "4"),
		},
	}
}

func updateAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "How members are replaced after a change of the template or of a setting that needs it. A claimed member is never replaced: it keeps its template generation, which `template_current` of its container shows. A roll that was cut goes on with the next apply." + local,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"max_unavailable": schema.Int64Attribute{
				MarkdownDescription: "How many fewer than `size` may be ready meanwhile. Default 1." + local,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"max_surge": schema.Int64Attribute{
				MarkdownDescription: "How many more than `size` may exist meanwhile. Default 1." + local,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
		},
	}
}
