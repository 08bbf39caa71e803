package sandbox

import (
	"fmt"
	"strings"
)

// Check validates the provider block's own facts. Attributes begin with
// "provider.".
func (s Settings) Check() []Problem {
	var p problems
	s = s.withDefaults()
	if s.Owner != "" && (!validMarkerValue(s.Owner) || !validTag(OwnerTag(s.Owner)) || len(s.Owner) > 64) {
		p.add("provider.owner", fmt.Sprintf("%q can't be an owner", s.Owner), "The owner stands in the marker and in a tag of every sandbox: at most 64 letters, digits and ._+- .")
	}
	r := s.VMIDs
	if r.First < MinVMID || r.Last > MaxVMID || r.First > r.Last {
		p.add("provider.vmid_range", fmt.Sprintf("%d to %d is no range of ids", r.First, r.Last), fmt.Sprintf("first must not be above last, and Proxmox VE's ids lie between %d and %d.", MinVMID, MaxVMID))
		return p
	}
	s.checkAddresses(&p)
	for _, n := range s.Nodes {
		if !validNodeName(n) {
			p.add("provider.nodes", fmt.Sprintf("%q is no node's name", n), "A node's name is one DNS label.")
		}
	}
	if s.TemplateID != 0 && (s.TemplateID < MinVMID || s.TemplateID > MaxVMID) {
		p.add("provider.template_id", fmt.Sprintf("%d is no guest's id", s.TemplateID), fmt.Sprintf("Proxmox VE's ids lie between %d and %d.", MinVMID, MaxVMID))
	}
	if s.PoolID != "" && !validPool(s.PoolID) {
		p.add("provider.pool_id", fmt.Sprintf("%q is no pool's name", s.PoolID), "A pool's name holds letters, digits and -_. ; nested pools are separated by /.")
	}
	if s.Storage != "" && !validID(s.Storage) {
		p.add("provider.storage", fmt.Sprintf("%q is no storage's name", s.Storage), "A storage's name begins with a letter and holds letters, digits and -_. only.")
	}
	if s.Bridge != "" && !validBridge(s.Bridge) {
		p.add("provider.bridge", fmt.Sprintf("%q is no bridge's name", s.Bridge), "An interface's name has at most 15 letters, digits and -_. , e.g. vmbr0.")
	}
	if s.MaxClones < 1 {
		p.add("provider.max_clones", fmt.Sprintf("%d clones can't make progress", s.MaxClones), "Give 1 or more.")
	}
	return p
}

func (s Settings) checkAddresses(p *problems) {
	a := s.Addresses
	if a == nil {
		return
	}
	at := func(field, summary, detail string) { p.add("provider.address_range."+field, summary, detail) }
	if !a.CIDR.IsValid() || !a.CIDR.Addr().Is4() {
		at("cidr", "It is no IPv4 net", `Give the bridge's net, e.g. "10.10.0.0/16".`)
		return
	}
	if !a.First.Is4() || !a.CIDR.Contains(a.First) || a.First == a.CIDR.Masked().Addr() && a.CIDR.Bits() < 31 {
		at("first", fmt.Sprintf("%s is no host's address in %s", a.First, a.CIDR.Masked()), "Give the address for the first id of vmid_range.")
		return
	}
	last, ok := addToIPv4(a.First, s.VMIDs.Size()-1)
	if !ok || !a.CIDR.Contains(last) || last == broadcast(a.CIDR) {
		at("cidr", "The address range is smaller than vmid_range",
			fmt.Sprintf("vmid_range has %d ids (%d to %d), and from %s on %s has fewer addresses. Each id needs one: narrow vmid_range or widen cidr.", s.VMIDs.Size(), s.VMIDs.First, s.VMIDs.Last, a.First, a.CIDR.Masked()))
		return
	}
	gw := a.Gateway
	if !gw.IsValid() {
		return
	}
	if !gw.Is4() || !a.CIDR.Contains(gw) {
		at("gateway", fmt.Sprintf("%s is outside %s", gw, a.CIDR.Masked()), "The guests could not reach it.")
	} else if gw.Compare(a.First) >= 0 && gw.Compare(last) <= 0 {
		at("gateway", fmt.Sprintf("%s would be a sandbox's address too", gw), fmt.Sprintf("The range gives %s to %s to sandboxes: move first or the gateway.", a.First, last))
	}
}

// requireOwner is asked before every write.
func (m *Manager) requireOwner(op string) error {
	if strings.TrimSpace(m.settings.Owner) != "" {
		return nil
	}
	return &Error{Op: op, Kind: ErrNoOwner, What: op, Remedy: "set owner in the provider block (or SANDBOX_OWNER): it marks what is yours on the server"}
}
