package pool

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// Model is a sandbox_pool in configuration, plan and state.
type Model struct {
	ID         types.String   `tfsdk:"id"`
	Claim      types.String   `tfsdk:"claim"`
	Name       types.String   `tfsdk:"name"`
	Comment    types.String   `tfsdk:"comment"`
	Member     types.Object   `tfsdk:"member"`
	Size       types.Int64    `tfsdk:"size"`
	Limits     types.Object   `tfsdk:"limits"`
	Overcommit types.Object   `tfsdk:"overcommit"`
	Update     types.Object   `tfsdk:"update"`
	Placement  types.String   `tfsdk:"placement"`
	Nodes      types.List     `tfsdk:"nodes"`
	Attest     types.String   `tfsdk:"attest"`
	Force      types.Bool     `tfsdk:"force"`
	Members    types.Map      `tfsdk:"members"`
	Ready      types.Int64    `tfsdk:"ready"`
	Claimed    types.Int64    `tfsdk:"claimed"`
	Headroom   types.Int64    `tfsdk:"headroom"`
	Timeouts   timeouts.Value `tfsdk:"timeouts"`
}

// memberModel is the attribute member.
type memberModel struct {
	TemplateID types.Int64   `tfsdk:"template_id"`
	FullClone  types.Bool    `tfsdk:"full_clone"`
	Storage    types.String  `tfsdk:"storage"`
	Cores      types.Int64   `tfsdk:"cores"`
	CPULimit   types.Float64 `tfsdk:"cpu_limit"`
	CPUUnits   types.Int64   `tfsdk:"cpu_units"`
	Memory     types.Int64   `tfsdk:"memory"`
	Swap       types.Int64   `tfsdk:"swap"`
	Disk       types.Int64   `tfsdk:"disk"`
	Nesting    types.Bool    `tfsdk:"nesting"`
	Tags       types.Set     `tfsdk:"tags"`
	OnBoot     types.Bool    `tfsdk:"on_boot"`
	Keys       types.List    `tfsdk:"authorized_keys"`
	WaitFor    types.String  `tfsdk:"wait_for"`
	Network    types.Object  `tfsdk:"network"`
	DNS        types.Object  `tfsdk:"dns"`
	AllowRisks types.List    `tfsdk:"allow_risks"`
}

type networkModel struct {
	Bridge        types.String  `tfsdk:"bridge"`
	VLANID        types.Int64   `tfsdk:"vlan_id"`
	MTU           types.Int64   `tfsdk:"mtu"`
	RateLimit     types.Float64 `tfsdk:"rate_limit"`
	IPv4          types.String  `tfsdk:"ipv4"`
	IPv6          types.String  `tfsdk:"ipv6"`
	Mode          types.String  `tfsdk:"mode"`
	FirewallGroup types.String  `tfsdk:"firewall_group"`
	Allow         types.List    `tfsdk:"allow"`
	Proof         types.String  `tfsdk:"proof"`
	Canaries      types.List    `tfsdk:"canaries"`
}

type allowModel struct {
	To       types.String `tfsdk:"to"`
	Ports    types.String `tfsdk:"ports"`
	Protocol types.String `tfsdk:"protocol"`
}

type riskModel struct {
	Rule   types.String `tfsdk:"rule"`
	Reason types.String `tfsdk:"reason"`
}

type dnsModel struct {
	Servers types.List   `tfsdk:"servers"`
	Domain  types.String `tfsdk:"domain"`
}

type limitsModel struct {
	Members types.Int64   `tfsdk:"members"`
	Cores   types.Float64 `tfsdk:"cores"`
	Memory  types.Int64   `tfsdk:"memory"`
	Disk    types.Float64 `tfsdk:"disk"`
}

type overcommitModel struct {
	Cores  types.Float64 `tfsdk:"cores"`
	Memory types.Float64 `tfsdk:"memory"`
	Disk   types.Float64 `tfsdk:"disk"`
}

type updateModel struct {
	MaxUnavailable types.Int64 `tfsdk:"max_unavailable"`
	MaxSurge       types.Int64 `tfsdk:"max_surge"`
}

// entryModel is an element of members.
type entryModel struct {
	VMID   types.Int64  `tfsdk:"vmid"`
	Node   types.String `tfsdk:"node_name"`
	IPv4   types.String `tfsdk:"ipv4_address"`
	Claim  types.String `tfsdk:"claim"`
	Status types.String `tfsdk:"status"`
}

var entryType = types.ObjectType{AttrTypes: map[string]attr.Type{
	"vmid": types.Int64Type, "node_name": types.StringType, "ipv4_address": types.StringType, "claim": types.StringType, "status": types.StringType,
}}

func (m *Model) thing() string { return fmt.Sprintf("pool %q", m.Name.ValueString()) }

// prior is what this state remembers of the pool.
func (m *Model) prior(ctx context.Context, diags *diag.Diagnostics) sandbox.PoolPrior {
	p := sandbox.PoolPrior{Name: m.Name.ValueString(), Claim: m.Claim.ValueString()}
	entries := map[string]entryModel{}
	if value.Known(m.Members) {
		diags.Append(m.Members.ElementsAs(ctx, &entries, false)...)
	}
	for hostname, e := range entries {
		member := sandbox.Member{
			Ref:      sandbox.Ref{VMID: int(e.VMID.ValueInt64()), Node: e.Node.ValueString(), Claim: e.Claim.ValueString()},
			Hostname: hostname, Status: sandbox.MemberStatus(e.Status.ValueString()),
		}
		member.IPv4, _ = netip.ParseAddr(e.IPv4.ValueString())
		p.Members = append(p.Members, member)
	}
	return p
}

// spec is what the model asks for; nil after an import, when only the server has spoken. Unknown values read as
// "left out".
func (m *Model) spec(ctx context.Context, diags *diag.Diagnostics, settings sandbox.Settings) *sandbox.PoolSpec {
	if m.Member.IsNull() {
		return nil
	}
	spec := &sandbox.PoolSpec{
		Name: m.Name.ValueString(), Comment: m.Comment.ValueString(), Size: int(m.Size.ValueInt64()),
		Strategy: placement.Strategy(m.Placement.ValueString()), Nodes: value.Texts(m.Nodes), Attest: sandbox.Attest(m.Attest.ValueString()),
		MaxUnavailable: 1, MaxSurge: 1,
	}
	l := as[limitsModel](ctx, diags, m.Limits)
	spec.Limits = placement.Limits{Members: whole(l.Members), Cores: pointer(l.Cores), MemoryMiB: l.Memory.ValueInt64Pointer(), DiskGiB: pointer(l.Disk)}
	if !value.Known(l.Memory) {
		spec.Limits.MemoryMiB = nil
	}
	if u := as[updateModel](ctx, diags, m.Update); value.Known(m.Update) {
		spec.MaxUnavailable, spec.MaxSurge = wholeOr(u.MaxUnavailable, 1), wholeOr(u.MaxSurge, 1)
	}
	if o := as[overcommitModel](ctx, diags, m.Overcommit); value.Known(m.Overcommit) {
		spec.Ratios = &placement.Ratios{
			Cores: ratioOr(o.Cores, placement.DefaultRatios.Cores), Memory: ratioOr(o.Memory, placement.DefaultRatios.Memory), Disk: ratioOr(o.Disk, placement.DefaultRatios.Disk),
		}
	}
	spec.Member = memberSpec(ctx, diags, m.Member, settings)
	return spec
}

func memberSpec(ctx context.Context, diags *diag.Diagnostics, object types.Object, settings sandbox.Settings) sandbox.Spec {
	m := as[memberModel](ctx, diags, object)
	n := as[networkModel](ctx, diags, m.Network)
	spec := sandbox.Spec{
		Source:    sandbox.Source{TemplateID: int(m.TemplateID.ValueInt64())},
		FullClone: m.FullClone.ValueBool(), Storage: m.Storage.ValueString(),
		Cores: whole(m.Cores), CPULimit: pointer(m.CPULimit), CPUUnits: whole(m.CPUUnits), MemoryMiB: whole(m.Memory), SwapMiB: whole(m.Swap), DiskGiB: whole(m.Disk),
		OnBoot: m.OnBoot.ValueBool(), Started: true, WaitFor: sandbox.WaitFor(m.WaitFor.ValueString()),
		Network: sandbox.Network{
			Bridge: n.Bridge.ValueString(), VLANID: int(n.VLANID.ValueInt64()), MTU: int(n.MTU.ValueInt64()), RateLimitMBs: n.RateLimit.ValueFloat64(),
			IPv4: n.IPv4.ValueString(), IPv6: n.IPv6.ValueString(),
			Mode: sandbox.NetworkMode(n.Mode.ValueString()), FirewallGroup: n.FirewallGroup.ValueString(),
			Proof: sandbox.Proof(n.Proof.ValueString()), Canaries: value.Texts(n.Canaries),
		},
	}
	// The same defaults as of a sandbox_container.
	if spec.Network.IPv4 == "" {
		spec.Network.IPv4 = sandbox.AddressDHCP
		if settings.Addresses != nil {
			spec.Network.IPv4 = sandbox.AddressAuto
		}
	}
	if spec.Network.IPv6 == "" {
		spec.Network.IPv6 = sandbox.AddressNone
	}
	if value.Known(m.Nesting) {
		spec.Nesting = m.Nesting.ValueBoolPointer()
	}
	if value.Known(m.Tags) {
		diags.Append(m.Tags.ElementsAs(ctx, &spec.Tags, false)...)
	}
	if value.Known(m.Keys) {
		spec.AuthorizedKeys = append([]string{}, value.Texts(m.Keys)...)
	}
	for _, a := range elements[allowModel](ctx, diags, n.Allow) {
		spec.Network.Allow = append(spec.Network.Allow, egress.Allow{To: a.To.ValueString(), Ports: a.Ports.ValueString(), Protocol: a.Protocol.ValueString()})
	}
	for _, r := range elements[riskModel](ctx, diags, m.AllowRisks) {
		spec.AllowRisks = append(spec.AllowRisks, sandbox.Risk{Rule: r.Rule.ValueString(), Reason: r.Reason.ValueString()})
	}
	if value.Known(m.DNS) {
		d := as[dnsModel](ctx, diags, m.DNS)
		spec.DNS = &sandbox.DNS{Servers: value.Texts(d.Servers), Domain: d.Domain.ValueString()}
	}
	return spec
}

// fill writes what the server says into the model: the one way from the server to a state.
func (m *Model) fill(p sandbox.Pool) {
	m.ID, m.Name = types.StringValue(p.Name), types.StringValue(p.Name)
	if p.Claim != "" {
		m.Claim = types.StringValue(p.Claim)
	}
	m.Comment = value.TextOrNull(p.Comment)
	entries := make(map[string]attr.Value, len(p.Members))
	for _, member := range p.Members {
		ipv4 := types.StringNull()
		if member.IPv4.IsValid() {
			ipv4 = types.StringValue(member.IPv4.String())
		}
		name := member.Hostname
		if _, taken := entries[name]; taken { // somebody has renamed one
			name = fmt.Sprintf("%s-%d", name, member.VMID)
		}
		entries[name] = types.ObjectValueMust(entryType.AttrTypes, map[string]attr.Value{
			"vmid": types.Int64Value(int64(member.VMID)), "node_name": types.StringValue(member.Node), "ipv4_address": ipv4,
			"claim": value.TextOrNull(member.Claim), "status": types.StringValue(string(member.Status)),
		})
	}
	m.Members = types.MapValueMust(entryType, entries)
	m.Ready = types.Int64Value(int64(p.Ready()))
	m.Claimed = types.Int64Value(int64(len(p.Claimed)))
	m.Headroom = types.Int64Null()
	if p.Headroom >= 0 {
		m.Headroom = types.Int64Value(int64(p.Headroom))
	}
}

// as opens a nested attribute. Null and unknown ones read as a value without content.
func as[T any](ctx context.Context, diags *diag.Diagnostics, object types.Object) T {
	var out T
	if value.Known(object) {
		diags.Append(object.As(ctx, &out, basetypes.ObjectAsOptions{})...)
	}
	return out
}

// elements opens a list of nested objects; none where it is null or unknown.
func elements[T any](ctx context.Context, diags *diag.Diagnostics, list types.List) []T {
	var out []T
	if value.Known(list) {
		diags.Append(list.ElementsAs(ctx, &out, true)...)
	}
	return out
}

func whole(v types.Int64) *int {
	if !value.Known(v) {
		return nil
	}
	n := int(v.ValueInt64())
	return &n
}

func wholeOr(v types.Int64, otherwise int) int {
	if !value.Known(v) {
		return otherwise
	}
	return int(v.ValueInt64())
}

func pointer(v types.Float64) *float64 {
	if !value.Known(v) {
		return nil
	}
	n := v.ValueFloat64()
	return &n
}

func ratioOr(v types.Float64, otherwise float64) float64 {
	if !value.Known(v) {
		return otherwise
	}
	return v.ValueFloat64()
}
