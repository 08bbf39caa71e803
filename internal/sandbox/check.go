package sandbox

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/crypto/ssh"
)

// Limits of Proxmox VE for a container's settings (pve-container's schema).
const (
	MinMemoryMiB = 16
	MaxCores     = 8192
	MaxCPUUnits  = 500000
	MinMTU       = 64
	MaxMTU       = 65535
	MaxVLANID    = 4094
)

// problems collects findings.
type problems []Problem

func (p *problems) add(attribute, summary, detail string) {
	*p = append(*p, Problem{Attribute: attribute, Summary: summary, Detail: detail})
}

func (p *problems) warn(attribute, summary, detail string) {
	*p = append(*p, Problem{Attribute: attribute, Summary: summary, Detail: detail, Warning: true})
}

// Check validates a specification without any request. What it finds would
// otherwise fail after an id is taken and a clone is made, or not at all.
func (m *Manager) Check(spec Spec) []Problem { return m.check(spec, true) }

// check validates; what only matters when a container is made (where it comes
// from, its id) is left out for one that exists, which may have been adopted.
func (m *Manager) check(spec Spec, creating bool) []Problem {
	var p problems
	if why := problemWithHostname(spec.Hostname); why != "" {
		p.add("hostname", fmt.Sprintf("%q is no DNS name", spec.Hostname), "A container's hostname must be a DNS name (RFC 1123): "+why+".")
	}
	if creating {
		m.checkSource(&p, spec)
		m.checkID(&p, spec)
		m.checkBridge(&p, spec)
	}
	m.checkPlacement(&p, spec)
	checkResources(&p, spec)
	m.checkTexts(&p, spec)
	m.checkNetwork(&p, spec)
	m.checkWall(&p, spec)
	checkRisks(&p, spec)
	checkDNS(&p, spec.DNS)
	checkKeys(&p, spec.AuthorizedKeys)
	checkAttachments(&p, spec.Workspaces)
	checkLease(&p, spec.Lease)
	m.checkWait(&p, spec)
	return p
}

func (m *Manager) checkSource(p *problems, spec Spec) {
	src := m.source(spec)
	switch {
	case spec.Source.count() > 1:
		p.add("template_file_id", "Two sources", "Only one of template_id (clone), template_file_id (create) and restore_from (a backup) can be set.")
	case src.empty():
		p.add("template_id", "No source", "Set template_id (a container template to clone), template_file_id (a template file to unpack), restore_from (a backup), or the provider's template_id.")
	case src.RestoreFrom != "":
		checkRestoreSource(p, spec)
	case src.TemplateFileID != "":
		storage, rest, ok := strings.Cut(src.TemplateFileID, ":")
		if !ok || !validID(storage) || !strings.HasPrefix(rest, "vztmpl/") {
			p.add("template_file_id", fmt.Sprintf("%q is no template file", src.TemplateFileID), `A template file is a volume id such as "local:vztmpl/debian-13-standard_13.1-1_amd64.tar.zst".`)
		} else if !validMarkerValue(src.TemplateFileID) {
			p.add("template_file_id", fmt.Sprintf("%q can't be recorded", src.TemplateFileID), "The ownership marker records the source, and takes only letters, digits and ._:/+- : rename the file.")
		}
		if spec.Storage == "" && m.settings.Storage == "" {
			p.add("storage", "No storage", "A container made from a template file needs a storage for its root disk: set storage here or in the provider.")
		}
		if spec.FullClone {
			p.add("full_clone", "Nothing is cloned", "full_clone goes with template_id; a container made from a template file always has a disk of its own.")
		}
	case src.TemplateID < MinVMID || src.TemplateID > MaxVMID:
		p.add("template_id", fmt.Sprintf("%d is no guest's id", src.TemplateID), fmt.Sprintf("Proxmox VE's ids lie between %d and %d.", MinVMID, MaxVMID))
	case spec.Storage != "" && !spec.FullClone:
		p.add("storage", "A linked clone is on its template's storage", "Proxmox VE refuses a storage for linked clones: set full_clone = true or leave storage out.")
	}
	if spec.Storage != "" && !validID(spec.Storage) {
		p.add("storage", fmt.Sprintf("%q is no storage's name", spec.Storage), "A storage's name begins with a letter and holds letters, digits and -_. only.")
	}
}

func (m *Manager) checkID(p *problems, spec Spec) {
	r := m.settings.VMIDs
	switch {
	case spec.VMID == 0:
	case !r.Contains(spec.VMID):
		p.add("vmid", fmt.Sprintf("%d lies outside the provider's vmid_range", spec.VMID),
			fmt.Sprintf("Sandboxes get ids from %d to %d, so that nothing outside is ever touched. Choose an id in the range, leave vmid out, or widen vmid_range.", r.First, r.Last))
	case spec.VMID == m.source(spec).TemplateID:
		p.add("vmid", fmt.Sprintf("%d is the template's own id", spec.VMID), "Choose another id or leave vmid out.")
	}
}

func (m *Manager) checkPlacement(p *problems, spec Spec) {
	if spec.NodeName != "" {
		if !validNodeName(spec.NodeName) {
			p.add("node_name", fmt.Sprintf("%q is no node's name", spec.NodeName), "A node's name is one DNS label, as in the list of the cluster's nodes.")
		} else if len(m.settings.Nodes) > 0 && !slices.Contains(m.settings.Nodes, spec.NodeName) {
			p.add("node_name", fmt.Sprintf("%q is not among the provider's nodes", spec.NodeName), "The provider's nodes are "+strings.Join(m.settings.Nodes, ", ")+".")
		}
	}
	if spec.PoolID != "" && !validPool(spec.PoolID) {
		p.add("pool_id", fmt.Sprintf("%q is no pool's name", spec.PoolID), "A pool's name holds letters, digits and -_. ; nested pools are separated by /.")
	}
}

func checkResources(p *problems, spec Spec) {
	between := func(attribute string, value *int, low, high int, unit string) {
		if value != nil && (*value < low || *value > high) {
			p.add(attribute, fmt.Sprintf("%d is out of range", *value), fmt.Sprintf("Proxmox VE takes %d to %d%s.", low, high, unit))
		}
	}
	const unbounded = 1 << 40
	if spec.MemoryMiB != nil && *spec.MemoryMiB < MinMemoryMiB {
		p.add("memory", fmt.Sprintf("%d MiB is too little", *spec.MemoryMiB), fmt.Sprintf("A container has at least %d MiB of memory. The unit is MiB: 1 GiB is 1024.", MinMemoryMiB))
	}
	between("cores", spec.Cores, 1, MaxCores, "")
	between("cpu_units", spec.CPUUnits, 0, MaxCPUUnits, "")
	between("swap", spec.SwapMiB, 0, unbounded, " MiB")
	between("disk", spec.DiskGiB, 1, unbounded, " GiB")
	if l := spec.CPULimit; l != nil && (*l < 0 || *l > MaxCores) {
		p.add("cpu_limit", fmt.Sprintf("%g is out of range", *l), fmt.Sprintf("Proxmox VE takes 0 (no limit) to %d cores.", MaxCores))
	}
	if s := spec.Startup; s != nil {
		between("startup.order", s.Order, 0, unbounded, "")
		between("startup.up_delay", s.UpDelaySec, 0, unbounded, " seconds")
		between("startup.down_delay", s.DownDelaySec, 0, unbounded, " seconds")
	}
}

func (m *Manager) checkTexts(p *problems, spec Spec) {
	for _, tag := range spec.Tags {
		switch lower := strings.ToLower(tag); {
		case !validTag(lower):
			p.add("tags", fmt.Sprintf("%q is no tag", tag), "A tag begins with a letter, a digit or _ and goes on with those and -+. only.")
		case lower != tag:
			p.add("tags", fmt.Sprintf("%q holds capital letters", tag), fmt.Sprintf("Proxmox VE keeps tags in lower case, so this would differ on every plan: write %q.", lower))
		case strings.HasPrefix(lower, "sbx-"):
			p.add("tags", fmt.Sprintf("%q is reserved", tag), "Tags that begin with sbx- say who owns a sandbox; the provider sets its own.")
		}
	}
	if n := utf8.RuneCountInString(spec.Description); n > MaxDescription {
		p.add("description", fmt.Sprintf("%d characters are too many", n), fmt.Sprintf("The server takes %d characters, of which the ownership marker needs some: %d are left.", maxServerDescription, MaxDescription))
	}
	if strings.Contains(spec.Description, markerPrefix) {
		p.add("description", "It holds an ownership marker", "A line that begins with \""+markerPrefix+"\" is how the provider marks what it owns. Take it out; the provider writes its own.")
	}
	if strings.ContainsAny(spec.Description, "\r\x00") {
		p.add("description", "It holds a carriage return or a null character", "The server would change the text. Use plain newlines.")
	}
}

func checkDNS(p *problems, dns *DNS) {
	if dns == nil {
		return
	}
	for _, s := range dns.Servers {
		if _, err := netip.ParseAddr(s); err != nil {
			p.add("dns.servers", fmt.Sprintf("%q is no address", s), "Name DNS servers by IPv4 or IPv6 address.")
		}
	}
	if dns.Domain != "" {
		if why := problemWithHostname(dns.Domain); why != "" {
			p.add("dns.domain", fmt.Sprintf("%q is no DNS name", dns.Domain), "As a search domain "+why+".")
		}
	}
}

func checkKeys(p *problems, keys []string) {
	for i, line := range keys {
		attribute := fmt.Sprintf("authorized_keys[%d]", i)
		if strings.Contains(line, "PRIVATE KEY") {
			p.add(attribute, "This is a private key", "Give the public half (the .pub file). A private key that was written to a configuration should be replaced.")
			continue
		}
		if _, _, _, rest, err := ssh.ParseAuthorizedKey([]byte(line)); err != nil || len(rest) > 0 || strings.ContainsAny(strings.TrimSpace(line), "\n\r") {
			p.add(attribute, "This is no public key", "Give one line in authorized_keys format, e.g. \"ssh-ed25519 AAAA… comment\".")
		}
	}
}

func (m *Manager) checkWait(p *problems, spec Spec) {
	switch spec.WaitFor {
	case "", WaitForSSH, WaitForAddress:
		if spec.Started && isNone(spec.Network.IPv4) && (spec.Network.IPv6 == "" || isNone(spec.Network.IPv6)) {
			p.add("wait_for", "There is no address to wait for", `network has neither an IPv4 nor an IPv6 address: set wait_for = "none" or give it one.`)
		}
	case WaitForNone:
	default:
		p.add("wait_for", fmt.Sprintf("%q is nothing to wait for", spec.WaitFor), `Use "ssh", "address" or "none".`)
	}
}

func isNone(address string) bool {
	return address == AddressNone || address == AddressManual
}
