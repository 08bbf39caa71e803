package sandbox

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

const (
	// markerReaping is the key of a marker that a reaper writes before it destroys:
	// until when it may. Whoever renews the lease at the same moment is either
	// first, and the reaper sees it, or is told.
	markerReaping = "reaping"
	// reapWindow is how long a reaper may take for one guest, a backup not counted.
	reapWindow = 10 * time.Minute
)

// ReapOutcome is what a run of a reaper has done.
type ReapOutcome struct {
	Reaped []ReapCandidate
	// Left are those that were to be destroyed and weren't, because something has
	// changed about them since: renewed, protected, claimed, gone.
	Left []ReapLeft
	// Failed are those that are still what they were, and couldn't be destroyed.
	Failed   []ReapFailure
	Warnings []Warning
}

// ReapFailure is a candidate that couldn't be destroyed.
type ReapFailure struct {
	ReapCandidate
	Err error
}

// ReapLeft is a candidate that was left alone.
type ReapLeft struct {
	ReapCandidate
	Why string
}

// reapLeft says that a guest is no longer what a reaper may destroy.
type reapLeft struct{ why string }

func (e *reapLeft) Error() string { return "it is left alone: " + e.why }

// Reap destroys those of candidates that are still what they were when they were
// found: each marker is read back in the moment of its destruction, and guarded by
// the configuration's digest against a renewal at the same time. At most
// spec.MaxDestroy are destroyed, the first ones; what is over is left for the next
// run. One that fails doesn't stop the others. The error is what stopped the whole
// run, or joins the failures.
func (m *Manager) Reap(ctx context.Context, spec ReapSpec, candidates []ReapCandidate) (out ReapOutcome, err error) {
	if err := m.requireOwner("reap"); err != nil {
		return out, err
	}
	if err := asError(m.CheckReap(spec)); err != nil {
		return out, err
	}
	r := &reaping{m: m, spec: spec.withDefaults(), w: &warnings{}}
	defer func() { out.Warnings = r.w.take() }()
	var failures []error
	for _, c := range candidates {
		if len(out.Reaped) == r.spec.MaxDestroy {
			out.Left = append(out.Left, ReapLeft{c, fmt.Sprintf("max_destroy (%d) is reached; the next run goes on", r.spec.MaxDestroy)})
			continue
		}
		if ctx.Err() != nil {
			return out, errors.Join(append(failures, &Error{Op: "reap", Ref: c.Ref, What: "destroy " + c.Hostname, Err: context.Cause(ctx)})...)
		}
		err := r.one(ctx, c)
		var left *reapLeft
		switch {
		case err == nil:
			out.Reaped = append(out.Reaped, c)
		case errors.As(err, &left):
			out.Left = append(out.Left, ReapLeft{c, left.why})
		case errors.Is(err, ErrGone):
			out.Left = append(out.Left, ReapLeft{c, "it is gone already"})
		case errors.Is(err, ErrClock):
			return out, err
		default:
			err = m.keepKind("reap", c.Ref, fmt.Sprintf("destroy %s (%s)", c.Hostname, c.Reason), err)
			out.Failed = append(out.Failed, ReapFailure{c, err})
			failures = append(failures, err)
		}
	}
	return out, errors.Join(failures...)
}

// reaping is one run of a reaper.
type reaping struct {
	m    *Manager
	spec ReapSpec
	w    *warnings
}

// one destroys one guest.
func (r *reaping) one(ctx context.Context, c ReapCandidate) error {
	if c.Owner != r.m.settings.Owner || c.Claim == "" {
		return &reapLeft{"it belongs to another owner"}
	}
	leave, err := r.m.alone(ctx, c.VMID)
	if err != nil {
		return err
	}
	defer leave()
	node, cfg, err := r.m.find(ctx, c.VMID, c.Node)
	if err != nil {
		return err
	}
	c.Node = node
	still := func(cfg *pve.LXCConfig, marker *Marker) error { return r.still(ctx, c, cfg, marker) }
	_, marker := SplitDescription(cfg.Text("description"))
	if err := still(cfg, marker); err != nil {
		return err
	}
	if r.spec.BackupStorage != "" && c.Reason != ReapOverdue {
		if err := r.save(ctx, c); err != nil {
			return err
		}
		cfg = nil // time has passed
	}
	limited, cancel := context.WithTimeout(ctx, reapWindow)
	defer cancel()
	// A creation that was cut may hold a lock that never goes away.
	if c.Reason != ReapOverdue || cfg.Lock() == "" {
		if err := r.announce(limited, c, cfg); err != nil {
			return err
		}
	}
	if err := r.m.destroyIf(limited, c.Ref, still, r.w); err != nil {
		return err
	}
	r.m.ids.spend(c.VMID)
	r.m.settled.Delete(c.VMID)
	r.m.guests.Forget(target(c.Ref, Sandbox{}, ""))
	r.m.log.InfoContext(ctx, "reaped", "vmid", c.VMID, "hostname", c.Hostname, "reason", string(c.Reason))
	return nil
}

// still says whether a guest is what it was when it was found, by what has just
// been read of it and by the time of this moment.
func (r *reaping) still(ctx context.Context, c ReapCandidate, cfg *pve.LXCConfig, marker *Marker) error {
	if !marker.Matches(r.m.settings.Owner, c.Claim, c.VMID) {
		return &reapLeft{"the guest with its id is another one now"}
	}
	if cfg.Template() {
		return &reapLeft{"it is a template now"}
	}
	now, err := r.m.agreedTime(ctx)
	if err != nil {
		return err
	}
	is := r.spec.judge(factsOf(c.Node, cfg, marker), now)
	switch {
	case is == nil && c.Reason == ReapExpired:
		return &reapLeft{"its lease was renewed"}
	case is == nil && c.Reason == ReapOverdue:
		return &reapLeft{"its creation has ended"}
	case is == nil:
		return &reapLeft{"a state holds it now, or it has a lease"}
	case is.Kept != "":
		return &reapLeft{"it is kept: " + is.Kept}
	case is.Reason != c.Reason:
		return &reapLeft{fmt.Sprintf("it was found as %s and is %s now; the next run shows it so", c.Reason, is.Reason)}
	}
	return nil
}

// announce writes into the marker that the guest is about to be destroyed. The
// digest makes sure that nobody has renewed it since it was judged.
func (r *reaping) announce(ctx context.Context, c ReapCandidate, cfg *pve.LXCConfig) error {
	return r.m.edit(ctx, c.Ref, "announce the destruction", cfg, func(cfg *pve.LXCConfig, marker *Marker) (change, error) {
		if err := r.still(ctx, c, cfg, marker); err != nil {
			return change{}, err
		}
		*marker = marker.withExtra(markerReaping, markerTime(r.m.clock.Now().Add(reapWindow)))
		return noChange(), nil
	})
}

// save takes a backup. A guest that can't be saved is not destroyed.
func (r *reaping) save(ctx context.Context, c ReapCandidate) error {
	made, warnings, err := r.m.CreateBackup(ctx, BackupSpec{
		VMID: c.VMID, Storage: r.spec.BackupStorage, Mode: BackupSnapshot,
		Notes: fmt.Sprintf("%s, before it was reaped (%s since %s)", c.Hostname, c.Reason, markerTime(c.Since)),
	}, "", nil)
	for _, w := range warnings {
		r.w.add(w.Summary, w.Detail)
	}
	if err != nil {
		return err
	}
	r.w.add(fmt.Sprintf("Container %d was saved before it was reaped", c.VMID),
		fmt.Sprintf("%s holds %s. It stays until somebody removes it; restore_from makes a sandbox from it.", made.VolID, c.Hostname))
	return nil
}

// refuseReaping says that a guest is about to be destroyed. A reaper that has died
// since leaves a mark that is past, and counts no more.
func (m *Manager) refuseReaping(op string, ref Ref, marker *Marker) error {
	if marker == nil {
		return nil
	}
	// A mark that can't be read is no time, and past.
	until, _ := time.Parse(time.RFC3339, marker.extra(markerReaping))
	if m.clock.Now().After(until) {
		return nil
	}
	return &Error{Op: op, Ref: ref, Kind: ErrReaping, What: "its lease was over, and a reaper is about to destroy it",
		Remedy: "apply again in a moment: a container that is gone is planned anew"}
}
