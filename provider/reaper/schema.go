package reaper

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var limits = base.Timeouts{Create: 5 * time.Minute, Read: 5 * time.Minute, Update: time.Hour, Delete: time.Minute}

// inPlace is what a change of an attribute does.
const inPlace = " A change is applied in place; what it makes due shows in the plan after it."

var (
	candidateTypes = map[string]attr.Type{
		"vmid": types.Int64Type, "hostname": types.StringType, "node_name": types.StringType, "claim": types.StringType,
		"reason": types.StringType, "since": types.StringType,
	}
	keptTypes = map[string]attr.Type{
		"vmid": types.Int64Type, "hostname": types.StringType, "node_name": types.StringType, "claim": types.StringType,
		"reason": types.StringType, "since": types.StringType, "kept": types.StringType,
	}
	candidateType = types.ObjectType{AttrTypes: candidateTypes}
	keptType      = types.ObjectType{AttrTypes: keptTypes}
)

func (r *reaperResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "Destroys what has been left behind: sandboxes of the provider's `owner` whose lease is over, and creations that should have ended and haven't (a run that was killed). " +
			"A refresh looks for them (`candidates`); with `dry_run = false` a plan then shows an update, and its apply destroys those that the plan has named. An apply that makes the resource only looks. " +
			"To a state that held such a sandbox it is drift: its next plan makes a new one, or nothing where it isn't configured any more.\n\n" +
			"What is never destroyed: a guest without this owner's mark, whatever its id; one with `protection` or `lease.keepalive`; a holder of a workspace, a template, an unclaimed member of a pool; " +
			"one that was renewed since the plan; anything while this machine's clock and the server's differ by more than five minutes. Each mark is read back in the moment of the destruction. See the guide \"Leases\".",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "The owner whose sandboxes are looked at.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"dry_run": schema.BoolAttribute{
				MarkdownDescription: "Only look: nothing is destroyed, and a plan warns of what would be. Default `true`." + inPlace,
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(true),
			},
			"keep_claims": schema.SetAttribute{
				MarkdownDescription: "Claims that states hold (`claim` of every `sandbox_container`, in this state and all others of the same owner). With it, a sandbox without a lease whose claim isn't listed is an orphan, and is destroyed once it is older than `grace`. " +
					"A claim that is listed also keeps an unfinished creation; it doesn't outlast a lease. Members that a pool hasn't handed out, and containers that were adopted, are no orphans. An empty set is refused: it would make all of them orphans. Default: no orphans are looked for." + inPlace,
				ElementType: types.StringType,
				Optional:    true,
				Validators: []validator.Set{
					setvalidator.SizeAtLeast(1),
					setvalidator.ValueStringsAre(stringvalidator.LengthBetween(sandbox.ClaimLength, sandbox.ClaimLength)),
				},
			},
			"grace": schema.StringAttribute{
				MarkdownDescription: "How old an orphan must be, since it was made or claimed from a pool: time for the run that made it to save its state. Default `24h`." + inPlace,
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(base.ShortDuration(sandbox.DefaultGrace)),
				Validators:          []validator.String{base.Duration()},
			},
			"max_destroy": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf("How many guests one apply destroys at most, those that are due longest first; the next goes on. Default `%d`.", sandbox.DefaultMaxDestroy) + inPlace,
				Optional:            true,
				Computed:            true,
				Default:             int64default.StaticInt64(sandbox.DefaultMaxDestroy),
				Validators:          []validator.Int64{int64validator.Between(1, 1000)},
			},
			"snapshot_before_reap": schema.BoolAttribute{
				MarkdownDescription: "Save each guest before it is destroyed, and leave it alone when that fails. A snapshot of Proxmox VE would go with its guest, so this is a backup of one moment (mode `snapshot`) on `backup_storage`; " +
					"nobody removes it, and `restore_from` of a `sandbox_container` makes a sandbox from it. Creations that are overdue are not saved. Default `false`." + inPlace,
				Optional: true,
				Computed: true,
				Default:  booldefault.StaticBool(false),
			},
			"backup_storage": schema.StringAttribute{
				MarkdownDescription: "Storage that takes those backups; it needs the content type `backup`. Needed by `snapshot_before_reap`." + inPlace,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1), stringvalidator.AlsoRequires(path.MatchRoot("snapshot_before_reap"))},
			},
			"candidates": list("What may be destroyed, as the last refresh saw it, those that are due longest first.", nil),
			"kept": list("What would be a candidate and is kept.", map[string]schema.Attribute{
				"kept": schema.StringAttribute{MarkdownDescription: "Why: `protection` or `keepalive`.", Computed: true},
			}),
			"reaped":   list("What the last apply that destroyed anything has destroyed.", nil),
			"timeouts": limits.Attribute(),
		},
	}
}

func list(description string, more map[string]schema.Attribute) schema.Attribute {
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	attributes := map[string]schema.Attribute{
		"vmid":      schema.Int64Attribute{MarkdownDescription: "The guest's id.", Computed: true},
		"hostname":  text("Its hostname."),
		"node_name": text("The node that it is on."),
		"claim":     text("The claim in its mark."),
		"reason":    text("`expired` (its lease is over), `overdue` (its creation should have ended) or `orphan` (no state holds it)."),
		"since":     text("When its lease ended, when its creation should have ended, or when the orphan was made: RFC 3339 in UTC."),
	}
	for name, a := range more {
		attributes[name] = a
	}
	return schema.ListNestedAttribute{MarkdownDescription: description, Computed: true, NestedObject: schema.NestedAttributeObject{Attributes: attributes}}
}
