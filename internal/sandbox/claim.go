package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// OnEmpty says what a claim does when the pool has no member that is ready.
type OnEmpty string

// What can be done about an empty pool.
const (
	OnEmptyError OnEmpty = "error" // the default
	OnEmptyClone OnEmpty = "clone" // a container is cloned as if there were no pool
)

// Claim is the wish for a member of a pool.
type Claim struct {
	Pool    string // the pool's name
	OnEmpty OnEmpty
}

// CheckClaim validates a specification whose container is to be claimed, without any
// request.
func (m *Manager) CheckClaim(claim Claim, spec Spec) []Problem {
	var p problems
	if !poolName.MatchString(claim.Pool) {
		p.add("claim_from_pool_id", fmt.Sprintf("%q is no pool's name", claim.Pool), "Give the id of a sandbox_pool.")
	}
	if spec.VMID != 0 {
		p.add("vmid", "A claimed member has its id already", "Leave vmid out, or claim_from_pool_id.")
	}
	if spec.Source.TemplateFileID != "" || spec.Source.RestoreFrom != "" || spec.FullClone || spec.Storage != "" {
		p.add("claim_from_pool_id", "A claimed member has its disk already", "template_file_id, restore_from, full_clone and storage say how a disk is made: leave them out. template_id is for on_empty = \"clone\".")
	}
	if spec.PoolID != "" && spec.PoolID != claim.Pool {
		p.add("pool_id", "A claimed member stays in its pool", fmt.Sprintf("It belongs to the Proxmox pool %q, which rights may hang on: leave pool_id out.", claim.Pool))
	}
	switch claim.OnEmpty {
	case "", OnEmptyError:
	case OnEmptyClone:
		if m.source(spec).TemplateID == 0 {
			p.add("on_empty", "There is no template to clone", `on_empty = "clone" needs template_id, here or in the provider.`)
		}
	default:
		p.add("on_empty", fmt.Sprintf("%q can't be done", claim.OnEmpty), `Use "error" or "clone".`)
	}
	return append(p, m.check(spec, false)...)
}

// CheckClaimServer validates a specification whose container is to be claimed against
// what the server holds now. Whether the pool has a member shows when it is claimed: the
// same apply may fill it first.
func (m *Manager) CheckClaimServer(ctx context.Context, spec Spec) ([]Problem, error) {
	spec = m.resolve(spec)
	return m.CheckServer(ctx, spec, &Sandbox{Network: NetworkState{Bridge: spec.Network.Bridge}})
}

// ClaimMember makes a member of a pool the sandbox of a specification: by one write that
// the digest guards, so that no two runners ever get the same, and then by changes in
// place. Its Proxmox pool stays, its marker and its name are the sandbox's. accepted is
// called when the member is ours. Errors and Unfinished are as of Create; ErrPoolEmpty
// says that there was no member, and nothing was done.
func (m *Manager) ClaimMember(ctx context.Context, claim Claim, spec Spec, accepted Accepted) (Outcome, error) {
	if err := m.requireOwner("claim"); err != nil {
		return Outcome{}, err
	}
	if err := asError(m.CheckClaim(claim, spec)); err != nil {
		return Outcome{}, err
	}
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	spec.PoolID = claim.Pool
	c := &claiming{m: m, pool: claim.Pool, spec: m.resolve(spec), accepted: accepted, warnings: &warnings{}, began: m.clock.Now()}
	err := c.run(ctx)
	if errors.Is(err, ErrPoolEmpty) && claim.OnEmpty == OnEmptyClone {
		spec.as.pool = claim.Pool
		out, err := m.create(ctx, spec, series{}, accepted)
		out.Warnings = append(out.Warnings, Warning{Summary: "The pool was empty", Detail: fmt.Sprintf("No member of pool %q was ready, so %s was cloned from template %d instead.", claim.Pool, spec.Hostname, m.source(spec).TemplateID)})
		return out, err
	}
	return c.outcome(ctx, err)
}

// claiming is one run of ClaimMember.
type claiming struct {
	m        *Manager
	pool     string
	spec     Spec // resolved
	accepted Accepted
	warnings *warnings
	began    time.Time

	ref     Ref
	marker  Marker
	status  pve.LXCStatus
	refused []Problem // why members weren't taken
	// template is the member's template as the list has it; nil where it hasn't.
	template *pve.Resource
	out      Outcome
}

func (c *claiming) run(ctx context.Context) error {
	if err := c.find(ctx); err != nil {
		return err
	}
	c.out.Timings.Clone = c.m.clock.Now().Sub(c.began)
	if c.accepted != nil {
		c.accepted(c.ref, "")
	}
	f := &finishing{
		m: c.m, spec: c.spec, ref: c.ref, marker: c.marker, warnings: c.warnings, timings: &c.out.Timings,
		writeKeys: c.spec.AuthorizedKeys != nil, claimed: true, pool: c.pool, status: c.status, statusOK: true,
	}
	err := f.readConfig(ctx)
	if err == nil {
		f.fill()
		f.sandbox.fillStatus(f.status.Status, f.status.Uptime)
		f.sandbox.HA = f.status.HA.Managed
		err = f.bring(ctx)
	}
	c.ref = f.ref
	if f.sandbox.VMID != 0 {
		c.out.Sandbox = f.sandbox
	}
	if err == nil {
		c.out.Sandbox.TemplateCurrent, err = c.current(ctx)
	}
	return err
}

// current says whether the member's template is still the build that it was made from;
// nil where that can't be seen.
func (c *claiming) current(ctx context.Context) (*bool, error) {
	if c.template == nil || c.template.Type != "lxc" {
		return nil, nil //nolint:nilnil // nil is unknown
	}
	if c.marker.TemplateBuild == "" {
		return ptr(true), nil
	}
	cfg, err := c.m.templates.config(ctx, c.template.Node, c.template.VMID)
	if pve.Means(err, pve.NoSuchGuest, pve.Forbidden, pve.NodeUnreachable) {
		return nil, nil //nolint:nilnil // as above
	}
	if err != nil {
		return nil, c.m.step("claim", c.ref, "read its template", err)
	}
	return ptr(buildOf(cfg) == c.marker.TemplateBuild), nil
}

func (c *claiming) outcome(ctx context.Context, err error) (Outcome, error) {
	c.out.Timings.Total = c.m.clock.Now().Sub(c.began)
	c.out.Warnings = append(c.warnings.take(), c.m.guestWarnings()...)
	if c.ref.VMID != 0 && c.out.Sandbox.VMID == 0 {
		c.out.Sandbox.Ref = c.ref
	}
	if err == nil {
		return c.out, nil
	}
	if c.ref.VMID != 0 && stoppedFromOutside(ctx) {
		c.out.Unfinished = true
		return c.out, nil
	}
	var known *Error
	var found *ProblemsError
	if !errors.As(err, &known) && !errors.As(err, &found) {
		err = &Error{Op: "claim", Ref: c.ref, What: fmt.Sprintf("claim a member of pool %q for %s", c.pool, c.spec.Hostname), Err: err}
	}
	return c.out, err
}

// find takes a member. Where the list at hand shows none, a new one is asked for: members
// come and go by other runners.
func (c *claiming) find(ctx context.Context) error {
	for attempt := 1; ; attempt++ {
		resources, err := c.m.pve.Lists().Resources(ctx)
		if err != nil {
			return err
		}
		for _, r := range c.candidates(resources) {
			took, err := c.try(ctx, r)
			if took {
				c.template = guestIn(resources, c.marker.TemplateID)
			}
			if err != nil || took {
				return err
			}
		}
		if attempt == 2 {
			break
		}
		c.m.pve.Lists().Drop()
	}
	return c.empty(ctx)
}

// candidates are the members that the list shows, in an order of chance, so that
// runners don't all begin with the same.
func (c *claiming) candidates(resources []pve.Resource) []pve.Resource {
	var out []pve.Resource
	for _, r := range resources {
		if r.Type != "lxc" || r.Pool != c.pool || r.Template || r.Status == string(StatusStopped) || c.spec.NodeName != "" && r.Node != c.spec.NodeName {
			continue
		}
		tags := splitTags(r.Tags)
		if slices.Contains(tags, MemberTag) && slices.Contains(tags, OwnerTag(c.m.settings.Owner)) {
			out = append(out, r)
		}
	}
	for i := len(out) - 1; i > 0; i-- {
		j := min(i, int(c.m.jitter()*float64(i+1)))
		out[i], out[j] = out[j], out[i]
	}
	return out
}

// try claims one member, and says whether it is ours now.
func (c *claiming) try(ctx context.Context, r pve.Resource) (bool, error) {
	if _, busy := c.m.claiming.LoadOrStore(r.VMID, true); busy {
		return false, nil // another claim of this process is at it
	}
	defer c.m.claiming.Delete(r.VMID)
	return c.take(ctx, r)
}

func (c *claiming) take(ctx context.Context, r pve.Resource) (bool, error) {
	m := c.m
	cfg, status, err := c.look(ctx, r)
	if pve.Means(err, pve.NoSuchGuest, pve.NodeUnreachable, pve.Forbidden) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, was := SplitDescription(cfg.Text("description"))
	if !c.free(was, r.VMID) || cfg.Lock() != "" || !status.Running() {
		return false, nil
	}
	// What somebody has added to it since isn't handed on.
	if found := asError(policy(c.spec, cfg)); found != nil {
		c.refuse(found)
		return false, nil
	}
	c.status = status
	deadline, _ := ctx.Deadline()
	c.marker = *was
	c.marker.Kind, c.marker.Generation, c.marker.Claim, c.marker.Phase = KindContainer, "", m.newClaim(), PhaseCreating
	c.marker.Until = m.clock.Now().Add(time.Until(deadline)).Add(time.Minute)
	c.marker.take(c.spec.Lease, m.clock.Now())
	c.marker.Born = m.clock.Now() // a reaper's grace begins with the claim
	description, err := JoinDescription(c.spec.Description, &c.marker)
	if err != nil {
		return false, err
	}
	set := map[string]string{
		"description": description, "hostname": c.spec.Hostname,
		"tags": joinTags(append(slices.Clone(c.spec.Tags), OwnerTag(m.settings.Owner))),
	}
	ref := Ref{VMID: r.VMID, Node: r.Node, Claim: c.marker.Claim, Owner: c.marker.Owner}
	m.known.Store(ref.Claim, true)
	err = m.write(ctx, ref, fmt.Sprintf("claim container %d", r.VMID), func(ctx context.Context) error {
		return m.pve.UpdateLXC(ctx, r.Node, r.VMID, pve.LXCUpdate{Set: set, Digest: cfg.Digest()})
	})
	switch {
	case err == nil:
	case pve.Means(err, pve.DigestMismatch) || pve.LostAnswer(err) || isLockRefusal(err):
		// Somebody was faster, or it is our own write whose answer was lost.
		ours, lookErr := c.ours(ctx, ref)
		if lookErr != nil {
			return false, fmt.Errorf("%w; and whether the member was claimed can't be found out: %w", err, lookErr)
		}
		if !ours {
			m.known.Delete(ref.Claim)
			return false, nil
		}
	default:
		return false, err
	}
	c.ref = ref
	return true, nil
}

// look asks for a member's configuration and status, side by side: what a claim takes is
// mostly the way to the server and back.
func (c *claiming) look(ctx context.Context, r pve.Resource) (cfg *pve.LXCConfig, status pve.LXCStatus, err error) {
	var both errgroup.Group
	both.Go(func() (err error) {
		cfg, err = c.m.pve.LXCConfig(ctx, r.Node, r.VMID)
		return err
	})
	both.Go(func() (err error) {
		status, err = c.m.pve.LXCStatus(ctx, r.Node, r.VMID)
		return err
	})
	return cfg, status, both.Wait()
}

// free says whether a marker is that of a member that can be claimed.
func (c *claiming) free(marker *Marker, vmid int) bool {
	return marker != nil && marker.Owner == c.m.settings.Owner && marker.VMID == vmid && marker.Kind == KindMember &&
		marker.Phase == PhaseReady && marker.Pool == c.pool
}

// ours looks whether our write went through.
func (c *claiming) ours(ctx context.Context, ref Ref) (bool, error) {
	ctx, cancel := detached(ctx)
	defer cancel()
	cfg, err := c.m.pve.LXCConfig(ctx, ref.Node, ref.VMID)
	if pve.Means(err, pve.NoSuchGuest) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, marker := SplitDescription(cfg.Text("description"))
	return marker.Matches(ref.Owner, ref.Claim, ref.VMID), nil
}

func (c *claiming) refuse(err error) {
	var found *ProblemsError
	if errors.As(err, &found) {
		c.refused = found.Problems
	}
}

// empty says why there was nothing to claim.
func (c *claiming) empty(ctx context.Context) error {
	if len(c.refused) > 0 {
		return &ProblemsError{Problems: c.refused}
	}
	if _, err := c.m.pve.Pool(ctx, c.pool); pve.Means(err, pve.NoSuchPool) {
		return poolError("claim", c.pool, "look for a member", err)
	}
	where := ""
	if c.spec.NodeName != "" {
		where = " on node " + c.spec.NodeName
	}
	return &Error{Op: "claim", What: strings.TrimSpace(fmt.Sprintf("pool %q: claim a member%s for %s", c.pool, where, c.spec.Hostname)), Kind: ErrPoolEmpty,
		Remedy: `apply the pool, which makes new members; raise its size; or set on_empty = "clone"`}
}

// renameScript tells a running guest its new name: what its next start would do.
const renameScript = `old=$(hostname 2>/dev/null || cat /etc/hostname)
[ "$old" = "$1" ] && exit 0
printf '%s\n' "$1" > /etc/hostname || exit 1
hostname "$1" 2>/dev/null
if [ -n "$old" ] && [ -w /etc/hosts ]; then sed -i "s/$old/$1/g" /etc/hosts; fi
exit 0
`

// rename tells a guest that was claimed its name. That it can't be told is no reason to
// give it back: its next start does it.
func (f *finishing) rename(ctx context.Context) {
	if !f.claimed {
		return
	}
	result, err := f.m.guests.Exec(ctx, target(f.ref, f.sandbox, f.hostKey), Command{Script: renameScript, Args: []string{f.spec.Hostname}})
	if err == nil && result.ExitCode != 0 {
		err = fmt.Errorf("exit code %d: %s", result.ExitCode, strings.TrimSpace(string(result.Stderr)))
	}
	if err != nil {
		f.warnings.add("The guest has its new name after its next start", fmt.Sprintf("Container %d is %s on the server; inside, the name couldn't be set: %v.", f.ref.VMID, f.spec.Hostname, err))
	}
}
