package rollback

import (
	"context"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/listplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

const (
	again = " A change rolls back again."
	later = " A change matters at the next rollback and touches nothing now."
)

var limits = base.Timeouts{
	Create: 10 * time.Minute,
	Read:   5 * time.Minute,
	Update: time.Minute,
	Delete: time.Minute,
}

var timingTypes = map[string]attr.Type{"rollback": types.Int64Type, "start": types.Int64Type, "total": types.Int64Type}

func (r *rollbackResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: description,
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "`container_id`, a slash and the time of the rollback.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container, by its `id` (the vmid). It must carry this provider's ownership marker." + again,
				Required:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"host_key": schema.StringAttribute{
				MarkdownDescription: base.HostKeyDescription + later,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"snapshot_name": schema.StringAttribute{
				MarkdownDescription: "Name of the snapshot, normally `sandbox_snapshot.example.name`." + again,
				Required:            true,
				Validators:          []validator.String{base.SnapshotName()},
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"triggers": schema.MapAttribute{
				MarkdownDescription: "Any values; a change of one rolls back again.",
				ElementType:         types.StringType,
				Optional:            true,
				PlanModifiers:       []planmodifier.Map{mapplanmodifier.RequiresReplace()},
			},
			"power": schema.StringAttribute{
				MarkdownDescription: "What the container does afterwards: `restore` (default) starts it if it ran before, `always` starts it, `never` leaves it stopped." + later,
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(string(sandbox.PowerRestore)),
				Validators: []validator.String{stringvalidator.OneOf(
					string(sandbox.PowerRestore), string(sandbox.PowerAlways), string(sandbox.PowerNever))},
			},
			"wait_for": schema.StringAttribute{
				MarkdownDescription: "When a start counts as done: `ssh` (default) when a login over SSH succeeds, `address` when an address is known, `none` when the start task has ended. " +
					"With `none` the provider doesn't look into the container at all, and its keys stay as the snapshot has them." + later,
				Optional: true,
				Computed: true,
				Default:  stringdefault.StaticString(string(sandbox.WaitForSSH)),
				Validators: []validator.String{stringvalidator.OneOf(
					string(sandbox.WaitForSSH), string(sandbox.WaitForAddress), string(sandbox.WaitForNone))},
			},
			"discard_newer":      flag("Delete newer snapshots first, where the storage can't roll back past them (ZFS); with `false` (default) such a rollback is refused. Other storages roll back past newer snapshots, and none is deleted there."),
			"include_workspaces": flag("Also take back the workspaces that the snapshot holds; with `false` (default) such a rollback is refused."),
			"force": flag("Roll back a protected container, one in which a command of the same apply is under way, and one with volumes that are newer than the snapshot; with `false` (default) these are refused. " +
				"Newer volumes keep their content: Proxmox VE takes them out of the container, and they are mounted again before it starts."),
			"rolled_back_at": schema.StringAttribute{
				MarkdownDescription: "When the rollback was done, in RFC 3339, by the clock of the machine that ran the provider.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"discarded": schema.ListAttribute{
				MarkdownDescription: "Names of the newer snapshots that were deleted, in the order of their deletion.",
				ElementType:         types.StringType,
				Computed:            true,
				PlanModifiers:       []planmodifier.List{listplanmodifier.UseStateForUnknown()},
			},
			"timings": schema.SingleNestedAttribute{
				MarkdownDescription: "How long the steps took, in milliseconds.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
				Attributes: map[string]schema.Attribute{
					"rollback": schema.Int64Attribute{MarkdownDescription: "The server's own rollback, with stopping the container.", Computed: true},
					"start":    schema.Int64Attribute{MarkdownDescription: "Starting the container and reaching it; `0` where it stays stopped.", Computed: true},
					"total":    schema.Int64Attribute{MarkdownDescription: "All of it, with the configuration.", Computed: true},
				},
			},
			"timeouts": limits.Attribute(),
		},
	}
}

func flag(text string) schema.Attribute {
	return schema.BoolAttribute{MarkdownDescription: text + later, Optional: true, Computed: true, Default: booldefault.StaticBool(false)}
}

const description = "Puts a container back to a snapshot, once: at its creation, and again when the container, the snapshot or a trigger changes. A refresh never rolls back, and a destroy does nothing.\n\n" +
	"The disk goes back; everything else comes again. Proxmox VE brings back the configuration of the snapshot too (tags, hostname, memory, cores, network, mount points), so the provider writes the one back that the server had right " +
	"before the rollback, which is what Terraform has applied, with the MAC address of before, in one write and before the container starts. Volumes that have grown since grow again. The firewall's rules, the pool and the notes aren't touched by a rollback. " +
	"Of what lives on the container's disk, `authorized_keys` that this provider wrote are carried over when the container runs and lets the provider in; keys that somebody inside has put in their place are not. " +
	"A refresh afterwards shows no drift of the `sandbox_container`; files that a `sandbox_file` wrote after the snapshot are gone, and the next apply writes them again.\n\n" +
	"The container is stopped for it. The first start after a rollback to a snapshot of a *running* container can take 45 seconds and more (ext4 waits for the node that seems to have it mounted); take `clean` of a stopped container where that matters.\n\n" +
	"A rollback that fails or is cut off leaves nothing in the state, and the next apply repeats it as a whole. What it would have written back isn't lost in between: it stands in the container's notes, and the next apply of either resource completes it from there."
