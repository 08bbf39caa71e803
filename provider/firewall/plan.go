package firewall

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
)

// ModifyPlan renders the rules, so that the plan shows them and what is different on the server is a change.
func (r *groupResource) ModifyPlan(ctx context.Context, req resource.ModifyPlanRequest, resp *resource.ModifyPlanResponse) {
	if req.Plan.Raw.IsNull() {
		return // a destroy
	}
	var plan Model
	resp.Diagnostics.Append(req.Plan.Get(ctx, &plan)...)
	var state *Model
	if !req.State.Raw.IsNull() {
		state = &Model{}
		resp.Diagnostics.Append(req.State.Get(ctx, state)...)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	plan.Rules, plan.IPSets = types.ListUnknown(RuleType()), types.MapUnknown(listOfText)
	plan.Resolved, plan.Moved = types.MapUnknown(setOfText), namesValue(nil)
	if r.Data.Known() && plan.known(ctx) {
		r.render(ctx, &plan, state, &resp.Diagnostics)
	}
	if resp.Diagnostics.HasError() {
		return
	}
	resp.Diagnostics.Append(resp.Plan.Set(ctx, &plan)...)
}

// render sets what the apply will write, and says what is wrong with it.
func (r *groupResource) render(ctx context.Context, plan, state *Model, diags *diag.Diagnostics) {
	if r.Data.Settings.Owner == "" {
		diags.AddError("The provider has no owner",
			"A security group says in its comment whose it is. Set owner in the provider block, or SANDBOX_OWNER.")
		return
	}
	ctx, cancel := limits.ForRead(ctx, plan.Timeouts, diags)
	defer cancel()
	spec := plan.spec(ctx, diags)
	if diags.HasError() {
		return
	}
	same := state != nil && plan.Mode.Equal(state.Mode) && plan.Rule.Equal(state.Rule) && plan.Allow.Equal(state.Allow) && plan.Deny.Equal(state.Deny) && plan.Resolvers.Equal(state.Resolvers)
	problems := r.Data.Manager.CheckGroup(ctx, spec)
	if same { // it was said when it was planned
		problems = slices.DeleteFunc(problems, func(p sandbox.Problem) bool { return p.Warning })
	}
	base.AddProblems(diags, plan.located(ctx, problems, diags))
	if diags.HasError() {
		return
	}
	var pinned map[string][]netip.Addr
	if state != nil && len(state.Moved.Elements()) == 0 {
		pinned = resolvedOf(ctx, state.Resolved, diags)
	}
	pinned, known := keep(pinned, spec.Domains())
	filter, err := r.renderWith(ctx, spec, pinned)
	if err != nil {
		base.AddError(diags, "plan", plan.thing(), err)
		return
	}
	plan.Rules = rulesValue(ctx, filter.Rules, diags)
	if known {
		plan.IPSets, plan.Resolved = setsValue(ctx, filter.Sets, diags), resolvedValue(ctx, pinned, diags)
	}
}

// located names, for problems with exceptions, the element of `allow` that they are in: one with `cidrs` is several for
// the domain.
func (m *Model) located(ctx context.Context, problems []sandbox.Problem, diags *diag.Diagnostics) []sandbox.Problem {
	if m.Allow.IsNull() {
		return problems
	}
	var allow []AllowModel
	diags.Append(m.Allow.ElementsAs(ctx, &allow, false)...)
	var places []string
	for i, a := range allow {
		if !a.To.IsNull() {
			places = append(places, fmt.Sprintf("allow[%d].to", i))
		}
		for j := range a.CIDRs.Elements() {
			places = append(places, fmt.Sprintf("allow[%d].cidrs[%d]", i, j))
		}
	}
	for k := range problems {
		index, rest, ok := strings.Cut(strings.TrimPrefix(problems[k].Attribute, "allow["), "]")
		n, err := strconv.Atoi(index)
		if !ok || err != nil || n >= len(places) {
			continue
		}
		if problems[k].Attribute = places[n]; rest != ".to" {
			element, _, _ := strings.Cut(places[n], "]")
			problems[k].Attribute = element + "]" + rest
		}
	}
	return problems
}

// keep returns the pinned addresses of the domains, and whether they are all the addresses that are needed.
func keep(pinned map[string][]netip.Addr, domains []string) (map[string][]netip.Addr, bool) {
	out := map[string][]netip.Addr{}
	for _, d := range domains {
		addresses, ok := pinned[d]
		if !ok {
			return nil, false
		}
		out[d] = addresses
	}
	return out, true
}

// renderWith renders a group, where domains aren't looked up yet with an address in their places: it stands in an IP
// set, and the rules are the same with any.
func (r *groupResource) renderWith(ctx context.Context, spec sandbox.GroupSpec, pinned map[string][]netip.Addr) (egress.Filter, error) {
	if pinned == nil {
		pinned = map[string][]netip.Addr{}
		for _, d := range spec.Domains() {
			pinned[d] = []netip.Addr{placeholder}
		}
	}
	return r.Data.Manager.RenderGroup(ctx, spec, pinned)
}

// placeholder is an address for documentation (RFC 5737).
var placeholder = netip.MustParseAddr("192.0.2.1")

// stillPlanned refuses to write other rules than the plan showed: what they are made of besides the configuration (our
// own address, those of the nodes) may have changed since, or be another machine's.
func (r *groupResource) stillPlanned(ctx context.Context, plan *Model, spec sandbox.GroupSpec, diags *diag.Diagnostics) {
	if plan.Rules.IsUnknown() || diags.HasError() {
		return
	}
	filter, err := r.renderWith(ctx, spec, nil)
	if err != nil {
		base.AddError(diags, "render", plan.thing(), err)
		return
	}
	if planned := rulesOf(ctx, plan.Rules, diags); !slices.Equal(planned, filter.Rules) {
		diags.AddError("The plan of "+plan.thing()+" is out of date",
			"The rules are not those that the plan showed: the address that sandboxes see us come from, or those of the nodes, are others than when it was made. "+
				"Plan again on this machine. If plan and apply run on different machines, set management_cidrs in the provider block so that it holds both.\n\n"+
				"Differences:\n"+lines(egress.RuleDifferences(planned, filter.Rules)))
	}
}

func lines(list []string) string {
	out := ""
	for _, l := range list {
		out += "  " + l + "\n"
	}
	return out
}
