package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"
)

// model is the provider block.
type model struct {
	Endpoint     types.String `tfsdk:"endpoint"`
	APIToken     types.String `tfsdk:"api_token"`
	Username     types.String `tfsdk:"username"`
	Password     types.String `tfsdk:"password"`
	OTP          types.String `tfsdk:"otp"`
	CAFile       types.String `tfsdk:"ca_file"`
	CAPEM        types.String `tfsdk:"ca_pem"`
	Fingerprint  types.String `tfsdk:"fingerprint"`
	Insecure     types.Bool   `tfsdk:"insecure"`
	Owner        types.String `tfsdk:"owner"`
	VMIDRange    types.Object `tfsdk:"vmid_range"`
	AddressRange types.Object `tfsdk:"address_range"`
	Adopt        types.Bool   `tfsdk:"adopt"`
	Nodes        types.List   `tfsdk:"nodes"`
	TemplateID   types.Int64  `tfsdk:"template_id"`
	PoolID       types.String `tfsdk:"pool_id"`
	Storage      types.String `tfsdk:"storage"`
	Bridge       types.String `tfsdk:"bridge"`
	GuestSSH     types.Object `tfsdk:"guest_ssh"`
	NodeSSH      types.Object `tfsdk:"node_ssh"`
	MaxClones    types.Int64  `tfsdk:"max_clones"`

	ManagementCIDRs types.List   `tfsdk:"management_cidrs"`
	FirewallSettle  types.String `tfsdk:"firewall_settle"`
}

type vmidRangeModel struct {
	First types.Int64 `tfsdk:"first"`
	Last  types.Int64 `tfsdk:"last"`
}

type addressRangeModel struct {
	CIDR    types.String `tfsdk:"cidr"`
	First   types.String `tfsdk:"first"`
	Gateway types.String `tfsdk:"gateway"`
}

type guestSSHModel struct {
	Username       types.String `tfsdk:"username"`
	PrivateKey     types.String `tfsdk:"private_key"`
	PrivateKeyFile types.String `tfsdk:"private_key_file"`
	Agent          types.Bool   `tfsdk:"agent"`
	Port           types.Int64  `tfsdk:"port"`
	Timeout        types.String `tfsdk:"timeout"`
	ProxyJump      types.Object `tfsdk:"proxy_jump"`
}

// nodeSSHModel is node_ssh: the same login, and where the nodes are.
type nodeSSHModel struct {
	guestSSHModel
	Hosts    types.Map `tfsdk:"hosts"`
	HostKeys types.Map `tfsdk:"host_keys"`
}

type proxyJumpModel struct {
	Host           types.String `tfsdk:"host"`
	Port           types.Int64  `tfsdk:"port"`
	Username       types.String `tfsdk:"username"`
	HostKey        types.String `tfsdk:"host_key"`
	PrivateKey     types.String `tfsdk:"private_key"`
	PrivateKeyFile types.String `tfsdk:"private_key_file"`
}

// open reads a nested attribute. One that is left out reads as a value whose attributes are all null, so that its
// variables still count; one that is unknown as a whole is noted, and its variables don't count.
func open[T any](ctx context.Context, s *settler, attribute string, object types.Object) T {
	var out T
	if object.IsUnknown() {
		s.unknown = append(s.unknown, attribute)
		return out
	}
	if object.IsNull() {
		return out
	}
	diags := object.As(ctx, &out, basetypes.ObjectAsOptions{})
	s.diags.Append(diags...)
	return out
}
