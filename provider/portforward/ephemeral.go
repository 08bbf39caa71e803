// Package portforward is the ephemeral resource sandbox_port_forward: a tunnel into a sandbox, or out of it, that lives as
// long as a run of Terraform needs it.
package portforward

import (
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"strconv"
	"time"

	"github.com/hashicorp/terraform-plugin-framework-validators/int64validator"
	"github.com/hashicorp/terraform-plugin-framework-validators/objectvalidator"
	"github.com/hashicorp/terraform-plugin-framework-validators/stringvalidator"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral/schema"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

var (
	_ ephemeral.EphemeralResourceWithConfigure = (*portForward)(nil)
	_ ephemeral.EphemeralResourceWithClose     = (*portForward)(nil)
)

const (
	defaultPatience = 30 * time.Second
	openTimeout     = 2 * time.Minute
)

type portForward struct{ base.EphemeralBase }

// NewEphemeralResource returns ephemeral sandbox_port_forward.
func NewEphemeralResource() ephemeral.EphemeralResource { return &portForward{} }

func (f *portForward) Metadata(_ context.Context, req ephemeral.MetadataRequest, resp *ephemeral.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_port_forward"
}

func (f *portForward) Schema(_ context.Context, _ ephemeral.SchemaRequest, resp *ephemeral.SchemaResponse) {
	resp.Schema = schema.Schema{
		MarkdownDescription: "A tunnel over SSH for as long as a run of Terraform needs it. With `port`: a port of this machine's loopback that leads to a port of a container, so that other providers can talk to what runs in it, also to what listens on its loopback only. " +
			"With `remote_forward`, the reverse: a port of the container's loopback that leads to one service of ours, which is all that a sandbox without a way out can reach. " +
			"It opens in plan and apply; for a container that isn't made yet, in apply only. It needs Terraform 1.10 or OpenTofu 1.11.",
		Attributes: map[string]schema.Attribute{
			"container_id": schema.StringAttribute{
				MarkdownDescription: "Container, by its `id` (the vmid). It must carry this provider's ownership marker.",
				Required:            true,
				Validators:          base.ContainerIDValidators(),
			},
			"host_key": schema.StringAttribute{
				MarkdownDescription: base.HostKeyDescription,
				Optional:            true,
				Validators:          []validator.String{stringvalidator.LengthAtLeast(1)},
			},
			"port": schema.Int64Attribute{
				MarkdownDescription: "TCP port in the container to lead to, as its own loopback has it. This or `remote_forward` is required.",
				Optional:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 65535), int64validator.ExactlyOneOf(path.MatchRoot("port"), path.MatchRoot("remote_forward"))},
			},
			"local_port": schema.Int64Attribute{
				MarkdownDescription: "Port of this machine's 127.0.0.1 to listen on, with `port`. Default a free one.",
				Optional:            true,
				Computed:            true,
				Validators:          []validator.Int64{int64validator.Between(1, 65535), int64validator.AlsoRequires(path.MatchRoot("port"))},
			},
			"wait": schema.StringAttribute{
				MarkdownDescription: fmt.Sprintf("How long a connection waits until the container's port answers, as a Go duration such as `\"30s\"`, with `port`. Default `%s`.", base.ShortDuration(defaultPatience)),
				Optional:            true,
				Validators:          []validator.String{base.Duration(), stringvalidator.AlsoRequires(path.MatchRoot("port"))},
			},
			"remote_forward": schema.SingleNestedAttribute{
				MarkdownDescription: "A port of the container's 127.0.0.1 that leads to an address which this machine reaches. Nothing outside the container can use it. A container that doesn't run yet, as in a plan, is only warned of.",
				Optional:            true,
				Validators:          []validator.Object{objectvalidator.ConflictsWith(path.MatchRoot("port"))},
				Attributes: map[string]schema.Attribute{
					"port": schema.Int64Attribute{
						MarkdownDescription: "Port of the container's loopback to listen on. Default a free one; `address` says which.",
						Optional:            true,
						Validators:          []validator.Int64{int64validator.Between(1, 65535)},
					},
					"to": schema.StringAttribute{
						MarkdownDescription: "Where it leads, `host:port` as this machine sees it, such as `127.0.0.1:5432`.",
						Required:            true,
						Validators:          []validator.String{stringvalidator.RegexMatches(regexp.MustCompile(`^(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9_.-]+):[0-9]{1,5}$`), "must be host:port")},
					},
				},
			},
			"address": schema.StringAttribute{
				MarkdownDescription: "Where the tunnel listens, such as `127.0.0.1:40321`: on this machine with `port`, in the container with `remote_forward` (null while it doesn't run).",
				Computed:            true,
			},
		},
	}
}

type model struct {
	ContainerID   types.String `tfsdk:"container_id"`
	HostKey       types.String `tfsdk:"host_key"`
	Port          types.Int64  `tfsdk:"port"`
	LocalPort     types.Int64  `tfsdk:"local_port"`
	Wait          types.String `tfsdk:"wait"`
	RemoteForward *remoteModel `tfsdk:"remote_forward"`
	Address       types.String `tfsdk:"address"`
}

type remoteModel struct {
	Port types.Int64  `tfsdk:"port"`
	To   types.String `tfsdk:"to"`
}

func (f *portForward) Open(ctx context.Context, req ephemeral.OpenRequest, resp *ephemeral.OpenResponse) {
	var m model
	resp.Diagnostics.Append(req.Config.Get(ctx, &m)...)
	manager, ok := f.Manager(&resp.Diagnostics)
	if !ok || resp.Diagnostics.HasError() {
		return
	}
	inside, err := base.Inside(m.ContainerID, m.HostKey)
	if err != nil {
		resp.Diagnostics.AddAttributeError(path.Root("container_id"), "Invalid container", err.Error())
		return
	}
	limited, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	tunnel, err := m.open(limited, manager, inside)
	switch {
	case errors.Is(err, sandbox.ErrNotRunning) && m.RemoteForward != nil:
		resp.Diagnostics.AddWarning("Nothing is forwarded yet", fmt.Sprintf("%v. The tunnel opens when the container runs: in the apply, if that starts it.", err))
		m.LocalPort, m.Address = types.Int64Null(), types.StringNull()
		resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
		return
	case err != nil:
		base.AddError(&resp.Diagnostics, "open", "a tunnel to container "+m.ContainerID.ValueString(), err)
		return
	}
	m.Address = types.StringValue(tunnel.Address.String())
	if m.RemoteForward == nil {
		m.LocalPort = types.Int64Value(int64(tunnel.Address.Port()))
	}
	resp.Diagnostics.Append(f.Data.Opened.Keep(ctx, resp.Private, func(context.Context) diag.Diagnostics {
		_ = tunnel.Close() // nothing is lost but the tunnel
		return nil
	})...)
	resp.Diagnostics.Append(resp.Result.Set(ctx, &m)...)
}

func (m *model) open(ctx context.Context, manager *sandbox.Manager, inside sandbox.Prior) (*sandbox.Tunnel, error) {
	if r := m.RemoteForward; r != nil {
		if _, number, err := net.SplitHostPort(r.To.ValueString()); err != nil || !isPort(number) {
			return nil, fmt.Errorf("remote_forward.to: %q is no host:port", r.To.ValueString())
		}
		return manager.ReverseForward(ctx, inside, int(r.Port.ValueInt64()), r.To.ValueString())
	}
	patience := defaultPatience
	if !m.Wait.IsNull() {
		patience, _ = time.ParseDuration(m.Wait.ValueString()) // validated
	}
	return manager.Forward(ctx, inside, int(m.Port.ValueInt64()), int(m.LocalPort.ValueInt64()), patience)
}

func isPort(text string) bool {
	n, err := strconv.Atoi(text)
	return err == nil && n > 0 && n < 65536
}

func (f *portForward) Close(ctx context.Context, req ephemeral.CloseRequest, resp *ephemeral.CloseResponse) {
	if f.Data != nil {
		resp.Diagnostics.Append(f.Data.Opened.End(ctx, req.Private)...)
	}
}
