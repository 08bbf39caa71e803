package pool

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/setvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// memberAttribute is the shape of the members, in the words of a sandbox_container. What belongs to one container alone
// (hostname, vmid, node, MAC address, workspaces, a lease) is given by the one that claims a member.
func memberAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Shape of the members, in the words of a `sandbox_container`. What is left out stays as the template has it. What a claim asks for beyond is changed in place when it claims.",
		Required:            true,
		Attributes: map[string]schema.Attribute{
			"template_id": schema.Int64Attribute{
				MarkdownDescription: "Vmid of the container template to clone. Default the provider's `template_id`. A new build behind the same id rolls the pool too." + rolls,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(sandbox.MinVMID, sandbox.MaxVMID)},
			},
			"full_clone": schema.BoolAttribute{
				MarkdownDescription: "Copy the template's disk instead of linking to it. Default `false`." + rolls,
				Optional:            true,
			},
			"storage": schema.StringAttribute{
				MarkdownDescription: "Storage of the root disk of a full clone. Default the provider's `storage`, else the template's." + rolls,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"cores": schema.Int64Attribute{
				MarkdownDescription: "CPU cores that a member sees, 1 to 8192. Default the template's." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 8192)},
			},
			"cpu_limit": schema.Float64Attribute{
				MarkdownDescription: "CPU time in cores' worth, 0 to 8192; `0` means no limit. Default the template's." + live,
				Optional:            true,
				Validators:          []validator.Float64{float64validator.Between(0, 8192)},
			},
			"cpu_units": schema.Int64Attribute{
				MarkdownDescription: "CPU weight, 1 to 10000. Default the template's." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 10000)},
			},
			"memory": schema.Int64Attribute{
				MarkdownDescription: "Memory in MiB, at least 16. Default the template's." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(16)},
			},
			"swap": schema.Int64Attribute{
				MarkdownDescription: "Swap in MiB, `0` for none. Default the template's." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"disk": schema.Int64Attribute{
				MarkdownDescription: "Size of the root disk in GiB. Default the template's." + rolls,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(1)},
			},
			"nesting": schema.BoolAttribute{
				MarkdownDescription: "Let a member run containers of its own; systemd 257 and later (Debian 13) needs it too. Default the template's." + rolls,
				Optional:            true,
			},
			"tags": schema.SetAttribute{
				MarkdownDescription: "Tags of a member that nobody has claimed; a claim sets its own. Default none." + live,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.Set{setvalidator.ValueStringsAre(stringvalidator.LengthAtLeast(1))},
			},
			"on_boot": schema.BoolAttribute{
				MarkdownDescription: "Start the members when their node boots. Default `false`: after a reboot of the node the next apply replaces them." + live,
				Optional:            true,
			},
			"authorized_keys": schema.ListAttribute{
				MarkdownDescription: "Public keys that may log in beside the provider's, as lines of `authorized_keys`; a claim sets its own. Default: the template's file is left alone." + live,
				ElementType:         types.StringType,
				Optional:            true,
			},
			"wait_for": schema.StringAttribute{
				MarkdownDescription: "When a member counts as ready: `ssh` (default) when a login succeeds, `address` when an address is known, `none` when the start task has ended." + local,
				Optional:            true,
				Validators: []validator.String{stringvalidator.OneOf(
					string(sandbox.WaitForSSH), string(sandbox.WaitForAddress), string(sandbox.WaitForNone))},
			},
			"network":     memberNetworkAttribute(),
			"dns":         memberDNSAttribute(),
			"allow_risks": memberRisksAttribute(),
		},
	}
}

func memberNetworkAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "The members' one interface, `eth0`. Default: the provider's `bridge`, an `auto` or `dhcp` address and mode `nat`." + live,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"bridge": schema.StringAttribute{
				MarkdownDescription: "Bridge, such as `vmbr1`. Default the provider's `bridge`, else the template's." + rolls,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"vlan_id": schema.Int64Attribute{
				MarkdownDescription: "VLAN tag, 1 to 4094. Default untagged." + rolls,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 4094)},
			},
			"mtu": schema.Int64Attribute{
				MarkdownDescription: "MTU in bytes, 64 to 65535. Default the bridge's." + rolls,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(64, 65535)},
			},
			"rate_limit": schema.Float64Attribute{
				MarkdownDescription: "Limit in MB/s, more than 0. Default no limit." + live,
				Optional:            true,
				Validators:          []validator.Float64{float64validator.AtLeast(0.001)},
			},
			"ipv4": schema.StringAttribute{
				MarkdownDescription: "IPv4 address: `auto` (from the provider's `address_range`, by the vmid), `dhcp` or `none`. Default `auto` where the provider has an `address_range`, else `dhcp`." + rolls,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(sandbox.AddressAuto, sandbox.AddressDHCP, sandbox.AddressNone)},
			},
			"ipv6": schema.StringAttribute{
				MarkdownDescription: "IPv6 address: `auto` (SLAAC), `dhcp` or `none` (default)." + rolls,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf(sandbox.AddressAuto, sandbox.AddressDHCP, sandbox.AddressNone)},
			},
			"mode": schema.StringAttribute{
				MarkdownDescription: "What a member may reach, in force before it counts as ready: `nat` (default), `web`, `allowlist`, `off`, or `unmanaged`, which each plan warns about. A claim that asks for the same mode has nothing to wait for." + live,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf("nat", "off", "web", "allowlist", "unmanaged")},
			},
			"firewall_group": schema.StringAttribute{
				MarkdownDescription: "Security group of the datacenter that holds the rules of `mode`. Default: the rules are written to each member's own firewall." + live,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(2, 18)},
			},
			"allow": schema.ListNestedAttribute{
				MarkdownDescription: "Exceptions from `mode`; with `allowlist`, all that is let out. Default none." + live,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"to": schema.StringAttribute{
						MarkdownDescription: "Address or network in CIDR form." + live,
						Required:            true,
					},
					"ports": schema.StringAttribute{
						MarkdownDescription: "Destination ports, such as `80,443,8000:8100`. Default all." + live,
						Optional:            true,
					},
					"protocol": schema.StringAttribute{
						MarkdownDescription: "Protocol, such as `tcp`. Default all, and `tcp` where `ports` are given." + live,
						Optional:            true,
					},
				}},
			},
			"proof": schema.StringAttribute{
				MarkdownDescription: "How sure the firewall must be before a member counts as ready: `guarded` (default), `probed` or `none`, as of a `sandbox_container`." + local,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.OneOf("guarded", "probed", "none")},
			},
			"canaries": schema.ListAttribute{
				MarkdownDescription: "Listeners, `address:port`, that are tried from inside before a member counts as ready. Default none." + local,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()},
			},
		},
	}
}

func memberDNSAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "The members' resolver. Default the template's, else the node's." + rolls,
		Optional:            true,
		Attributes: map[string]schema.Attribute{
			"servers": schema.ListAttribute{
				MarkdownDescription: "Addresses of DNS servers, in the order in which they are asked. Default the node's." + rolls,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.UniqueValues()},
			},
			"domain": schema.StringAttribute{
				MarkdownDescription: "Search domain. Default the node's." + rolls,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

func memberRisksAttribute() schema.Attribute {
	return schema.ListNestedAttribute{
		MarkdownDescription: "Exceptions from the policy, each with its reason, as of a `sandbox_container`. Default none." + local,
		Optional:            true,
		Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
		NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
			"rule": schema.StringAttribute{
				MarkdownDescription: "Rule of the policy." + local,
				Required:            true,
				Validators:          []validator.String{stringvalidator.OneOf(sandbox.Rules()...)},
			},
			"reason": schema.StringAttribute{
				MarkdownDescription: "Why the members may have the risk." + local,
				Required:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		}},
	}
}
