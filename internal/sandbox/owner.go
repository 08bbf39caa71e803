package sandbox

import (
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// prove says whether the container whose configuration was read is the one
// that ref means. Nothing is changed or destroyed unless it is: an id alone
// proves nothing, since ids are used again.
func (m *Manager) prove(op string, ref Ref, cfg *pve.LXCConfig) (*Marker, error) {
	owner := m.ownerOf(ref)
	_, marker := SplitDescription(cfg.Text("description"))
	if marker.Matches(owner, ref.Claim, ref.VMID) {
		m.known.Store(marker.Claim, true)
		if ref.Node != "" {
			m.nodes.Store(ref.VMID, ref.Node)
		}
		return marker, nil
	}
	var why string
	switch {
	case marker == nil:
		why = "it carries no ownership marker"
	case marker.VMID != ref.VMID:
		why = fmt.Sprintf("its marker is that of container %d, so it is a copy of that one made by hand", marker.VMID)
	case marker.Owner != owner:
		why = fmt.Sprintf("its marker says owner %q, not %q", marker.Owner, owner)
	case ref.Claim == "":
		why = "no claim is held for it"
	default:
		why = "its marker has another claim: the id was used again for another sandbox"
	}
	name := cfg.Hostname()
	return marker, &Error{
		Op: op, Ref: ref, Kind: ErrForeign,
		What:   fmt.Sprintf("the guest %q on node %s is not the one that was made here: %s", name, ref.Node, why),
		Remedy: "it was left alone; remove this resource from the state, or see to the guest by hand",
	}
}

func (m *Manager) ownerOf(ref Ref) string {
	if ref.Owner != "" {
		return ref.Owner
	}
	return m.settings.Owner
}
