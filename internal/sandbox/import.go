package sandbox

import (
	"context"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Import finds a container by "vmid" or "node/vmid" for a state that doesn't
// hold it yet. A container without our marker is ErrUnmarked unless
// Settings.Adopt is set: then a marker is written. Another owner's, and a
// hand-made copy, is ErrForeign. The source is what the marker says.
func (m *Manager) Import(ctx context.Context, id string) (Sandbox, error) {
	node, vmid, err := ParseContainerID(id)
	if err != nil {
		return Sandbox{}, &Error{Op: "import", What: "read the import id", Err: err}
	}
	if err := m.requireOwner("import"); err != nil {
		return Sandbox{}, err
	}
	found, cfg, err := m.find(ctx, vmid, node)
	ref := Ref{VMID: vmid, Node: found, Owner: m.settings.Owner}
	if err != nil {
		return Sandbox{}, m.keepKind("import", ref, "find it", err)
	}
	if node != "" && node != found {
		return Sandbox{}, &Error{Op: "import", Ref: ref, Kind: ErrGone,
			What: fmt.Sprintf("it is on node %s, not on %s", found, node), Remedy: fmt.Sprintf("import %s/%d or just %d", found, vmid, vmid)}
	}
	if cfg.Lock() == "create" {
		return Sandbox{}, &Error{Op: "import", Ref: ref, Kind: ErrLocked, What: "it is still being made", Remedy: "import it when its creation has ended"}
	}
	if cfg.Template() {
		return Sandbox{}, &Error{Op: "import", Ref: ref, Kind: ErrForeign, What: "it is a template, not a sandbox", Remedy: "name it in template_id instead"}
	}
	text, marker := SplitDescription(cfg.Text("description"))
	switch {
	case marker == nil && !m.settings.Adopt:
		return Sandbox{}, &Error{Op: "import", Ref: ref, Kind: ErrUnmarked,
			What:   fmt.Sprintf("%q on node %s carries no ownership marker, so it is somebody else's", cfg.Hostname(), found),
			Remedy: "to take it over for good, set adopt = true in the provider block and import again: the marker is written then"}
	case marker == nil:
		if marker, err = m.adopt(ctx, ref, text, cfg); err != nil {
			return Sandbox{}, err
		}
	case marker.VMID != vmid && m.settings.Adopt:
		// A copy made by hand, which its owner asks to take over.
		if marker, err = m.adopt(ctx, ref, text, cfg); err != nil {
			return Sandbox{}, err
		}
	}
	if marker.Kind == KindHolder {
		return Sandbox{}, &Error{Op: "import", Ref: ref, Kind: ErrForeign, What: "it is the holder of a workspace, not a sandbox", Remedy: "import it as sandbox_workspace"}
	}
	if marker.Kind == KindMember {
		return Sandbox{}, &Error{Op: "import", Ref: ref, Kind: ErrForeign, What: fmt.Sprintf("it is a member of the pool %q that nobody has claimed", marker.Pool), Remedy: fmt.Sprintf("claim one instead: claim_from_pool_id = %q", marker.Pool)}
	}
	ref.Claim = marker.Claim
	if marker.VMID != vmid || marker.Owner != m.settings.Owner {
		_, err := m.prove("import", ref, cfg)
		return Sandbox{}, err
	}
	return m.Read(ctx, Prior{Ref: ref, WithPending: true, WithTemplate: true})
}

// adopt writes our marker on a container that has none.
func (m *Manager) adopt(ctx context.Context, ref Ref, text string, cfg *pve.LXCConfig) (*Marker, error) {
	marker := &Marker{Owner: m.settings.Owner, Claim: m.newClaim(), VMID: ref.VMID, Kind: KindContainer, Phase: PhaseReady}
	description, err := JoinDescription(text, marker)
	if err != nil {
		return nil, m.step("import", ref, "write the ownership marker", err)
	}
	tags := append(cfg.Tags(), OwnerTag(m.settings.Owner))
	set := map[string]string{"description": description, "tags": joinTags(tags)}
	err = m.write(ctx, ref, fmt.Sprintf("adopt container %d", ref.VMID), func(ctx context.Context) error {
		return m.pve.UpdateLXC(ctx, ref.Node, ref.VMID, pve.LXCUpdate{Set: set, Digest: cfg.Digest()})
	})
	if pve.Means(err, pve.DigestMismatch) {
		// Either somebody was faster, or it is our own write whose answer was lost.
		now, readErr := m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
		if readErr == nil {
			if _, written := SplitDescription(now.Text("description")); written.Matches(marker.Owner, marker.Claim, marker.VMID) {
				return written, nil
			}
		}
	}
	return marker, m.step("import", ref, "write the ownership marker", err)
}
