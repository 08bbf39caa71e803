package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// ReapReason says why a guest may be destroyed by a reaper.
type ReapReason string

// Why a guest may be destroyed.
const (
	ReapExpired ReapReason = "expired" // its lease is over
	ReapOverdue ReapReason = "overdue" // its creation should have ended
	ReapOrphan  ReapReason = "orphan"  // no state holds it
)

// Why a guest that could be destroyed is kept.
const (
	KeptProtected = "protection"
	KeptAlive     = "keepalive"
)

const (
	// DefaultGrace is how long a guest that no state holds is left alone.
	DefaultGrace = 24 * time.Hour
	// DefaultMaxDestroy bounds what one run of a reaper destroys.
	DefaultMaxDestroy = 10
	// maxClockDifference is how far the two clocks may differ: less than any lease
	// that people make, more than two clocks drift that are kept in time.
	maxClockDifference = 5 * time.Minute
)

// ReapSpec says what a reaper may destroy: guests of the manager's owner whose
// lease is over, creations that are overdue, and orphans where they are asked for.
// Never the holders of workspaces, templates, and unclaimed members of pools.
type ReapSpec struct {
	// KeepClaims are the claims that states hold. nil looks for no orphans; with a
	// list, every sandbox without a running lease whose claim isn't in it is one.
	KeepClaims []string
	Grace      time.Duration // of orphans; 0 means DefaultGrace
	MaxDestroy int           // per run; 0 means DefaultMaxDestroy
	// BackupStorage takes a backup of each guest before it is destroyed; empty
	// means none. A snapshot would go with the guest.
	BackupStorage string
}

func (s ReapSpec) withDefaults() ReapSpec {
	s.Grace = cmp.Or(s.Grace, DefaultGrace)
	s.MaxDestroy = cmp.Or(s.MaxDestroy, DefaultMaxDestroy)
	return s
}

// ReapCandidate is a guest that may be destroyed, or that is kept although it
// could be.
type ReapCandidate struct {
	Ref
	Hostname string
	Reason   ReapReason
	// Since is when the lease ended, the creation should have, or the orphan was
	// made.
	Since time.Time
	// Kept says why it is kept; empty for one that may be destroyed.
	Kept string
}

// Reapable is what a reaper has found, the longest due first.
type Reapable struct {
	Candidates []ReapCandidate
	Kept       []ReapCandidate
	Warnings   []Warning
}

// CheckReap validates without any request.
func (m *Manager) CheckReap(spec ReapSpec) []Problem {
	var p problems
	if spec.KeepClaims != nil && len(spec.KeepClaims) == 0 {
		p.add("keep_claims", "No claim is kept", fmt.Sprintf(
			"With an empty list, every sandbox of owner %q without a running lease would be an orphan. Leave keep_claims out (null) to look for no orphans.", m.settings.Owner))
	}
	for _, claim := range spec.KeepClaims {
		if len(claim) != ClaimLength || !validMarkerValue(claim) {
			p.add("keep_claims", fmt.Sprintf("%q is no claim", claim), fmt.Sprintf("A claim has %d characters: the attribute claim of a sandbox_container.", ClaimLength))
			break
		}
	}
	if spec.Grace < 0 {
		p.add("grace", fmt.Sprintf("%s is out of range", spec.Grace), "Grace is a duration such as \"24h\".")
	}
	if spec.MaxDestroy < 0 {
		p.add("max_destroy", fmt.Sprintf("%d is out of range", spec.MaxDestroy), "At least 1.")
	}
	if spec.BackupStorage != "" {
		for _, problem := range m.CheckBackup(BackupSpec{Storage: spec.BackupStorage}) {
			problem.Attribute = "backup_storage"
			p = append(p, problem)
		}
	}
	return p
}

// FindReapable looks for what a reaper may destroy. It changes nothing.
func (m *Manager) FindReapable(ctx context.Context, spec ReapSpec) (Reapable, error) {
	var out Reapable
	if err := m.requireOwner("look for what to reap"); err != nil {
		return out, err
	}
	spec = spec.withDefaults()
	found, err := m.ListContainers(ctx, Filter{})
	if err != nil {
		return out, err
	}
	if len(found) == 0 {
		return out, nil
	}
	now, err := m.agreedTime(ctx)
	if errors.Is(err, ErrClock) {
		out.Warnings = append(out.Warnings, Warning{Summary: "The clocks disagree", Detail: err.Error() + ". Nothing is found, and nothing is reaped, before they agree."})
		return out, nil
	}
	if err != nil {
		return out, m.step("look for what to reap", Ref{}, "ask for the server's time", err)
	}
	for _, s := range found {
		facts := reapFacts{marker: s.Marker, hostname: s.Hostname, node: s.Node, protection: s.Protection}
		if _, ours := m.known.Load(s.Marker.Claim); ours && s.Marker.Phase == PhaseCreating {
			continue // a state that this process has read holds it, and finishes it
		}
		c := spec.judge(facts, now)
		switch {
		case c == nil:
		case c.Kept != "":
			out.Kept = append(out.Kept, *c)
		default:
			out.Candidates = append(out.Candidates, *c)
		}
	}
	for _, list := range [][]ReapCandidate{out.Candidates, out.Kept} {
		slices.SortFunc(list, func(a, b ReapCandidate) int {
			return cmp.Or(a.Since.Compare(b.Since), cmp.Compare(a.VMID, b.VMID))
		})
	}
	return out, nil
}

// reapFacts are what decides whether a guest may be destroyed, from one reading
// of its configuration.
type reapFacts struct {
	marker     *Marker
	hostname   string
	node       string
	protection bool
}

func factsOf(node string, cfg *pve.LXCConfig, marker *Marker) reapFacts {
	return reapFacts{marker: marker, hostname: cfg.Hostname(), node: node, protection: cfg.Protection()}
}

// judge says what a reaper makes of a guest; nil for one that is none of its
// business.
func (s ReapSpec) judge(f reapFacts, now time.Time) *ReapCandidate {
	marker := f.marker
	c := &ReapCandidate{Ref: Ref{VMID: marker.VMID, Node: f.node, Claim: marker.Claim, Owner: marker.Owner}, Hostname: f.hostname}
	held := slices.Contains(s.KeepClaims, marker.Claim)
	switch {
	case marker.Kind != KindContainer && marker.Kind != KindMember:
		return nil
	case marker.Phase == PhaseCreating:
		// A state that holds it has a creation to finish.
		if marker.Until.IsZero() || !now.After(marker.Until) || held {
			return nil
		}
		c.Reason, c.Since = ReapOverdue, marker.Until
	case marker.Kind == KindMember:
		return nil // its pool's; its lease begins when it is claimed
	case marker.expired(now):
		c.Reason, c.Since = ReapExpired, marker.Expires
	case !marker.Expires.IsZero(), s.KeepClaims == nil, held, marker.Born.IsZero(), now.Sub(marker.Born) < s.Grace:
		return nil
	default:
		c.Reason, c.Since = ReapOrphan, marker.Born
	}
	switch {
	case f.protection:
		c.Kept = KeptProtected
	case marker.Keepalive:
		c.Kept = KeptAlive
	}
	return c
}

// agreedTime is the earlier of this machine's time and the server's, as its last
// answer said it: what is over by both clocks is over, whichever of them has
// jumped. ErrClock where they differ by so much that one of them has.
func (m *Manager) agreedTime(ctx context.Context) (time.Time, error) {
	if m.pve.ServerTime().IsZero() {
		// Nothing was asked yet, or the list came from a cache of before.
		if _, err := m.pve.Version(ctx); err != nil {
			return time.Time{}, err
		}
	}
	ours, theirs := m.clock.Now(), m.pve.ServerTime()
	if theirs.IsZero() {
		return time.Time{}, &Error{Op: "reap", Kind: ErrClock, What: "the server's answers carry no date, so its time isn't known",
			Remedy: "a proxy on the way may take the header Date out"}
	}
	if d := theirs.Sub(ours); d.Abs() > maxClockDifference {
		which := "ahead of"
		if d < 0 {
			which = "behind"
		}
		return time.Time{}, &Error{Op: "reap", Kind: ErrClock, What: fmt.Sprintf("the server's clock is %s %s this machine's", d.Abs().Round(time.Second), which),
			Remedy: "set up time synchronisation (chrony) on both"}
	}
	if theirs.Before(ours) {
		return theirs, nil
	}
	return ours, nil
}
