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
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// poolSpec is a pool of small members. What most of these tests are about isn't the firewall.
func poolSpec(name string, size int) sandbox.PoolSpec {
	return sandbox.PoolSpec{
		Name: name, Size: size, MaxUnavailable: 1, MaxSurge: 1, Ratios: &placement.Ratios{Memory: 1},
		Member: sandbox.Spec{MemoryMiB: ptr(128), Cores: ptr(1), Network: sandbox.Network{IPv4: sandbox.AddressAuto, IPv6: sandbox.AddressNone, Mode: sandbox.ModeUnmanaged}},
	}
}

func (w *world) createPool(p *process, spec sandbox.PoolSpec) sandbox.Pool {
	w.t.Helper()
	pool, err := p.CreatePool(w.context(), spec, nil)
	if err != nil {
		w.t.Fatalf("create the pool: %v", err)
	}
	w.full(pool, spec.Size)
	return pool
}

// full fails the test unless all members are there and ready.
func (w *world) full(pool sandbox.Pool, size int) {
	w.t.Helper()
	if len(pool.Members) != size || pool.Ready() != size {
		var others []string
		for _, m := range pool.Members {
			if m.Status != sandbox.MemberReady {
				others = append(others, fmt.Sprintf("%d is %s: %s", m.VMID, m.Status, m.Why))
			}
		}
		w.t.Fatalf("%d of %d members are ready, want %d: %v", pool.Ready(), len(pool.Members), size, others)
	}
}

func priorOf(pool sandbox.Pool) sandbox.PoolPrior {
	return sandbox.PoolPrior{Name: pool.Name, Claim: pool.Claim, Members: pool.Members}
}

func (w *world) readPool(p *process, pool sandbox.Pool, spec sandbox.PoolSpec) sandbox.Pool {
	w.t.Helper()
	got, err := p.ReadPool(w.context(), priorOf(pool), &spec)
	if err != nil {
		w.t.Fatalf("read the pool: %v", err)
	}
	return got
}

func (w *world) updatePool(p *process, pool sandbox.Pool, spec sandbox.PoolSpec) sandbox.Pool {
	w.t.Helper()
	got, err := p.UpdatePool(w.context(), priorOf(pool), spec)
	if err != nil {
		w.t.Fatalf("update the pool: %v", err)
	}
	return got
}

func idsOf(members []sandbox.Member) []int {
	var ids []int
	for _, m := range members {
		ids = append(ids, m.VMID)
	}
	slices.Sort(ids)
	return ids
}

// marker reads a guest's marker behind the API's back; nil for none.
func (w *world) marker(vmid int) *sandbox.Marker {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == vmid {
			_, m := sandbox.SplitDescription(g.Config["description"])
			return m
		}
	}
	return nil
}

func TestAPoolIsFilledReadRefilledAndEmptied(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("warm", 4)
	spec.Comment = "for agents"
	pool := w.createPool(w.process(), spec)
	for _, m := range pool.Members {
		marker := w.marker(m.VMID)
		if marker == nil || marker.Kind != sandbox.KindMember || marker.Pool != "warm" || marker.Phase != sandbox.PhaseReady || marker.Generation == "" {
			t.Errorf("%s: marker %+v", m.Hostname, marker)
		}
		if !m.IPv4.IsValid() || !strings.HasPrefix(m.Hostname, "warm-") {
			t.Errorf("member %+v", m)
		}
	}
	found, err := w.process().client.Pool(w.context(), "warm")
	if err != nil || len(found.Members) != 4 || !strings.HasPrefix(found.Comment, "for agents [sandbox_pool owner=unit id=") {
		t.Fatalf("the Proxmox pool is %+v, %v", found, err)
	}

	got := w.readPool(w.process(), pool, spec)
	w.full(got, 4)
	if len(got.Warnings) != 0 || got.Comment != "for agents" || got.Headroom != -1 {
		t.Errorf("read as %+v", got)
	}

	// One vanishes, one is stopped, one is changed: named, and replaced by the next apply.
	p := w.process()
	gone, stopped, changed, stays := pool.Members[0], pool.Members[1], pool.Members[2], pool.Members[3]
	if _, err := p.Destroy(w.context(), gone.Ref, ""); err != nil {
		t.Fatal(err)
	}
	upid, err := p.client.StopLXC(w.context(), stopped.Node, stopped.VMID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := p.client.UpdateLXC(w.context(), changed.Node, changed.VMID, pve.LXCUpdate{Set: map[string]string{"memory": "256"}}); err != nil {
		t.Fatal(err)
	}
	got = w.readPool(w.process(), pool, spec)
	status := map[int]sandbox.MemberStatus{}
	for _, m := range got.Members {
		status[m.VMID] = m.Status
	}
	if len(got.Members) != 3 || status[stopped.VMID] != sandbox.MemberStopped || status[changed.VMID] != sandbox.MemberDrifted || status[stays.VMID] != sandbox.MemberReady {
		t.Fatalf("read as %+v", got.Members)
	}
	if len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].Summary, gone.Hostname) {
		t.Errorf("nothing says that %s is gone: %+v", gone.Hostname, got.Warnings)
	}
	got = w.updatePool(w.process(), got, spec)
	w.full(got, 4)
	if ids := idsOf(got.Members); !slices.Contains(ids, stays.VMID) || slices.Contains(ids, stopped.VMID) || slices.Contains(ids, changed.VMID) {
		t.Errorf("after the refill %v; %d was to stay, %d and %d to go", ids, stays.VMID, stopped.VMID, changed.VMID)
	}

	smaller := spec
	smaller.Size = 2
	got = w.updatePool(w.process(), got, smaller)
	w.full(got, 2)
	if left := w.marked(); len(left) != 2 {
		t.Errorf("left on the server: %v", left)
	}
	if _, err := w.process().DestroyPool(w.context(), priorOf(got), false); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left on the server: %v", left)
	}
	if _, err := w.process().ReadPool(w.context(), priorOf(got), &spec); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("the pool that was destroyed reads as %v", err)
	}
}

func TestAPoolOfSomebodyElseIsNotTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	if err := p.client.CreatePool(w.context(), "theirs", "keep out"); err != nil {
		t.Fatal(err)
	}
	_, err := p.CreatePool(w.context(), poolSpec("theirs", 2), nil)
	if !errors.Is(err, sandbox.ErrPoolExists) || !strings.Contains(err.Error(), "terraform import") {
		t.Errorf("created all the same: %v", err)
	}
	if _, err := p.ImportPool(w.context(), "theirs"); !errors.Is(err, sandbox.ErrUnmarked) {
		t.Errorf("imported all the same: %v", err)
	}
	if _, err := p.DestroyPool(w.context(), sandbox.PoolPrior{Name: "theirs"}, true); !errors.Is(err, sandbox.ErrForeign) {
		t.Errorf("destroyed all the same: %v", err)
	}
	if found, err := p.client.Pool(w.context(), "theirs"); err != nil || found.Comment != "keep out" {
		t.Errorf("the pool of somebody else is %+v, %v", found, err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left on the server: %v", left)
	}
}

func TestAStrangerInAPoolIsNeverTouched(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	spec := poolSpec("mixed", 1)
	pool := w.createPool(p, spec)
	stranger := 500
	upid, err := p.client.CloneLXC(w.context(), w.lab.Nodes()[0], lab.TemplateID, cloneTo(stranger))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := p.client.AddToPool(w.context(), "mixed", []int{stranger}, false); err != nil {
		t.Fatal(err)
	}
	got := w.updatePool(w.process(), pool, spec)
	w.full(got, 1)
	if len(got.Strangers) != 1 || !strings.Contains(got.Strangers[0], "500") {
		t.Errorf("strangers: %v", got.Strangers)
	}
	_, err = w.process().DestroyPool(w.context(), priorOf(got), true)
	if !errors.Is(err, sandbox.ErrPoolInUse) || !strings.Contains(err.Error(), "500") {
		t.Errorf("destroyed with a stranger in it: %v", err)
	}
	if left := w.marked(); len(left) != 1 {
		t.Errorf("a refused destroy touched members: %v", left)
	}
	if err := p.client.RemoveFromPool(w.context(), "mixed", []int{stranger}); err != nil {
		t.Fatal(err)
	}
	// A container of ours that was put there is no member either.
	mine := spec.Member
	mine.Hostname, mine.PoolID, mine.Started = "put-there", "mixed", false
	there := w.create(p, mine)
	if _, err = w.process().DestroyPool(w.context(), priorOf(got), true); !errors.Is(err, sandbox.ErrPoolInUse) || !strings.Contains(err.Error(), "put-there") {
		t.Errorf("destroyed with a container of ours in it: %v", err)
	}
	if left := w.marked(); len(left) != 2 {
		t.Errorf("a refused destroy touched members: %v", left)
	}
	if _, err := p.Destroy(w.context(), there.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.process().DestroyPool(w.context(), priorOf(got), false); err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.LXCConfig(w.context(), w.lab.Nodes()[0], stranger); err != nil {
		t.Errorf("the stranger is gone: %v", err)
	}
}

func TestAChangeThatNeedsItRollsAndOthersAreMadeInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("rolling", 4)
	pool := w.createPool(w.process(), spec)
	before := idsOf(pool.Members)

	hot := spec
	hot.Member.MemoryMiB, hot.Member.Tags = ptr(192), []string{"blue"}
	pool = w.updatePool(w.process(), pool, hot)
	w.full(pool, 4)
	if got := idsOf(pool.Members); !slices.Equal(got, before) {
		t.Errorf("memory and tags replaced members: %v, were %v", got, before)
	}
	cfg, err := w.process().client.LXCConfig(w.context(), pool.Members[0].Node, pool.Members[0].VMID)
	if err != nil || cfg.Text("memory") != "192" || !strings.Contains(cfg.Text("tags"), "blue") {
		t.Errorf("in place: memory %q, tags %q, %v", cfg.Text("memory"), cfg.Text("tags"), err)
	}

	cold := hot
	cold.Member.DNS = &sandbox.DNS{Servers: []string{"10.77.0.1"}}
	fewest, most := w.watchPool(func() { pool = w.updatePool(w.process(), pool, cold) })
	w.full(pool, 4)
	for _, id := range idsOf(pool.Members) {
		if slices.Contains(before, id) {
			t.Errorf("member %d was not replaced", id)
		}
	}
	if fewest < 3 || most > 5 {
		t.Errorf("while it rolled there were %d to %d ready members, want 3 to 5", fewest, most)
	}
	if left := w.marked(); len(left) != 4 {
		t.Errorf("left on the server: %v", left)
	}
}

// watchPool says how few ready members and how many members there were while do ran.
func (w *world) watchPool(do func()) (fewest, most int) {
	done := make(chan struct{})
	go func() { defer close(done); do() }()
	fewest = 1 << 30
	for {
		dump, err := w.lab.Control().Dump(context.Background())
		if err != nil {
			w.t.Error(err)
			<-done
			return
		}
		ready, all := 0, 0
		for _, g := range dump.Guests {
			if _, m := sandbox.SplitDescription(g.Config["description"]); m != nil && m.Kind == sandbox.KindMember {
				if m.Phase == sandbox.PhaseReady {
					ready++
				}
				if m.Phase != sandbox.PhaseRetired {
					all++
				}
			}
		}
		fewest, most = min(fewest, ready), max(most, all)
		select {
		case <-done:
			return fewest, most
		case <-time.After(2 * time.Millisecond): // a test watching a server
		}
	}
}

func TestLimitsAndCapacityAreSaidAtPlan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 3})
	p := w.process()
	limited := poolSpec("limited", 4)
	limited.Limits = placement.Limits{Members: ptr(3), MemoryMiB: ptr(int64(300))}
	problems, err := p.CheckPoolServer(w.context(), limited, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, problems, "limits.members", "4 would be in use, 1 more than the limit of 3")
	wantProblem(t, problems, "limits.memory", "512 MiB would be in use, 212 MiB more than the limit of 300 MiB")

	large := poolSpec("large", 3)
	large.Member.MemoryMiB = ptr(20000) // a node has some 24,000
	problems, err = p.CheckPoolServer(w.context(), large, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, problems, "size", "2 of 3 new members find no place", "node pve1: 40000 MiB of memory", "overcommit.memory = 1", "node pve2: it can't reach template 9000, which is on node pve1")
	large.Ratios = &placement.Ratios{Memory: 3}
	if problems, err = p.CheckPoolServer(w.context(), large, 0, true); err != nil || len(problems) > 0 {
		t.Errorf("with an explicit ratio: %v, %v", problems, err)
	}
	elsewhere := poolSpec("elsewhere", 1)
	elsewhere.Nodes = []string{"pve2"}
	problems, err = p.CheckPoolServer(w.context(), elsewhere, 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, problems, "nodes", "No node can take the members", "pve1: nodes doesn't name it")
	for _, node := range []string{"pve2", "pve3"} {
		if err := w.lab.Control().NodeAway(w.context(), node, true); err != nil {
			t.Fatal(err)
		}
	}
	problems, err = w.process().CheckPoolServer(w.context(), poolSpec("one", 1), 0, true)
	if err != nil {
		t.Fatal(err)
	}
	wantProblem(t, problems, "size", "no quorum", "1 of the 3 nodes", "cluster not ready - no quorum?")
}

func wantProblem(t *testing.T, problems []sandbox.Problem, attribute string, texts ...string) {
	t.Helper()
	for _, p := range problems {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(p.String(), text)
		}
		if p.Attribute == attribute && all {
			return
		}
	}
	t.Errorf("no problem at %s says %q: %v", attribute, texts, problems)
}

func TestAFullStorageIsSaidOnceAndGoodMembersAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	id := w.inject(control.Fault{Method: "POST", Pattern: "/lxc/9000/clone$", Nth: 7, Count: -1, Kind: control.Status, Status: 500, Reason: "clone failed: No space left on device"})
	spec := poolSpec("full", 12)
	pool, err := w.process().CreatePool(w.context(), spec, nil)
	if err == nil || sandbox.CodeOf(err) != "SBX403" {
		t.Fatalf("code %s: %v", sandbox.CodeOf(err), err)
	}
	if n := strings.Count(err.Error(), "No space left on device"); n != 1 {
		t.Errorf("said %d times: %v", n, err)
	}
	w.full(pool, 6)
	if !w.fired(id) {
		t.Error("the fault was never met")
	}
	if left := w.marked(); len(left) != 6 {
		t.Errorf("left on the server: %v", left)
	}
	w.calm()
	w.full(w.updatePool(w.process(), pool, spec), 12)
}

func TestATemplateThatIsRemovedWhileRollingTakesNoMemberAway(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("orphaned", 3)
	pool := w.createPool(w.process(), spec)
	before := idsOf(pool.Members)
	next := spec
	next.Member.Source.TemplateID = 9999 // gone before its first clone
	_, err := w.process().UpdatePool(w.context(), priorOf(pool), next)
	if err == nil || !strings.Contains(err.Error(), "There is no template 9999") || !strings.Contains(err.Error(), "member.template_id") {
		t.Fatalf("rolled without a template: %v", err)
	}
	if left := w.marked(); !slices.Equal(left, before) {
		t.Errorf("members are %v, were %v", left, before)
	}
}

func TestANodeThatIsAwayHasUnknownMembers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 3})
	spec := poolSpec("away", 2)
	pool := w.createPool(w.process(), spec)
	far := pool.Members[0]
	p := w.process()
	upid, err := p.client.MigrateLXC(w.context(), far.Node, far.VMID, pve.MigrateOptions{Target: "pve2", Restart: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	pool = w.readPool(w.process(), pool, spec)
	if err := w.lab.Control().NodeAway(w.context(), "pve2", true); err != nil {
		t.Fatal(err)
	}
	got := w.readPool(w.process(), pool, spec)
	if len(got.Members) != 2 || got.Ready() != 1 {
		t.Fatalf("read as %+v", got.Members)
	}
	for _, m := range got.Members {
		if m.VMID == far.VMID && (m.Status != sandbox.MemberUnknown || !strings.Contains(m.Why, "pve2")) {
			t.Errorf("the member on the node that is away is %+v", m)
		}
	}
	after := w.updatePool(w.process(), got, spec)
	if len(after.Members) != 2 || after.Ready() != 1 {
		t.Errorf("a member was made for one that is only out of sight: %+v", after.Members)
	}
	if _, err := w.process().DestroyPool(w.context(), priorOf(after), true); !errors.Is(err, sandbox.ErrPoolInUse) || !strings.Contains(err.Error(), "pve2") {
		t.Errorf("destroyed with a node away: %v", err)
	}
	w.calm()
	w.full(w.updatePool(w.process(), after, spec), 2)
}

// What a killed apply leaves is settled by the next one, which knows nothing of it.
func TestKillAtEachRequestOfAPoolIsSettledByTheNextApply(t *testing.T) {
	t.Parallel()
	spec := poolSpec("killed", 1)
	for _, carriedOut := range []bool{false, true} {
		t.Run(fmt.Sprintf("last request carried out %v", carriedOut), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			for n := 1; ; n++ {
				if n > 60 {
					t.Fatal("still hitting requests after 60 rounds")
				}
				first := control.Fault{Pattern: "^/", Nth: n, Count: 1, Kind: control.DropBefore}
				if carriedOut {
					first.Kind = control.DropAfter
				}
				id := w.inject(first)
				w.inject(control.Fault{Pattern: "^/", Nth: n + 1, Count: -1, Kind: control.DropBefore})
				_, _ = w.process(impatient).CreatePool(short(t, 5*time.Second), spec, nil)
				hit := w.fired(id)
				w.calm()
				// The state holds nothing: the user imports what is there, or begins anew.
				p := w.process()
				pool, err := p.ImportPool(w.context(), spec.Name)
				if errors.Is(err, sandbox.ErrGone) {
					pool = w.createPool(p, spec)
				} else if err != nil {
					t.Fatalf("request %d: %v", n, err)
				}
				pool = w.updatePool(w.process(), pool, spec)
				w.full(pool, 1)
				if left := w.marked(); len(left) != 1 {
					t.Fatalf("request %d: on the server %v", n, left)
				}
				if _, err := w.process().DestroyPool(w.context(), priorOf(pool), false); err != nil {
					t.Fatalf("request %d: %v", n, err)
				}
				if !hit {
					return
				}
			}
		})
	}
}

// The node that makes the members goes away in the middle: what is made is kept in mind, it is one
// error, and the next apply goes on when the node is back.
func TestANodeThatGoesAwayInTheMiddleIsOneErrorAndKeepsWhatIsMade(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 3})
	spec := poolSpec("middle", 6)
	spec.Member.WaitFor = sandbox.WaitForNone
	id := w.inject(control.Fault{Method: "POST", Pattern: "/lxc/9000/clone$", Nth: 4, Count: 1, Kind: control.Hold})
	type result struct {
		pool sandbox.Pool
		err  error
	}
	done := make(chan result, 1)
	go func() {
		pool, err := w.process(impatient).CreatePool(w.context(), spec, nil)
		done <- result{pool, err}
	}()
	if _, err := w.lab.Control().WaitHeld(context.Background(), id, 1, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	w.untilReady(1) // else nothing is there that could be kept
	if err := w.lab.Control().NodeAway(w.context(), "pve1", true); err != nil {
		t.Fatal(err)
	}
	if err := w.lab.Control().Release(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	r := <-done
	if r.err == nil {
		t.Fatal("no error")
	}
	if r.pool.Claim == "" || len(r.pool.Members) == 0 {
		t.Errorf("nothing is kept in mind of what was made: %+v", r.pool)
	}
	for _, m := range r.pool.Members {
		if m.Status != sandbox.MemberUnknown && m.Status != sandbox.MemberReady {
			t.Errorf("member %+v", m)
		}
	}
	w.calm()
	w.full(w.updatePool(w.process(), r.pool, spec), 6)
	if left := w.marked(); len(left) != 6 {
		t.Errorf("on the server %v", left)
	}
}

// untilReady waits until so many of the guests on the server say of themselves that they are complete.
func (w *world) untilReady(n int) {
	w.t.Helper()
	ctx := w.context()
	for {
		dump, err := w.lab.Control().Dump(ctx)
		if err != nil {
			w.t.Fatal(err)
		}
		ready := 0
		for _, g := range dump.Guests {
			if _, marker := sandbox.SplitDescription(g.Config["description"]); marker != nil && marker.VMID == g.VMID && marker.Phase == sandbox.PhaseReady {
				ready++
			}
		}
		if ready >= n {
			return
		}
		select {
		case <-ctx.Done():
			w.t.Fatalf("only %d guests are ready", ready)
		case <-time.After(5 * time.Millisecond): // between looks; a dump asks the lab, not the server
		}
	}
}

func TestASampledPoolIsReadInFewRequestsAndStillMissesNothingThatListsShow(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("sampled", 60)
	spec.Attest, spec.Member.WaitFor = sandbox.AttestSample, sandbox.WaitForNone
	pool := w.createPool(w.process(), spec)
	gone, stopped := pool.Members[7], pool.Members[23]
	p := w.process()
	if _, err := p.Destroy(w.context(), gone.Ref, ""); err != nil {
		t.Fatal(err)
	}
	upid, err := p.client.StopLXC(w.context(), stopped.Node, stopped.VMID)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	var got sandbox.Pool
	n, list := w.requests(func() { got = w.readPool(w.process(), pool, spec) })
	// The lists, the Proxmox pool, the template, 20 of the sample, the one that is stopped, and two
	// to be sure that the other is gone.
	if n > 28 {
		t.Errorf("%d requests\n%s", n, strings.Join(list, "\n"))
	}
	if got.Ready() != 58 || len(got.Members) != 59 || len(got.Warnings) != 1 || !strings.Contains(got.Warnings[0].Summary, gone.Hostname) {
		t.Errorf("%d of %d ready, %v", got.Ready(), len(got.Members), got.Warnings)
	}
	pool, err = w.process().UpdatePool(w.context(), priorOf(got), poolOf(spec, 0))
	if err != nil || len(w.marked()) != 0 {
		t.Errorf("emptied to %+v: %v, %v", pool.Members, w.marked(), err)
	}
}

func poolOf(spec sandbox.PoolSpec, size int) sandbox.PoolSpec {
	spec.Size = size
	return spec
}

// Members go to every node that has the template's storage.
func TestMembersAreSpreadOverNodesThatShareTheTemplatesStorage(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 3})
	p := w.process()
	w.typed("pvesh create /storage --storage shared --type dir --path /mnt/shared --content rootdir,images --shared 1")
	upid, err := p.client.CloneLXC(w.context(), "pve1", lab.TemplateID, pve.CloneOptions{NewID: 9100, Hostname: "shared-template", Full: true, Storage: "shared"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.client.Wait(w.context(), upid, func(string) {}); err != nil {
		t.Fatal(err)
	}
	if err := p.client.ConvertToTemplate(w.context(), "pve1", 9100); err != nil {
		t.Fatal(err)
	}
	spec := poolSpec("spread", 6)
	spec.Member.Source.TemplateID, spec.Member.FullClone, spec.Member.Storage = 9100, true, "shared"
	spec.Member.WaitFor = sandbox.WaitForNone
	pool := w.createPool(w.process(), spec)
	if got := nodesOf(pool); got["pve1"] != 2 || got["pve2"] != 2 || got["pve3"] != 2 {
		t.Errorf("spread as %v", got)
	}
	packed := spec
	packed.Name, packed.Size, packed.Strategy, packed.Nodes = "packed", 3, placement.Pack, []string{"pve2", "pve3"}
	got := nodesOf(w.createPool(w.process(), packed))
	if len(got) != 1 || got["pve1"] != 0 {
		t.Errorf("packed as %v", got)
	}
}

func nodesOf(pool sandbox.Pool) map[string]int {
	out := map[string]int{}
	for _, m := range pool.Members {
		out[m.Node]++
	}
	return out
}
