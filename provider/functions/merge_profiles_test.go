package functions_test

import (
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/functions"
)

func object(members map[string]attr.Value) types.Object {
	kinds := map[string]attr.Type{}
	for name, v := range members {
		kinds[name] = v.Type(context.Background())
	}
	return types.ObjectValueMust(kinds, members)
}

func number(n float64) types.Number { return types.NumberValue(big.NewFloat(n)) }

func text(s string) types.String { return types.StringValue(s) }

// merge runs merge_profiles and returns the result's value at a path such as "lease.ttl".
func merge(t *testing.T, names []string, settings ...attr.Value) (at func(path string) string, problem string) {
	t.Helper()
	f := functions.NewMergeProfiles()
	var definition function.DefinitionResponse
	f.Definition(context.Background(), function.DefinitionRequest{}, &definition)
	kind, ok := definition.Definition.Return.GetType().(types.ObjectType)
	if !ok {
		t.Fatalf("it returns %T", definition.Definition.Return.GetType())
	}
	list := make([]attr.Value, 0, len(names))
	for _, n := range names {
		list = append(list, text(n))
	}
	more, kinds := []attr.Value{}, []attr.Type{}
	for _, s := range settings {
		more, kinds = append(more, types.DynamicValue(s)), append(kinds, types.DynamicType)
	}
	resp := function.RunResponse{Result: function.NewResultData(types.ObjectUnknown(kind.AttrTypes))}
	f.Run(context.Background(), function.RunRequest{Arguments: function.NewArgumentsData([]attr.Value{
		types.ListValueMust(types.StringType, list), types.TupleValueMust(kinds, more),
	})}, &resp)
	if resp.Error != nil {
		return nil, resp.Error.Error()
	}
	result := resp.Result.Value()
	return func(path string) string {
		v := result
		for _, step := range strings.Split(path, ".") {
			o, ok := v.(types.Object)
			if !ok || o.IsNull() {
				return "<null>"
			}
			v = o.Attributes()[step]
		}
		return v.String()
	}, ""
}

func TestProfilesAreMergedFromLeftToRight(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profiles []string
		settings []attr.Value
		want     map[string]string
	}{
		"one":            {[]string{"yolo-ephemeral"}, nil, map[string]string{"lease.ttl": `"3h"`, "lease.keepalive": "<null>", "network.mode": `"web"`, "cores": "2", "nesting": "<null>", "disk": "<null>"}},
		"another":        {[]string{"yolo-workspace"}, nil, map[string]string{"lease.ttl": `"8h"`, "lease.keepalive": "true"}},
		"a third":        {[]string{"interactive-dev"}, nil, map[string]string{"lease.ttl": `"12h"`, "network.mode": `"nat"`}},
		"a fourth":       {[]string{"docker-agent"}, nil, map[string]string{"nesting": "true"}},
		"modified":       {[]string{"docker-agent", "small", "secure"}, nil, map[string]string{"cores": "1", "memory": "2048", "nesting": "true", "network.mode": `"allowlist"`, "lease.ttl": `"8h"`, "tags": `["docker","secure"]`}},
		"the later wins": {[]string{"yolo-ephemeral", "interactive-dev"}, nil, map[string]string{"lease.ttl": `"12h"`, "lease.idle_stop": `"30m"`, "cores": "4", "network.mode": `"nat"`}},
		"one's own": {[]string{"yolo-ephemeral", "large"}, []attr.Value{
			object(map[string]attr.Value{"memory": number(12288), "lease": object(map[string]attr.Value{"renew": text("c0ffee")})}),
			types.ObjectNull(map[string]attr.Type{}),
			object(map[string]attr.Value{"tags": types.TupleValueMust([]attr.Type{types.StringType}, []attr.Value{text("ci")}), "lease": object(map[string]attr.Value{"idle_stop": types.StringNull()})}),
		}, map[string]string{"memory": "12288", "cores": "8", "lease.renew": `"c0ffee"`, "lease.ttl": `"3h"`, "lease.idle_stop": "<null>", "tags": `["yolo","ci"]`}},
		"exceptions": {[]string{"secure"}, []attr.Value{object(map[string]attr.Value{"network": object(map[string]attr.Value{"allow": types.TupleValueMust(
			[]attr.Type{types.MapType{ElemType: types.StringType}}, []attr.Value{types.MapValueMust(types.StringType, map[string]attr.Value{"to": text("203.0.113.0/24"), "ports": text("443")})})})})},
			map[string]string{"network.mode": `"allowlist"`, "network.allow": `[{"ports":"443","protocol":<null>,"to":"203.0.113.0/24"}]`, "lease": "<null>"}},
		"none": {nil, nil, map[string]string{"lease": "<null>", "network": "<null>", "cores": "<null>", "tags": "<null>"}},
	} {
		at, problem := merge(t, c.profiles, c.settings...)
		if problem != "" {
			t.Errorf("%s: %s", name, problem)
			continue
		}
		for path, want := range c.want {
			if got := at(path); got != want {
				t.Errorf("%s: %s is %s, want %s", name, path, got, want)
			}
		}
	}
}

func TestProfilesThatCannotBeSuggestTheNearest(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		profiles []string
		settings []attr.Value
		says     string
	}{
		"a slip":            {[]string{"yolo-ephemral"}, nil, `did you mean "yolo-ephemeral"?`},
		"in capitals":       {[]string{"Docker-Agent"}, nil, `did you mean "docker-agent"?`},
		"something else":    {[]string{"zebra-crossing"}, nil, "there are docker-agent, interactive-dev, large"},
		"a setting":         {nil, []attr.Value{object(map[string]attr.Value{"memry": number(1)})}, `did you mean "memory"?`},
		"an inner setting":  {nil, []attr.Value{object(map[string]attr.Value{"lease": object(map[string]attr.Value{"tll": text("1h")})})}, `did you mean "lease.ttl"?`},
		"another type":      {nil, []attr.Value{object(map[string]attr.Value{"lease": object(map[string]attr.Value{"ttl": number(3)})})}, "lease.ttl must be a text"},
		"no object":         {nil, []attr.Value{text("large")}, "settings must be an object"},
		"no nested object":  {nil, []attr.Value{object(map[string]attr.Value{"network": text("web")})}, "network must be an object"},
		"a list of numbers": {nil, []attr.Value{object(map[string]attr.Value{"tags": types.TupleValueMust([]attr.Type{types.NumberType}, []attr.Value{number(1)})})}, "tags must be a text"},
	} {
		if _, problem := merge(t, c.profiles, c.settings...); !strings.Contains(problem, c.says) {
			t.Errorf("%s: %q, want %q", name, problem, c.says)
		}
	}
}

// A profile that the container's own checks refuse would be found by its first user.
func TestEveryProfileSaysSomethingAndEachThatStandsAloneHasALease(t *testing.T) {
	t.Parallel()
	all := sandbox.Profiles()
	if len(all) < 7 {
		t.Fatalf("only %d profiles", len(all))
	}
	for _, p := range all {
		settings, err := sandbox.MergeProfiles([]string{p.Name})
		if err != nil || len(settings) == 0 {
			t.Errorf("%s: %v, %v", p.Name, settings, err)
			continue
		}
		lease, has := settings["lease"].(map[string]any)
		if has == p.Modifier {
			t.Errorf("%s: modifier %v, lease %v", p.Name, p.Modifier, lease)
		}
		if has {
			ttl, _ := lease["ttl"].(string)
			if d, err := sandbox.ParseLeaseDuration(ttl); err != nil || d < sandbox.MinTTL {
				t.Errorf("%s: ttl %q: %v", p.Name, ttl, err)
			}
		}
	}
}
