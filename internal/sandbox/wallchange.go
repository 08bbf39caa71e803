package sandbox

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// planWall works out what has to be done about the firewall of a container that
// exists, before anything is written. had is what it has now.
func (f *finishing) planWall(ctx context.Context, running bool) (had *egress.Guest, err error) {
	f.marker.Mode = string(f.spec.Network.Mode)
	if err := f.buildWall(ctx, f.now); err != nil || f.wall == nil {
		return nil, err
	}
	problem, err := f.m.checkDatacenter(ctx, f.spec)
	if err != nil {
		return nil, err
	}
	if problem != nil {
		return nil, &ProblemsError{Problems: []Problem{*problem}}
	}
	guest, err := egress.ReadGuest(ctx, f.m.pve, f.ref.Node, f.ref.VMID, true)
	if err != nil {
		return nil, f.m.step("firewall", f.ref, "read its firewall", err)
	}
	// A container without a filter until now is dark until it has one; so is one
	// that is started before new rules bite.
	unfiltered := !f.now.Nets()[0].Flag("firewall") || !guest.Options.Enable
	stale := len(egress.Differences(f.wall.want, guest)) > 0
	f.spec.Network.held = f.dark() && (unfiltered || stale && !running)
	if unfiltered || stale {
		f.wrote = f.m.clock.Now()
		f.proof = true
	}
	return &guest, nil
}

// cutOver puts a change of rules into force in a container that runs: when they
// surely bite, what was opened under the old ones and is forbidden now is ended.
func (f *finishing) cutOver(ctx context.Context) error {
	if f.wall == nil || f.wrote.IsZero() || f.spec.Network.Proof == ProofNone {
		return nil
	}
	if err := f.settled(ctx); err != nil {
		return err
	}
	if err := f.light(ctx); err != nil {
		return err
	}
	f.proof = true
	return f.cutFlows(ctx)
}

// startDark starts the container after a rollback. Its rules have stayed in
// force, unless the snapshot is from a time when its interface wasn't filtered:
// then the server's firewall service may have dropped them, and the link is held
// down until they bite again.
func (r *rollingBack) startDark(ctx context.Context, f *finishing) error {
	filtered := func(cfg *pve.LXCConfig) bool { return cfg.Nets()[0].Firewall() }
	dark := filtered(r.former) && !filtered(r.then) && !r.former.Nets()[0].LinkDown()
	if dark {
		if err := f.link(ctx, false); err != nil {
			return err
		}
		f.wrote = r.m.clock.Now()
	}
	if err := f.start(ctx); err != nil || !dark {
		return err
	}
	if err := f.settled(ctx); err != nil {
		return err
	}
	return f.link(ctx, true)
}
