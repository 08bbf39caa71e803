package functions_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/firewall"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/functions"
)

func textList(texts ...string) attr.Value {
	var elements []attr.Value
	for _, s := range texts {
		elements = append(elements, types.StringValue(s))
	}
	return types.ListValueMust(types.StringType, elements)
}

func egressRules(mode string, management, resolvers []string, allow ...map[string]string) ([]string, string) {
	var exceptions []attr.Value
	for _, a := range allow {
		m := map[string]attr.Value{}
		for k, v := range a {
			m[k] = types.StringValue(v)
		}
		exceptions = append(exceptions, types.MapValueMust(types.StringType, m))
	}
	resp := function.RunResponse{Result: function.NewResultData(types.ListUnknown(firewall.RuleType()))}
	functions.NewEgressRules().Run(context.Background(), function.RunRequest{Arguments: function.NewArgumentsData([]attr.Value{
		types.StringValue(mode), textList(management...), textList(resolvers...), types.ListValueMust(types.MapType{ElemType: types.StringType}, exceptions),
	})}, &resp)
	if resp.Error != nil {
		return nil, resp.Error.Error()
	}
	list, ok := resp.Result.Value().(types.List)
	if !ok {
		return nil, fmt.Sprintf("a %T", resp.Result.Value())
	}
	var out []string
	for _, e := range list.Elements() {
		rule, ok := e.(types.Object)
		if !ok {
			return nil, fmt.Sprintf("a %T", e)
		}
		line := ""
		for _, name := range []string{"direction", "action", "protocol", "macro", "from", "to", "ports"} {
			if text, ok := rule.Attributes()[name].(types.String); ok && !text.IsNull() {
				line += text.ValueString() + " "
			}
		}
		out = append(out, strings.TrimSpace(line))
	}
	return out, ""
}

func TestEgressRulesAreThoseOfTheMode(t *testing.T) {
	t.Parallel()
	rules, problem := egressRules("allowlist", []string{"10.0.0.0/24"}, []string{"10.0.0.53"}, map[string]string{"to": "203.0.113.0/24", "ports": "443"})
	if problem != "" {
		t.Fatal(problem)
	}
	if len(rules) != 6 || rules[0] != "in ACCEPT tcp 10.0.0.0/24 22" || rules[1] != "out ACCEPT DNS 10.0.0.53" || rules[4] != "out ACCEPT tcp 203.0.113.0/24 443" || rules[5] != "out DROP" {
		t.Errorf("%s", strings.Join(rules, "\n"))
	}
	for _, mode := range []string{"off", "web", "nat"} {
		if rules, problem := egressRules(mode, []string{"10.0.0.7"}, nil); problem != "" || len(rules) < 2 {
			t.Errorf("%s: %v %s", mode, rules, problem)
		}
	}
}

func TestEgressRulesSaysWhichArgumentIsWrong(t *testing.T) {
	t.Parallel()
	for says, problem := range map[string]string{
		"no mode with rules":   second(egressRules("unmanaged", []string{"10.0.0.0/24"}, nil)),
		"Nobody could log in":  second(egressRules("nat", nil, nil)),
		"no network":           second(egressRules("nat", []string{"here"}, nil)),
		"no address":           second(egressRules("nat", []string{"10.0.0.0/24"}, []string{"dns"})),
		"to, ports and proto":  second(egressRules("nat", []string{"10.0.0.0/24"}, nil, map[string]string{"to": "1.2.3.4", "port": "443"})),
		"is a metadata servic": second(egressRules("nat", []string{"10.0.0.0/24"}, nil, map[string]string{"to": "169.254.169.254"})),
	} {
		if !strings.Contains(problem, says) {
			t.Errorf("want %q, got %q", says, problem)
		}
	}
}

func second(_ []string, problem string) string { return problem }
