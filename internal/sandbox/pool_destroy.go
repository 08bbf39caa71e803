package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// DestroyPool empties a pool, members first, and removes the Proxmox pool. It refuses,
// before anything is touched, while strangers are in it, and while members are claimed
// unless force is set: then those are destroyed too. A pool that is gone is a success;
// members of it that are left without it are destroyed all the same.
func (m *Manager) DestroyPool(ctx context.Context, prior PoolPrior, force bool) ([]Warning, error) {
	if err := m.requireOwner("destroy"); err != nil {
		return nil, err
	}
	w, err := m.watch(ctx, prior, nil, true)
	if isGone(err) {
		return m.destroyOrphans(ctx, prior)
	}
	if err != nil {
		return nil, err
	}
	if err := w.refuseDestroy(force); err != nil {
		return nil, err
	}
	f := &filling{m: m, w: w, spec: PoolSpec{Name: prior.Name}, warnings: &warnings{}}
	f.remove(ctx, w.pool.Members)
	each(ctx, w.pool.Claimed, func(c Claimed) {
		if err := m.destroyClaimed(ctx, c, prior.Name, f.warnings); err != nil {
			f.failures.add(err)
		}
	})
	if err := context.Cause(ctx); err != nil {
		return f.warnings.take(), poolError("destroy", prior.Name, "empty it", err)
	}
	if err := f.failures.asError(prior.Name); err != nil {
		return f.warnings.take(), err
	}
	err = m.write(ctx, Ref{}, "remove pool "+prior.Name, func(ctx context.Context) error {
		err := m.pve.DeletePool(ctx, prior.Name)
		if pve.Means(err, pve.NoSuchPool) {
			return nil
		}
		return err
	})
	if pve.Means(err, pve.NotEmpty) {
		err = &Error{Op: "destroy", What: fmt.Sprintf("pool %q: remove the Proxmox pool", prior.Name), Kind: ErrPoolInUse, Err: err,
			Remedy: "its members of ours are gone; see to what else is in it, and destroy again"}
	}
	return collapse(f.warnings.take()), poolError("destroy", prior.Name, "remove the Proxmox pool", err)
}

// refuseDestroy names what holds a pool.
func (w *watched) refuseDestroy(force bool) error {
	refuse := func(what, remedy string) error {
		return &Error{Op: "destroy", What: fmt.Sprintf("pool %q: %s", w.pool.Name, what), Kind: ErrPoolInUse, Remedy: remedy}
	}
	if len(w.pool.Strangers) > 0 {
		return refuse("it holds what isn't ours: "+strings.Join(w.pool.Strangers, ", "), "nothing was touched; move it to another Proxmox pool, then destroy again")
	}
	if names := w.names(func(c Claimed) bool { return c.other }); len(names) > 0 {
		return refuse("containers are in the Proxmox pool that were never its members: "+strings.Join(names, ", "), "nothing was touched; destroy them or change their pool_id, then destroy again")
	}
	if names := w.unreachedNames(); len(names) > 0 {
		return refuse("nodes with members are away: "+strings.Join(names, ", "), "nothing was touched; destroy it when they are back")
	}
	if len(w.pool.Claimed) == 0 || force {
		return nil
	}
	names := w.names(func(Claimed) bool { return true })
	return refuse(fmt.Sprintf("%d of its members are claimed: %s", len(names), strings.Join(names, ", ")),
		"nothing was touched; destroy the containers that claimed them first, or apply force = true to have them destroyed with the pool")
}

// names are those of the claimed members that are meant.
func (w *watched) names(meant func(Claimed) bool) []string {
	var names []string
	for _, c := range w.pool.Claimed {
		if meant(c) {
			names = append(names, strings.TrimSpace(fmt.Sprintf("%d %s", c.VMID, c.Hostname)))
		}
	}
	return names
}

func (w *watched) unreachedNames() []string {
	var names []string
	for _, member := range w.pool.Members {
		if member.Status == MemberUnknown {
			names = append(names, member.Node)
		}
	}
	for _, c := range w.pool.Claimed {
		if w.away(c.Node) {
			names = append(names, c.Node)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// destroyClaimed destroys a claimed member, by the marker as it is read now.
func (m *Manager) destroyClaimed(ctx context.Context, c Claimed, pool string, w *warnings) error {
	cfg, err := m.pve.LXCConfig(ctx, c.Node, c.VMID)
	if pve.Means(err, pve.NoSuchGuest) {
		return nil
	}
	if err != nil {
		return m.step("destroy", c.Ref, "read its marker", err)
	}
	_, marker := SplitDescription(cfg.Text("description"))
	if marker == nil || marker.Owner != m.settings.Owner || marker.VMID != c.VMID || marker.Pool != pool {
		return &Error{Op: "destroy", Ref: c.Ref, Kind: ErrForeign, What: fmt.Sprintf("it is in the Proxmox pool %q and was not made for it", pool),
			Remedy: "it was left alone; destroy it, or move it to another Proxmox pool"}
	}
	ref := c.Ref
	ref.Claim, ref.Owner = marker.Claim, marker.Owner
	warnings, err := m.Destroy(ctx, ref, "")
	for _, found := range warnings {
		w.add(found.Summary, found.Detail)
	}
	return err
}

// destroyOrphans destroys members whose Proxmox pool somebody has removed.
func (m *Manager) destroyOrphans(ctx context.Context, prior PoolPrior) ([]Warning, error) {
	var failed failures
	each(ctx, prior.Members, func(member Member) {
		if _, err := m.retire(ctx, member); err != nil && !isGone(err) && !isForeign(err) {
			failed.add(err)
		}
	})
	return nil, failed.asError(prior.Name)
}
