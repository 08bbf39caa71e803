package functions

import (
	"context"
	"fmt"
	"maps"
	"math/big"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

var _ function.Function = mergeProfiles{}

type mergeProfiles struct{}

// NewMergeProfiles returns the function merge_profiles.
func NewMergeProfiles() function.Function { return mergeProfiles{} }

// What a profile can say, by the names and types of sandbox_container. What isn't said is null: the container's own
// default.
var (
	profileAllow = types.ObjectType{AttrTypes: map[string]attr.Type{"to": types.StringType, "ports": types.StringType, "protocol": types.StringType}}

	profileNetwork = types.ObjectType{AttrTypes: map[string]attr.Type{
		"mode": types.StringType, "proof": types.StringType, "rate_limit": types.NumberType, "ipv4": types.StringType, "bridge": types.StringType,
		"firewall_group": types.StringType, "allow": types.ListType{ElemType: profileAllow}, "canaries": types.ListType{ElemType: types.StringType},
	}}
	profileLease = types.ObjectType{AttrTypes: map[string]attr.Type{
		"ttl": types.StringType, "renew": types.StringType, "keepalive": types.BoolType, "idle_stop": types.StringType, "on_expiry": types.StringType,
	}}
	profileType = types.ObjectType{AttrTypes: map[string]attr.Type{
		"cores": types.NumberType, "cpu_limit": types.NumberType, "cpu_units": types.NumberType, "memory": types.NumberType, "swap": types.NumberType,
		"disk": types.NumberType, "nesting": types.BoolType, "protection": types.BoolType, "on_boot": types.BoolType,
		"restart_when_needed": types.BoolType, "snapshot_before_update": types.BoolType, "tags": types.ListType{ElemType: types.StringType},
		"network": profileNetwork, "lease": profileLease,
	}}
)

func (mergeProfiles) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "merge_profiles"
}

func (mergeProfiles) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	var catalogue strings.Builder
	for _, p := range sandbox.Profiles() {
		kind := ""
		if p.Modifier {
			kind = "modifier: "
		}
		fmt.Fprintf(&catalogue, "\n- `%s`: %s%s", p.Name, kind, p.Means)
	}
	resp.Definition = function.Definition{
		Summary: "Merge named profiles of sandboxes, and settings of one's own, into one",
		MarkdownDescription: "Returns the settings that several profiles, merged from left to right, give a `sandbox_container`, under the names of its attributes; what none of them says is null, which leaves it to the container's own default. " +
			"Of two that say the same, the later wins, also within `network` and `lease`; `tags` add up. Settings of one's own follow as objects, and win over all profiles; a null takes a setting back. " +
			"An unknown name is an error that suggests the nearest.\n\nProfiles:\n" + catalogue.String() +
			"\n\nA value that is only known after apply makes the whole result unknown: add it where it is used, as in `lease = merge(local.agent.lease, { renew = var.commit })`.",
		Parameters: []function.Parameter{
			function.ListParameter{Name: "profiles", ElementType: types.StringType, MarkdownDescription: "Names of profiles, such as `[\"yolo-ephemeral\", \"large\", \"secure\"]`; may be empty."},
		},
		VariadicParameter: function.DynamicParameter{Name: "settings", AllowNullValue: true,
			MarkdownDescription: "Objects with settings of one's own, such as `{ memory = 12288, lease = { ttl = \"6h\" } }`: a team's profile, then this sandbox's."},
		Return: function.ObjectReturn{AttributeTypes: profileType.AttrTypes},
	}
}

func (mergeProfiles) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var names []string
	var settings []types.Dynamic
	if resp.Error = req.Arguments.Get(ctx, &names, &settings); resp.Error != nil {
		return
	}
	if _, err := sandbox.MergeProfiles(names); err != nil {
		resp.Error = function.NewArgumentFuncError(0, err.Error())
		return
	}
	var more []map[string]any
	for i, s := range settings {
		if s.IsNull() || s.IsUnderlyingValueNull() {
			continue
		}
		object, err := plain("", s.UnderlyingValue(), profileType)
		if err != nil {
			resp.Error = function.NewArgumentFuncError(int64(1+i), err.Error())
			return
		}
		if m, ok := object.(map[string]any); ok {
			more = append(more, m)
		}
	}
	merged, err := sandbox.MergeProfiles(names, more...)
	if err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, typed(merged, profileType))
}

// plain turns a value that somebody wrote into the domain's, checking it against what a profile can say.
func plain(at string, v attr.Value, want attr.Type) (any, error) {
	if d, ok := v.(basetypes.DynamicValue); ok {
		v = d.UnderlyingValue()
	}
	if v == nil || v.IsNull() {
		return nil, nil
	}
	name := at
	if name == "" {
		name = "settings"
	}
	switch want := want.(type) {
	case types.ObjectType:
		members, ok := membersOf(v)
		if !ok {
			return nil, fmt.Errorf("%s must be an object", name)
		}
		out := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(members)) {
			inner, known := want.AttrTypes[key]
			path := strings.TrimPrefix(at+"."+key, ".")
			if !known {
				return nil, sandbox.UnknownSetting(path, prefixed(at, slices.Sorted(maps.Keys(want.AttrTypes))))
			}
			value, err := plain(path, members[key], inner)
			if err != nil {
				return nil, err
			}
			out[key] = value
		}
		return out, nil
	case types.ListType:
		elements, ok := v.(interface{ Elements() []attr.Value })
		if !ok {
			return nil, fmt.Errorf("%s must be a list", name)
		}
		if want.ElemType.Equal(types.StringType) {
			out := []string{}
			for _, e := range elements.Elements() {
				text, err := plain(name, e, types.StringType)
				if err != nil {
					return nil, err
				}
				s, _ := text.(string)
				out = append(out, s)
			}
			return out, nil
		}
		out := []any{}
		for i, e := range elements.Elements() {
			item, err := plain(fmt.Sprintf("%s[%d]", name, i), e, want.ElemType)
			if err != nil {
				return nil, err
			}
			out = append(out, item)
		}
		return out, nil
	}
	switch v := v.(type) {
	case types.String:
		if want.Equal(types.StringType) {
			return v.ValueString(), nil
		}
	case types.Bool:
		if want.Equal(types.BoolType) {
			return v.ValueBool(), nil
		}
	case types.Number:
		if want.Equal(types.NumberType) {
			return v.ValueBigFloat(), nil
		}
	}
	return nil, fmt.Errorf("%s must be %s", name, map[attr.Type]string{types.StringType: "a text", types.BoolType: "true or false", types.NumberType: "a number"}[want])
}

func membersOf(v attr.Value) (map[string]attr.Value, bool) {
	switch v := v.(type) {
	case types.Object:
		return v.Attributes(), true
	case types.Map:
		return v.Elements(), true
	}
	return nil, false
}

func prefixed(at string, names []string) []string {
	if at == "" {
		return names
	}
	out := make([]string, 0, len(names))
	for _, n := range names {
		out = append(out, at+"."+n)
	}
	return out
}

// typed is the way back.
func typed(v any, as attr.Type) attr.Value {
	switch as := as.(type) {
	case types.ObjectType:
		settings, ok := v.(map[string]any)
		if !ok {
			return types.ObjectNull(as.AttrTypes)
		}
		out := make(map[string]attr.Value, len(as.AttrTypes))
		for name, inner := range as.AttrTypes {
			out[name] = typed(settings[name], inner)
		}
		return types.ObjectValueMust(as.AttrTypes, out)
	case types.ListType:
		var items []attr.Value
		switch list := v.(type) {
		case []string:
			for _, item := range list {
				items = append(items, types.StringValue(item))
			}
		case []any:
			for _, item := range list {
				items = append(items, typed(item, as.ElemType))
			}
		default:
			return types.ListNull(as.ElemType)
		}
		return types.ListValueMust(as.ElemType, append([]attr.Value{}, items...))
	}
	switch v := v.(type) {
	case string:
		return types.StringValue(v)
	case bool:
		return types.BoolValue(v)
	case int:
		return types.NumberValue(big.NewFloat(float64(v)))
	case *big.Float:
		return types.NumberValue(v)
	}
	switch as {
	case types.BoolType:
		return types.BoolNull()
	case types.NumberType:
		return types.NumberNull()
	}
	return types.StringNull()
}
