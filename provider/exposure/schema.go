package exposure

import (
	"context"
	"fmt"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/listvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/int64planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringdefault"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

const (
	replaces = " A change replaces the exposure."
	inPlace  = " A change is applied in place and cuts open connections."
	touches  = " A change touches nothing."
)

var limits = base.Timeouts{Create: 2 * time.Minute, Read: time.Minute, Update: 2 * time.Minute, Delete: 2 * time.Minute}

func (r *exposureResource) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	kept := []planmodifier.String{stringplanmodifier.UseStateForUnknown()}
	resp.Schema = schema.Schema{
		MarkdownDescription: "Exposes a TCP port of a container on its node, for those who should see it and nobody else: on the node's loopback (default), in the tailnet that the node is in, or on one address of the node. " +
			"On the node it is a systemd socket unit named `sbx-<vmid>-<port>` with `systemd-socket-proxyd` behind it, which leads to the container's own address and lives without Terraform. " +
			"It is made over SSH, so `node_ssh` must be set in the provider block, with `root` or with the restricted login that `examples/bootstrap` makes. " +
			"The exposure goes with its container, also where only that is destroyed.",
		Attributes: map[string]schema.Attribute{
			"id": schema.StringAttribute{MarkdownDescription: "`container_id`, a slash and `port`.", Computed: true, PlanModifiers: kept},
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container, by its `id` (the vmid). It must carry this provider's ownership marker and have an IPv4 address. One that the container got from a DHCP server is believed only after a login there." + replaces,
				Required:            true,
				Validators:          base.ContainerIDValidators(),
				PlanModifiers:       []planmodifier.String{stringplanmodifier.RequiresReplace()},
			},
			"host_key": schema.StringAttribute{
				MarkdownDescription: base.HostKeyDescription + touches,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"port": schema.Int64Attribute{
				MarkdownDescription: "TCP port in the container. Nothing needs to listen there yet. The function `development_ports` has the common ones of development servers." + replaces,
				Required:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 65535)},
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.RequiresReplace()},
			},
			"protocol": schema.StringAttribute{
				MarkdownDescription: "What is spoken there, for `url`: `tcp` (default), `http` or `https`. All are carried as they are; UDP can't be." + touches,
				Optional:            true,
				Computed:            true,
				Default:             stringdefault.StaticString("tcp"),
				Validators:          []validator.String{stringvalidator.OneOf("tcp", "http", "https")},
			},
			"via": schema.StringAttribute{
				MarkdownDescription: "How it is reached: `loopback` (default): 127.0.0.1 of the node, by SSH forwarding or a proxy there; `tailscale`: the node's name in its tailnet, published by `tailscale serve` (the restricted login must be the operator: `tailscale set --operator=sandbox-node`); " +
					"`address`: the node's `address`." + inPlace,
				Optional:   true,
				Computed:   true,
				Default:    stringdefault.StaticString(string(exposure.ViaLoopback)),
				Validators: []validator.String{stringvalidator.OneOf(string(exposure.ViaLoopback), string(exposure.ViaTailscale), string(exposure.ViaAddress))},
			},
			"address": schema.StringAttribute{
				MarkdownDescription: "IPv4 address of the node to listen on, with `via = \"address\"`. `0.0.0.0` is refused unless `allow_risks` names `" + sandbox.RuleEveryAddress + "`, and one in the sandboxes' own network always." + inPlace,
				Optional:            true,
				Validators:          []validator.String{addressValidator{}},
			},
			"host_port": schema.Int64Attribute{
				MarkdownDescription: fmt.Sprintf("Port on the node. Default a free one from %d to %d, the same again for the same container and port. The restricted login gives none below 1024. A port that is taken is an error at plan, where the container is known, else at apply.", sandbox.FirstHostPort, sandbox.LastHostPort) + inPlace,
				Optional:            true,
				Computed:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 65535)},
				PlanModifiers:       []planmodifier.Int64{int64planmodifier.UseStateForUnknown()},
			},
			"allow_risks": schema.ListNestedAttribute{
				MarkdownDescription: "Exceptions, each with its reason. The one rule is `" + sandbox.RuleEveryAddress + "`: listen on every address of the node. Default none." + touches,
				Optional:            true,
				Validators:          []validator.List{listvalidator.SizeAtLeast(1)},
				NestedObject: schema.NestedAttributeObject{Attributes: map[string]schema.Attribute{
					"rule": schema.StringAttribute{
						MarkdownDescription: "The rule, `" + sandbox.RuleEveryAddress + "`." + touches,
						Required:            true,
						Validators:          []validator.String{stringvalidator.OneOf(sandbox.RuleEveryAddress)},
					},
					"reason": schema.StringAttribute{
						MarkdownDescription: "Why it may be." + touches,
						Required:            true,
						Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
					},
				}},
			},
			"name":      schema.StringAttribute{MarkdownDescription: "Name of the units on the node, `sbx-<vmid>-<port>`; the function `exposure_name` makes it.", Computed: true, PlanModifiers: kept},
			"node_name": schema.StringAttribute{MarkdownDescription: "Node that it is on.", Computed: true, PlanModifiers: kept},
			"url":       schema.StringAttribute{MarkdownDescription: "Where it is reached, such as `http://127.0.0.1:20123`; for `loopback` as seen from the node.", Computed: true, PlanModifiers: kept},
			"target":    schema.StringAttribute{MarkdownDescription: "Where it leads, such as `10.77.1.12:8080`.", Computed: true, PlanModifiers: kept},
			"state": schema.StringAttribute{
				MarkdownDescription: "As the last refresh found it, trying the container's port from the node: `open`; `refused` (nothing listens in the container); `silent` (the container doesn't answer); `listening` (made just now, not tried). " +
					"`inactive` (the node doesn't listen), `unpublished` (Tailscale doesn't serve it) and `stale` (the container has moved, or has another address) are repaired by the next apply. `orphaned`: the container is gone.",
				Computed:      true,
				PlanModifiers: kept,
			},
			"timeouts": limits.Attribute(),
		},
	}
}
