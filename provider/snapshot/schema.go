package snapshot

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

const replaces = " A change takes a new snapshot and deletes this one."

var limits = base.Timeouts{
	Create: 10 * time.Minute,
	Read:   5 * time.Minute,
	Update: 5 * time.Minute,
	Delete: 10 * time.Minute,
}

func (r *snapshotResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A snapshot of a container: a state to come back to, by `sandbox_rollback` or by hand. It holds the container's disks and its configuration, not its memory. " +
			"One that somebody deletes is taken anew by the next apply, of the state that the container has by then.\n\n" +
			"What can't be snapshotted is refused at plan, with the reason: a template, a container with a folder of its node in it, a disk on a storage without snapshots, and an attached workspace.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`container_id`, a slash and `name`.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container, by its `id` (the vmid). It may run or not, and must carry this provider's ownership marker. A snapshot of a workspace is one of its holder: give the workspace's `id`." + replaces,
				Required:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"name": schema.StringAttribute{
				MarkdownDescription: "Name, unique in the container: 2 to 40 characters, a letter first, then letters, digits, `-` and `_`; not `current` or `vzdump`. The function `snapshot_name` makes one of any text." + replaces,
				Required:            true,
				Validators:          []validator.String{base.SnapshotName()},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"description": schema.StringAttribute{
				MarkdownDescription: "Notes. Line feeds at the end don't count. Default none. A change is applied in place.",
				CustomType:          value.DescriptionType,
				Optional:            true,
				PlanModifiers:       []planmodifier.String{value.DescriptionType.KeepEqual()},
			},
			"include_workspaces": schema.BoolAttribute{
				MarkdownDescription: "Take the snapshot although workspaces are attached. They are then part of it: a rollback can take their content back too, and they can't be handed over to another container while it exists. Default `false`. A change touches nothing.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
			"created_at": schema.StringAttribute{
				MarkdownDescription: "When it was taken, in RFC 3339, by the server's clock.",
				Computed:            true,
				PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
			},
			"parent": schema.StringAttribute{
				MarkdownDescription: "Name of the snapshot before it; null for the first.",
				Computed:            true,
			},
			"timeouts": limits.Attribute(),
		},
	}
}
