// Package exposure is the resource sandbox_port_exposure, a port of a sandbox that its node exposes, and the data source
// sandbox_port_exposures.
package exposure

import (
	"context"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/schema/validator"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// Model is a sandbox_port_exposure in configuration, plan and state.
type Model struct {
	ID          types.String   `tfsdk:"id"`
	ContainerID types.String   `tfsdk:"container_id"`
	HostKey     types.String   `tfsdk:"host_key"`
	Port        types.Int64    `tfsdk:"port"`
	Protocol    types.String   `tfsdk:"protocol"`
	Via         types.String   `tfsdk:"via"`
	Address     types.String   `tfsdk:"address"`
	HostPort    types.Int64    `tfsdk:"host_port"`
	AllowRisks  types.List     `tfsdk:"allow_risks"`
	Name        types.String   `tfsdk:"name"`
	NodeName    types.String   `tfsdk:"node_name"`
	URL         types.String   `tfsdk:"url"`
	Target      types.String   `tfsdk:"target"`
	State       types.String   `tfsdk:"state"`
	Timeouts    timeouts.Value `tfsdk:"timeouts"`
}

var riskType = types.ObjectType{AttrTypes: map[string]attr.Type{"rule": types.StringType, "reason": types.StringType}}

// thing names the exposure in messages.
func (m *Model) thing() string {
	return fmt.Sprintf("exposure of port %d of container %s", m.Port.ValueInt64(), m.ContainerID.ValueString())
}

func (m *Model) spec(ctx context.Context, ref sandbox.Ref, diags *diag.Diagnostics) sandbox.ExposureSpec {
	s := sandbox.ExposureSpec{
		Container: ref, HostKey: m.HostKey.ValueString(), Port: int(m.Port.ValueInt64()),
		Via: exposure.Via(m.Via.ValueString()), HostPort: int(m.HostPort.ValueInt64()),
	}
	if value.Known(m.Address) {
		s.Address, _ = netip.ParseAddr(m.Address.ValueString()) // validated
	}
	if value.Known(m.AllowRisks) {
		var risks []struct {
			Rule   types.String `tfsdk:"rule"`
			Reason types.String `tfsdk:"reason"`
		}
		diags.Append(m.AllowRisks.ElementsAs(ctx, &risks, false)...)
		for _, r := range risks {
			s.AllowRisks = append(s.AllowRisks, sandbox.Risk{Rule: r.Rule.ValueString(), Reason: r.Reason.ValueString()})
		}
	}
	return s
}

// fill writes what the node says into the model. Create, Read, Update and Import all end here.
func (m *Model) fill(x sandbox.Exposure) {
	m.ID = types.StringValue(m.ContainerID.ValueString() + "/" + strconv.Itoa(x.Port))
	m.Via = types.StringValue(string(x.Via()))
	m.Address = types.StringNull()
	if x.Via() == exposure.ViaAddress {
		m.Address = types.StringValue(x.Listen.Addr().String())
	}
	m.HostPort = types.Int64Value(int64(x.Listen.Port()))
	m.Name = types.StringValue(x.Name)
	m.NodeName = types.StringValue(x.Container.Node)
	m.Target = types.StringValue(x.Target.String())
	m.State = types.StringValue(x.State)
	m.URL = m.url(x.Host)
}

// url is null where the host isn't known: the node is in no tailnet.
func (m *Model) url(host string) types.String {
	text, err := exposure.URL(m.Protocol.ValueString(), host, int(m.HostPort.ValueInt64()))
	if err != nil {
		return types.StringNull()
	}
	return types.StringValue(text)
}

// addressValidator refuses what is no IPv4 address.
type addressValidator struct{}

func (addressValidator) Description(context.Context) string {
	return "must be an IPv4 address such as 192.0.2.10"
}

func (v addressValidator) MarkdownDescription(ctx context.Context) string { return v.Description(ctx) }

func (v addressValidator) ValidateString(ctx context.Context, req validator.StringRequest, resp *validator.StringResponse) {
	if !value.Known(req.ConfigValue) {
		return
	}
	if a, err := netip.ParseAddr(req.ConfigValue.ValueString()); err != nil || !a.Is4() {
		resp.Diagnostics.AddAttributeError(req.Path, "Invalid address", fmt.Sprintf("%s %s, got %q.", path.Root("address"), v.Description(ctx), req.ConfigValue.ValueString()))
	}
}
