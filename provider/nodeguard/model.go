package nodeguard

import (
	"context"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// Model is sandbox_node_guard.
type Model struct {
	ID        types.String   `tfsdk:"id"`
	NodeName  types.String   `tfsdk:"node_name"`
	Bridge    types.String   `tfsdk:"bridge"`
	Subnet    types.String   `tfsdk:"subnet"`
	DHCP      types.Bool     `tfsdk:"dhcp"`
	Resolvers types.List     `tfsdk:"resolvers"`
	Allow     types.List     `tfsdk:"allow"`
	Rules     types.List     `tfsdk:"rules"`
	Above     types.Int64    `tfsdk:"above"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
}

type allowModel struct {
	To       types.String `tfsdk:"to"`
	Ports    types.String `tfsdk:"ports"`
	Protocol types.String `tfsdk:"protocol"`
}

func (m *Model) thing() string {
	key := m.Subnet.ValueString()
	if m.Subnet.IsNull() {
		key = m.Bridge.ValueString()
	}
	return "guard of " + key + " on node " + m.NodeName.ValueString()
}

// known says whether everything that the rules are made of is known. The bridge of a subnet is found out.
func (m *Model) known(ctx context.Context) bool {
	values := []attr.Value{m.NodeName, m.Subnet, m.DHCP, m.Resolvers, m.Allow}
	if m.Subnet.IsNull() {
		values = append(values, m.Bridge)
	}
	for _, v := range values {
		t, err := v.ToTerraformValue(ctx)
		if err != nil || !t.IsFullyKnown() {
			return false
		}
	}
	return true
}

func (m *Model) spec(ctx context.Context, diags *diag.Diagnostics) sandbox.GuardSpec {
	s := sandbox.GuardSpec{NodeName: m.NodeName.ValueString(), DHCP: m.DHCP.ValueBool()}
	if m.Subnet.IsNull() {
		s.Bridge = m.Bridge.ValueString()
	} else {
		p, err := netip.ParsePrefix(m.Subnet.ValueString())
		if err != nil {
			diags.AddAttributeError(path.Root("subnet"), "Not a network", m.Subnet.ValueString()+" is no network in CIDR form.")
		}
		s.Subnet = p
	}
	if !m.Resolvers.IsNull() {
		var list []string
		diags.Append(m.Resolvers.ElementsAs(ctx, &list, false)...)
		for i, text := range list {
			addr, err := netip.ParseAddr(text)
			if err != nil {
				diags.AddAttributeError(path.Root("resolvers").AtListIndex(i), "Not an address", text+" is no IPv4 or IPv6 address.")
				continue
			}
			s.Resolvers = append(s.Resolvers, addr)
		}
	}
	if !m.Allow.IsNull() {
		var list []allowModel
		diags.Append(m.Allow.ElementsAs(ctx, &list, false)...)
		for _, a := range list {
			s.Allow = append(s.Allow, egress.Allow{To: a.To.ValueString(), Ports: a.Ports.ValueString(), Protocol: a.Protocol.ValueString()})
		}
	}
	return s
}

// fill sets what the node holds.
func (m *Model) fill(g sandbox.Guard) {
	m.ID, m.NodeName = types.StringValue(g.NodeName+"/"+g.Key), types.StringValue(g.NodeName)
	if g.Bridge != "" {
		m.Bridge = types.StringValue(g.Bridge)
	}
	m.Rules, m.Above = linesOf(g.Rules), types.Int64Value(int64(g.Above))
}

// settleBridge finds the bridge of a subnet where it isn't known. That it can't be seen fails nothing: then it is null.
func (m *Model) settleBridge(ctx context.Context, manager *sandbox.Manager, spec sandbox.GuardSpec) {
	if !m.Bridge.IsUnknown() {
		return
	}
	m.Bridge = types.StringNull()
	if bridge, err := manager.BridgeOf(ctx, spec.NodeName, spec.Subnet); err == nil && bridge != "" {
		m.Bridge = types.StringValue(bridge)
	}
}

// linesOf are rules as lines: every field of them is in it.
func linesOf(rules []egress.Rule) types.List {
	lines := make([]attr.Value, 0, len(rules))
	for _, r := range rules {
		lines = append(lines, types.StringValue(r.String()))
	}
	return types.ListValueMust(types.StringType, lines)
}
