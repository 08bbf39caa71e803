package firewall

import (
	"context"
	"net/netip"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// Model is sandbox_firewall_group.
type Model struct {
	ID        types.String   `tfsdk:"id"`
	Name      types.String   `tfsdk:"name"`
	Mode      types.String   `tfsdk:"mode"`
	Rule      types.List     `tfsdk:"rule"`
	Allow     types.List     `tfsdk:"allow"`
	Deny      types.List     `tfsdk:"deny"`
	Resolvers types.List     `tfsdk:"resolvers"`
	Rules     types.List     `tfsdk:"rules"`
	IPSets    types.Map      `tfsdk:"ip_sets"`
	Resolved  types.Map      `tfsdk:"resolved"`
	Moved     types.Set      `tfsdk:"moved"`
	Timeouts  timeouts.Value `tfsdk:"timeouts"`
}

// AllowModel is one exception.
type AllowModel struct {
	To       types.String `tfsdk:"to"`
	CIDRs    types.List   `tfsdk:"cidrs"`
	Ports    types.String `tfsdk:"ports"`
	Protocol types.String `tfsdk:"protocol"`
	Resolve  types.String `tfsdk:"resolve"`
}

func allowType() types.ObjectType {
	return types.ObjectType{AttrTypes: map[string]attr.Type{"to": types.StringType, "cidrs": types.ListType{ElemType: types.StringType}, "ports": types.StringType, "protocol": types.StringType, "resolve": types.StringType}}
}

var (
	setOfText = types.SetType{ElemType: types.StringType}
	// listOfText is for what may be long: Terraform compares every member of a set with every other. They are sorted.
	listOfText = types.ListType{ElemType: types.StringType}
)

func (m *Model) thing() string { return "security group " + m.Name.ValueString() }

// known says whether everything that the rules are made of is known.
func (m *Model) known(ctx context.Context) bool {
	for _, v := range []attr.Value{m.Name, m.Mode, m.Rule, m.Allow, m.Deny, m.Resolvers} {
		t, err := v.ToTerraformValue(ctx)
		if err != nil || !t.IsFullyKnown() {
			return false
		}
	}
	return true
}

// spec is what the domain is asked for. Values must be known.
func (m *Model) spec(ctx context.Context, diags *diag.Diagnostics) sandbox.GroupSpec {
	s := sandbox.GroupSpec{Name: m.Name.ValueString(), Mode: sandbox.NetworkMode(m.Mode.ValueString())}
	if !m.Rule.IsNull() {
		s.Rules = rulesOf(ctx, m.Rule, diags)
	}
	if !m.Allow.IsNull() {
		var allow []AllowModel
		diags.Append(m.Allow.ElementsAs(ctx, &allow, false)...)
		for _, a := range allow {
			one := egress.Allow{To: a.To.ValueString(), Ports: a.Ports.ValueString(), Protocol: a.Protocol.ValueString(), Resolve: !a.Resolve.IsNull()}
			if !a.To.IsNull() {
				s.Allow = append(s.Allow, one)
			}
			for _, cidr := range texts(ctx, a.CIDRs, diags) {
				one.To = cidr
				s.Allow = append(s.Allow, one)
			}
		}
	}
	for i, text := range texts(ctx, m.Deny, diags) {
		s.Deny = append(s.Deny, network(text, path.Root("deny").AtListIndex(i), diags))
	}
	for i, text := range texts(ctx, m.Resolvers, diags) {
		addr, err := netip.ParseAddr(text)
		if err != nil {
			diags.AddAttributeError(path.Root("resolvers").AtListIndex(i), "Not an address", text+" is no IPv4 or IPv6 address.")
		}
		s.Resolvers = append(s.Resolvers, addr)
	}
	return s
}

// network reads a network in CIDR form or an address.
func network(text string, at path.Path, diags *diag.Diagnostics) netip.Prefix {
	if addr, err := netip.ParseAddr(text); err == nil {
		return netip.PrefixFrom(addr, addr.BitLen())
	}
	p, err := netip.ParsePrefix(text)
	if err != nil {
		diags.AddAttributeError(at, "Not a network", text+" is no network in CIDR form and no address.")
	}
	return p
}

type collection interface {
	IsNull() bool
	ElementsAs(ctx context.Context, target any, allowUnhandled bool) diag.Diagnostics
}

func texts(ctx context.Context, v collection, diags *diag.Diagnostics) []string {
	var out []string
	if !v.IsNull() {
		diags.Append(v.ElementsAs(ctx, &out, false)...)
	}
	return out
}

// fill sets what the server holds.
func (m *Model) fill(ctx context.Context, g sandbox.FirewallGroup, diags *diag.Diagnostics) {
	m.ID, m.Name = types.StringValue(g.Name), types.StringValue(g.Name)
	m.Rules = rulesValue(ctx, g.Rules, diags)
	m.IPSets = setsValue(ctx, g.Sets, diags)
}

// setsValue are IP sets by name. What is no network of a set stands among its members as the server writes it, so that
// it is seen to be too many.
func setsValue(ctx context.Context, sets []egress.Set, diags *diag.Diagnostics) types.Map {
	members := map[string][]string{}
	for _, s := range sets {
		list := make([]string, 0, len(s.Entries)+len(s.Foreign))
		for _, p := range s.Entries {
			list = append(list, p.String())
		}
		members[s.Name] = append(list, s.Foreign...)
	}
	v, d := types.MapValueFrom(ctx, listOfText, members)
	diags.Append(d...)
	return v
}

// setsOf are the sets of a state.
func setsOf(ctx context.Context, v types.Map, diags *diag.Diagnostics) []egress.Set {
	var out []egress.Set
	if v.IsNull() || v.IsUnknown() {
		return nil
	}
	members := map[string][]string{}
	diags.Append(v.ElementsAs(ctx, &members, false)...)
	for name := range members {
		out = append(out, egress.Set{Name: name})
	}
	return out
}

// resolvedValue are the pinned addresses by domain.
func resolvedValue(ctx context.Context, resolved map[string][]netip.Addr, diags *diag.Diagnostics) types.Map {
	names := map[string][]string{}
	for domain, addresses := range resolved {
		names[domain] = []string{}
		for _, a := range addresses {
			names[domain] = append(names[domain], a.String())
		}
	}
	v, d := types.MapValueFrom(ctx, setOfText, names)
	diags.Append(d...)
	return v
}

// resolvedOf are the addresses that a state has pinned; nil where they aren't known.
func resolvedOf(ctx context.Context, v types.Map, diags *diag.Diagnostics) map[string][]netip.Addr {
	if v.IsNull() || v.IsUnknown() {
		return nil
	}
	names := map[string][]string{}
	diags.Append(v.ElementsAs(ctx, &names, false)...)
	out := map[string][]netip.Addr{}
	for domain, addresses := range names {
		out[domain] = []netip.Addr{}
		for _, text := range addresses {
			if a, err := netip.ParseAddr(text); err == nil {
				out[domain] = append(out[domain], a)
			}
		}
		slices.SortFunc(out[domain], netip.Addr.Compare)
	}
	return out
}

func namesValue(names []string) types.Set {
	elements := make([]attr.Value, 0, len(names))
	for _, n := range names {
		elements = append(elements, types.StringValue(n))
	}
	return types.SetValueMust(types.StringType, elements)
}
