package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Accepted is called as soon as the server has accepted the creation of a
// container and before anything is waited for, so that a caller can save what
// it needs to find the container again. The UPID is empty when the answer was
// lost and the container was found by its claim.
type Accepted func(ref Ref, upid string)

// creation is one run of Create.
type creation struct {
	m        *Manager
	spec     Spec // resolved
	accepted Accepted

	marker   Marker
	ref      Ref
	origin   string         // the node that makes the container
	target   string         // the node that it is made for, where that's another
	base     *pve.LXCConfig // what the container starts out with
	told     Ref            // the last that accepted was called with
	started  time.Time
	out      Outcome
	warnings *warnings

	// custom is the call that makes the container where it isn't a sandbox's: the
	// description, marker included, is to go in with it.
	custom func(ctx context.Context, description string) (pve.UPID, error)

	series
}

// series is what one of many creations shares with the others.
type series struct {
	// resources is the cluster's list; nil asks for it.
	resources []pve.Resource
	// proceed is asked when its turn has come; an error ends it before anything is
	// made. nil always proceeds.
	proceed func() error
}

// Create makes a sandbox. After an error with a Ref in the outcome (VMID not
// 0) the container exists or may exist: save it as tainted. When ctx is
// cancelled (not when its time runs out) after the server accepted the
// creation, the outcome says Unfinished and there is no error.
func (m *Manager) Create(ctx context.Context, spec Spec, accepted Accepted) (Outcome, error) {
	return m.create(ctx, spec, series{}, accepted)
}

func (m *Manager) create(ctx context.Context, spec Spec, of series, accepted Accepted) (Outcome, error) {
	if err := m.requireOwner("create"); err != nil {
		return Outcome{}, err
	}
	if err := asError(m.Check(spec)); err != nil {
		return Outcome{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	c := &creation{m: m, spec: m.resolveNew(spec), accepted: accepted, started: m.clock.Now(), warnings: &warnings{}, series: of}
	err := c.run(ctx)
	return c.outcome(ctx, err)
}

func (c *creation) run(ctx context.Context) error {
	if err := c.begin(ctx); err != nil {
		return err
	}
	f := &finishing{
		m: c.m, spec: c.spec, ref: c.ref, marker: c.marker, warnings: c.warnings,
		fresh: c.base, timings: &c.out.Timings, writeKeys: c.spec.AuthorizedKeys != nil, tell: true,
	}
	err := f.run(ctx)
	c.ref = f.ref
	c.out.Sandbox, c.out.Pinned = f.sandbox, f.spec.Network.Pinned
	return err
}

// outcome turns how the run ended into what the caller needs to know.
func (c *creation) outcome(ctx context.Context, err error) (Outcome, error) {
	c.out.Timings.Total = c.m.clock.Now().Sub(c.started)
	c.out.Warnings = append(c.warnings.take(), c.m.guestWarnings()...)
	exists := c.told.VMID != 0
	if exists && c.out.Sandbox.VMID == 0 {
		c.out.Sandbox.Ref = c.told
	}
	if err == nil {
		return c.out, nil
	}
	if exists && stoppedFromOutside(ctx) {
		c.out.Unfinished = true
		return c.out, nil
	}
	var known *Error
	var found *ProblemsError
	if !errors.As(err, &known) && !errors.As(err, &found) {
		err = &Error{Op: "create", Ref: c.ref, What: "create " + c.spec.Hostname, Err: err}
	}
	return c.out, err
}

// begin ends when the container exists and its lock is gone.
func (c *creation) begin(ctx context.Context) error {
	resources, err := c.list(ctx)
	if err != nil {
		return err
	}
	taken := map[int]bool{}
	for _, r := range resources {
		if r.IsGuest() {
			taken[r.VMID] = true
			if r.Template {
				c.m.ids.block(r.VMID)
			}
		}
	}
	removed, err := c.m.removeAbandoned(ctx, resources, c.spec.Hostname, c.spec.VMID, c.warnings)
	if err != nil {
		return err
	}
	for _, id := range removed {
		delete(taken, id)
	}
	if c.spec.VMID != 0 && taken[c.spec.VMID] {
		return c.m.takenError(guestIn(resources, c.spec.VMID))
	}
	if err := c.prepareSource(ctx, resources); err != nil {
		return err
	}
	if err := c.refuse(ctx); err != nil {
		return err
	}
	deadline, _ := ctx.Deadline()
	c.marker = Marker{
		Mode:  string(c.spec.Network.Mode),
		Owner: c.m.settings.Owner, Kind: cmp.Or(c.spec.as.kind, KindContainer), Phase: PhaseCreating,
		Pool: c.spec.as.pool, Generation: c.spec.as.generation,
		TemplateID: c.spec.Source.TemplateID, TemplateFile: c.spec.Source.TemplateFileID, RestoredFrom: c.spec.Source.RestoreFrom,
		TemplateBuild: c.build(),
		// A little later than our own end, so that nobody takes it away while we
		// are still tidying up.
		Until: c.m.clock.Now().Add(time.Until(deadline)).Add(time.Minute),
	}
	return c.make(ctx, taken)
}

// listAge is how old the cluster's list may be that creations share. What it is wrong
// about the server tells: an id that is taken since is refused, and the next is tried.
const listAge = 10 * time.Second

// list is the cluster's list: that of the series, or one that other creations of the
// run have just used. A wanted id, and a template that isn't on it, are looked for in
// a new one.
func (c *creation) list(ctx context.Context) ([]pve.Resource, error) {
	if c.resources != nil {
		return c.resources, nil
	}
	if c.spec.VMID != 0 {
		return c.m.pve.Lists().Resources(ctx)
	}
	resources, err := c.m.pve.Lists().Recent(ctx, listAge)
	if err != nil || !c.spec.Source.IsClone() {
		return resources, err
	}
	if t := guestIn(resources, c.spec.Source.TemplateID); t == nil || !t.Template {
		return c.m.pve.Lists().Resources(ctx)
	}
	return resources, nil
}

// refuse is the last look before anything is made: what the source would bring
// along, and whether rules would count at all.
func (c *creation) refuse(ctx context.Context) error {
	if err := asError(policy(c.spec, c.base)); err != nil {
		return err
	}
	problem, err := c.m.checkDatacenter(ctx, c.spec)
	if err != nil {
		return err
	}
	if problem != nil {
		return &ProblemsError{Problems: []Problem{*problem}}
	}
	if c.spec.Network.Pinned, err = c.m.pin(ctx, c.spec.Network); err != nil {
		return err
	}
	return c.m.checkGroupExists(ctx, c.spec)
}

// make takes an id and makes the container under it, with the next id when
// somebody else was faster.
func (c *creation) make(ctx context.Context, taken map[int]bool) error {
	for {
		vmid := c.spec.VMID
		if vmid == 0 {
			var err error
			if vmid, err = c.m.ids.next(taken); err != nil {
				return &Error{Op: "create", What: "choose an id for " + c.spec.Hostname, Err: err,
					Remedy: "widen the provider's vmid_range, or destroy sandboxes that are no longer needed"}
			}
		} else {
			c.m.ids.spend(vmid)
		}
		c.marker.VMID, c.marker.Claim = vmid, c.m.newClaim()
		c.m.known.Store(c.marker.Claim, true)
		c.ref = Ref{VMID: vmid, Node: cmp.Or(c.target, c.origin), Claim: c.marker.Claim, Owner: c.marker.Owner}
		err := c.makeAs(ctx)
		var conflict *conflictError
		if !errors.As(err, &conflict) {
			return err
		}
		c.ref = Ref{}
		if c.spec.VMID != 0 {
			return &Error{Op: "create", Kind: ErrForeign, Err: conflict.err,
				What:   fmt.Sprintf("container %d for %s: the id was taken by another guest just now", vmid, c.spec.Hostname),
				Remedy: "choose another vmid, or leave vmid out"}
		}
		c.m.log.DebugContext(ctx, "id taken by somebody else, trying the next", "vmid", vmid)
	}
}

// conflictError says that the id belongs to another guest.
type conflictError struct{ err error }

func (e *conflictError) Error() string { return e.err.Error() }
func (e *conflictError) Unwrap() error { return e.err }

// tell hands the ref to the caller, once for each.
func (c *creation) tell(upid pve.UPID) {
	if c.told == c.ref {
		return
	}
	c.told = c.ref
	if c.accepted != nil {
		c.accepted(c.ref, string(upid))
	}
}

func (m *Manager) takenError(r *pve.Resource) error {
	what := "the container"
	if r.Type == "qemu" {
		what = "the virtual machine"
	}
	return &Error{Op: "create", Kind: ErrForeign,
		What:   fmt.Sprintf("the id %d is taken by %s %q on node %s", r.VMID, what, r.Name, r.Node),
		Remedy: "choose another vmid, leave vmid out, or import the container if it is yours"}
}
