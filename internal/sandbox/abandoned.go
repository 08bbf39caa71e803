package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// removeAbandoned destroys what a process that was killed has left behind of a
// creation with the same hostname (or the same wanted id): a container of our
// owner that is still creating although its time is over. One that has time
// left is somebody's work in progress and stays; a ready one is somebody's
// sandbox and is never touched. It returns the ids that are free again.
func (m *Manager) removeAbandoned(ctx context.Context, resources []pve.Resource, hostname string, wanted int, w *warnings) ([]int, error) {
	var removed []int
	for i := range resources {
		r := &resources[i]
		if r.Type != "lxc" || r.Template || !m.settings.VMIDs.Contains(r.VMID) {
			continue
		}
		// A container that is being made from a file has no name yet.
		if r.Name != hostname && r.VMID != wanted {
			continue
		}
		ref, err := m.abandoned(ctx, r, hostname)
		if err != nil {
			return removed, err
		}
		if ref == nil {
			continue
		}
		if err := m.removeOne(ctx, *ref, w); err != nil && !errors.Is(err, ErrGone) {
			w.add("An abandoned creation could not be removed", fmt.Sprintf("Container %d was left behind by a run that was killed: %v", r.VMID, err))
			continue
		}
		m.log.InfoContext(ctx, "removed an abandoned creation", "vmid", r.VMID, "hostname", hostname)
		if r.VMID == wanted {
			removed = append(removed, r.VMID)
		} else {
			m.ids.spend(r.VMID)
		}
	}
	return removed, nil
}

// abandonedPatience bounds the removal of one leftover: the creation that
// found it has its own time limit, and a lock that nobody holds any more
// (a node that crashed during a clone) never goes away by itself.
const abandonedPatience = 30 * time.Second

func (m *Manager) removeOne(ctx context.Context, ref Ref, w *warnings) error {
	ctx, cancel := context.WithTimeout(ctx, abandonedPatience)
	defer cancel()
	return m.destroyMarked(ctx, ref, w)
}

// abandoned returns the ref of a container that may be removed, else nil.
func (m *Manager) abandoned(ctx context.Context, r *pve.Resource, hostname string) (*Ref, error) {
	if _, settled := m.settled.Load(r.VMID); settled {
		return nil, nil
	}
	cfg, err := m.pve.LXCConfig(ctx, r.Node, r.VMID)
	if pve.Means(err, pve.NoSuchGuest, pve.NodeUnreachable, pve.Forbidden) {
		return nil, nil // gone, or not ours to judge
	}
	if err != nil {
		return nil, err
	}
	_, marker := SplitDescription(cfg.Text("description"))
	if cfg.Lock() == "" && (marker == nil || marker.Phase == PhaseReady) {
		// It never becomes a leftover, so that the next creation of a fleet whose
		// members share a hostname need not look again.
		m.settled.Store(r.VMID, true)
	}
	if marker == nil || marker.Owner != m.settings.Owner || marker.VMID != r.VMID ||
		marker.Phase != PhaseCreating || cfg.Hostname() != hostname || cfg.Template() {
		return nil, nil
	}
	if marker.Until.IsZero() || !m.clock.Now().After(marker.Until) {
		return nil, nil
	}
	if _, ours := m.known.Load(marker.Claim); ours {
		return nil, nil // a state holds it
	}
	return &Ref{VMID: r.VMID, Node: r.Node, Claim: marker.Claim, Owner: marker.Owner}, nil
}
