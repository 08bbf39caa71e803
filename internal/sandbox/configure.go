package sandbox

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// change is what one write of a container's configuration is to say.
type change struct {
	set map[string]string
	del []string
}

func (c *change) put(key, value string) { c.set[key] = value }

func (c *change) remove(base *pve.LXCConfig, key string) {
	if base.Has(key) {
		c.del = append(c.del, key)
	}
}

// everything is the whole specification as one write, for a container that was
// just made. base is the configuration of its source, or an empty one: a clone
// copies all of it, so what must differ is reset here (protection, on_boot,
// startup, tags), and what this package doesn't know about net0 and features
// is kept. The MAC address is left to the server: the source's belongs to the
// source.
func (m *Manager) everything(spec Spec, vmid int, base *pve.LXCConfig) (change, error) {
	return m.desired(spec, vmid, base, false)
}

// difference is what has to be written so that the container with the
// configuration now is as specified; it may be empty. Its description is
// marker's.
func (m *Manager) difference(spec Spec, vmid int, now *pve.LXCConfig, marker *Marker) (change, error) {
	c, err := m.desired(spec, vmid, now, true)
	if err != nil {
		return change{}, err
	}
	description, err := JoinDescription(spec.Description, marker)
	if err != nil {
		return change{}, err
	}
	c.put("description", description)
	for key, value := range c.set {
		if sameSetting(key, now.Text(key), value, now.Has(key)) {
			delete(c.set, key)
		}
	}
	return c, nil
}

func (m *Manager) desired(spec Spec, vmid int, base *pve.LXCConfig, keepMAC bool) (change, error) {
	c := change{set: map[string]string{"hostname": spec.Hostname}}
	number := func(key string, v *int) {
		if v != nil {
			c.put(key, strconv.Itoa(*v))
		}
	}
	number("cores", spec.Cores)
	number("cpuunits", spec.CPUUnits)
	number("memory", spec.MemoryMiB)
	number("swap", spec.SwapMiB)
	if l := spec.CPULimit; l != nil && *l > 0 {
		c.put("cpulimit", strconv.FormatFloat(*l, 'f', -1, 64))
	} else if l != nil {
		c.remove(base, "cpulimit") // 0 is the server's default: no limit
	}
	if spec.Nesting != nil {
		features := base.Features().Without("nesting")
		if *spec.Nesting {
			features = base.Features().With("nesting", "1")
		}
		if features.Empty() {
			c.remove(base, "features")
		} else {
			c.put("features", features.String())
		}
	}
	flag := func(key string, v bool) {
		if v {
			c.put(key, "1")
		} else if base.Flag(key) {
			c.del = append(c.del, key)
		}
	}
	flag("protection", spec.Protection)
	flag("onboot", spec.OnBoot)
	if s := spec.Startup.String(); s != "" {
		c.put("startup", s)
	} else {
		c.remove(base, "startup")
	}
	tags := append(slices.Clone(spec.Tags), OwnerTag(m.settings.Owner))
	if spec.as.kind == KindMember {
		tags = append(tags, MemberTag)
	}
	c.put("tags", joinTags(tags))
	if spec.DNS != nil {
		text := func(key, value string) {
			if value != "" {
				c.put(key, value)
			} else {
				c.remove(base, key)
			}
		}
		text("nameserver", strings.Join(spec.DNS.Servers, " "))
		text("searchdomain", spec.DNS.Domain)
	}
	net, err := m.net0(spec.Network, vmid, base, keepMAC)
	if err != nil {
		return change{}, err
	}
	c.put("net0", net)
	return c, nil
}

// net0 is the value of net0: base's, with what the specification says. Keys
// that only others know (host-managed, firewall, trunks) stay.
func (m *Manager) net0(n Network, vmid int, base *pve.LXCConfig, keepMAC bool) (string, error) {
	props := base.Nets()[0].Properties
	set := func(key, value string) {
		if value == "" {
			props = props.Without(key)
		} else {
			props = props.With(key, value)
		}
	}
	whole := func(key string, v int) {
		if v == 0 {
			set(key, "")
		} else {
			set(key, strconv.Itoa(v))
		}
	}
	if props.Text("name") == "" {
		set("name", "eth0")
	}
	if n.Bridge != "" {
		set("bridge", n.Bridge)
	}
	switch {
	case n.MACAddress != "" && !strings.EqualFold(n.MACAddress, props.Text("hwaddr")):
		set("hwaddr", n.MACAddress)
	case n.MACAddress == "" && !keepMAC:
		set("hwaddr", "")
	}
	whole("tag", n.VLANID)
	whole("mtu", n.MTU)
	rate := ""
	if n.RateLimitMBs > 0 {
		rate = strconv.FormatFloat(n.RateLimitMBs, 'f', -1, 64)
	}
	set("rate", rate)
	if n.IPv4 != "" {
		ip, gateway, err := m.ipv4Config(n, vmid)
		if err != nil {
			return "", err
		}
		// An IPv4 that the server calls "manual" is the same as none.
		if ip != "" || props.Text("ip") != AddressManual {
			set("ip", ip)
		}
		set("gw", gateway)
	}
	if n.IPv6 != "" {
		ip6 := ipv6Config(n)
		if ip6 != "" || props.Text("ip6") != AddressManual {
			set("ip6", ip6)
		}
		if !strings.Contains(ip6, "/") {
			set("gw6", "") // a gateway goes with a static address only
		}
	}
	if n.Mode.Managed() {
		set("firewall", "1")
		if n.held {
			set("link_down", "1")
		}
	}
	if props.Text("bridge") == "" {
		return "", fmt.Errorf("net0 would have no bridge: set network.bridge, or bridge in the provider")
	}
	return props.String(), nil
}

// sameSetting says whether the server's value means the same as ours: it keeps
// numbers as text, reorders lists and ends texts with a newline.
func sameSetting(key, server, ours string, present bool) bool {
	if !present {
		return false
	}
	switch key {
	case "description":
		return strings.TrimSuffix(server, "\n") == ours
	case "tags":
		return slices.Equal(splitTags(server), splitTags(ours))
	case "net0", "features", "startup":
		return sameProperties(pve.ParseProperties(server), pve.ParseProperties(ours))
	case "nameserver", "searchdomain":
		fields := func(s string) []string {
			return strings.FieldsFunc(s, func(r rune) bool { return r == ' ' || r == ',' })
		}
		return slices.Equal(fields(server), fields(ours))
	}
	if server == ours {
		return true
	}
	a, errA := strconv.ParseFloat(server, 64)
	b, errB := strconv.ParseFloat(ours, 64)
	return errA == nil && errB == nil && a == b
}

// sameProperties compares without regard to the order of keys and to the case
// of a MAC address.
func sameProperties(a, b pve.Properties) bool {
	keys := a.Keys()
	if len(keys) != len(b.Keys()) || a.Bare() != b.Bare() {
		return false
	}
	for _, key := range keys {
		va := a.Text(key)
		vb, ok := b.Get(key)
		same := va == vb || key == "hwaddr" && strings.EqualFold(va, vb)
		if !ok || !same {
			return false
		}
	}
	return true
}

// repairs adds to c what undoes the repairable deviations of a posture.
func (c *change) repairs(now Posture, baseline *Posture) {
	if baseline == nil {
		return
	}
	for _, d := range now.Diff(*baseline) {
		if d.Repairable && d.Setting != "" && !slices.Contains(c.del, d.Setting) {
			c.del = append(c.del, d.Setting)
		}
	}
}

func (c change) empty() bool { return len(c.set) == 0 && len(c.del) == 0 }

func (c change) update(digest string) pve.LXCUpdate {
	return pve.LXCUpdate{Set: c.set, Delete: c.del, Digest: digest}
}

// keys are the settings that the change touches, sorted.
func (c change) keys() []string {
	keys := slices.Clone(c.del)
	for key := range c.set {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	return keys
}

// emptyConfig stands for a container that was made with nothing but defaults.
func emptyConfig() *pve.LXCConfig { return &pve.LXCConfig{Raw: map[string]string{}} }
