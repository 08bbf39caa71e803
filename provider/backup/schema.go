package backup

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64default"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// renews is what a change of an attribute does that only a new backup can follow.
const renews = " A change makes a new backup; when it is there, the old ones go as `keep_last` says."

var limits = base.Timeouts{
	Create: sandbox.DefaultBackupTimeout,
	Read:   5 * time.Minute,
	Update: sandbox.DefaultBackupTimeout,
	Delete: 10 * time.Minute,
}

func (r *backupResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A backup of a sandbox: its disk and its configuration, as an archive on a storage. It is made by the apply (or again, when `triggers` change), " +
			"and removed with the resource; a container that is destroyed leaves its backups alone. `restore_from` of a `sandbox_container` makes a sandbox from one.\n\n" +
			"The ownership marker is the last line of the backup's notes on the server. Nothing is removed or changed unless it is read back; backups that others have made are never touched, " +
			"whatever the storage's own retention says. Files in memory (tmpfs), and with it secrets, are in no backup.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{
				MarkdownDescription: "The same as `volid`.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container to back up, by its `id` (the vmid). It may run or not, and must carry this provider's ownership marker. A change replaces the backup.",
				Required:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"storage": schema.StringAttribute{
				MarkdownDescription: "Storage to write the backup to; the container's node must have it, with the content type `backup`." + renews,
				Required:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"mode": schema.StringAttribute{
				MarkdownDescription: "How a running container is saved: `snapshot` (default) saves one moment of it without a pause, where its storage has snapshots, and falls back to `suspend`; " +
					"`suspend` copies it and freezes it for what has changed meanwhile; `stop` shuts it down, copies it and starts it again." + renews,
				Optional:   true,
				Computed:   true,
				Default:    stringdefault.StaticString(sandbox.BackupSnapshot),
				Validators: []validator.String{stringvalidator.OneOf(sandbox.BackupSnapshot, sandbox.BackupSuspend, sandbox.BackupStop)},
			},
			"compression": schema.StringAttribute{
				MarkdownDescription: "How the archive is compressed: `zstd` (default), `gzip`, `lzo` or `none`. A Proxmox Backup Server compresses by itself, whatever this says." + renews,
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString(sandbox.BackupZstd),
				Validators:          []validator.String{stringvalidator.OneOf(sandbox.BackupZstd, sandbox.BackupGzip, sandbox.BackupLzo, sandbox.BackupUncompressed)},
			},
			"notes": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("Notes, at most %d characters. The ownership marker follows them on the server and isn't shown here. Default none. A change is applied in place, at once.", sandbox.MaxBackupNotes),
				Optional:            true,
				Validators:          []validator.String{stringvalidator.UTF8LengthBetween(1, sandbox.MaxBackupNotes)},
			},
			"protected": schema.BoolAttribute{
				MarkdownDescription: "Refuse to remove the backup: for everybody on the server, and for a destroy of this resource. `keep_last` counts more, so that a new backup still takes the place of an old one. Default `false`. A change is applied in place, at once.",
				Optional:            true,
				Computed:            true,
				Default:             booldefault.StaticBool(false),
			},
			"keep_last": schema.Int64Attribute{
				MarkdownDescription: "How many backups of this resource stay on the storage when it makes a new one, the new one included. Default `1`. Only those that this resource has made count. " +
					"A destroy removes all of them. A change is applied in place: a smaller number removes the oldest.",
				Optional:   true,
				Computed:   true,
				Default:    int64default.StaticInt64(1),
				Validators: []validator.Int64{int64validator.Between(1, 1000)},
			},
			"triggers": schema.MapAttribute{
				MarkdownDescription: "Any values, such as a commit or a date." + renews,
				ElementType:         types.StringType,
				Optional:            true,
			},
			"volid": schema.StringAttribute{
				MarkdownDescription: "Volume id of the newest backup, such as `local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst`: what `restore_from` takes.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"size": schema.Int64Attribute{
				MarkdownDescription: "Size of the archive in bytes.",
				Computed:            true,
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"created_at": schema.StringAttribute{
				MarkdownDescription: "When the backup was begun, by the server's clock, in RFC 3339 and UTC.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"node_name": schema.StringAttribute{
				MarkdownDescription: "Node that has written the backup. A storage that isn't shared has it there only.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"claim": schema.StringAttribute{
				MarkdownDescription: "What the ownership markers of this resource's backups have in common, 26 characters.",
				Computed:            true,
				PlanModifiers:       kept,
			},
			"timeouts": limits.Attribute(),
		},
	}
}
