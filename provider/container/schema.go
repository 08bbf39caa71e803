package container

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/booldefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/float64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// What a change of an attribute does, the last sentence of its description.
const (
	live     = " A change is applied in place, at once."
	restart  = " A change is stored in place and bites at the next restart of the container, see `restart_when_needed`."
	replaces = " A change replaces the container."
	local    = " A change touches nothing on the server."
)

// Values of on_template_change.
const (
	replaceOnChange = "replace"
	keepOnChange    = "keep"
)

var limits = base.Timeouts{
	Create: sandbox.DefaultCreateTimeout,
	Read:   5 * time.Minute,
	Update: 20 * time.Minute,
	Delete: 10 * time.Minute,
}

func (r *containerResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	attributes := map[string]schema.Attribute{
		"timeouts":  limits.Attribute(),
		"network":   networkAttribute(),
		"dns":       dnsAttribute(),
		"startup":   startupAttribute(),
		"workspace": workspaceAttribute(),
	}
	for _, group := range []map[string]schema.Attribute{
		sourceAttributes(), claimAttributes(), sizeAttributes(), behaviourAttributes(), keyAttributes(), policyAttributes(), computedAttributes(),
	} {
		for name, attribute := range group {
			attributes[name] = attribute
		}
	}
	resp.Schema = schema.Schema{
		MarkdownDescription: "A sandbox: an unprivileged LXC container, cloned from a template (or unpacked from a template file), configured, started " +
			"and reachable over SSH when the apply ends. It carries this configuration's ownership marker; a container without it is never touched.\n\n" +
			"An attribute that is left out and has no default stays as the template (or the server) has it.",
		Attributes: attributes,
	}
}

// sourceAttributes say what the container is made from, where, and who owns it.
func sourceAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"hostname": schema.StringAttribute{
			MarkdownDescription: "DNS name of the container, at most 255 characters; also its name in lists." + restart,
			Required:            true,
			Validators:          []validator.String{stringvalidator.LengthBetween(1, 255)},
		},
		"template_id": schema.Int64Attribute{
			MarkdownDescription: "Vmid of the container template to clone. It must carry the public key of the provider's `guest_ssh`. Default the provider's `template_id`. " +
				"A change replaces the container, or does nothing with `on_template_change = \"keep\"`.",
			Optional: true,
			Computed: true,
			Validators: []validator.Int64{
				int64validator.Between(sandbox.MinVMID, sandbox.MaxVMID),
				int64validator.ConflictsWith(path.MatchRoot("template_file_id"), path.MatchRoot("restore_from")),
			},
		},
		"template_file_id": schema.StringAttribute{
			MarkdownDescription: "Container template file to unpack, as a volume id such as `local:vztmpl/debian-13-standard_13.0-1_amd64.tar.zst`. Slower than a clone. " +
				"A change replaces the container, or does nothing with `on_template_change = \"keep\"`.",
			Optional:   true,
			Validators: []validator.String{stringvalidator.LengthAtLeast(3)},
		},
		"restore_from": schema.StringAttribute{
			MarkdownDescription: "Backup of a container to make this one from, as a volume id: `volid` of a `sandbox_backup`, or one that somebody else has made. Disk and settings are the backup's, and what is configured here goes on top; " +
				"the MAC address is new, and SSH host keys and `authorized_keys` inside are the saved container's, so it must carry the provider's key. The container that was saved may still run. " +
				"A change replaces the container, or does nothing with `on_template_change = \"keep\"`; that the backup is removed later changes nothing.",
			Optional: true,
			Validators: []validator.String{
				stringvalidator.LengthAtLeast(3),
				stringvalidator.ConflictsWith(path.MatchRoot("template_file_id")),
			},
		},
		"full_clone": schema.BoolAttribute{
			MarkdownDescription: "Copy the template's disk instead of linking to it: slower, but independent of the template. Left out is `false`. Only with `template_id`." + replaces +
				" After an import it isn't known, and setting it changes nothing.",
			Optional: true,
		},
		"storage": schema.StringAttribute{
			MarkdownDescription: "Storage of the root disk. May only be set for a full clone (default the provider's `storage`, else the template's storage), with `template_file_id` " +
				"(default the provider's `storage`) and with `restore_from` (default the provider's `storage`, else where the disk was); a linked clone is always on its template's storage." + replaces,
			Optional:      true,
			Computed:      true,
			Validators:    []validator.String{stringvalidator.LengthAtLeast(1)},
			PlanModifiers: []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"on_template_change": schema.StringAttribute{
			MarkdownDescription: "What a change of the template does, be it another `template_id`, `template_file_id` or `restore_from`, or a new build behind the same id (see `template_current`): " +
				"`replace` (default) replaces the container, `keep` leaves it as it is." + local,
			Optional:   true,
			Computed:   true,
			Default:    stringdefault.StaticString(replaceOnChange),
			Validators: []validator.String{stringvalidator.OneOf(replaceOnChange, keepOnChange)},
		},
		"node_name": schema.StringAttribute{
			MarkdownDescription: "Node that the container is on. Default the template's node. A change migrates the container in place; a running one restarts on the way.",
			Optional:            true,
			Computed:            true,
			Validators:          []validator.String{stringvalidator.LengthBetween(1, 63)},
			PlanModifiers:       []planmodifier.String{stringplanmodifier.UseStateForUnknown()},
		},
		"vmid": schema.Int64Attribute{
			MarkdownDescription: "Id of the container, within the provider's `vmid_range`. Default the next free one of the range." + replaces,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.Int64{int64validator.Between(sandbox.MinVMID, sandbox.MaxVMID)},
			PlanModifiers: []planmodifier.Int64{
				int64planmodifier.UseStateForUnknown(),
				int64planmodifier.RequiresReplaceIfConfigured(),
			},
		},
		"pool_id": schema.StringAttribute{
			MarkdownDescription: "Proxmox pool that the container is a member of. Default the provider's `pool_id`, else none." + live,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
		},
	}
}

// sizeAttributes say what the container may use.
func sizeAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"cores": schema.Int64Attribute{
			MarkdownDescription: "CPU cores that the container sees, 1 to 8192. Default the template's; null means all of the node's." + live,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.Int64{int64validator.Between(1, 8192)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
		"cpu_limit": schema.Float64Attribute{
			MarkdownDescription: "CPU time that the container may use, in cores' worth, such as `1.5`; 0 to 8192, `0` means no limit. Default the template's." + live,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.Float64{float64validator.Between(0, 8192)},
			PlanModifiers:       []planmodifier.Float64{float64planmodifier.UseStateForUnknown()},
		},
		"cpu_units": schema.Int64Attribute{
			MarkdownDescription: "CPU weight against other guests of the node, 1 to 10000. Default the template's, else the server's (100)." + live,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.Int64{int64validator.Between(1, 10000)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
		"memory": schema.Int64Attribute{
			MarkdownDescription: "Memory in MiB, at least 16. Default the template's. The function `size_mib` converts." + live,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.Int64{int64validator.AtLeast(16)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
		"swap": schema.Int64Attribute{
			MarkdownDescription: "Swap in MiB, `0` for none. Default the template's." + live,
			Optional:            true,
			Computed:            true,
			Validators:          []validator.Int64{int64validator.AtLeast(0)},
			PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
		},
		"disk": schema.Float64Attribute{
			MarkdownDescription: "Size of the root disk in GiB, a whole number. Default the template's, which may be a fraction; with `template_file_id`, 4. A larger size is applied in place; " +
				"a smaller one is refused at plan, because Proxmox VE can't shrink a disk.",
			Optional:      true,
			Computed:      true,
			Validators:    []validator.Float64{float64validator.AtLeast(1), wholeNumber{}},
			PlanModifiers: []planmodifier.Float64{float64planmodifier.UseStateForUnknown()},
		},
		"nesting": schema.BoolAttribute{
			MarkdownDescription: "Let the container run containers of its own; systemd 257 and later (Debian 13) needs it too. Default the template's, `true` with `template_file_id`." + restart,
			Optional:            true,
			Computed:            true,
			PlanModifiers:       []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()},
		},
	}
}

// behaviourAttributes say how the container is labelled, protected, started and waited for.
func behaviourAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"tags": schema.SetAttribute{
			MarkdownDescription: "Tags. Proxmox VE stores them in lower case; a difference in case is none. Tags that begin with `sbx-` are the provider's. Default none." + live,
			CustomType:          value.NewTagsType(),
			ElementType:         types.StringType,
			Optional:            true,
			Validators:          []validator.Set{setvalidator.ValueStringsAre(tagText())},
			PlanModifiers:       []planmodifier.Set{value.NewTagsType().KeepEqual()},
		},
		"description": schema.StringAttribute{
			MarkdownDescription: fmt.Sprintf("Notes, Markdown, at most %d characters. The ownership marker follows them on the server and isn't shown here. Line feeds at the end don't count. Default none.", sandbox.MaxDescription) + live,
			CustomType:          value.DescriptionType,
			Optional:            true,
			Validators:          []validator.String{stringvalidator.UTF8LengthAtMost(sandbox.MaxDescription)},
			PlanModifiers:       []planmodifier.String{value.DescriptionType.KeepEqual()},
		},
		"protection": schema.BoolAttribute{
			MarkdownDescription: "Refuse to destroy the container or its disk. A destroy fails, before anything is stopped, until this is `false` on the server. Default `false`." + live,
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(false),
		},
		"on_boot": schema.BoolAttribute{
			MarkdownDescription: "Start the container when its node boots. Default `false`." + live,
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(false),
		},
		"lease":     leaseAttribute(),
		"tailscale": tailscaleAttribute(),
		"started": schema.BoolAttribute{
			MarkdownDescription: "Whether the container runs. Default `true`. A change starts or stops it in place; no other change starts a stopped container.",
			Optional:            true,
			Computed:            true,
			Default:             booldefault.StaticBool(true),
		},
		"wait_for": schema.StringAttribute{
			MarkdownDescription: "When a start counts as done: `ssh` (default) when a login over SSH succeeds, `address` when an address is known, `none` when the start task has ended." + local,
			Optional:            true,
			Computed:            true,
			Default:             stringdefault.StaticString(string(sandbox.WaitForSSH)),
			Validators: []validator.String{stringvalidator.OneOf(
				string(sandbox.WaitForSSH), string(sandbox.WaitForAddress), string(sandbox.WaitForNone))},
		},
		"restart_when_needed": schema.BoolAttribute{
			MarkdownDescription: "Restart a running container when a change needs it, and when settings wait for a restart (`posture.pending`). With `false` (default) such changes wait for the next start, and the apply warns. " +
				"Switching it on restarts the container if something waits.",
			Optional: true,
			Computed: true,
			Default:  booldefault.StaticBool(false),
		},
		"snapshot_before_update": schema.BoolAttribute{
			MarkdownDescription: "Take a snapshot before an update that restarts the container (see `restart_when_needed`, and a migration) or changes one of its volumes (a larger `disk`). " +
				"It is named `before-update-` and the time; only the newest of them is kept. An update that can't have its snapshot fails before it changes anything. Default `false`." + local,
			Optional: true,
			Computed: true,
			Default:  booldefault.StaticBool(false),
		},
	}
}

// keyAttributes are the public keys of users.
func keyAttributes() map[string]schema.Attribute {
	return map[string]schema.Attribute{
		"authorized_keys": schema.ListAttribute{
			MarkdownDescription: "Public keys that may log in, each a line in `authorized_keys` format, beside the provider's own key, which stays. They are written over SSH, so the container must be running. " +
				"A refresh doesn't look inside the container, so drift isn't seen. Default: the template's file is left alone." + live,
			ElementType: types.StringType,
			Optional:    true,
			Validators: []validator.List{
				listvalidator.UniqueValues(),
				listvalidator.ValueStringsAre(publicKey()),
				listvalidator.ConflictsWith(path.MatchRoot("authorized_keys_wo")),
			},
		},
		"authorized_keys_wo": schema.ListAttribute{
			MarkdownDescription: "The same as `authorized_keys`, kept out of plan and state. Needs Terraform 1.11 or later. A change is only seen when `authorized_keys_wo_version` changes too.",
			ElementType:         types.StringType,
			Optional:            true,
			WriteOnly:           true,
			Validators: []validator.List{
				listvalidator.ValueStringsAre(publicKey()),
				listvalidator.AlsoRequires(path.MatchRoot("authorized_keys_wo_version")),
			},
		},
		"authorized_keys_wo_version": schema.Int64Attribute{
			MarkdownDescription: "Version of `authorized_keys_wo`, any number. A change writes the keys in place, at once.",
			Optional:            true,
			Validators:          []validator.Int64{int64validator.AlsoRequires(path.MatchRoot("authorized_keys_wo"))},
		},
	}
}
