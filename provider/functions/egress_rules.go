package functions

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/firewall"
)

var _ function.Function = egressRules{}

type egressRules struct{}

// NewEgressRules returns the function egress_rules.
func NewEgressRules() function.Function { return egressRules{} }

func (egressRules) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "egress_rules"
}

func (egressRules) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Render a network mode as a list of firewall rules",
		MarkdownDescription: "Returns the ordered rules that a network mode (`off`, `web`, `nat`, `allowlist`) stands for, as objects that `rule` of `sandbox_firewall_group` takes: to look at them, or to build a list of one's own on them. " +
			"It is pure: the addresses of nodes and of this machine, which the resources add by themselves, are not in it, and allowed networks stand in the rules instead of in IP sets.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "mode", MarkdownDescription: "`off`, `web`, `nat` or `allowlist`."},
			function.ListParameter{Name: "management_cidrs", ElementType: types.StringType, MarkdownDescription: "Networks or addresses that SSH comes in from; not empty."},
			function.ListParameter{Name: "resolvers", ElementType: types.StringType, MarkdownDescription: "Addresses of DNS servers; may be empty."},
			function.ListParameter{Name: "allow", ElementType: types.MapType{ElemType: types.StringType},
				MarkdownDescription: "Exceptions, each with `to` (a network or address) and, where wanted, `ports` and `protocol`: `[{ to = \"203.0.113.0/24\", ports = \"443\" }]`. May be empty."},
		},
		Return: function.ListReturn{ElementType: firewall.RuleType()},
	}
}

func (egressRules) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var mode string
	var management, resolvers []string
	var allow []map[string]string
	if resp.Error = req.Arguments.Get(ctx, &mode, &management, &resolvers, &allow); resp.Error != nil {
		return
	}
	p := egress.Policy{Mode: egress.Mode(mode)}
	if !p.Mode.Managed() {
		resp.Error = function.NewArgumentFuncError(0, fmt.Sprintf("%q is no mode with rules; it is one of off, web, nat, allowlist", mode))
		return
	}
	for _, text := range management {
		n, err := netip.ParsePrefix(text)
		if a, addrErr := netip.ParseAddr(text); addrErr == nil {
			n, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			resp.Error = function.NewArgumentFuncError(1, fmt.Sprintf("%q is no network in CIDR form and no address", text))
			return
		}
		p.Management = append(p.Management, n)
	}
	for _, text := range resolvers {
		a, err := netip.ParseAddr(text)
		if err != nil {
			resp.Error = function.NewArgumentFuncError(2, fmt.Sprintf("%q is no address", text))
			return
		}
		p.Resolvers = append(p.Resolvers, a)
	}
	for i, a := range allow {
		for key := range a {
			if !slices.Contains([]string{"to", "ports", "protocol"}, key) {
				resp.Error = function.NewArgumentFuncError(3, fmt.Sprintf("element %d has %q; an exception has to, ports and protocol", i, key))
				return
			}
		}
		p.Allow = append(p.Allow, egress.Allow{To: a["to"], Ports: a["ports"], Protocol: a["protocol"]})
	}
	f, err := egress.Render(p, egress.Naming{Inline: true})
	if err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	rules := make([]firewall.RuleModel, 0, len(f.Rules))
	for _, r := range f.Rules {
		rules = append(rules, firewall.NewRule(r))
	}
	resp.Error = resp.Result.Set(ctx, rules)
}
