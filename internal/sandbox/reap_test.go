package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// pass lets time go by for everybody: the server's clock moves, and processes of then see the same.
func (w *world) pass(d time.Duration) option {
	w.t.Helper()
	if _, err := w.lab.Control().Jump(context.Background(), d); err != nil {
		w.t.Fatal(err)
	}
	return later(d)
}

func (w *world) reapable(p *process, spec sandbox.ReapSpec) sandbox.Reapable {
	w.t.Helper()
	found, err := p.FindReapable(w.context(), spec)
	if err != nil {
		w.t.Fatal(err)
	}
	return found
}

func (w *world) reap(p *process, spec sandbox.ReapSpec, candidates []sandbox.ReapCandidate) sandbox.ReapOutcome {
	w.t.Helper()
	out, err := p.Reap(w.context(), spec, candidates)
	if err != nil {
		w.t.Fatalf("reap: %v", err)
	}
	return out
}

// found writes candidates down: "100000 expired".
func found(list []sandbox.ReapCandidate) []string {
	out := []string{}
	for _, c := range list {
		out = append(out, strings.TrimSpace(fmt.Sprintf("%d %s %s", c.VMID, c.Reason, c.Kept)))
	}
	return out
}

// light is a sandbox that nobody logs in to: what these tests are about is outside of it.
func light(hostname string, lease *sandbox.Lease) sandbox.Spec {
	s := spec(hostname)
	s.Started, s.Lease = false, lease
	return s
}

// mark rewrites a guest's marker behind the provider's back.
func (w *world) mark(p *process, s sandbox.Sandbox, change func(*sandbox.Marker)) {
	w.t.Helper()
	m := w.markerOf(s.VMID)
	change(m)
	description, err := sandbox.JoinDescription("", m)
	if err == nil {
		err = p.client.UpdateLXC(w.context(), s.Node, s.VMID, pve.LXCUpdate{Set: map[string]string{"description": description}})
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func TestAReaperDestroysWhatIsOverAndNothingElse(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	hour := &sandbox.Lease{TTL: time.Hour}
	over, renewed, long, none := w.create(p, light("over", hour)), w.create(p, light("renewed", hour)), w.create(p, light("long", &sandbox.Lease{TTL: 100 * time.Hour})), w.create(p, light("none", nil))
	alive := w.create(p, light("alive", &sandbox.Lease{TTL: time.Hour, Keepalive: true}))
	guarded := light("guarded", hour)
	guarded.Protection = true
	protected := w.create(p, guarded)
	member, foreign, copied := w.create(p, light("member", hour)), w.create(p, light("foreign", hour)), w.create(p, light("copied", hour))
	w.mark(p, member, func(m *sandbox.Marker) { m.Kind = sandbox.KindMember })
	w.mark(p, foreign, func(m *sandbox.Marker) { m.Owner = "somebody" })
	w.mark(p, copied, func(m *sandbox.Marker) { m.VMID = over.VMID })
	if got := w.reapable(p, sandbox.ReapSpec{}); len(got.Candidates)+len(got.Kept)+len(got.Warnings) != 0 {
		t.Fatalf("before anything is over: %+v", got)
	}

	now := w.pass(2 * time.Hour)
	q := w.process(now)
	got := w.reapable(q, sandbox.ReapSpec{})
	want := []string{fmt.Sprint(over.VMID, " expired"), fmt.Sprint(renewed.VMID, " expired")}
	if !slices.Equal(found(got.Candidates), want) {
		t.Errorf("found %v, want %v", found(got.Candidates), want)
	}
	if kept := []string{fmt.Sprint(alive.VMID, " expired keepalive"), fmt.Sprint(protected.VMID, " expired protection")}; !slices.Equal(found(got.Kept), kept) {
		t.Errorf("kept %v, want %v", found(got.Kept), kept)
	}

	// One is renewed after it was found, and one is none of ours: whatever a list says, the mark decides.
	if _, err := w.process(now).Update(w.context(), sandbox.Prior{Ref: renewed.Ref}, light("renewed", hour), light("renewed", &sandbox.Lease{TTL: time.Hour, Renew: "again"})); err != nil {
		t.Fatal(err)
	}
	candidates := got.Candidates
	for _, s := range []sandbox.Sandbox{long, none, alive, protected, member, foreign, copied} {
		candidates = append(candidates, sandbox.ReapCandidate{Ref: s.Ref, Hostname: s.Hostname, Reason: sandbox.ReapExpired})
	}
	stranger := sandbox.ReapCandidate{Ref: long.Ref, Reason: sandbox.ReapExpired}
	stranger.Claim = over.Claim
	candidates = append(candidates, stranger)
	out := w.reap(q, sandbox.ReapSpec{MaxDestroy: 100}, candidates)
	if !slices.Equal(found(out.Reaped), want[:1]) || len(out.Left) != len(candidates)-1 {
		t.Errorf("reaped %v, left %+v", found(out.Reaped), out.Left)
	}
	if why := out.Left[0].Why; why != "its lease was renewed" {
		t.Errorf("the renewed one was left because %q", why)
	}
	left := []int{renewed.VMID, long.VMID, none.VMID, alive.VMID, protected.VMID, member.VMID, foreign.VMID, copied.VMID}
	slices.Sort(left)
	if now := w.marked(); !slices.Equal(now, left) {
		t.Errorf("on the server are %v, want %v", now, left)
	}
	// To the state that held it, it is gone: clean drift.
	if _, err := w.process(now).Read(w.context(), sandbox.Prior{Ref: over.Ref}); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("reading it says %v", err)
	}
	// A second run has nothing to do.
	if again := w.reapable(w.process(now), sandbox.ReapSpec{}); len(again.Candidates) != 0 {
		t.Errorf("found again: %v", found(again.Candidates))
	}
}

// A clock that has jumped makes every lease look over. It takes both clocks to end one.
func TestAClockThatJumpsReapsNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.create(w.process(), light("box", &sandbox.Lease{TTL: time.Hour}))
	candidate := []sandbox.ReapCandidate{{Ref: s.Ref, Hostname: "box", Reason: sandbox.ReapExpired}}
	refused := func(when string, p *process) {
		t.Helper()
		got := w.reapable(p, sandbox.ReapSpec{})
		if len(got.Candidates) != 0 || len(got.Warnings) != 1 || got.Warnings[0].Summary != "The clocks disagree" {
			t.Errorf("%s: found %v, warnings %v", when, found(got.Candidates), got.Warnings)
		}
		if _, err := p.Reap(w.context(), sandbox.ReapSpec{}, candidate); !errors.Is(err, sandbox.ErrClock) {
			t.Errorf("%s: reaping said %v", when, err)
		}
		if left := w.marked(); !slices.Equal(left, []int{s.VMID}) {
			t.Fatalf("%s: on the server are %v", when, left)
		}
	}
	refused("ours is a year ahead", w.process(later(365*24*time.Hour)))
	refused("ours is a year behind", w.process(later(-365*24*time.Hour)))
	then := w.pass(365 * 24 * time.Hour)
	refused("the server's is a year ahead", w.process())

	// Between finding and destroying it jumps too.
	jumping := &jumpingClock{}
	p := w.process(func(_ *pveConfig, _ *sandbox.Settings, o *sandbox.Options) { o.Clock = jumping })
	jumping.by.Store(int64(365 * 24 * time.Hour))
	got := w.reapable(p, sandbox.ReapSpec{})
	if len(got.Candidates) != 1 {
		t.Fatalf("found %+v", got)
	}
	jumping.by.Store(0)
	if _, err := p.Reap(w.context(), sandbox.ReapSpec{}, got.Candidates); !errors.Is(err, sandbox.ErrClock) {
		t.Errorf("after the jump: %v", err)
	}
	// Some minutes are no jump: what isn't over by both isn't over.
	if got := w.reapable(w.process(then, shift(-2*time.Minute)), sandbox.ReapSpec{}); len(got.Candidates) != 1 {
		t.Errorf("with two minutes between the clocks: %+v", got)
	}
	w.reap(w.process(then), sandbox.ReapSpec{}, candidate)
	if left := w.marked(); len(left) != 0 {
		t.Errorf("when both agree, on the server are %v", left)
	}
}

func TestOrphansAreReapedOnlyWithTheClaimsThatStatesHold(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	held, lost := w.create(p, light("held", nil)), w.create(p, light("lost", nil))
	p = w.process(w.pass(25 * time.Hour))
	if got := w.reapable(p, sandbox.ReapSpec{}); len(got.Candidates) != 0 {
		t.Errorf("without claims: %v", found(got.Candidates))
	}
	if got := w.reapable(p, sandbox.ReapSpec{KeepClaims: []string{held.Claim}, Grace: 48 * time.Hour}); len(got.Candidates) != 0 {
		t.Errorf("within the grace: %v", found(got.Candidates))
	}
	keep := sandbox.ReapSpec{KeepClaims: []string{held.Claim}}
	got := w.reapable(p, keep)
	if !slices.Equal(found(got.Candidates), []string{fmt.Sprint(lost.VMID, " orphan")}) {
		t.Fatalf("found %v", found(got.Candidates))
	}
	// A state that turns up since keeps it.
	both := sandbox.ReapSpec{KeepClaims: []string{held.Claim, lost.Claim}}
	if out := w.reap(p, both, got.Candidates); len(out.Reaped) != 0 || len(out.Left) != 1 {
		t.Errorf("with its claim: %+v", out)
	}
	w.reap(p, keep, got.Candidates)
	if left := w.marked(); !slices.Equal(left, []int{held.VMID}) {
		t.Errorf("on the server are %v", left)
	}
	for name, spec := range map[string]sandbox.ReapSpec{"empty": {KeepClaims: []string{}}, "no claim": {KeepClaims: []string{"web-1"}}} {
		var problems *sandbox.ProblemsError
		if _, err := p.Reap(w.context(), spec, nil); !errors.As(err, &problems) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The process was killed when it had sent its last request: the sandbox is ready, and no state knows it.
func TestAReadySandboxThatNoStateKnowsIsSettledByTheReaper(t *testing.T) {
	t.Parallel()
	for _, lease := range []*sandbox.Lease{nil, {TTL: time.Hour}} {
		w := newWorld(t, lab.Options{})
		held := w.create(w.process(), light("held", nil))
		// The second write of a creation is the one that seals it; nothing that the process does after that counts.
		w.inject(control.Fault{Method: "PUT", Pattern: `/lxc/\d+/config$`, Nth: 2, Kind: control.DropAfter})
		dead := w.killAt(w.inject(control.Fault{Method: "PUT", Pattern: `/lxc/\d+/config$`, Nth: 3, Count: -1, Kind: control.DropBefore}))
		_, _ = w.process(impatient).Create(dead, light("lost", lease), nil)
		w.calm()
		left := slices.DeleteFunc(w.marked(), func(vmid int) bool { return vmid == held.VMID })
		if len(left) != 1 || !w.ready(left[0]) {
			t.Fatalf("the scene isn't set: %v", left)
		}
		p := w.process(w.pass(25 * time.Hour))
		keep := sandbox.ReapSpec{KeepClaims: []string{held.Claim}}
		w.reap(p, keep, w.reapable(p, keep).Candidates)
		if now := w.marked(); !slices.Equal(now, []int{held.VMID}) {
			t.Errorf("with the lease %v, on the server are %v", lease, now)
		}
	}
}

func TestOverdueCreationsAreReaped(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	ctx, kill := context.WithCancel(w.context())
	var ref sandbox.Ref
	if _, err := w.process().Create(ctx, light("cut", nil), func(r sandbox.Ref, _ string) { ref = r; kill() }); err != nil {
		t.Fatal(err)
	}
	w.settle()
	if got := w.reapable(w.process(), sandbox.ReapSpec{}); len(got.Candidates) != 0 {
		t.Errorf("while it has time: %v", found(got.Candidates))
	}
	now := w.pass(2 * time.Hour)
	// A state that holds it finishes it.
	if got := w.reapable(w.process(now), sandbox.ReapSpec{KeepClaims: []string{ref.Claim}}); len(got.Candidates) != 0 {
		t.Errorf("held by a state: %v", found(got.Candidates))
	}
	p := w.process(now)
	got := w.reapable(p, sandbox.ReapSpec{})
	if !slices.Equal(found(got.Candidates), []string{fmt.Sprint(ref.VMID, " overdue")}) {
		t.Fatalf("found %v", found(got.Candidates))
	}
	w.reap(p, sandbox.ReapSpec{}, got.Candidates)
	if left := w.marked(); len(left) != 0 {
		t.Errorf("on the server are %v", left)
	}
}

func TestOneRunDestroysNoMoreThanItMay(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	var all []int
	for i := range 4 {
		s := w.create(w.process(later(time.Duration(i)*time.Minute)), light(fmt.Sprintf("box-%d", 4-i), &sandbox.Lease{TTL: time.Hour}))
		all = append(all, s.VMID)
	}
	p := w.process(w.pass(2 * time.Hour))
	spec := sandbox.ReapSpec{MaxDestroy: 3}
	got := w.reapable(p, spec)
	// One that somebody holds is waited for, fails and stays; it doesn't count.
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: all[1], Set: map[string]string{"lock": "backup"}}); err != nil {
		t.Fatal(err)
	}
	out, err := p.Reap(short(t, 100*time.Millisecond), spec, got.Candidates[1:2])
	if err == nil || len(out.Reaped) != 0 || !slices.Equal(w.marked(), all) {
		t.Errorf("a locked one: %v, reaped %v, on the server are %v", err, found(out.Reaped), w.marked())
	}
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: all[1], Set: map[string]string{"lock": ""}}); err != nil {
		t.Fatal(err)
	}
	spec.MaxDestroy = 2
	out = w.reap(p, spec, w.reapable(p, spec).Candidates)
	if len(out.Reaped) != 2 || len(out.Left) != 2 || !strings.Contains(out.Left[0].Why, "max_destroy") {
		t.Errorf("reaped %v, left %+v", found(out.Reaped), out.Left)
	}
	if left := w.marked(); !slices.Equal(left, all[2:]) {
		t.Errorf("on the server are %v, want those that were due last: %v", left, all[2:])
	}
}

func TestAReaperSavesWhatItDestroys(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	s := w.create(w.process(), light("saved", &sandbox.Lease{TTL: time.Hour}))
	p := w.process(w.pass(2 * time.Hour))
	got := w.reapable(p, sandbox.ReapSpec{})
	// A guest that can't be saved is not destroyed.
	if _, err := p.Reap(w.context(), sandbox.ReapSpec{BackupStorage: "nowhere"}, got.Candidates); err == nil {
		t.Error("no error without a storage")
	}
	if left := w.marked(); !slices.Equal(left, []int{s.VMID}) {
		t.Fatalf("it was destroyed unsaved: %v", left)
	}
	out := w.reap(p, sandbox.ReapSpec{BackupStorage: backupStorage}, got.Candidates)
	if len(out.Reaped) != 1 || len(out.Warnings) == 0 {
		t.Fatalf("%+v", out)
	}
	volid, _, _ := strings.Cut(out.Warnings[len(out.Warnings)-1].Detail, " ")
	restored := light("again", nil)
	restored.Source = sandbox.Source{RestoreFrom: volid}
	w.create(w.process(later(2*time.Hour)), restored)
}

// Work that must last is in a workspace, which outlives the sandbox that has it.
func TestAWorkspaceOfAReapedSandboxGoesHome(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	ws := w.workspace(p, "repo")
	want := light("over", &sandbox.Lease{TTL: time.Hour})
	want.Workspaces = []sandbox.Attachment{at(ws, "/work")}
	s := w.create(p, want)
	p = w.process(w.pass(2 * time.Hour))
	got := w.reapable(p, sandbox.ReapSpec{})
	if !slices.Equal(found(got.Candidates), []string{fmt.Sprint(s.VMID, " expired")}) {
		t.Fatalf("found %v", found(got.Candidates))
	}
	w.reap(p, sandbox.ReapSpec{}, got.Candidates)
	now := w.read(p, ws)
	if left := w.marked(); !slices.Equal(left, []int{ws.VMID}) || now.Attached != nil {
		t.Errorf("on the server are %v, the workspace is %+v", left, now)
	}
}

// What is on a node that is away is unknown: neither over nor gone.
func TestANodeThatIsAwayKeepsItsSandboxes(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	here, there := light("here", &sandbox.Lease{TTL: time.Hour}), light("there", &sandbox.Lease{TTL: time.Hour})
	nodes := w.lab.Nodes()
	here.NodeName, there.NodeName = nodes[0], nodes[1]
	h, a := w.create(p, here), w.create(p, there)
	now := w.pass(2 * time.Hour)
	seen := w.reapable(w.process(now), sandbox.ReapSpec{}).Candidates
	if len(seen) != 2 {
		t.Fatalf("found %v", found(seen))
	}
	if err := w.lab.Control().NodeAway(w.context(), nodes[1], true); err != nil {
		t.Fatal(err)
	}
	p = w.process(now, impatient)
	if got := w.reapable(p, sandbox.ReapSpec{}); !slices.Equal(found(got.Candidates), []string{fmt.Sprint(h.VMID, " expired")}) {
		t.Errorf("while it is away: %v", found(got.Candidates))
	}
	out, err := p.Reap(w.context(), sandbox.ReapSpec{}, seen)
	if err == nil || len(out.Reaped) != 1 || len(out.Failed) != 1 || out.Failed[0].VMID != a.VMID || sandbox.CodeOf(out.Failed[0].Err) != "SBX207" {
		t.Errorf("%v: reaped %v, failed %+v", err, found(out.Reaped), out.Failed)
	}
	if err := w.lab.Control().NodeAway(w.context(), nodes[1], false); err != nil {
		t.Fatal(err)
	}
	w.calm()
	if left := w.marked(); !slices.Equal(left, []int{a.VMID}) {
		t.Errorf("on the server are %v", left)
	}
	p = w.process(now)
	w.reap(p, sandbox.ReapSpec{}, w.reapable(p, sandbox.ReapSpec{}).Candidates)
	if left := w.marked(); len(left) != 0 {
		t.Errorf("when it is back there are %v", left)
	}
}

// shift moves a process's clock on top of what other options do.
func shift(d time.Duration) option {
	return func(_ *pveConfig, _ *sandbox.Settings, o *sandbox.Options) {
		by := d
		if c, ok := o.Clock.(laterClock); ok {
			by += c.offset
		}
		o.Clock = laterClock{by}
	}
}

// A night's run costs one list, one configuration for each sandbox of the owner, and a few requests for each that goes.
func TestAReaperAsksLittle(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	for i := range 4 {
		w.create(p, light(fmt.Sprintf("long-%d", i), &sandbox.Lease{TTL: 100 * time.Hour}))
	}
	w.create(p, light("over", &sandbox.Lease{TTL: time.Hour}))
	p = w.process(w.pass(2 * time.Hour))
	var got sandbox.Reapable
	if n, list := w.requests(func() { got = w.reapable(p, sandbox.ReapSpec{}) }); n > 5+2 {
		t.Errorf("finding took %d requests for 5 sandboxes:\n%s", n, strings.Join(list, "\n"))
	}
	n, list := w.requests(func() { w.reap(p, sandbox.ReapSpec{}, got.Candidates) })
	if n > 5 {
		t.Errorf("reaping one took %d requests:\n%s", n, strings.Join(list, "\n"))
	}
}
