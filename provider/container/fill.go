package container

import (
	"net/netip"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/value"
)

// fill writes what the server says into the model: the one way from the server to a state. Create, Read, Update and
// Import all end here. Of what the model held before, it keeps what the server can't say (what is only for the
// provider, and keys inside the container) and the spelling of what means the same.
func (m *Model) fill(s sandbox.Sandbox) {
	m.ID = types.StringValue(strconv.Itoa(s.VMID))
	m.VMID = types.Int64Value(int64(s.VMID))
	keepUnlessSaid(&m.Claim, s.Claim)
	keepUnlessSaid(&m.NodeName, s.Node)
	m.fillSource(s)

	m.Hostname = types.StringValue(s.Hostname)
	m.PoolID = value.TextOrNull(s.PoolID)
	m.Cores = pointerOrNull(s.Cores)
	m.CPULimit = types.Float64Value(s.CPULimit)
	m.CPUUnits = numberOrNull(s.CPUUnits)
	m.Memory = types.Int64Value(int64(s.MemoryMiB))
	m.Swap = types.Int64Value(int64(s.SwapMiB))
	m.Disk = types.Float64Value(s.DiskGiB)
	m.Nesting = types.BoolValue(s.Nesting)

	m.fillTexts(s)
	m.Protection = types.BoolValue(s.Protection)
	m.OnBoot = types.BoolValue(s.OnBoot)
	m.fillStartup(s.Startup)
	m.fillDNS(s.DNS)
	m.fillNetwork(s.Network)
	m.fillWorkspaces(s.Workspaces)

	m.fillLease(s)

	started := m.Started
	m.Status = types.StringValue(string(s.Status))
	switch s.Status {
	case sandbox.StatusRunning:
		m.Started = types.BoolValue(true)
	case sandbox.StatusStopped:
		// A container that its node is about to start is as good as started.
		m.Started = types.BoolValue(s.PendingAutostart)
		if s.Expired() && value.Known(started) {
			// The end of its lease has stopped it, and nothing starts it before it is renewed.
			m.Started = started
		}
	}
	m.IPv4Address = addressOrNull(s.IPv4)
	m.IPv6Address = addressOrNull(s.IPv6)
	if s.SSH != nil {
		m.SSH = types.ObjectValueMust(sshTypes, map[string]attr.Value{
			"username": types.StringValue(s.SSH.Username),
			"host":     types.StringValue(s.SSH.Host),
			"port":     types.Int64Value(int64(s.SSH.Port)),
			"host_key": value.TextOrNull(s.SSH.HostKey),
		})
	}
	m.fillPosture(s.Posture)
	m.TemplateCurrent = types.BoolPointerValue(s.TemplateCurrent)
	m.settled()
}

// fillSource takes the source from the marker. Where the marker doesn't say it (an adopted container), what the
// configuration said stays.
func (m *Model) fillSource(s sandbox.Sandbox) {
	switch {
	case s.Source == (sandbox.Source{}):
	case m.claims() && value.Known(m.TemplateID):
		// What an empty pool's clone would be made from: the configuration's, not the member's.
	default:
		m.TemplateID = numberOrNull(s.Source.TemplateID)
		m.TemplateFileID = value.TextOrNull(s.Source.TemplateFileID)
		m.RestoreFrom = value.TextOrNull(s.Source.RestoreFrom)
	}
	keepUnlessSaid(&m.Storage, s.Storage)
}

func (m *Model) fillTexts(s sandbox.Sandbox) {
	if !sameText(m.Description, s.Description) {
		m.Description = value.DescriptionType.Null()
		if s.Description != "" {
			m.Description = value.DescriptionType.Known(s.Description)
		}
	}
	if said := value.NewTags(s.Tags); !value.Known(m.Tags) || !m.Tags.Same(said) {
		m.Tags = value.NullTags()
		if len(s.Tags) > 0 {
			m.Tags = said
		}
	}
}

// sameText tells whether the model's description is the server's already; null and "" are kept apart only here.
func sameText(v value.String, said string) bool {
	if !value.Known(v) {
		return v.IsNull() && said == ""
	}
	return value.Unix(v.ValueString()) == said
}

func (m *Model) fillStartup(s *sandbox.Startup) {
	if s == nil {
		s = &sandbox.Startup{}
		if !value.Known(m.Startup) {
			m.Startup = types.ObjectNull(startupTypes)
			return
		}
	}
	m.Startup = types.ObjectValueMust(startupTypes, map[string]attr.Value{
		"order":      pointerOrNull(s.Order),
		"up_delay":   pointerOrNull(s.UpDelaySec),
		"down_delay": pointerOrNull(s.DownDelaySec),
	})
}

func (m *Model) fillDNS(s sandbox.DNS) {
	if len(s.Servers) == 0 && s.Domain == "" && !value.Known(m.DNS) {
		m.DNS = types.ObjectNull(dnsTypes)
		return
	}
	servers := types.ListNull(types.StringType)
	before, _ := m.DNS.Attributes()["servers"].(types.List)
	if len(s.Servers) > 0 || value.Known(m.DNS) && value.Known(before) {
		servers = value.TextList(s.Servers)
	}
	m.DNS = types.ObjectValueMust(dnsTypes, map[string]attr.Value{
		"servers": servers,
		"domain":  value.TextOrNull(s.Domain),
	})
}

func (m *Model) fillNetwork(s sandbox.NetworkState) {
	before := m.Network.Attributes()
	ipv4 := s.IPv4
	// An address that the range would give too is "auto" to the domain; one that was written out stays written out.
	if said, ok := before["ipv4"].(value.String); ok && value.Known(said) && s.IPv4CIDR != "" &&
		said.Same(value.AddressType.Known(s.IPv4CIDR)) {
		ipv4 = s.IPv4CIDR
	}
	m.Network = types.ObjectValueMust(networkTypes, map[string]attr.Value{
		"bridge":      value.TextOrNull(s.Bridge),
		"vlan_id":     numberOrNull(s.VLANID),
		"mtu":         numberOrNull(s.MTU),
		"rate_limit":  rateOrNull(s.RateLimitMBs),
		"mac_address": spelled(value.MACType, before["mac_address"], s.MACAddress),
		"ipv4":        spelled(value.AddressType, before["ipv4"], ipv4),
		"gateway":     spelled(value.AddressType, before["gateway"], s.Gateway),
		"ipv6":        spelled(value.AddressType, before["ipv6"], s.IPv6),

		"mode":           modeOf(s.Mode),
		"firewall_group": kept(before, "firewall_group", types.StringNull()),
		"allow":          kept(before, "allow", types.ListNull(allowType)),
		"proof":          kept(before, "proof", types.StringValue(string(sandbox.ProofGuarded))),
		"canaries":       kept(before, "canaries", types.ListNull(types.StringType)),
	})
}

// modeOf is the mode that the marker says; a container that was never managed has none.
func modeOf(mode sandbox.NetworkMode) types.String { return value.TextOrNull(string(mode)) }

// kept is what the model held of an attribute that only the configuration can say.
func kept(before map[string]attr.Value, name string, otherwise attr.Value) attr.Value {
	if v, ok := before[name]; ok && !v.IsUnknown() {
		return v
	}
	return otherwise
}

// spelled is what the server says, in the spelling of before when that means the same. "" is null.
func spelled(t value.StringType, before attr.Value, said string) value.String {
	if said == "" {
		return t.Null()
	}
	v := t.Known(said)
	if b, ok := before.(value.String); ok && value.Known(b) && b.Same(v) {
		return b
	}
	return v
}

func rateOrNull(rate float64) types.Float64 {
	if rate == 0 {
		return types.Float64Null()
	}
	return types.Float64Value(rate)
}

func addressOrNull(addr netip.Addr) types.String {
	if !addr.IsValid() {
		return types.StringNull()
	}
	return types.StringValue(addr.String())
}

func keepUnlessSaid(v *types.String, said string) {
	if said != "" {
		*v = types.StringValue(said)
	}
}

// fillPosture keeps the proof of before where the wall wasn't tried anew.
func (m *Model) fillPosture(p sandbox.Posture) {
	before, ok := m.Posture.Attributes()["proof"].(types.String)
	switch {
	case p.Proof != "":
	case ok && value.Known(before):
		p.Proof = before.ValueString()
	case p.Firewall != nil:
		p.Proof = sandbox.ProvedReadback // after an import: that is what was just done
	}
	m.Posture = postureObject(p)
}

func postureObject(p sandbox.Posture) types.Object {
	raw := make([]string, 0, len(p.Raw))
	for _, line := range p.Raw {
		if len(line) == 2 {
			raw = append(raw, line[0]+": "+line[1])
		}
	}
	pending := types.ListNull(types.StringType)
	if p.Pending != nil {
		pending = value.TextList(p.Pending)
	}
	firewall := types.ListNull(types.StringType)
	if p.Firewall != nil {
		firewall = value.TextList(p.Firewall)
	}
	return types.ObjectValueMust(postureTypes, map[string]attr.Value{
		"unprivileged": types.BoolValue(p.Unprivileged),
		"features":     value.TextList(p.Features),
		"mounts":       value.TextList(p.Mounts),
		"devices":      value.TextList(p.Devices),
		"raw":          value.TextList(raw),
		"hookscript":   value.TextOrNull(p.Hookscript),
		"extra_nics":   value.TextList(p.ExtraNICs),
		"pending":      pending,
		"firewall":     firewall,
		"proof":        value.TextOrNull(p.Proof),
	})
}

// postureOf is the way back, for a comparison with the baseline.
func postureOf(object types.Object) (sandbox.Posture, bool) {
	if !value.Known(object) {
		return sandbox.Posture{}, false
	}
	attributes := object.Attributes()
	list := func(name string) []string {
		l, _ := attributes[name].(types.List)
		return nonNil(value.Texts(l))
	}
	unprivileged, _ := attributes["unprivileged"].(types.Bool)
	hookscript, _ := attributes["hookscript"].(types.String)
	return sandbox.Posture{
		Unprivileged: unprivileged.ValueBool(),
		Features:     list("features"),
		Mounts:       list("mounts"),
		Devices:      list("devices"),
		Raw:          rawPairs(list("raw")),
		Hookscript:   hookscript.ValueString(),
		ExtraNICs:    list("extra_nics"),
		Firewall:     listOrNil(attributes["firewall"]),
	}, true
}

// listOrNil keeps a list that is null apart from an empty one.
func listOrNil(v attr.Value) []string {
	if l, ok := v.(types.List); ok && value.Known(l) {
		return nonNil(value.Texts(l))
	}
	return nil
}

// rawPairs takes "key: value" lines apart.
func rawPairs(lines []string) [][]string {
	pairs := make([][]string, 0, len(lines))
	for _, line := range lines {
		key, v, _ := strings.Cut(line, ": ")
		pairs = append(pairs, []string{key, v})
	}
	return pairs
}

func timingsObject(t sandbox.Timings) types.Object {
	ms := func(d time.Duration) types.Int64 { return types.Int64Value(d.Milliseconds()) }
	return types.ObjectValueMust(timingTypes, map[string]attr.Value{
		"clone":    ms(t.Clone),
		"start":    ms(t.Start),
		"address":  ms(t.Address),
		"firewall": ms(t.Firewall),
		"ssh":      ms(t.SSH),
		"total":    ms(t.Total),
	})
}

// settledNetwork replaces unknown parts of a network object by null.
func settledNetwork(object types.Object) types.Object {
	if object.IsUnknown() {
		return types.ObjectNull(networkTypes)
	}
	if object.IsNull() {
		return object
	}
	attributes := object.Attributes()
	for name, v := range attributes {
		if !v.IsUnknown() {
			continue
		}
		switch t := networkTypes[name].(type) {
		case value.StringType:
			attributes[name] = t.Null()
		default: // only bridge can be unknown otherwise
			attributes[name] = types.StringNull()
		}
	}
	return types.ObjectValueMust(networkTypes, attributes)
}
