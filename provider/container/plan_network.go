package container

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// planNetwork plans the whole interface: what the configuration says, else the default, which for some attributes the
// provider block decides. So taking an attribute out of the configuration goes back to its default, and drift of one
// that was never in it is repaired too. Only the MAC address and an unnamed bridge stay as they are.
func (r *containerResource) planNetwork(ctx context.Context, diags *diag.Diagnostics, plan, config, state *Model) {
	if config.Network.IsUnknown() {
		return
	}
	c := as[NetworkModel](ctx, diags, config.Network)
	var s NetworkModel
	if state != nil {
		s = as[NetworkModel](ctx, diags, state.Network)
	}
	plan.Network = types.ObjectValueMust(networkTypes, map[string]attr.Value{
		"bridge":         r.planBridge(c, s, state),
		"vlan_id":        c.VLANID,
		"mtu":            c.MTU,
		"rate_limit":     c.RateLimit,
		"mac_address":    planMAC(c, s, state),
		"ipv4":           r.planIPv4(c, s),
		"gateway":        r.planGateway(c, s),
		"mode":           textOr(c.Mode, string(sandbox.DefaultMode)),
		"firewall_group": c.FirewallGroup,
		"allow":          listOr(c.Allow, allowType),
		"proof":          textOr(c.Proof, string(sandbox.ProofGuarded)),
		"canaries":       listOr(c.Canaries, types.StringType),
		"ipv6":           said(c.IPv6, s.IPv6, value.AddressType.Known(sandbox.AddressNone)),
	})
}

// textOr is the configured value, or the default.
func textOr(config types.String, otherwise string) types.String {
	if config.IsNull() {
		return types.StringValue(otherwise)
	}
	return config
}

// listOr gives a list that isn't configured its type.
func listOr(config types.List, element attr.Type) types.List {
	if config.IsNull() {
		return types.ListNull(element)
	}
	return config
}

// said is the configured value, in the state's spelling if that means the same, or the default.
func said(config, state, otherwise value.String) value.String {
	v := config
	if v.IsNull() {
		v = otherwise
	}
	if value.Known(v) && value.Known(state) && v.Same(state) {
		return state
	}
	return v
}

func (r *containerResource) planBridge(c, s NetworkModel, state *Model) types.String {
	switch {
	case !c.Bridge.IsNull():
		return c.Bridge
	case !r.Data.Known():
		if state != nil {
			return s.Bridge
		}
		return types.StringUnknown()
	case r.Data.Settings.Bridge != "":
		return types.StringValue(r.Data.Settings.Bridge)
	case state != nil:
		return s.Bridge
	}
	return types.StringUnknown() // the template's
}

func planMAC(c, s NetworkModel, state *Model) value.String {
	switch {
	case !c.MACAddress.IsNull():
		return said(c.MACAddress, s.MACAddress, c.MACAddress)
	case state != nil && value.Known(s.MACAddress):
		return s.MACAddress
	}
	return value.MACType.Unknown()
}

func (r *containerResource) planIPv4(c, s NetworkModel) value.String {
	otherwise := value.AddressType.Known(sandbox.AddressDHCP)
	switch {
	case !c.IPv4.IsNull():
	case !r.Data.Known() && value.Known(s.IPv4):
		otherwise = s.IPv4
	case !r.Data.Known():
		otherwise = value.AddressType.Unknown()
	case r.Data.Settings.Addresses != nil:
		otherwise = value.AddressType.Known(sandbox.AddressAuto)
	}
	return said(c.IPv4, s.IPv4, otherwise)
}

func (r *containerResource) planGateway(c, s NetworkModel) value.String {
	ipv4 := r.planIPv4(c, s)
	otherwise := value.AddressType.Null()
	switch {
	case !c.Gateway.IsNull():
	case ipv4.IsUnknown():
		otherwise = value.AddressType.Unknown()
	case ipv4.ValueString() != sandbox.AddressAuto:
	case !r.Data.Known():
		otherwise = value.AddressType.Unknown()
		if value.Known(s.IPv4) {
			otherwise = s.Gateway
		}
	case r.Data.Settings.Addresses != nil && r.Data.Settings.Addresses.Gateway.IsValid():
		otherwise = value.AddressType.Known(r.Data.Settings.Addresses.Gateway.String())
	}
	return said(c.Gateway, s.Gateway, otherwise)
}
