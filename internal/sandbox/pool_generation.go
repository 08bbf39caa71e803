package sandbox

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// memberSpec is the resolved specification of the pool's members.
func (m *Manager) memberSpec(spec PoolSpec) Spec {
	s := spec.Member
	s.PoolID, s.Started, s.NodeName, s.VMID, s.Hostname = spec.Name, true, "", 0, ""
	s = m.resolveNew(s)
	s.as = role{kind: KindMember, pool: spec.Name}
	s.as.generation = generationOf(s)
	return s
}

// generationOf names the settings of a member, "<those that need a new one>.<all>",
// so that the marker alone says what a member is short of. Only what is set counts:
// a setting that a later version adds leaves the generations of before as they are.
func generationOf(s Spec) string {
	roll := map[string]any{}
	all := map[string]any{}
	put := func(into map[string]any, key string, v any) {
		switch text := fmt.Sprint(v); text {
		case "", "0", "false", "[]", "<nil>", "{0 }":
		default:
			into[key] = v
		}
	}
	n := s.Network
	put(roll, "template", s.Source.TemplateID)
	put(roll, "full", s.FullClone)
	put(roll, "storage", s.Storage)
	put(roll, "disk", text(s.DiskGiB))
	put(roll, "nesting", text(s.Nesting))
	put(roll, "bridge", n.Bridge)
	put(roll, "vlan", n.VLANID)
	put(roll, "mtu", n.MTU)
	put(roll, "ipv4", n.IPv4)
	put(roll, "gateway", n.Gateway)
	put(roll, "ipv6", n.IPv6)
	if s.DNS != nil {
		put(roll, "dns", append([]string{s.DNS.Domain}, s.DNS.Servers...))
	}

	put(all, "cores", text(s.Cores))
	put(all, "limit", text(s.CPULimit))
	put(all, "units", text(s.CPUUnits))
	put(all, "memory", text(s.MemoryMiB))
	put(all, "swap", text(s.SwapMiB))
	put(all, "tags", s.Tags)
	put(all, "description", s.Description)
	put(all, "onboot", s.OnBoot)
	put(all, "startup", s.Startup.String())
	put(all, "rate", n.RateLimitMBs)
	put(all, "mode", string(n.Mode))
	put(all, "group", n.FirewallGroup)
	put(all, "allow", n.Allow)
	if s.AuthorizedKeys != nil {
		all["keys"] = s.AuthorizedKeys
	}
	return digestOf(roll) + "." + digestOf(all)
}

func text[T any](p *T) string {
	if p == nil {
		return ""
	}
	return "=" + fmt.Sprint(*p)
}

// digestOf is short: it tells a handful of generations of one pool apart.
func digestOf(settings map[string]any) string {
	raw, err := json.Marshal(settings) // keys in their order
	if err != nil {
		raw = []byte(err.Error()) // can't be: texts, numbers and lists
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:5])
}

// needsRoll says whether a member of generation was can't be changed in place to
// generation is.
func needsRoll(was, is string) bool {
	a, _, _ := strings.Cut(was, ".")
	b, _, _ := strings.Cut(is, ".")
	return a != b
}

// outdated says what a member's marker is short of; empty for nothing. template is
// nil where its template can't be seen: then nothing is said about its build.
func outdated(marker *Marker, spec Spec, template *pve.LXCConfig) string {
	switch {
	case marker.TemplateID != spec.Source.TemplateID:
		return fmt.Sprintf("it was made from template %d", marker.TemplateID)
	case template != nil && buildOf(template) != marker.TemplateBuild:
		return fmt.Sprintf("template %d was built anew", marker.TemplateID)
	case needsRoll(marker.Generation, spec.as.generation):
		return "it was made with settings of before that can't be changed in place"
	case marker.Generation != spec.as.generation:
		return "it has settings of before"
	}
	return ""
}

// inPlace says whether what a member is short of can be changed in place.
func inPlace(marker *Marker, spec Spec, template *pve.LXCConfig) bool {
	return marker.TemplateID == spec.Source.TemplateID && !needsRoll(marker.Generation, spec.as.generation) &&
		(template == nil || buildOf(template) == marker.TemplateBuild)
}
