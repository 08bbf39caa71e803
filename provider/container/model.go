package container

import (
	"context"
	"strconv"

	"github.com/hashicorp/terraform-plugin-framework-timeouts/resource/timeouts"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-framework/types/basetypes"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/base"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// Model is a sandbox_container in configuration, plan and state.
type Model struct {
	ID    types.String `tfsdk:"id"`
	VMID  types.Int64  `tfsdk:"vmid"`
	Claim types.String `tfsdk:"claim"`

	Hostname         types.String `tfsdk:"hostname"`
	TemplateID       types.Int64  `tfsdk:"template_id"`
	TemplateFileID   types.String `tfsdk:"template_file_id"`
	RestoreFrom      types.String `tfsdk:"restore_from"`
	FullClone        types.Bool   `tfsdk:"full_clone"`
	Storage          types.String `tfsdk:"storage"`
	OnTemplateChange types.String `tfsdk:"on_template_change"`
	TemplateCurrent  types.Bool   `tfsdk:"template_current"`
	NodeName         types.String `tfsdk:"node_name"`
	PoolID           types.String `tfsdk:"pool_id"`
	ClaimFromPoolID  types.String `tfsdk:"claim_from_pool_id"`
	OnEmpty          types.String `tfsdk:"on_empty"`

	Cores    types.Int64   `tfsdk:"cores"`
	CPULimit types.Float64 `tfsdk:"cpu_limit"`
	CPUUnits types.Int64   `tfsdk:"cpu_units"`
	Memory   types.Int64   `tfsdk:"memory"`
	Swap     types.Int64   `tfsdk:"swap"`
	Disk     types.Float64 `tfsdk:"disk"`
	Nesting  types.Bool    `tfsdk:"nesting"`

	Tags        value.Tags   `tfsdk:"tags"`
	Description value.String `tfsdk:"description"`
	Protection  types.Bool   `tfsdk:"protection"`
	OnBoot      types.Bool   `tfsdk:"on_boot"`
	Startup     types.Object `tfsdk:"startup"`
	Started     types.Bool   `tfsdk:"started"`

	Network types.Object `tfsdk:"network"`
	DNS     types.Object `tfsdk:"dns"`

	Workspace types.List `tfsdk:"workspace"`

	Lease     types.Object `tfsdk:"lease"`
	Tailscale types.Object `tfsdk:"tailscale"`
	ExpiresAt types.String `tfsdk:"expires_at"`
	Expired   types.Bool   `tfsdk:"expired"`

	AuthorizedKeys          types.List  `tfsdk:"authorized_keys"`
	AuthorizedKeysWO        types.List  `tfsdk:"authorized_keys_wo"`
	AuthorizedKeysWOVersion types.Int64 `tfsdk:"authorized_keys_wo_version"`

	AllowRisks types.List `tfsdk:"allow_risks"`

	WaitFor              types.String   `tfsdk:"wait_for"`
	RestartWhenNeeded    types.Bool     `tfsdk:"restart_when_needed"`
	SnapshotBeforeUpdate types.Bool     `tfsdk:"snapshot_before_update"`
	Timeouts             timeouts.Value `tfsdk:"timeouts"`

	IPv4Address types.String `tfsdk:"ipv4_address"`
	IPv6Address types.String `tfsdk:"ipv6_address"`
	SSH         types.Object `tfsdk:"ssh"`
	Status      types.String `tfsdk:"status"`
	Posture     types.Object `tfsdk:"posture"`
	Timings     types.Object `tfsdk:"timings"`
}

// NetworkModel is the attribute network.
type NetworkModel struct {
	Bridge     types.String  `tfsdk:"bridge"`
	VLANID     types.Int64   `tfsdk:"vlan_id"`
	MTU        types.Int64   `tfsdk:"mtu"`
	RateLimit  types.Float64 `tfsdk:"rate_limit"`
	MACAddress value.String  `tfsdk:"mac_address"`
	IPv4       value.String  `tfsdk:"ipv4"`
	Gateway    value.String  `tfsdk:"gateway"`
	IPv6       value.String  `tfsdk:"ipv6"`

	Mode          types.String `tfsdk:"mode"`
	FirewallGroup types.String `tfsdk:"firewall_group"`
	Allow         types.List   `tfsdk:"allow"`
	Proof         types.String `tfsdk:"proof"`
	Canaries      types.List   `tfsdk:"canaries"`
}

// allowModel is an element of network.allow.
type allowModel struct {
	To       types.String `tfsdk:"to"`
	Ports    types.String `tfsdk:"ports"`
	Protocol types.String `tfsdk:"protocol"`
	Resolve  types.String `tfsdk:"resolve"`
}

// riskModel is an element of allow_risks.
type riskModel struct {
	Rule   types.String `tfsdk:"rule"`
	Reason types.String `tfsdk:"reason"`
}

type dnsModel struct {
	Servers types.List   `tfsdk:"servers"`
	Domain  types.String `tfsdk:"domain"`
}

type startupModel struct {
	Order     types.Int64 `tfsdk:"order"`
	UpDelay   types.Int64 `tfsdk:"up_delay"`
	DownDelay types.Int64 `tfsdk:"down_delay"`
}

type sshModel struct {
	Username types.String `tfsdk:"username"`
	Host     types.String `tfsdk:"host"`
	Port     types.Int64  `tfsdk:"port"`
	HostKey  types.String `tfsdk:"host_key"`
}

// ref is how the domain finds the container and proves that it is the one.
func (m *Model) ref() sandbox.Ref {
	return sandbox.Ref{
		VMID:  int(m.VMID.ValueInt64()),
		Node:  m.NodeName.ValueString(),
		Claim: m.Claim.ValueString(),
	}
}

// prior is what this state remembers of the container.
func (m *Model) prior(ctx context.Context, diags *diag.Diagnostics) sandbox.Prior {
	login := as[sshModel](ctx, diags, m.SSH)
	return sandbox.Prior{
		Ref:        m.ref(),
		SSHHostKey: login.HostKey.ValueString(),
		// The template is looked at only where its change would do something.
		WithTemplate: m.OnTemplateChange.ValueString() != keepOnChange,
	}
}

// spec is what the model asks for. Unknown values read as "left out". Two things are left out too, because a state
// holds them although nobody may have asked for them: the storage (asked adds it), and keys (withKeys adds them where
// they are to be written).
func (m *Model) spec(ctx context.Context, diags *diag.Diagnostics) sandbox.Spec {
	spec := sandbox.Spec{
		Hostname: m.Hostname.ValueString(),
		Source: sandbox.Source{
			TemplateID:     int(m.TemplateID.ValueInt64()),
			TemplateFileID: m.TemplateFileID.ValueString(),
			RestoreFrom:    m.RestoreFrom.ValueString(),
		},
		FullClone: m.FullClone.ValueBool(),
		NodeName:  m.NodeName.ValueString(),
		VMID:      int(m.VMID.ValueInt64()),
		PoolID:    m.PoolID.ValueString(),

		Cores:     wholePointer(m.Cores),
		CPUUnits:  wholePointer(m.CPUUnits),
		MemoryMiB: wholePointer(m.Memory),
		SwapMiB:   wholePointer(m.Swap),
		DiskGiB:   diskPointer(m.Disk),

		Description: value.Unix(m.Description.ValueString()),
		Protection:  m.Protection.ValueBool(),
		OnBoot:      m.OnBoot.ValueBool(),
		Started:     m.Started.ValueBool(),

		Network:    m.networkSpec(ctx, diags),
		Workspaces: m.workspaceSpec(ctx, diags),
		Lease:      m.leaseSpec(ctx, diags),

		WaitFor:           sandbox.WaitFor(m.WaitFor.ValueString()),
		RestartWhenNeeded: m.RestartWhenNeeded.ValueBool(),

		SnapshotBeforeUpdate: m.SnapshotBeforeUpdate.ValueBool(),
	}
	if value.Known(m.CPULimit) {
		limit := m.CPULimit.ValueFloat64()
		spec.CPULimit = &limit
	}
	if value.Known(m.Nesting) {
		nesting := m.Nesting.ValueBool()
		spec.Nesting = &nesting
	}
	for _, r := range elements[riskModel](ctx, diags, m.AllowRisks) {
		spec.AllowRisks = append(spec.AllowRisks, sandbox.Risk{Rule: r.Rule.ValueString(), Reason: r.Reason.ValueString()})
	}
	spec.Tags, _ = m.Tags.Normalised()
	if value.Known(m.Startup) {
		s := as[startupModel](ctx, diags, m.Startup)
		spec.Startup = &sandbox.Startup{
			Order:        wholePointer(s.Order),
			UpDelaySec:   wholePointer(s.UpDelay),
			DownDelaySec: wholePointer(s.DownDelay),
		}
	}
	if value.Known(m.DNS) {
		d := as[dnsModel](ctx, diags, m.DNS)
		spec.DNS = &sandbox.DNS{Servers: value.Texts(d.Servers), Domain: d.Domain.ValueString()}
	}
	return spec
}

func (m *Model) networkSpec(ctx context.Context, diags *diag.Diagnostics) sandbox.Network {
	n := as[NetworkModel](ctx, diags, m.Network)
	var allow []egress.Allow
	for _, a := range elements[allowModel](ctx, diags, n.Allow) {
		allow = append(allow, egress.Allow{To: a.To.ValueString(), Ports: a.Ports.ValueString(), Protocol: a.Protocol.ValueString(), Resolve: !a.Resolve.IsNull()})
	}
	return sandbox.Network{
		Mode:          sandbox.NetworkMode(n.Mode.ValueString()),
		FirewallGroup: n.FirewallGroup.ValueString(),
		Allow:         allow,
		Proof:         sandbox.Proof(n.Proof.ValueString()),
		Canaries:      value.Texts(n.Canaries),

		Bridge:       n.Bridge.ValueString(),
		VLANID:       int(n.VLANID.ValueInt64()),
		MTU:          int(n.MTU.ValueInt64()),
		RateLimitMBs: n.RateLimit.ValueFloat64(),
		MACAddress:   n.MACAddress.ValueString(),
		IPv4:         n.IPv4.ValueString(),
		Gateway:      n.Gateway.ValueString(),
		IPv6:         n.IPv6.ValueString(),
	}
}

// asked is what a plan asks for, given the configuration behind it.
func (m *Model) asked(ctx context.Context, config *Model, diags *diag.Diagnostics) sandbox.Spec {
	spec := m.spec(ctx, diags)
	spec.Storage = config.Storage.ValueString()
	return spec
}

// withKeys adds the authorized keys to a specification that is to write them. Write-only keys stand only in the
// configuration.
func withKeys(spec *sandbox.Spec, plan, config *Model) {
	switch {
	case value.Known(plan.AuthorizedKeys):
		spec.AuthorizedKeys = nonNil(value.Texts(plan.AuthorizedKeys))
	case value.Known(config.AuthorizedKeysWO):
		spec.AuthorizedKeys = nonNil(value.Texts(config.AuthorizedKeysWO))
	}
}

// keysChanged tells whether an update has keys to write. A list that is taken out of the configuration leaves the
// container's file as it is, as its documentation says.
func keysChanged(state, plan *Model) bool {
	return !state.AuthorizedKeys.Equal(plan.AuthorizedKeys) || !state.AuthorizedKeysWOVersion.Equal(plan.AuthorizedKeysWOVersion)
}

// settled replaces what is still unknown by null: a state can't hold unknown values.
func (m *Model) settled() {
	settle(&m.ID, types.StringNull())
	settle(&m.VMID, types.Int64Null())
	settle(&m.Claim, types.StringNull())
	settle(&m.TemplateID, types.Int64Null())
	settle(&m.Storage, types.StringNull())
	settle(&m.TemplateCurrent, types.BoolNull())
	settle(&m.NodeName, types.StringNull())
	settle(&m.PoolID, types.StringNull())
	settle(&m.Cores, types.Int64Null())
	settle(&m.CPULimit, types.Float64Null())
	settle(&m.CPUUnits, types.Int64Null())
	settle(&m.Memory, types.Int64Null())
	settle(&m.Swap, types.Int64Null())
	settle(&m.Disk, types.Float64Null())
	settle(&m.Nesting, types.BoolNull())
	settle(&m.Startup, types.ObjectNull(startupTypes))
	settle(&m.DNS, types.ObjectNull(dnsTypes))
	settle(&m.IPv4Address, types.StringNull())
	settle(&m.IPv6Address, types.StringNull())
	settle(&m.SSH, types.ObjectNull(sshTypes))
	settle(&m.Status, types.StringNull())
	settle(&m.ExpiresAt, types.StringNull())
	settle(&m.Expired, types.BoolValue(false))
	m.settleLease()
	settle(&m.Posture, types.ObjectNull(postureTypes))
	settle(&m.Timings, types.ObjectNull(timingTypes))
	m.Network = settledNetwork(m.Network)
	m.AuthorizedKeysWO = types.ListNull(types.StringType)
}

// track writes down what is needed to find the container again.
func (m *Model) track(ref sandbox.Ref) {
	m.ID = types.StringValue(strconv.Itoa(ref.VMID))
	m.VMID = types.Int64Value(int64(ref.VMID))
	m.Claim = value.TextOrNull(ref.Claim)
	if ref.Node != "" && !value.Known(m.NodeName) {
		m.NodeName = types.StringValue(ref.Node)
	}
}

// imported is the model of a container that no configuration has described yet: what only a configuration can say is
// as its defaults have it, so that a plan after the import finds nothing to do.
func imported() *Model {
	return &Model{
		OnTemplateChange:  types.StringValue(replaceOnChange),
		WaitFor:           types.StringValue(string(sandbox.WaitForSSH)),
		RestartWhenNeeded: types.BoolValue(false),

		SnapshotBeforeUpdate: types.BoolValue(false),

		Started:          types.BoolValue(true),
		Tags:             value.NullTags(),
		Description:      value.DescriptionType.Null(),
		Network:          types.ObjectNull(networkTypes),
		DNS:              types.ObjectNull(dnsTypes),
		Workspace:        types.ListNull(workspaceType),
		Lease:            types.ObjectNull(leaseTypes),
		Tailscale:        types.ObjectNull(tailscaleTypes),
		Startup:          types.ObjectNull(startupTypes),
		AllowRisks:       types.ListNull(riskType),
		AuthorizedKeys:   types.ListNull(types.StringType),
		AuthorizedKeysWO: types.ListNull(types.StringType),
		SSH:              types.ObjectNull(sshTypes),
		Posture:          types.ObjectNull(postureTypes),
		Timings:          types.ObjectNull(timingTypes),
		Timeouts:         base.NullTimeouts(),
	}
}

// as opens a nested attribute. Null and unknown ones read as a value without content.
func as[T any](ctx context.Context, diags *diag.Diagnostics, object types.Object) T {
	var out T
	if !value.Known(object) {
		return out
	}
	diags.Append(object.As(ctx, &out, basetypes.ObjectAsOptions{})...)
	return out
}

// elements opens a list of nested objects; none where it is null or unknown.
func elements[T any](ctx context.Context, diags *diag.Diagnostics, list types.List) []T {
	if !value.Known(list) {
		return nil
	}
	var out []T
	diags.Append(list.ElementsAs(ctx, &out, true)...)
	return out
}
