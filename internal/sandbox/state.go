package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// gib is a GiB in bytes.
const gib = 1 << 30

// fromConfig fills a Sandbox with what a container's configuration says. It is
// the one way from the server to a caller: Create, Read, Update and Import all
// end here.
func (m *Manager) fromConfig(node string, vmid int, cfg *pve.LXCConfig) Sandbox {
	text, marker := SplitDescription(cfg.Text("description"))
	s := Sandbox{
		Ref:         Ref{VMID: vmid, Node: node},
		Marker:      marker,
		Hostname:    cfg.Hostname(),
		Storage:     cfg.RootFS().Storage(),
		Template:    cfg.Template(),
		Description: text,
		Protection:  cfg.Protection(),
		OnBoot:      cfg.OnBoot(),
		Lock:        cfg.Lock(),
		Digest:      cfg.Digest(),
		Nesting:     cfg.Features().Flag("nesting"),
		Startup:     parseStartup(cfg.Text("startup")),
		Posture:     postureOf(cfg),
		Status:      StatusUnknown,
		Workspaces:  attachedIn(cfg, marker),
	}
	if marker != nil {
		s.Owner, s.Claim = marker.Owner, marker.Claim
		s.Source = Source{TemplateID: marker.TemplateID, TemplateFileID: marker.TemplateFile, RestoreFrom: marker.RestoredFrom}
		if j := journalOf(marker); j != nil {
			s.RollingBack = j.Snapshot
		}
	}
	if n, ok := cfg.Int("cores"); ok {
		cores := int(n)
		s.Cores = &cores
	}
	s.CPULimit, _ = cfg.Float("cpulimit")
	s.CPUUnits = intOr(cfg, "cpuunits", 0)
	// Proxmox VE's own defaults for a key that isn't there.
	s.MemoryMiB = intOr(cfg, "memory", 512)
	s.SwapMiB = intOr(cfg, "swap", 512)
	if bytes, ok := cfg.RootFS().SizeBytes(); ok {
		s.DiskGiB = float64(bytes) / gib
	}
	m.fillLease(&s)
	m.fillTags(&s, cfg.Tags())
	m.fillNetwork(&s, cfg)
	s.DNS = DNS{
		Servers: strings.FieldsFunc(cfg.Text("nameserver"), func(r rune) bool { return r == ' ' || r == ',' }),
		Domain:  strings.TrimSpace(cfg.Text("searchdomain")),
	}
	return s
}

func intOr(cfg *pve.LXCConfig, key string, otherwise int) int {
	if n, ok := cfg.Int(key); ok {
		return int(n)
	}
	return otherwise
}

func (m *Manager) fillTags(s *Sandbox, tags []string) {
	own := OwnerTag(m.settings.Owner)
	if s.Marker != nil {
		own = OwnerTag(s.Marker.Owner)
	}
	s.Tags = NormalizeTags(tags)
	s.OwnerTag = slices.Contains(s.Tags, own)
	s.Tags = slices.DeleteFunc(s.Tags, func(t string) bool { return t == own || t == MemberTag })
}

func (m *Manager) fillNetwork(s *Sandbox, cfg *pve.LXCConfig) {
	net, present := cfg.Nets()[0]
	if !present {
		s.Network = NetworkState{IPv4: AddressNone, IPv6: AddressNone}
		return
	}
	n := NetworkState{
		Present: true, Name: net.Name(), Bridge: net.Bridge(), MACAddress: net.MAC(),
		Gateway: net.Gateway(), Gateway6: net.Gateway6(),
		Firewall: net.Firewall(), LinkDown: net.LinkDown(),
	}
	n.VLANID, _ = strconv.Atoi(net.Text("tag"))
	n.MTU, _ = strconv.Atoi(net.Text("mtu"))
	n.RateLimitMBs, _ = strconv.ParseFloat(net.Text("rate"), 64)

	switch ip := net.IP(); ip {
	case "", AddressManual:
		n.IPv4 = AddressNone
	case AddressDHCP:
		n.IPv4 = AddressDHCP
	default:
		n.IPv4, n.IPv4CIDR = ip, ip
		if prefix, err := netip.ParsePrefix(ip); err == nil {
			s.IPv4 = prefix.Addr()
			if m.isAuto(prefix, s.VMID) {
				n.IPv4 = AddressAuto
			}
		}
	}
	switch ip := net.IP6(); ip {
	case "", AddressManual:
		n.IPv6 = AddressNone
	default:
		n.IPv6 = ip
		if prefix, err := netip.ParsePrefix(ip); err == nil {
			s.IPv6 = prefix.Addr()
		}
	}
	if s.Marker != nil {
		n.Mode = NetworkMode(s.Marker.Mode)
	}
	s.Network = n
}

// isAuto says whether prefix is what the address range gives to vmid.
func (m *Manager) isAuto(prefix netip.Prefix, vmid int) bool {
	r := m.settings.Addresses
	if r == nil || prefix.Bits() != r.CIDR.Bits() {
		return false
	}
	addr, err := r.Address(m.settings.VMIDs, vmid)
	return err == nil && addr == prefix.Addr()
}

func postureOf(cfg *pve.LXCConfig) Posture {
	p := Posture{
		Unprivileged: cfg.Unprivileged(),
		Features:     []string{}, Mounts: []string{}, Devices: []string{}, Raw: [][]string{}, ExtraNICs: []string{},
		Hookscript: cfg.Text("hookscript"),
	}
	features := cfg.Features()
	for _, key := range features.Keys() {
		p.Features = append(p.Features, key+"="+features.Text(key))
	}
	slices.Sort(p.Features)
	// The root disk's volume and size have attributes of their own; what is
	// left are its options (acl, mountoptions, quota, ro …).
	if options := cfg.RootFS().Without("size", "volume").WithBare("").String(); strings.Trim(options, ",") != "" {
		p.Mounts = append(p.Mounts, "rootfs="+strings.Trim(options, ","))
	}
	_, marker := SplitDescription(cfg.Text("description"))
	workspaces := workspaceSlots(cfg, marker)
	for _, key := range cfg.Keys() {
		value := cfg.Text(key)
		_, ours := workspaces[key]
		switch {
		case ours: // comes and goes by the configuration's will
		case isNumbered(key, "mp"):
			p.Mounts = append(p.Mounts, key+"="+value)
		case isNumbered(key, "dev"):
			p.Devices = append(p.Devices, key+"="+value)
		case isNumbered(key, "net") && key != "net0":
			p.ExtraNICs = append(p.ExtraNICs, key+"="+value)
		}
	}
	for _, line := range cfg.RawLines {
		p.Raw = append(p.Raw, []string{line.Key, line.Value})
	}
	return p
}

func isNumbered(key, prefix string) bool {
	rest, ok := strings.CutPrefix(key, prefix)
	if !ok || rest == "" {
		return false
	}
	_, err := strconv.Atoi(rest)
	return err == nil
}

// parseStartup reads "order=2,up=30,down=60"; the key order may be left out.
func parseStartup(s string) *Startup {
	if strings.TrimSpace(s) == "" {
		return nil
	}
	props := pve.ParseProperties(s)
	get := func(key string) *int {
		value, ok := props.Get(key)
		if !ok && key == "order" {
			value = props.Bare()
		}
		n, err := strconv.Atoi(value)
		if err != nil {
			return nil
		}
		return &n
	}
	return &Startup{Order: get("order"), UpDelaySec: get("up"), DownDelaySec: get("down")}
}

// String is Proxmox VE's form; empty when nothing is set.
func (s *Startup) String() string {
	if s == nil {
		return ""
	}
	var parts []string
	add := func(key string, v *int) {
		if v != nil {
			parts = append(parts, fmt.Sprintf("%s=%d", key, *v))
		}
	}
	add("order", s.Order)
	add("up", s.UpDelaySec)
	add("down", s.DownDelaySec)
	return strings.Join(parts, ",")
}

// fillStatus takes over what a list or the container's status says.
func (s *Sandbox) fillStatus(status string, uptimeSec int64) {
	switch status {
	case string(StatusRunning):
		s.Status, s.Uptime = StatusRunning, time.Duration(uptimeSec)*time.Second
	case string(StatusStopped):
		s.Status, s.Uptime = StatusStopped, 0
	default:
		s.Status = StatusUnknown
	}
}
