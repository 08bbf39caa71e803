package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// poolParallel is how many members of a pool are worked on at once. Clones wait in
// the queue of their template and storage; what goes side by side are boots, logins
// and removals.
const poolParallel = 32

// CreatePool makes the Proxmox pool and fills it. made is called as soon as the
// Proxmox pool is there. The pool in the answer is what came of it, also after an
// error; its Claim is empty when nothing was made.
func (m *Manager) CreatePool(ctx context.Context, spec PoolSpec, made func(claim string)) (Pool, error) {
	if err := m.requireOwner("create"); err != nil {
		return Pool{}, err
	}
	if err := asError(m.CheckPool(spec)); err != nil {
		return Pool{}, err
	}
	claim, err := m.makePool(ctx, spec)
	if err != nil {
		return Pool{}, err
	}
	if made != nil {
		made(claim)
	}
	return m.fillPool(ctx, PoolPrior{Name: spec.Name, Claim: claim}, spec)
}

// UpdatePool brings a pool to its specification: what a run that was cut has left is
// settled, members that drifted, died or vanished are replaced, those of before are
// rolled, and the stock is filled. What is claimed stays as it is. Only what the
// server shows decides, so that a run that was cut is simply repeated.
func (m *Manager) UpdatePool(ctx context.Context, prior PoolPrior, spec PoolSpec) (Pool, error) {
	if err := m.requireOwner("update"); err != nil {
		return Pool{}, err
	}
	if err := asError(m.CheckPool(spec)); err != nil {
		return Pool{}, err
	}
	return m.fillPool(ctx, prior, spec)
}

func (m *Manager) fillPool(ctx context.Context, prior PoolPrior, spec PoolSpec) (Pool, error) {
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, DefaultCreateTimeout)
		defer cancel()
	}
	w, err := m.watch(ctx, prior, &spec, true)
	if err != nil {
		return Pool{Name: spec.Name, Claim: prior.Claim, Headroom: -1}, err
	}
	f := &filling{m: m, w: w, spec: spec, warnings: &warnings{}}
	err = f.run(ctx)
	return f.outcome(ctx, prior, err)
}

// filling is one run of CreatePool or UpdatePool.
type filling struct {
	m        *Manager
	w        *watched
	spec     PoolSpec
	warnings *warnings
	failures failures
	// stale says that the members have to be looked at again.
	stale bool
}

// outcome reads back what has become of the pool, in the way a refresh does.
func (f *filling) outcome(ctx context.Context, prior PoolPrior, err error) (Pool, error) {
	pool := f.w.pool
	if f.stale {
		reading, cancel := ctx, context.CancelFunc(func() {})
		if ctx.Err() != nil {
			reading, cancel = detached(ctx)
		}
		defer cancel()
		f.m.pve.Lists().Drop()
		seen, seenErr := f.m.watch(reading, PoolPrior{Name: prior.Name, Claim: pool.Claim, Members: pool.Members}, &f.spec, false)
		switch {
		case seenErr == nil:
			pool = seen.pool
		case err == nil:
			err = seenErr
		}
	}
	pool.Warnings = append(collapse(append(pool.Warnings, f.warnings.take()...)), f.m.guestWarnings()...)
	return pool, err
}

// collapse says once what many members say alike.
func collapse(list []Warning) []Warning {
	var out []Warning
	counts := map[string]int{}
	for _, w := range list {
		if counts[w.Summary]++; counts[w.Summary] == 1 {
			out = append(out, w)
		}
	}
	for i := range out {
		if n := counts[out[i].Summary]; n > 1 {
			out[i].Detail += fmt.Sprintf(" (And %d more of the pool's members.)", n-1)
		}
	}
	return out
}

func (f *filling) run(ctx context.Context) error {
	if err := f.writeComment(ctx); err != nil {
		return err
	}
	if err := f.settle(ctx); err != nil {
		return err
	}
	f.sayClaimed()
	if err := f.renew(ctx); err != nil {
		return err
	}
	if err := f.roll(ctx); err != nil {
		return err
	}
	return f.failures.asError(f.spec.Name)
}

func (f *filling) writeComment(ctx context.Context) error {
	if f.w.pool.Comment == f.spec.Comment {
		return nil
	}
	err := f.m.write(ctx, Ref{}, "set the comment of pool "+f.spec.Name, func(ctx context.Context) error {
		return f.m.pve.SetPoolComment(ctx, f.spec.Name, joinPoolComment(f.spec.Comment, f.m.settings.Owner, f.w.pool.Claim))
	})
	if err != nil {
		return poolError("update", f.spec.Name, "set its comment", err)
	}
	f.w.pool.Comment = f.spec.Comment
	return nil
}

// each works on members side by side. Work that was begun is brought to its end when
// another's fails; once ctx has ended nothing is begun.
func each[T any](ctx context.Context, list []T, do func(T)) {
	var group errgroup.Group
	group.SetLimit(poolParallel)
	for _, item := range list {
		if ctx.Err() != nil {
			break
		}
		group.Go(func() error { do(item); return nil })
	}
	_ = group.Wait()
}

// settle ends what runs that were cut have begun: claims whose time is over and
// retired members are destroyed, members that were being made or changed are
// finished, or destroyed where they are of before.
func (f *filling) settle(ctx context.Context) error {
	each(ctx, f.w.abandoned, func(ref Ref) {
		f.touched()
		if _, err := f.m.Destroy(ctx, ref, ""); err != nil && !isForeign(err) {
			f.failures.add(err)
		} else {
			f.forgetClaimed(ref.VMID)
		}
	})
	var finish, remove []Member
	for _, member := range f.w.pool.Members {
		switch {
		case member.Status != MemberUnfinished:
		case member.marker.Phase == PhaseCreating && outdated(member.marker, f.w.member, f.w.template) == "":
			finish = append(finish, member)
		default:
			remove = append(remove, member)
		}
	}
	f.remove(ctx, remove)
	each(ctx, finish, func(member Member) {
		if err := f.change(ctx, member); err != nil && ctx.Err() == nil {
			// It isn't worth a failed apply: another one is made in its place.
			f.m.log.InfoContext(ctx, "an unfinished member can't be finished", "vmid", member.VMID, "cause", err)
			f.remove(ctx, []Member{member})
		}
	})
	return context.Cause(ctx)
}

// renew changes members in place where that is all they need.
func (f *filling) renew(ctx context.Context) error {
	var change []Member
	for _, member := range f.w.pool.Members {
		if member.Status == MemberOutdated && inPlace(member.marker, f.w.member, f.w.template) {
			change = append(change, member)
		}
	}
	each(ctx, change, func(member Member) {
		if f.failures.stopped() {
			return
		}
		err := f.change(ctx, member)
		switch {
		case err == nil:
		case isForeign(err) || isGone(err):
			f.drop(member) // claimed or destroyed meanwhile: no longer the pool's business
		default:
			f.failures.add(err)
		}
	})
	return context.Cause(ctx)
}

// change brings a member to the present settings in place. Its marker says that it
// is being made, so that nobody claims it meanwhile.
func (f *filling) change(ctx context.Context, member Member) error {
	f.touched()
	spec := f.w.member.Clone()
	spec.Hostname = member.Hostname
	out, err := f.m.Update(ctx, Prior{Ref: member.Ref}, spec, spec)
	f.keep(out.Warnings)
	if err == nil && out.Unfinished {
		err = context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	member.Status, member.Why, member.marker = MemberReady, "", out.Sandbox.Marker
	member.Generation = spec.as.generation
	f.put(member)
	return nil
}

// withdraw takes a pool's member out of the stock while it is changed: its marker
// says so from the first write on, which the digest guards.
func (f *finishing) withdraw(ctx context.Context) {
	if f.spec.as.kind != KindMember {
		return
	}
	deadline, _ := ctx.Deadline()
	f.marker.Phase, f.marker.Until = PhaseCreating, f.m.clock.Now().Add(time.Until(deadline)).Add(time.Minute)
	f.marker.Generation = f.spec.as.generation
}

// sayClaimed tells of claimed members that a roll would reach if they weren't.
func (f *filling) sayClaimed() {
	if len(f.w.pool.Claimed) == 0 {
		return
	}
	rolls := slices.ContainsFunc(f.w.pool.Members, func(m Member) bool { return m.Status == MemberOutdated })
	if !rolls {
		return
	}
	names := make([]string, 0, len(f.w.pool.Claimed))
	for _, c := range f.w.pool.Claimed {
		names = append(names, strings.TrimSpace(fmt.Sprintf("%d %s", c.VMID, c.Hostname)))
	}
	f.warnings.add("Claimed members keep what they have", fmt.Sprintf("%d of pool %q are claimed (%s). They keep the template generation and settings that they were made with; template_current of their containers says whether that is still the present one.",
		len(names), f.spec.Name, strings.Join(names, ", ")))
}

// roll replaces what can't be kept, and fills the stock, in waves: never fewer
// members ready than size - max_unavailable, never more there than size +
// max_surge, except that what isn't usable anyway goes at once.
func (f *filling) roll(ctx context.Context) error {
	f.remove(ctx, f.having(MemberDrifted, MemberStopped))
	for ctx.Err() == nil && !f.failures.stopped() {
		target := f.target()
		old := f.having(MemberOutdated)
		current := len(f.w.pool.Members) - len(old)
		gone := min(len(old), max(0, len(f.w.pool.Members)-max(0, target-f.spec.MaxUnavailable)))
		create := min(target-current, target+f.surge(old)-(len(f.w.pool.Members)-gone))
		switch {
		case len(old) == 0 && current > target:
			f.remove(ctx, f.leastNeeded(current-target))
			return context.Cause(ctx)
		case len(old) == 0 && current == target:
			return nil
		case current >= target:
			gone, create = len(old), 0
		}
		if create <= 0 && gone == 0 {
			return &Error{Op: "update", What: fmt.Sprintf("pool %q: replace %d members of before", f.spec.Name, len(old)), Kind: ErrPoolShort,
				Remedy: "the limits leave no room for one more: raise them, or allow max_unavailable = 1"}
		}
		if create > 0 {
			// Before anything is taken away: can there be another?
			if err := f.templateIsThere(ctx); err != nil {
				return err
			}
		}
		before := len(f.w.pool.Members)
		if gone > 0 {
			f.remove(ctx, old[:gone])
		}
		if create > 0 {
			if err := f.make(ctx, create); err != nil {
				return err
			}
		}
		if create > 0 && len(f.w.pool.Members) == before-gone {
			break // nothing could be made: the failures say why
		}
	}
	return context.Cause(ctx)
}

// surge is how many more than size there may be; only while members are replaced.
func (f *filling) surge(old []Member) int {
	if len(old) == 0 {
		return 0
	}
	if f.spec.Limits.Empty() {
		return f.spec.MaxSurge
	}
	return min(f.spec.MaxSurge, f.spec.Limits.Headroom(f.w.use(), f.w.shape()))
}

// target is how many members there are to be: size, or what the limits leave beside
// what is claimed.
func (f *filling) target() int {
	if f.spec.Limits.Empty() {
		return f.spec.Size
	}
	use := f.w.use()
	room := len(f.w.pool.Members) + f.spec.Limits.Headroom(use, f.w.shape())
	if room < f.spec.Size {
		f.warnings.add("The limits leave less than size", fmt.Sprintf("Pool %q is to have %d members ready and its limits leave room for %d: %d are claimed. It is filled when they are released.",
			f.spec.Name, f.spec.Size, room, len(f.w.pool.Claimed)))
	}
	return min(f.spec.Size, room)
}

func (f *filling) templateIsThere(ctx context.Context) error {
	f.m.templates.forget(f.w.member.Source.TemplateID)
	entry := f.w.fleet.Guests[f.w.member.Source.TemplateID]
	problem, template, err := f.m.template(ctx, entry.Resource, f.w.member.Source.TemplateID)
	switch {
	case err != nil:
		return poolError("update", f.spec.Name, "read the members' template", err)
	case problem != nil:
		problem.Detail += " No member was taken away for it."
		return &ProblemsError{Problems: asMembers([]Problem{*problem})}
	}
	f.w.template = template
	return nil
}

// leastNeeded are n members of a stock that is too large: those on nodes that are
// away last, because they can't be removed now.
func (f *filling) leastNeeded(n int) []Member {
	list := f.having(MemberReady)
	return list[max(0, len(list)-n):]
}

func (f *filling) having(statuses ...MemberStatus) []Member {
	var out []Member
	for _, m := range f.w.pool.Members {
		if slices.Contains(statuses, m.Status) {
			out = append(out, m)
		}
	}
	return out
}

func (f *filling) touched() {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.stale = true
}

func (f *filling) put(member Member) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	for i := range f.w.pool.Members {
		if f.w.pool.Members[i].VMID == member.VMID {
			f.w.pool.Members[i] = member
			return
		}
	}
	f.w.pool.Members = append(f.w.pool.Members, member)
}

func (f *filling) drop(member Member) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.pool.Members = slices.DeleteFunc(f.w.pool.Members, func(m Member) bool { return m.VMID == member.VMID })
}

func (f *filling) forgetClaimed(vmid int) {
	f.w.mu.Lock()
	defer f.w.mu.Unlock()
	f.w.pool.Claimed = slices.DeleteFunc(f.w.pool.Claimed, func(c Claimed) bool { return c.VMID == vmid })
}

func (f *filling) keep(list []Warning) {
	for _, w := range list {
		f.warnings.add(w.Summary, w.Detail)
	}
}

// remove takes members out of the stock and destroys them. One that was claimed in
// the meantime is left alone.
func (f *filling) remove(ctx context.Context, list []Member) {
	each(ctx, list, func(member Member) {
		f.touched()
		warnings, err := f.m.retire(ctx, member)
		f.keep(warnings)
		switch {
		case err == nil, isGone(err):
			f.drop(member)
		case isForeign(err):
			f.drop(member)
			f.m.log.InfoContext(ctx, "a member was claimed while it was to be removed", "vmid", member.VMID)
		default:
			f.failures.add(err)
		}
	})
}

// retire makes sure that nobody can claim a member any more, by one guarded write,
// and destroys it. ErrForeign says that somebody was faster.
func (m *Manager) retire(ctx context.Context, member Member) ([]Warning, error) {
	ref := member.Ref
	for attempt := 1; ; attempt++ {
		node, cfg, err := m.find(ctx, ref.VMID, ref.Node)
		if err != nil {
			return nil, m.keepKind("destroy", ref, "find it", err)
		}
		ref.Node = node
		marker, err := m.prove("destroy", ref, cfg)
		if err != nil {
			return nil, err
		}
		if marker.Kind != KindMember {
			return nil, &Error{Op: "destroy", Ref: ref, Kind: ErrForeign, What: "it is no member any more"}
		}
		if marker.Phase == PhaseRetired || cfg.Lock() == "create" {
			break // nobody claims what isn't ready
		}
		text, _ := SplitDescription(cfg.Text("description"))
		marker.Phase = PhaseRetired
		description, err := JoinDescription(text, marker)
		if err != nil {
			return nil, m.step("destroy", ref, "retire it", err)
		}
		err = m.write(ctx, ref, fmt.Sprintf("retire container %d", ref.VMID), func(ctx context.Context) error {
			return m.pve.UpdateLXC(ctx, node, ref.VMID, pve.LXCUpdate{Set: map[string]string{"description": description}, Digest: cfg.Digest()})
		})
		if err == nil {
			break
		}
		if !pve.Means(err, pve.DigestMismatch) || attempt == updateAttempts {
			return nil, m.step("destroy", ref, "retire it", err)
		}
	}
	return m.Destroy(ctx, ref, "")
}
