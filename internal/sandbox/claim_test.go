package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// claimant is what a container asks for that claims a member of poolSpec's pools.
func claimant(hostname string) sandbox.Spec {
	s := poolSpec("", 0).Member
	s.Hostname, s.Started, s.WaitFor = hostname, true, sandbox.WaitForSSH
	return s
}

func (w *world) claim(p *process, pool string, spec sandbox.Spec) sandbox.Sandbox {
	w.t.Helper()
	out, err := p.ClaimMember(w.context(), sandbox.Claim{Pool: pool}, spec, nil)
	if err != nil {
		w.t.Fatalf("claim for %s: %v", spec.Hostname, err)
	}
	return out.Sandbox
}

func TestAClaimTurnsAMemberIntoTheContainerInPlace(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("warm", 2)
	pool := w.createPool(w.process(), spec)
	want := claimant("agent-7")
	want.MemoryMiB, want.Tags, want.Description = ptr(256), []string{"ci"}, "claimed by a test"
	want.AuthorizedKeys = []string{w.lab.PublicKey()}
	want.Lease = &sandbox.Lease{TTL: time.Hour}
	p := w.process(later(48 * time.Hour))
	var s sandbox.Sandbox
	n, list := w.requests(func() { s = w.claim(p, "warm", want) })
	if n > 10 {
		t.Errorf("a claim took %d requests, want at most 10\n%s", n, strings.Join(list, "\n"))
	}
	if !slices.Contains(idsOf(pool.Members), s.VMID) {
		t.Fatalf("container %d was no member of %v", s.VMID, idsOf(pool.Members))
	}
	m := w.marker(s.VMID)
	if m.Kind != sandbox.KindContainer || m.Phase != sandbox.PhaseReady || m.Pool != "warm" || m.Claim != s.Claim || m.TemplateID != lab.TemplateID || m.Expires.IsZero() || !m.Until.IsZero() {
		t.Errorf("its marker is %+v", m)
	}
	if m.Born.Before(time.Now().Add(47 * time.Hour)) {
		t.Errorf("a reaper would count its age from %v, before it was claimed", m.Born)
	}
	if s.Hostname != "agent-7" || s.MemoryMiB != 256 || s.PoolID != "warm" || s.Description != "claimed by a test" || !slices.Equal(s.Tags, []string{"ci"}) || s.SSH == nil || s.SSH.HostKey == "" {
		t.Errorf("claimed as %+v", s)
	}
	result, _, err := p.Exec(w.context(), sandbox.Prior{Ref: s.Ref}, sandbox.Command{Script: "hostname; cat /etc/hostname /etc/sandbox/lease.json"})
	if err != nil || !strings.HasPrefix(string(result.Stdout), "agent-7\nagent-7\n") || !strings.Contains(string(result.Stdout), s.Claim) {
		t.Errorf("inside: %q, %v", result.Stdout, err)
	}
	// Nothing is left to do, for the container and for the pool but a refill.
	want.PoolID = "warm" // as the state has it
	if out, err := p.Update(w.context(), sandbox.Prior{Ref: s.Ref}, want, want); err != nil || len(out.Warnings) > 0 {
		t.Errorf("an update of nothing: %v, %v", out.Warnings, err)
	}
	got := w.readPool(w.process(), pool, spec)
	if got.Ready() != 1 || len(got.Claimed) != 1 || got.Claimed[0].VMID != s.VMID {
		t.Errorf("the pool reads as %+v", got)
	}
	_, err = w.process().DestroyPool(w.context(), priorOf(got), false)
	if !errors.Is(err, sandbox.ErrPoolInUse) || !strings.Contains(err.Error(), "agent-7") {
		t.Errorf("destroyed while a member is claimed: %v", err)
	}
	got = w.updatePool(w.process(), got, spec)
	w.full(got, 2)
	// Released is destroyed.
	if _, err := w.process().Destroy(w.context(), s.Ref, ""); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); slices.Contains(left, s.VMID) || len(left) != 2 {
		t.Errorf("after the release %v", left)
	}
	s = w.claim(w.process(), "warm", claimant("forced"))
	if _, err := w.process().DestroyPool(w.context(), priorOf(got), true); err != nil {
		t.Fatal(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("a forced destroy left %v", left)
	}
}

func TestAnEmptyPoolIsAnErrorOrAClone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	w.createPool(w.process(), poolSpec("dry", 0))
	_, err := w.process().ClaimMember(w.context(), sandbox.Claim{Pool: "dry"}, claimant("none"), nil)
	if !errors.Is(err, sandbox.ErrPoolEmpty) || sandbox.CodeOf(err) != "SBX314" || !strings.Contains(err.Error(), `on_empty = "clone"`) {
		t.Errorf("an empty pool: %s %v", sandbox.CodeOf(err), err)
	}
	if _, err := w.process().ClaimMember(w.context(), sandbox.Claim{Pool: "nowhere"}, claimant("none"), nil); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("a pool that isn't there: %v", err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Fatalf("left behind: %v", left)
	}
	out, err := w.process().ClaimMember(w.context(), sandbox.Claim{Pool: "dry", OnEmpty: sandbox.OnEmptyClone}, claimant("cold"), nil)
	if err != nil || out.Sandbox.Hostname != "cold" || out.Sandbox.PoolID != "dry" || w.marker(out.Sandbox.VMID).Pool != "dry" {
		t.Errorf("cloned as %+v, %v", out.Sandbox, err)
	}
}

func TestAMemberThatSomebodyChangedIsNotHandedOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	pool := w.createPool(w.process(), poolSpec("tampered", 1))
	m := pool.Members[0]
	if err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: m.VMID, Raw: [][2]string{{"lxc.apparmor.profile", "unconfined"}}}); err != nil {
		t.Fatal(err)
	}
	_, err := w.process().ClaimMember(w.context(), sandbox.Claim{Pool: "tampered"}, claimant("victim"), nil)
	if err == nil || !strings.Contains(err.Error(), "unconfined") {
		t.Errorf("claimed all the same: %v", err)
	}
	if got := w.marker(m.VMID); got.Kind != sandbox.KindMember || got.Claim != m.Claim {
		t.Errorf("its marker is %+v", got)
	}
}

// A claim that asks for the members' mode has nothing to wait for; one that asks for
// another is dark, or runs under the old rules, until the new ones bite.
func TestAWarmMembersRulesAreOldAlready(t *testing.T) {
	t.Parallel()
	delays := lab.Fast()
	delays.FirewallLoop = 500 * time.Millisecond
	w := newWorld(t, lab.Options{Delays: delays})
	spec := poolSpec("walled", 2)
	spec.Member.Network.Mode = sandbox.ModeNAT
	w.createPool(w.process(), spec)
	same := claimant("same")
	same.Network.Mode = sandbox.ModeNAT
	out, err := w.process().ClaimMember(w.context(), sandbox.Claim{Pool: "walled"}, same, nil)
	if err != nil || out.Timings.Firewall != 0 || out.Sandbox.Network.Mode != sandbox.ModeNAT || out.Sandbox.Network.LinkDown {
		t.Errorf("the same mode waited %s: %+v, %v", out.Timings.Firewall, out.Sandbox.Network, err)
	}
	stricter := claimant("stricter")
	stricter.Network.Mode = sandbox.ModeOff
	out, err = w.process().ClaimMember(w.context(), sandbox.Claim{Pool: "walled"}, stricter, nil)
	if err != nil || out.Timings.Firewall == 0 || out.Sandbox.Network.Mode != sandbox.ModeOff || out.Sandbox.Network.LinkDown {
		t.Errorf("another mode waited %s: %+v, %v", out.Timings.Firewall, out.Sandbox.Network, err)
	}
	if m := w.marker(out.Sandbox.VMID); m.Mode != string(sandbox.ModeOff) {
		t.Errorf("its marker says mode %q", m.Mode)
	}
}

// Two runners want one member, 200 times: exactly one of them gets it.
func TestTwoRunnersNeverClaimTheSameMember(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("contended", 1)
	spec.Member.WaitFor = sandbox.WaitForNone
	runners := []*process{w.process(), w.process()}
	vmid := w.createPool(w.process(), spec).Members[0].VMID
	free := w.config(vmid)
	for round := range 200 {
		got := make([]sandbox.Outcome, len(runners))
		errs := make([]error, len(runners))
		var group sync.WaitGroup
		for i, p := range runners {
			group.Go(func() {
				want := claimant(fmt.Sprintf("runner-%d-%d", round, i))
				want.WaitFor = sandbox.WaitForNone
				got[i], errs[i] = p.ClaimMember(w.context(), sandbox.Claim{Pool: "contended"}, want, nil)
			})
		}
		group.Wait()
		winner := slices.Index(errs, nil)
		if winner < 0 || !errors.Is(errs[1-winner], sandbox.ErrPoolEmpty) {
			t.Fatalf("round %d: %v", round, errs)
		}
		m := w.marker(vmid)
		if !m.Matches(testOwner, got[winner].Sandbox.Claim, vmid) || w.config(vmid)["hostname"] != got[winner].Sandbox.Hostname {
			t.Fatalf("round %d: the server says %+v, the winner holds %+v", round, m, got[winner].Sandbox.Ref)
		}
		// Free again, as no provider would ever make it.
		err := w.lab.Control().ChangeGuest(w.context(), control.Guest{VMID: vmid, Set: map[string]string{
			"description": free["description"], "tags": free["tags"], "hostname": free["hostname"],
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// config is a guest's configuration behind the API's back.
func (w *world) config(vmid int) map[string]string {
	w.t.Helper()
	dump, err := w.lab.Control().Dump(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == vmid {
			return g.Config
		}
	}
	w.t.Fatalf("there is no guest %d", vmid)
	return nil
}

// A claim that is cut at any request leaves a member that is free, or one that is
// claimed and known, or one that the next apply of the pool destroys when its time is
// over: never one that two hold, or that nobody finds.
func TestAClaimCutAtEachRequestLosesNoMember(t *testing.T) {
	t.Parallel()
	spec := poolSpec("cut", 1)
	for _, carriedOut := range []bool{false, true} {
		t.Run(fmt.Sprintf("last request carried out %v", carriedOut), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			pool := w.createPool(w.process(), spec)
			for n := 1; ; n++ {
				if n > 40 {
					t.Fatal("still hitting requests after 40 rounds")
				}
				first := control.Fault{Pattern: "^/", Nth: n, Count: 1, Kind: control.DropBefore}
				if carriedOut {
					first.Kind = control.DropAfter
				}
				id := w.inject(first)
				w.inject(control.Fault{Pattern: "^/", Nth: n + 1, Count: -1, Kind: control.DropBefore})
				var saved state
				_, err := w.process(impatient).ClaimMember(short(t, 5*time.Second), sandbox.Claim{Pool: "cut"}, claimant("cut-off"), saved.accept)
				hit := w.fired(id)
				w.calm()
				if !hit && err != nil {
					t.Fatal(err)
				}
				left := w.marked()
				if !slices.Equal(left, idsOf(pool.Members)) {
					t.Fatalf("request %d: on the server %v, was %v", n, left, idsOf(pool.Members))
				}
				m := w.marker(left[0])
				switch {
				case saved.ref.VMID != 0 && (m.Kind != sandbox.KindContainer || m.Claim != saved.ref.Claim):
					t.Fatalf("request %d: the state holds a member that isn't its own: %+v", n, m)
				case saved.ref.VMID != 0:
					if _, err := w.process().Destroy(w.context(), saved.ref, ""); err != nil {
						t.Fatalf("request %d: what the state holds can't be destroyed: %v", n, err)
					}
				case m.Kind == sandbox.KindMember && m.Phase != sandbox.PhaseReady:
					t.Fatalf("request %d: neither free nor claimed: %+v", n, m)
				case m.Kind == sandbox.KindContainer && (m.Phase != sandbox.PhaseCreating || m.Until.IsZero()):
					t.Fatalf("request %d: claimed by nobody, for ever: %+v", n, m)
				}
				pool = w.updatePool(w.process(later(2*time.Hour)), pool, spec)
				w.full(pool, 1)
				if left := w.marked(); len(left) != 1 {
					t.Fatalf("request %d: after the next apply of the pool %v", n, left)
				}
				if !hit {
					return
				}
			}
		})
	}
}

// A pool's own work and a claim of another runner meet at one member: the one that
// writes first has it.
func TestAMemberThatIsClaimedWhileThePoolRemovesItStaysWithItsClaim(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	spec := poolSpec("race", 1)
	pool := w.createPool(w.process(), spec)
	// The pool's write that retires the member is held, and the claim goes first.
	id := w.inject(control.Fault{Method: "PUT", Pattern: fmt.Sprintf("/lxc/%d/config$", pool.Members[0].VMID), Count: 1, Kind: control.Hold})
	smaller := spec
	smaller.Size = 0
	done := make(chan error, 1)
	go func() {
		_, err := w.process().UpdatePool(w.context(), priorOf(pool), smaller)
		done <- err
	}()
	if _, err := w.lab.Control().WaitHeld(context.Background(), id, 1, 10*time.Second); err != nil {
		t.Fatal(err)
	}
	s := w.claim(w.process(), "race", claimant("winner"))
	if err := w.lab.Control().Release(context.Background(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Errorf("the pool's update: %v", err)
	}
	if m := w.marker(s.VMID); !m.Matches(testOwner, s.Claim, s.VMID) || m.Phase != sandbox.PhaseReady {
		t.Errorf("the claimed member is %+v", m)
	}
}

// A token with rights on one Proxmox pool alone makes members, claims and removes them.
func TestATokenWithRightsOnThePoolAloneCanDoAllOfIt(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	token := w.newToken("sandbox@pve", "terraform")
	for _, line := range w.preflight(w.process(as(token), inPool("scoped")), sandbox.PreflightSpec{}).Commands {
		w.typed(line)
	}
	w.typed("pveum role add PoolMaker --privs \"Pool.Allocate Pool.Audit\"")
	w.typed("pveum acl modify /pool/scoped --users sandbox@pve --roles PoolMaker")
	w.typed("pveum acl modify /pool/scoped --tokens sandbox@pve!terraform --roles PoolMaker")
	own := as(token)
	spec := poolSpec("scoped", 2)
	pool := w.createPool(w.process(own), spec)
	s := w.claim(w.process(own), "scoped", claimant("scoped-agent"))
	if read, err := w.process(own).Read(w.context(), sandbox.Prior{Ref: s.Ref}); err != nil || read.PoolID != "scoped" {
		t.Errorf("read as %+v, %v", read.PoolID, err)
	}
	w.full(w.updatePool(w.process(own), pool, spec), 2)
	if _, err := w.process(own).Destroy(w.context(), s.Ref, ""); err != nil {
		t.Error(err)
	}
	if _, err := w.process(own).DestroyPool(w.context(), sandbox.PoolPrior{Name: "scoped"}, false); err != nil {
		t.Error(err)
	}
	if left := w.marked(); len(left) != 0 {
		t.Errorf("left %v", left)
	}
}
