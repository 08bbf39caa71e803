package container

import (
	"math"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// The shapes of the nested attributes that a configuration can set.
var (
	networkTypes = map[string]attr.Type{
		"bridge":      types.StringType,
		"vlan_id":     types.Int64Type,
		"mtu":         types.Int64Type,
		"rate_limit":  types.Float64Type,
		"mac_address": value.MACType,
		"ipv4":        value.AddressType,
		"gateway":     value.AddressType,
		"ipv6":        value.AddressType,

		"mode":           types.StringType,
		"firewall_group": types.StringType,
		"allow":          types.ListType{ElemType: allowType},
		"proof":          types.StringType,
		"canaries":       types.ListType{ElemType: types.StringType},
	}
	dnsTypes = map[string]attr.Type{
		"servers": types.ListType{ElemType: types.StringType},
		"domain":  types.StringType,
	}
	startupTypes = map[string]attr.Type{
		"order":      types.Int64Type,
		"up_delay":   types.Int64Type,
		"down_delay": types.Int64Type,
	}
)

// settle replaces an unknown value.
func settle[T attr.Value](v *T, null T) {
	if (*v).IsUnknown() {
		*v = null
	}
}

func wholePointer(v types.Int64) *int {
	if !value.Known(v) {
		return nil
	}
	n := int(v.ValueInt64())
	return &n
}

// diskPointer leaves a fraction out: it is the template's size, which nobody asked for.
func diskPointer(v types.Float64) *int {
	if !value.Known(v) || v.ValueFloat64() != math.Trunc(v.ValueFloat64()) {
		return nil
	}
	n := int(v.ValueFloat64())
	return &n
}

// numberOrNull reads 0 as "not set".
func numberOrNull(n int) types.Int64 {
	if n == 0 {
		return types.Int64Null()
	}
	return types.Int64Value(int64(n))
}

func pointerOrNull(n *int) types.Int64 {
	if n == nil {
		return types.Int64Null()
	}
	return types.Int64Value(int64(*n))
}

func nonNil(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
