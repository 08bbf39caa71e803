package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// Prior is what a caller remembers of a sandbox beside its Ref.
type Prior struct {
	Ref Ref
	// SSHHostKey is the pinned key in authorized_keys format, empty if none.
	SSHHostKey string
	// Baseline is the posture at creation (or the template's after an import).
	// Update undoes deviations from it that the API can undo; nil leaves the
	// posture alone. Read doesn't look at it.
	Baseline *Posture
	// Pinned are the addresses of domains that the firewall was written with. Read
	// looks the domains up again and notes those that have moved.
	Pinned map[string][]netip.Addr
	// WithPending asks Read for the settings that wait for a restart (one
	// request more).
	WithPending bool
	// WithTemplate asks Read for TemplateCurrent where it needs the template's
	// configuration (one request per template and run).
	WithTemplate bool
}

// Read says what the server says now: the lists that all readers share, and
// one request for the configuration. It never waits. ErrGone is returned only
// when the server said so directly; ErrForeign when the id belongs to another
// guest now.
func (m *Manager) Read(ctx context.Context, prior Prior) (Sandbox, error) {
	return m.read(ctx, prior, false)
}

// read is Read; anyClaim takes a sandbox of our owner whatever its claim, for
// callers that hold an id and nothing else.
func (m *Manager) read(ctx context.Context, prior Prior, anyClaim bool) (Sandbox, error) {
	ref := prior.Ref
	fleet, err := m.pve.Lists().Fleet(ctx)
	if err != nil {
		return Sandbox{}, m.step("read", ref, "list the cluster's guests", err)
	}
	node, cfg, err := m.readConfig(ctx, fleet, ref)
	if err != nil {
		return Sandbox{}, m.keepKind("read", ref, "read its configuration", err)
	}
	ref.Node = node
	entry := fleet.Guests[ref.VMID]
	s := m.fromConfig(node, ref.VMID, cfg)
	if s.Marker == nil && s.Lock == "create" {
		// A create from a template file shows its lock and nothing else.
		s.Status, s.Owner, s.Claim = StatusStopped, m.ownerOf(ref), ref.Claim
		return s, nil
	}
	if anyClaim && ref.Claim == "" && s.Marker != nil {
		ref.Claim = s.Marker.Claim
	}
	if _, err := m.prove("read", ref, cfg); err != nil {
		return Sandbox{}, err
	}
	s.Ref = ref
	s.Owner = m.ownerOf(ref)
	if r := entry.Resource; r != nil {
		s.PoolID, s.HA = r.Pool, r.HAState != ""
	}
	if err := m.fillLive(ctx, &s, entry); err != nil {
		return Sandbox{}, err
	}
	if s.Network.Mode.Managed() {
		wall, err := egress.ReadGuest(ctx, m.pve, node, ref.VMID, false)
		if err != nil {
			return Sandbox{}, m.step("read", ref, "read its firewall", err)
		}
		if err := egress.ReadNamedSets(ctx, m.pve, node, ref.VMID, len(nicOf(cfg.Nets()[0].Properties).Own) > 0, &wall); err != nil {
			return Sandbox{}, m.step("read", ref, "read its firewall's IP sets", err)
		}
		s.Posture.Firewall = append(wallLines(wall, s.Network), m.moved(ctx, prior.Pinned)...)
	}
	s.PendingAutostart = pendingAutostart(s, time.Duration(fleet.Nodes[node].Uptime)*time.Second)
	if prior.WithPending {
		if s.Posture.Pending, err = m.pending(ctx, ref); err != nil {
			return Sandbox{}, m.step("read", ref, "read its pending settings", err)
		}
	}
	if err := m.fillTemplate(ctx, &s, fleet, prior.WithTemplate); err != nil {
		return Sandbox{}, m.step("read", ref, "read its template", err)
	}
	s.SSH = m.sshOf(s, prior.SSHHostKey)
	if prior.SSHHostKey != "" && s.address().IsValid() {
		m.guests.NoteHostKey(target(ref, s, prior.SSHHostKey))
	}
	return s, nil
}

// readConfig reads the configuration where the lists have the guest, and looks
// for it where they don't.
func (m *Manager) readConfig(ctx context.Context, fleet pve.Fleet, ref Ref) (string, *pve.LXCConfig, error) {
	entry, listed := fleet.Guests[ref.VMID]
	if !listed {
		return m.find(ctx, ref.VMID, ref.Node)
	}
	if entry.Resource != nil && entry.Resource.Type != "lxc" {
		return "", nil, &Error{Op: "read", Ref: ref, Kind: ErrForeign,
			What: fmt.Sprintf("the id belongs to the virtual machine %q on node %s now", entry.Resource.Name, entry.Node)}
	}
	cfg, err := m.pve.LXCConfig(ctx, entry.Node, ref.VMID)
	if pve.Means(err, pve.NoSuchGuest) {
		// Moved or destroyed after the lists were made.
		m.pve.Lists().Drop()
		return m.find(ctx, ref.VMID, entry.Node)
	}
	return entry.Node, cfg, err
}

// fillLive fills in what only lists and the running guest know.
func (m *Manager) fillLive(ctx context.Context, s *Sandbox, entry pve.FleetGuest) error {
	if entry.LXC != nil && entry.Node == s.Node {
		s.fillStatus(entry.LXC.Status, entry.LXC.Uptime)
	} else {
		status, err := m.pve.LXCStatus(ctx, s.Node, s.VMID)
		if err != nil {
			return m.step("read", s.Ref, "read its status", err)
		}
		s.fillStatus(status.Status, status.Uptime)
	}
	if s.Status != StatusRunning || !s.Network.needsInterfaces() {
		return nil
	}
	interfaces, err := m.pve.LXCInterfaces(ctx, s.Node, s.VMID)
	if err != nil {
		return m.step("read", s.Ref, "read its addresses", err)
	}
	v4, v6 := addressesOf(interfaces, s.Network.MACAddress)
	if !s.IPv4.IsValid() {
		s.IPv4 = v4
	}
	if !s.IPv6.IsValid() {
		s.IPv6 = v6
	}
	return nil
}

// pending lists the settings that wait for a restart.
func (m *Manager) pending(ctx context.Context, ref Ref) ([]string, error) {
	changes, err := m.pve.LXCPending(ctx, ref.Node, ref.VMID)
	if err != nil {
		return nil, err
	}
	keys := make([]string, 0, len(changes))
	for _, c := range changes {
		keys = append(keys, c.Key)
	}
	return keys, nil
}

// fillTemplate says whether the source is still what was cloned. The build of
// a template is in its configuration; only a sandbox whose marker names a
// build needs that.
func (m *Manager) fillTemplate(ctx context.Context, s *Sandbox, fleet pve.Fleet, ask bool) error {
	if s.Marker == nil || s.Marker.TemplateID == 0 {
		return nil
	}
	entry, listed := fleet.Guests[s.Marker.TemplateID]
	switch {
	case !listed:
		return nil // gone, or hidden from this token: unknown
	case entry.Resource != nil && (entry.Resource.Type != "lxc" || entry.LXC != nil && !entry.LXC.Template):
		s.TemplateCurrent = ptr(false)
	case s.Marker.TemplateBuild == "":
		s.TemplateCurrent = ptr(true)
	case ask:
		cfg, err := m.templates.config(ctx, entry.Node, s.Marker.TemplateID)
		if pve.Means(err, pve.NoSuchGuest, pve.Forbidden) {
			return nil
		}
		if err != nil {
			return err
		}
		s.TemplateCurrent = ptr(buildOf(cfg) == s.Marker.TemplateBuild)
	}
	return nil
}

// SourcePosture is the posture of the template that the sandbox's marker
// names: the baseline after an import. ErrGone means that the template is
// gone, or that the sandbox wasn't cloned.
func (m *Manager) SourcePosture(ctx context.Context, ref Ref) (Posture, error) {
	node, cfg, err := m.find(ctx, ref.VMID, ref.Node)
	if err != nil {
		return Posture{}, m.keepKind("read", ref, "find it", err)
	}
	ref.Node = node
	marker, err := m.prove("read", ref, cfg)
	if err != nil {
		return Posture{}, err
	}
	if marker.TemplateID == 0 {
		return Posture{}, &Error{Op: "read", Ref: ref, Kind: ErrGone, What: "it was not cloned from a template"}
	}
	_, template, err := m.find(ctx, marker.TemplateID, node)
	if err != nil {
		return Posture{}, m.keepKind("read", Ref{VMID: marker.TemplateID}, "find the template", err)
	}
	return postureOf(template), nil
}
