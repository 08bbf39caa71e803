package protocoltest

import (
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// Get returns what stands at a dotted path: a string, float64, bool, []any, map[string]any, nil or Unknown.
func Get(t testing.TB, v tftypes.Value, path string) any {
	t.Helper()
	return walk(t, plain(t, v), path)
}

func walk(t testing.TB, current any, path string) any {
	t.Helper()
	if path == "" {
		return current
	}
	for _, step := range strings.Split(path, ".") {
		switch at := current.(type) {
		case map[string]any:
			next, ok := at[step]
			if !ok {
				t.Fatalf("%s: there is no %q", path, step)
			}
			current = next
		case []any:
			n, err := strconv.Atoi(step)
			if err != nil || n >= len(at) {
				t.Fatalf("%s: there is no element %q of %d", path, step, len(at))
			}
			current = at[n]
		default:
			return current // null or unknown as a whole
		}
	}
	return current
}

func plain(t testing.TB, v tftypes.Value) any {
	t.Helper()
	if !v.IsKnown() {
		return Unknown
	}
	if v.IsNull() {
		return nil
	}
	must := func(err error) {
		if err != nil {
			t.Fatal(err)
		}
	}
	switch typ := v.Type().(type) {
	case tftypes.Object, tftypes.Map:
		var members map[string]tftypes.Value
		must(v.As(&members))
		out := make(map[string]any, len(members))
		for name, member := range members {
			out[name] = plain(t, member)
		}
		return out
	case tftypes.List, tftypes.Set, tftypes.Tuple:
		var members []tftypes.Value
		must(v.As(&members))
		out := make([]any, 0, len(members))
		for _, member := range members {
			out = append(out, plain(t, member))
		}
		return out
	default:
		switch {
		case typ.Is(tftypes.String):
			var s string
			must(v.As(&s))
			return s
		case typ.Is(tftypes.Bool):
			var b bool
			must(v.As(&b))
			return b
		case typ.Is(tftypes.Number):
			n := new(big.Float)
			must(v.As(&n))
			f, _ := n.Float64()
			return f
		}
	}
	t.Fatalf("unexpected type %s", v.Type())
	return nil
}

// members opens an object; nil for one that is null or unknown.
func members(v tftypes.Value) map[string]tftypes.Value {
	if v.IsNull() || !v.IsKnown() {
		return nil
	}
	var out map[string]tftypes.Value
	if err := v.As(&out); err != nil {
		return nil
	}
	return out
}

// proposedNew merges configuration and prior state as Terraform does: what the configuration says, else for computed
// attributes what was there before.
func proposedNew(t testing.TB, attributes []*tfprotov6.SchemaAttribute, typ tftypes.Type, prior, config tftypes.Value) tftypes.Value {
	t.Helper()
	if config.IsNull() || !config.IsKnown() {
		return config
	}
	priors, configs := members(prior), members(config)
	out := make(map[string]tftypes.Value, len(attributes))
	for _, a := range attributes {
		was, ok := priors[a.Name]
		if !ok {
			was = tftypes.NewValue(a.ValueType(), nil)
		}
		is := configs[a.Name]
		switch {
		case a.Computed && is.IsNull():
			out[a.Name] = was
		case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle && !is.IsNull() && is.IsKnown():
			out[a.Name] = proposedNew(t, a.NestedType.Attributes, a.ValueType(), was, is)
		case a.WriteOnly:
			out[a.Name] = tftypes.NewValue(a.ValueType(), nil)
		default:
			out[a.Name] = is
		}
	}
	return tftypes.NewValue(typ, out)
}

// planProblems lists where a plan breaks Terraform's rules: a configured value must be planned as it is (or as it was
// in the state, for what means the same), and one that isn't configured can only be planned where it is computed.
func planProblems(at string, attributes []*tfprotov6.SchemaAttribute, prior, config, planned tftypes.Value) []string {
	var out []string
	priors, configs, plans := members(prior), members(config), members(planned)
	for _, a := range attributes {
		here := strings.TrimPrefix(at+"."+a.Name, ".")
		was, is, plan := priors[a.Name], configs[a.Name], plans[a.Name]
		switch {
		case a.WriteOnly:
			if !plan.IsNull() {
				out = append(out, here+" is write-only and was planned")
			}
		case is.IsNull():
			if !a.Computed && !plan.IsNull() {
				out = append(out, fmt.Sprintf("%s was planned as %s, and isn't configured", here, plan))
			}
		case plan.Equal(is), plan.Equal(was) && !was.IsNull():
		case a.NestedType != nil && a.NestedType.Nesting == tfprotov6.SchemaObjectNestingModeSingle && is.IsKnown():
			out = append(out, planProblems(here, a.NestedType.Attributes, was, is, plan)...)
		default:
			out = append(out, fmt.Sprintf("%s was planned as %s, and is configured as %s", here, plan, is))
		}
	}
	return out
}
