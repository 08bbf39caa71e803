package workspace

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var limits = base.Timeouts{
	Create: sandbox.DefaultCreateTimeout,
	Read:   5 * time.Minute,
	Update: 20 * time.Minute,
	Delete: 10 * time.Minute,
}

func (r *workspaceResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	text := func(s string) schema.Attribute { return schema.StringAttribute{MarkdownDescription: s, Computed: true} }
	resp.Schema = schema.Schema{
		MarkdownDescription: "A workspace: a volume that outlives sandboxes. A sandbox that names it in its `workspace` gets it mounted, also while it runs, and hands it back before it is destroyed; " +
			"the next one finds everything as it was, owners and modes included. One sandbox at a time can have it.\n\n" +
			"Proxmox VE has no volume without a guest, so each workspace has a holder: a stopped, protected clone of the provider's template (or of any template on the node), which is never started and whose vmid is the workspace's `id`. " +
			"Snapshots of a detached workspace are snapshots of its holder. Destroying a workspace destroys its content, and is refused while a sandbox has it.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "Vmid of the holder, as text: what `workspace` of a sandbox, `fork_of` and `container_id` of a snapshot take.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"claim": schema.StringAttribute{
				MarkdownDescription: "Claim in the holder's ownership marker.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name, one DNS label of at most 63 characters; unique per owner. The function `repo_slug` makes one from a repository's URL. A change renames the workspace in place.",
				Required:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 63)},
			},
			"size": schema.Int64Attribute{
				MarkdownDescription: "Size in GiB, at least 1. Required unless `fork_of` is set, whose default is its source's. A larger size is applied in place, also while a sandbox has the workspace; a smaller one is refused at plan, because Proxmox VE can't shrink a volume.",
				Optional:            true,
				Computed:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(1), int64validator.AtLeastOneOf(path.MatchRoot("size"), path.MatchRoot("fork_of"))},
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"storage": schema.StringAttribute{
				MarkdownDescription: "Storage of the volume. Default the provider's `storage`, else the template's; of a fork, its source's. A change copies the volume in place, while no sandbox has it.",
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
				PlanModifiers:       kept,
			},
			"node_name": schema.StringAttribute{
				MarkdownDescription: "Node of the volume, and with it of the sandboxes that can have it. Default the node of the provider's template; of a fork, its source's. A change migrates the holder in place, while no sandbox has the volume.",
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(1, 63)},
				PlanModifiers:       kept,
			},
			"fork_of": schema.StringAttribute{
				MarkdownDescription: "Workspace, by its `id`, whose content is copied at the creation; it must be detached then. Default none: an empty volume. A change to another workspace replaces this one, content included; taking it out, with `size` set, changes nothing.",
				Optional:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers: []planmodifier.String{stringplanmodifier.RequiresReplaceIf(
					func(_ context.Context, req planmodifier.StringRequest, resp *stringplanmodifier.RequiresReplaceIfFuncResponse) {
						resp.RequiresReplace = !req.ConfigValue.IsNull() && !req.StateValue.IsNull()
					},
					"another source replaces the workspace", "Another source replaces the workspace.")},
			},
			"status": text("Where the volume is: `detached` (with its holder), `attached` (with a sandbox), `releasing` (a sandbox has let go of it, and runs with it until it stops), " +
				"`missing` (nowhere where it should be) or `holder_missing` (somebody deleted the holder while a sandbox had the volume; the next apply makes a new one). As of the last refresh."),
			"container_id": text("Sandbox that has it, by its vmid; null while it is detached. As of the last refresh."),
			"path":         text("Where that sandbox has it mounted. As of the last refresh."),
			"timeouts":     limits.Attribute(),
		},
	}
}
