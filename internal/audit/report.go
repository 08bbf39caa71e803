package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/remote"
)

// Profile is what the system was hardened for: harden.Profile's names.
type Profile string

// The profiles.
const (
	Strict   Profile = "strict"   // no nesting
	Standard Profile = "standard" // nesting, so that systemd's and the agents' own sandboxes work
	Docker   Profile = "docker"   // nesting and keyctl, for Docker inside
)

// Profiles lists the profiles.
func Profiles() []Profile { return []Profile{Strict, Standard, Docker} }

// Stage is where in its life the system is.
type Stage string

// The stages.
const (
	// StageTemplate is a sealed template: no host keys, no machine id, no history.
	StageTemplate Stage = "template"
	// StageGuest is a system that has booted: it has an identity of its own.
	StageGuest Stage = "guest"
)

// Target is what to look at. Container, and one or both of Folder and Runner.
type Target struct {
	// Container is the configuration; nil leaves out the checks of it.
	Container *Container
	// Folder is a root filesystem, not in use.
	Folder string
	// Runner runs scripts as root in the system: the running one, or a chroot of
	// Folder, whose programs are then trusted.
	Runner remote.Runner
	// Unreached says why the inside can't be looked at although it should be: all
	// checks of it are unknown. Empty, with no Folder and no Runner, leaves them out.
	Unreached string
}

// Options say what is right for a target.
type Options struct {
	// Stage is StageTemplate for a Folder and StageGuest else, unless given.
	Stage Stage
	// Profile is Standard unless given here or in the system's own record.
	Profile Profile
	// AgentUser is the agent's account; "agent" unless given.
	AgentUser string
	// AllowedKeys are the public keys, as in authorized_keys, that may log in. nil
	// means that nobody said; an empty list that none may.
	AllowedKeys []string
	// Ports are TCP ports beside 22 that may listen on more than the loopback.
	Ports []int
	// Agents are versions that must be installed, by name.
	Agents map[string]string
	// ManifestDigest is the SHA-256 that the template's manifest must have, from
	// its marker.
	ManifestDigest string
	// Now is the time; the system's unless given.
	Now time.Time
}

// SchemaVersion is that of a Report's JSON.
const SchemaVersion = 1

// Report is the outcome.
type Report struct {
	Score    int
	Grade    Grade
	Caps     []Applied // those that held the score down
	Profile  Profile
	Stage    Stage
	Findings []Finding // in the checks' order
	At       time.Time
}

// Count is how many findings have a status.
func (r Report) Count(s Status) int {
	n := 0
	for _, f := range r.Findings {
		if f.Status == s {
			n++
		}
	}
	return n
}

// IDs are those of the findings with a status.
func (r Report) IDs(s Status) []string {
	var ids []string
	for _, f := range r.Findings {
		if f.Status == s {
			ids = append(ids, f.ID)
		}
	}
	return ids
}

// Run makes the audit. An error means that there is no report; what can't be
// looked at for a reason of the system's own is unknown in the report.
func Run(ctx context.Context, target Target, o Options) (Report, error) {
	inside := target.Folder != "" || target.Runner != nil
	if target.Container == nil && !inside && target.Unreached == "" {
		return Report{}, errors.New("audit: nothing to look at")
	}
	if o.Stage == "" {
		o.Stage = StageGuest
		if target.Folder != "" {
			o.Stage = StageTemplate
		}
	}
	o.AgentUser = cmp.Or(o.AgentUser, "agent")
	if o.Now.IsZero() {
		o.Now = time.Now()
	}
	if o.Profile != "" && !slices.Contains(Profiles(), o.Profile) {
		return Report{}, fmt.Errorf("audit: no profile %q; there is %v", o.Profile, Profiles())
	}
	var g *system
	if inside {
		var err error
		if g, err = look(ctx, target, o); err != nil {
			return Report{}, err
		}
		defer g.close()
	}
	if err := context.Cause(ctx); err != nil {
		return Report{}, err
	}
	r := judgeAll(g, target.Container, target.Unreached, o)
	// Checks that were cut off say unknown; there is no report of half an audit.
	return r, context.Cause(ctx)
}

// judgeAll makes every check that has something to look at.
func judgeAll(g *system, container *Container, unreached string, o Options) Report {
	// What the inside says of itself doesn't change what its container may be.
	outside := o
	outside.Profile = cmp.Or(o.Profile, Standard)
	if g != nil {
		o.Profile = cmp.Or(o.Profile, g.profile())
		g.o = o
		g.o.Profile = cmp.Or(o.Profile, Standard)
	}
	r := Report{Profile: cmp.Or(o.Profile, Standard), Stage: o.Stage, At: o.Now.UTC().Truncate(time.Second)}
	for _, c := range registry {
		var v verdict
		switch {
		case c.Part == PartContainer && container != nil:
			v = c.container(container, outside)
		case c.Part == PartGuest && g != nil:
			v = c.guest(g)
		case c.Part == PartGuest && unreached != "":
			v = unknown("", unreached)
		default:
			continue
		}
		r.Findings = append(r.Findings, Finding{Check: c.Check, Status: v.status, VerifiedBy: cmp.Or(v.by, c.How), Evidence: shorten(v.evidence)})
	}
	r.Score, r.Grade, r.Caps = score(r.Findings)
	return r
}

// Checks lists every check, in order: the table of the documentation.
func Checks() []Check {
	out := make([]Check, len(registry))
	for i, c := range registry {
		out[i] = c.Check
	}
	return out
}
