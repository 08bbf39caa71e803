package sandbox

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Filter selects containers; zero fields select all.
type Filter struct {
	Owner         string // empty means the manager's own; "*" any
	PoolID        string // a Proxmox pool
	Tag           string
	ExpiresBefore time.Time
	// Expired selects those whose lease is over by this machine's clock (true), or
	// all others (false).
	Expired *bool
	// Unfinished selects creations that are not ready (true) or ready ones
	// (false).
	Unfinished *bool
	// Kind selects guests of one kind; empty selects sandboxes, which the
	// holders of workspaces and templates that are being built are not.
	Kind Kind
	// VMIDs selects by id.
	VMIDs []int
}

// listParallel is how many configurations are read at a time.
const listParallel = 8

// ListContainers finds the containers that carry a marker, by id. The marker
// is in the configuration, so that each candidate costs one request; the tag
// sbx-<owner> and the range of ids narrow the candidates down. Containers of
// nodes that can't be reached are left out.
func (m *Manager) ListContainers(ctx context.Context, filter Filter) ([]Sandbox, error) {
	fleet, err := m.pve.Lists().Fleet(ctx)
	if err != nil {
		return nil, m.step("list", Ref{}, "list the cluster's guests", err)
	}
	var (
		mu     sync.Mutex
		wg     sync.WaitGroup
		found  []Sandbox
		failed error
	)
	gate := make(chan struct{}, listParallel)
	for _, g := range fleet.Guests {
		if !m.candidate(g, filter) {
			continue
		}
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			s, ok, err := m.listed(ctx, g, filter, fleet)
			mu.Lock()
			defer mu.Unlock()
			switch {
			case err != nil && failed == nil:
				failed = err
			case ok:
				found = append(found, s)
			}
		})
	}
	wg.Wait()
	if failed != nil {
		return nil, m.step("list", Ref{}, "read the containers' markers", failed)
	}
	slices.SortFunc(found, func(a, b Sandbox) int { return cmp.Compare(a.VMID, b.VMID) })
	return found, nil
}

// candidate says whether a guest may be selected, by the lists alone. A
// container that is still being made has no tags yet.
func (m *Manager) candidate(g pve.FleetGuest, f Filter) bool {
	r := g.Resource
	if r == nil || r.Type != "lxc" || r.Template || g.LXC != nil && g.LXC.Template {
		return false
	}
	if len(f.VMIDs) > 0 && !slices.Contains(f.VMIDs, g.VMID) {
		return false
	}
	if f.PoolID != "" && r.Pool != f.PoolID {
		return false
	}
	tags := splitTags(r.Tags)
	if g.LXC != nil {
		tags = splitTags(g.LXC.Tags)
	}
	if f.Tag != "" && !slices.Contains(tags, strings.ToLower(f.Tag)) {
		return false
	}
	marked := slices.ContainsFunc(tags, func(t string) bool { return strings.HasPrefix(t, "sbx-") })
	return marked || m.settings.VMIDs.Contains(g.VMID) || len(f.VMIDs) > 0
}

// listed reads one candidate.
func (m *Manager) listed(ctx context.Context, g pve.FleetGuest, f Filter, fleet pve.Fleet) (Sandbox, bool, error) {
	cfg, err := m.pve.LXCConfig(ctx, g.Node, g.VMID)
	if pve.Means(err, pve.NoSuchGuest, pve.NodeUnreachable, pve.Forbidden) {
		return Sandbox{}, false, nil
	}
	if err != nil {
		return Sandbox{}, false, err
	}
	s := m.fromConfig(g.Node, g.VMID, cfg)
	if s.Marker == nil || s.Marker.VMID != g.VMID {
		return Sandbox{}, false, nil
	}
	owner := cmp.Or(f.Owner, m.settings.Owner)
	switch {
	case owner != "*" && s.Marker.Owner != owner,
		f.Kind != "" && s.Marker.Kind != f.Kind, f.Kind == "" && (s.Marker.Kind == KindHolder || s.Marker.Kind == KindTemplate),
		f.Unfinished != nil && (s.Marker.Phase == PhaseCreating) != *f.Unfinished,
		f.Expired != nil && s.Expired() != *f.Expired,
		!f.ExpiresBefore.IsZero() && (s.Marker.Expires.IsZero() || !s.Marker.Expires.Before(f.ExpiresBefore)):
		return Sandbox{}, false, nil
	}
	if g.Resource != nil {
		s.PoolID, s.HA = g.Resource.Pool, g.Resource.HAState != ""
	}
	if g.LXC != nil {
		s.fillStatus(g.LXC.Status, g.LXC.Uptime)
	}
	s.PendingAutostart = pendingAutostart(s, time.Duration(fleet.Nodes[g.Node].Uptime)*time.Second)
	s.SSH = m.sshOf(s, "")
	return s, true, nil
}
