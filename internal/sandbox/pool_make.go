package sandbox

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// make makes n members side by side, each on the node that the placement chose.
func (f *filling) make(ctx context.Context, n int) error {
	f.touched()
	if quorum, err := f.m.checkQuorum(ctx); err != nil {
		return err
	} else if quorum != nil {
		return &ProblemsError{Problems: []Problem{*quorum}}
	}
	// One list for all of them: each creation by itself would ask anew, because
	// those beside it write.
	resources, err := f.m.pve.Lists().Resources(ctx)
	if err != nil {
		return poolError("update", f.spec.Name, "list the cluster's resources", err)
	}
	entry := guestIn(resources, f.w.member.Source.TemplateID)
	if entry == nil {
		return f.templateIsThere(ctx)
	}
	placed, free, problems := f.place(resources, entry.Node, n)
	defer free()
	each(ctx, placed.Nodes, func(node string) { f.makeOne(ctx, resources, node) })
	if len(problems) > 0 {
		return errors.Join(&ProblemsError{Problems: problems}, f.failures.asError(f.spec.Name))
	}
	return context.Cause(ctx)
}

// place chooses a node for each of n members and reserves it against the other pools
// of this run until free is called.
func (f *filling) place(resources []pve.Resource, home string, n int) (placement.Placement, func(), []Problem) {
	m := f.m
	m.placing.Lock()
	defer m.placing.Unlock()
	nodes := m.placementNodes(resources, f.spec, f.w.member, home, f.w.template)
	for i := range nodes {
		use := m.reserved[nodes[i].Name]
		nodes[i].Promised.Cores += use.Shape.Cores
		nodes[i].Promised.MemoryMiB += use.Shape.MemoryMiB
	}
	shape := f.w.shape()
	placed := placement.Place(nodes, shape, n, f.spec.Strategy, f.spec.ratios())
	for _, node := range placed.Nodes {
		m.reserved[node] = m.reserved[node].Add(shape)
	}
	free := func() {
		m.placing.Lock()
		defer m.placing.Unlock()
		for _, node := range placed.Nodes {
			use := m.reserved[node]
			use.Members--
			use.Shape.Cores -= shape.Cores
			use.Shape.MemoryMiB -= shape.MemoryMiB
			use.Shape.DiskGiB -= shape.DiskGiB
			m.reserved[node] = use
		}
	}
	return placed, free, shortfallProblems(nodes, placed, n)
}

// makeOne makes a member. What a failure leaves is taken away at once where that can
// be done; else the next apply finds it by its marker.
func (f *filling) makeOne(ctx context.Context, resources []pve.Resource, node string) {
	spec := f.w.member.Clone()
	spec.Hostname = f.m.memberName(f.spec.Name)
	spec.NodeName = node
	upid := ""
	out, err := f.m.create(ctx, spec, series{resources: resources, proceed: f.proceed}, func(_ Ref, task string) { upid = task })
	f.keep(out.Warnings)
	s := out.Sandbox
	member := Member{Ref: s.Ref, Hostname: spec.Hostname, IPv4: s.IPv4, Status: MemberReady, Generation: spec.as.generation, marker: s.Marker}
	switch {
	case err == nil && !out.Unfinished:
		f.m.shapes.Store(s.VMID, f.w.shape())
		f.put(member)
	case errors.Is(err, errNotTried):
		f.failures.skip()
	case err == nil:
		member.Status, member.Why = MemberUnfinished, "the run was stopped while it was made"
		f.put(member)
	default:
		f.failures.add(err)
		if s.VMID == 0 {
			return
		}
		cleaning, cancel := context.WithTimeout(context.WithoutCancel(ctx), abandonedPatience)
		defer cancel()
		if _, err := f.m.Destroy(cleaning, s.Ref, upid); err != nil {
			f.warnings.add("A member that failed could not be removed", fmt.Sprintf("Container %d: %v. The next apply settles it.", s.VMID, err))
		}
	}
}

// errNotTried ends a creation that was queued when another one failed in a way that
// it would fail in too.
var errNotTried = errors.New("not tried, because another member failed")

func (f *filling) proceed() error {
	if f.failures.stopped() {
		return errNotTried
	}
	return nil
}

// memberName is a hostname for a member: the pool's name and six random characters.
// The one that claims it gives it another.
func (m *Manager) memberName(pool string) string {
	base := strings.Map(func(r rune) rune {
		if isLetter(r) || r >= '0' && r <= '9' {
			return r
		}
		return '-'
	}, strings.ToLower(pool))
	base = strings.Trim(base, "-")
	if len(base) > 40 {
		base = strings.TrimRight(base[:40], "-")
	}
	if base == "" {
		base = "pool"
	}
	return base + "-" + m.newClaim()[:6]
}

// failures collects what went wrong with members, each cause once.
type failures struct {
	mu      sync.Mutex
	all     []error
	skipped int
	halt    bool
}

// manyFailures of any kind end a run: what fails for three fails for all.
const manyFailures = 3

func (f *failures) add(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.all = append(f.all, err)
	f.halt = f.halt || repeats(err) || len(f.all) >= manyFailures
}

// repeats says whether what failed for one member fails for the next as well.
func repeats(err error) bool {
	var problems *ProblemsError
	return errors.As(err, &problems) || errors.Is(err, ErrNoFreeID) ||
		pve.Means(err, pve.NoSpace, pve.Forbidden, pve.NoSuchStorage, pve.NoQuorum, pve.NoSuchPool, pve.Unauthorised)
}

func (f *failures) skip() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.skipped++
}

// stopped says whether nothing new is to be begun.
func (f *failures) stopped() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.halt
}

var anyNumber = regexp.MustCompile(`\d+`)

// asError says each cause once, with how often it came.
func (f *failures) asError(pool string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.all) == 0 {
		return nil
	}
	var problems *ProblemsError
	if errors.As(f.all[0], &problems) {
		return &ProblemsError{Problems: asMembers(problems.Problems)}
	}
	counts := map[string]int{}
	var kinds []error
	for _, err := range f.all {
		like := anyNumber.ReplaceAllString(err.Error(), "#")
		if counts[like]++; counts[like] == 1 {
			kinds = append(kinds, err)
		}
	}
	what := fmt.Sprintf("pool %q: %s failed", pool, members(len(f.all)))
	if f.skipped > 0 {
		what += fmt.Sprintf(" and %d more were not tried after that", f.skipped)
	}
	var first *Error
	remedy := ""
	if errors.As(kinds[0], &first) {
		remedy = first.Remedy
	}
	cause := kinds[0]
	if len(kinds) > 1 {
		cause = errors.Join(kinds...)
	}
	return &Error{Op: "update", What: what, Kind: ErrPoolShort, Err: cause, Remedy: remedy}
}

func members(n int) string {
	if n == 1 {
		return "1 member"
	}
	return fmt.Sprintf("%d members", n)
}
