package container

import (
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// The shapes of the computed objects; the schemas below describe the same.
var (
	sshTypes = map[string]attr.Type{
		"username": types.StringType,
		"host":     types.StringType,
		"port":     types.Int64Type,
		"host_key": types.StringType,
	}
	timingTypes = map[string]attr.Type{
		"clone":    types.Int64Type,
		"start":    types.Int64Type,
		"address":  types.Int64Type,
		"firewall": types.Int64Type,
		"ssh":      types.Int64Type,
		"total":    types.Int64Type,
	}
	postureTypes = map[string]attr.Type{
		"unprivileged": types.BoolType,
		"features":     types.ListType{ElemType: types.StringType},
		"mounts":       types.ListType{ElemType: types.StringType},
		"devices":      types.ListType{ElemType: types.StringType},
		"raw":          types.ListType{ElemType: types.StringType},
		"hookscript":   types.StringType,
		"extra_nics":   types.ListType{ElemType: types.StringType},
		"pending":      types.ListType{ElemType: types.StringType},
		"firewall":     types.ListType{ElemType: types.StringType},
		"proof":        types.StringType,
	}
)

// computedAttributes are what only the server says. ModifyPlan decides which of them a change makes unknown
// (planComputed); only what can never change has a plan modifier here.
func computedAttributes() map[string]schema.Attribute {
	forever := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	return map[string]schema.Attribute{
		"id": schema.StringAttribute{
			MarkdownDescription: "The vmid as text; the import id.",
			Computed:            true,
			PlanModifiers:       forever,
		},
		"claim": schema.StringAttribute{
			MarkdownDescription: "Random text of 26 characters in the container's ownership marker. The provider touches the container only while the marker holds it.",
			Computed:            true,
			PlanModifiers:       forever,
		},
		"ipv4_address": computedText("IPv4 address, without its prefix length; null while none is known."),
		"ipv6_address": computedText("IPv6 address, without its prefix length and not link-local; null while none is known."),
		"status":       computedText("Power state: `running`, `stopped`, or `unknown` when the server didn't say."),
		"expires_at":   computedText("End of the lease, RFC 3339 in UTC; null without one."),
		"expired": schema.BoolAttribute{
			MarkdownDescription: "Whether the lease was over when the container was last read. See `lease.on_expiry`.",
			Computed:            true,
		},
		"template_current": schema.BoolAttribute{
			MarkdownDescription: "Whether the template is still the build that this container was made from; null where that can't be told. See `on_template_change`.",
			Computed:            true,
		},
		"ssh": schema.SingleNestedAttribute{
			MarkdownDescription: "How the container is reached over SSH; null while no address is known.",
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"username": computedText("User to log in as."),
				"host":     computedText("Address of the container, as seen from the jump host if there is one."),
				"port":     computedNumber("Port of the SSH server."),
				"host_key": computedText("Host key in `authorized_keys` format, pinned at the first contact; another key later on is an error. Null until a login has succeeded."),
			},
		},
		"timings": schema.SingleNestedAttribute{
			MarkdownDescription: "How long the steps of the creation took, in milliseconds; null after an import.",
			Computed:            true,
			Attributes: map[string]schema.Attribute{
				"clone":    computedNumber("The clone, or unpacking the template file, in milliseconds, the wait for other clones of the template included."),
				"start":    computedNumber("The start task, in milliseconds."),
				"firewall": computedNumber("The wait for the server's firewall rules to bite, with the link held down, in milliseconds. The boot goes on meanwhile."),
				"address":  computedNumber("From the end of the start until an address was known, in milliseconds."),
				"ssh":      computedNumber("From then until a login succeeded, in milliseconds."),
				"total":    computedNumber("Everything, in milliseconds."),
			},
		},
		"posture": schema.SingleNestedAttribute{
			MarkdownDescription: "What bears on the container's isolation, as the server has it. A refresh reads it; a change from what it was at the creation (after an import: from the template) is drift: " +
				"the next apply repairs it in place where the API can, and replaces the container where it can't.",
			Computed: true,
			Attributes: map[string]schema.Attribute{
				"unprivileged": schema.BoolAttribute{
					MarkdownDescription: "Whether root of the container is an ordinary user of the node.",
					Computed:            true,
				},
				"features":   computedList("Features as in the configuration, such as `nesting=1`."),
				"mounts":     computedList("Mount points as in the configuration, such as `mp0=/srv,mp=/srv`."),
				"devices":    computedList("Devices of the node that are passed through."),
				"raw":        computedList("Raw lines, such as `lxc.apparmor.profile: unconfined`."),
				"hookscript": computedText("Script that the node runs at the container's start and stop; null if none."),
				"extra_nics": computedList("Interfaces beside `net0`; a sandbox has none."),
				"firewall":   computedList("The container's own firewall, one line for each switch, the interface's flag and link, and each rule in its order. Null with `network.mode = \"unmanaged\"`."),
				"proof":      computedText("How the network mode was proved when it was last put into force: `probed` (forbidden canaries were seen open from here and closed from inside), `simulated` (the same in a lab that sends no packets), `readback` (the rules were written, read back and had their time), `none`."),
				"pending":    computedList("Settings that wait for a restart; null where that wasn't asked for (see `restart_when_needed`)."),
			},
		},
	}
}

func computedText(description string) schema.StringAttribute {
	return schema.StringAttribute{MarkdownDescription: description, Computed: true}
}

func computedNumber(description string) schema.Int64Attribute {
	return schema.Int64Attribute{MarkdownDescription: description, Computed: true}
}

func computedList(description string) schema.ListAttribute {
	return schema.ListAttribute{MarkdownDescription: description, ElementType: types.StringType, Computed: true}
}
