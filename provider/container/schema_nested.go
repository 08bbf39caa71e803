package container

import (
	"github.com/hashicorp/terraform-plugin-framework-validators/float64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/objectplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// networkAttribute is the container's one interface. Its defaults depend on the provider block, so ModifyPlan sets them
// (planNetwork), not the schema.
func networkAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "The container's one interface, `eth0` (`net0` on the server). Default: the provider's `bridge` and an `auto` or `dhcp` address.",
		Optional:            true,
		Computed:            true,
		Attributes: map[string]schema.Attribute{
			"bridge": schema.StringAttribute{
				MarkdownDescription: "Bridge that the interface is attached to, such as `vmbr1`. Default the provider's `bridge`, else the template's." + live,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"vlan_id": schema.Int64Attribute{
				MarkdownDescription: "VLAN tag, 1 to 4094. Default untagged." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 4094)},
			},
			"mtu": schema.Int64Attribute{
				MarkdownDescription: "MTU in bytes, 64 to 65535. Default the bridge's." + restart,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(64, 65535)},
			},
			"rate_limit": schema.Float64Attribute{
				MarkdownDescription: "Limit in MB/s, more than 0. Default no limit." + live,
				Optional:            true,
				Validators:          []validator.Float64{float64validator.AtLeast(0.001)},
			},
			"mac_address": schema.StringAttribute{
				MarkdownDescription: "MAC address, such as `BC:24:11:00:00:01`; the case of the digits doesn't matter. Default one that the server makes, kept from then on." + live,
				CustomType:          value.MACType,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{macAddress()},
			},
			"ipv4": schema.StringAttribute{
				MarkdownDescription: "IPv4 address: `auto` (from the provider's `address_range`, by the vmid), `dhcp`, `none`, or an address in CIDR form such as `10.0.0.5/24`. Default `auto` where the provider has an `address_range`, else `dhcp`." + live,
				CustomType:          value.AddressType,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{ipv4Setting()},
			},
			"gateway": schema.StringAttribute{
				MarkdownDescription: "IPv4 gateway, within the address's network. Default that of `address_range` with `auto`, else none." + live,
				CustomType:          value.AddressType,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{ipv4Address()},
			},
			"ipv6": schema.StringAttribute{
				MarkdownDescription: "IPv6 address: `auto` (SLAAC), `dhcp`, `none` (default), or an address in CIDR form." + live,
				CustomType:          value.AddressType,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{ipv6Setting()},
			},
			"mode": schema.StringAttribute{
				MarkdownDescription: "What the container may reach: `nat` (default) drops private, link-local, tailnet and metadata ranges and lets everything else out; `web` lets only DNS, TCP 80 and 443 out; `allowlist` only DNS and what `allow` names; `off` nothing at all, not even DNS. " +
					"In each of them, only SSH from the provider's `management_cidrs` gets in. `unmanaged` leaves the firewall alone, which each plan warns about. A change of a running container is applied in place: when the new rules bite, open connections that they forbid are ended from inside, which takes a fraction of a second, needs `ss` (iproute2) in the container and leaves the others alone; where it can't be done, the container is restarted.",
				Optional:   true,
				Computed:   true,
				Validators: []validator.String{stringvalidator.OneOf("nat", "off", "web", "allowlist", "unmanaged")},
			},
			"firewall_group": schema.StringAttribute{
				MarkdownDescription: "Security group of the datacenter that holds the rules of `mode`. It must exist when the container is made. Default: the rules are written to the container's own firewall." + live,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthBetween(2, 18)},
			},
			"allow": schema.ListNestedAttribute{
				MarkdownDescription: "Exceptions from `mode`; with `allowlist`, all that is let out. Default none." + live,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"to": schema.StringAttribute{
						MarkdownDescription: "Address, network in CIDR form, or with `resolve` a domain." + live,
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
					"resolve": schema.StringAttribute{
						MarkdownDescription: "`apply`: `to` is a domain whose addresses are looked up by the machine that runs the apply, and pinned. A refresh looks it up again; once it has an address that isn't pinned, the plan shows that, and the apply pins anew. " +
							"Proxmox VE filters addresses, not names: a container that gets another answer from its own resolver is blocked, other names at the same address are open, and a domain whose answers rotate shows drift at each plan. " +
							"An address in a closed range is refused, whoever has written it into the domain's records." + live,
						Optional:   true,
						Validators: []validator.String{stringvalidator.OneOf("apply")},
					},
				}},
			},
			"proof": schema.StringAttribute{
				MarkdownDescription: "How sure the firewall must be before the container counts as ready. `guarded` (default): its link stays down until the rules surely bite (the provider's `firewall_settle`), then the `canaries` are tried from inside. `probed`: the link is up at once and the canaries are tried before it is ready, for templates whose boot runs nothing foreign. `none`: neither, which each plan warns about." + local,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.String{stringvalidator.OneOf("guarded", "probed", "none")},
			},
			"canaries": schema.ListAttribute{
				MarkdownDescription: "Listeners off the node that are tried from inside over SSH: `192.168.1.1:443` or `[fd00::1]:443` by TCP, `udp://192.168.1.1:53` by UDP, where the listener must answer a DNS question at port 53, one for the time at 123, and any datagram at others. One that the mode forbids counts only when it has just answered us (by UDP, this machine itself: nothing carries UDP over a jump host); if the container reaches it too, its link goes down, it is stopped and the apply fails. One that is allowed and unreachable is a warning. With `off`, DNS to the resolvers is tried as well, and with every mode the ports 22 and 8006 of the node: open behind a `sandbox_node_guard` they fail the apply, else they are a warning that says which rules close them. Default none: the rules are written and read back, and a warning says that they weren't tried." + local,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1), listvalidator.UniqueValues()},
			},
		},
	}
}

func dnsAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "The container's resolver. Default the template's, else the node's.",
		Optional:            true,
		Computed:            true,
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
		Attributes: map[string]schema.Attribute{
			"servers": schema.ListAttribute{
				MarkdownDescription: "Addresses of DNS servers, in the order in which they are asked. Default the node's." + restart,
				ElementType:         types.StringType,
				Optional:            true,
				Validators:          []validator.List{listvalidator.UniqueValues(), listvalidator.ValueStringsAre(ipAddress())},
			},
			"domain": schema.StringAttribute{
				MarkdownDescription: "Search domain. Default the node's." + restart,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
		},
	}
}

func startupAttribute() schema.Attribute {
	return schema.SingleNestedAttribute{
		MarkdownDescription: "Order and pauses when the node starts and stops its guests. Default the template's.",
		Optional:            true,
		Computed:            true,
		PlanModifiers:       []planmodifier.Object{objectplanmodifier.UseStateForUnknown()},
		Attributes: map[string]schema.Attribute{
			"order": schema.Int64Attribute{
				MarkdownDescription: "Place in the order; lower starts first and stops last. Default none: after all that have one." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"up_delay": schema.Int64Attribute{
				MarkdownDescription: "Pause after this container's start, in seconds. Default none." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
			"down_delay": schema.Int64Attribute{
				MarkdownDescription: "How long its shutdown may take before it is stopped, in seconds. Default the node's (180)." + live,
				Optional:            true,
				Validators:          []validator.Int64{int64validator.AtLeast(0)},
			},
		},
	}
}
