package functions_test

import (
	"context"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/provider/functions"
)

func TestFunctionsOfExposures(t *testing.T) {
	t.Parallel()
	call := func(f function.Function, empty attr.Value, arguments ...attr.Value) (attr.Value, string) {
		resp := function.RunResponse{Result: function.NewResultData(empty)}
		f.Run(context.Background(), function.RunRequest{Arguments: function.NewArgumentsData(arguments)}, &resp)
		if resp.Error != nil {
			return nil, resp.Error.Error()
		}
		return resp.Result.Value(), ""
	}
	text, number := types.StringValue, types.Int64Value
	routes := func(pairs ...string) attr.Value {
		m := map[string]attr.Value{}
		for i := 0; i < len(pairs); i += 2 {
			m[pairs[i]] = text(pairs[i+1])
		}
		return types.MapValueMust(types.StringType, m)
	}
	for name, c := range map[string]struct {
		f         function.Function
		arguments []attr.Value
		want      string // the result, or a part of the error
	}{
		"a name":           {functions.NewExposureName(), []attr.Value{text("100012"), number(8080)}, "sbx-100012-8080"},
		"no container":     {functions.NewExposureName(), []attr.Value{text("web"), number(8080)}, "! vmid"},
		"no port":          {functions.NewExposureName(), []attr.Value{text("100012"), number(0)}, "! port"},
		"a URL":            {functions.NewExposureURL(), []attr.Value{text("https"), text("a.example.org"), number(443)}, "https://a.example.org"},
		"no scheme":        {functions.NewExposureURL(), []attr.Value{text("ssh"), text("a"), number(22)}, "! scheme"},
		"a Caddyfile":      {functions.NewProxyConfig(), []attr.Value{text("caddy"), routes("b.x", "http://127.0.0.1:2", "a.x", "127.0.0.1:1")}, "a.x {\n\treverse_proxy 127.0.0.1:1\n}\n\nb.x {\n\treverse_proxy 127.0.0.1:2\n}\n"},
		"an unknown proxy": {functions.NewProxyConfig(), []attr.Value{text("traefik"), routes("a", "b:1")}, "! caddy or nginx"},
	} {
		got, problem := call(c.f, types.StringUnknown(), c.arguments...)
		if part, isError := strings.CutPrefix(c.want, "! "); isError {
			if !strings.Contains(problem, part) {
				t.Errorf("%s: %v, %q", name, got, problem)
			}
		} else if problem != "" || !got.Equal(text(c.want)) {
			t.Errorf("%s: %v, %q", name, got, problem)
		}
	}
	got, problem := call(functions.NewDevelopmentPorts(), types.MapUnknown(types.Int64Type))
	if m, ok := got.(types.Map); !ok || problem != "" || len(m.Elements()) != 5 || !m.Elements()["vite"].Equal(number(5173)) {
		t.Errorf("the ports are %v, %s", got, problem)
	}
}
