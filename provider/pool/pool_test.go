package pool_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// shape is a small member.
func shape(changes values) values {
	return with(values{"memory": 128, "cores": 1}, changes)
}

// with returns the values with some of them changed; nil takes one out.
func with(base, changes values) values {
	out := values{}
	maps.Copy(out, base)
	maps.Copy(out, changes)
	return out
}

func config(env *acctest.Environment, changes values) values {
	return with(values{"name": env.Owner + "-warm", "size": 2, "member": shape(nil)}, changes)
}

// make makes a pool, which is destroyed when the test ends.
func makePool(t *testing.T, server *protocoltest.Server, config values) *protocoltest.Resource {
	t.Helper()
	r := server.NewResource(t, "sandbox_pool")
	t.Cleanup(func() {
		if diags := server.Destroy(t, context.WithoutCancel(t.Context()), r); protocoltest.HasErrors(diags) {
			t.Errorf("destroying it: %s", protocoltest.Text(diags))
		}
	})
	apply(t, server, r, config, "create")
	return r
}

// apply plans, expects the action, applies, refreshes and expects that nothing is left to do.
func apply(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values, action string) []*tfprotov6.Diagnostic {
	t.Helper()
	diags := change(t, server, r, config, action)
	settled(t, server, r, config)
	return diags
}

func change(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values, action string) []*tfprotov6.Diagnostic {
	t.Helper()
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != action {
		t.Fatalf("planned %s, want %s (replace because of %v)\nstate %v\nplan  %v", got, action, plan.Replace, r.State, plan.Planned)
	}
	diags := server.Apply(t, t.Context(), plan)
	protocoltest.NoErrors(t, diags)
	return append(plan.Diags, diags...)
}

// settled refreshes and expects an empty plan.
func settled(t *testing.T, server *protocoltest.Server, r *protocoltest.Resource, config values) {
	t.Helper()
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Action(); got != "no-op" {
		t.Fatalf("the plan after an apply is %s (replace because of %v):\nstate %v\nplan  %v", got, plan.Replace, r.Get(t, ""), plan.Get(t, ""))
	}
}

func client(t *testing.T, env *acctest.Environment) *pve.Client {
	t.Helper()
	c, err := pve.New(env.Connection())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// ids are the members' vmids.
func ids(t *testing.T, r *protocoltest.Resource) []int64 {
	t.Helper()
	members, _ := r.Get(t, "members").(map[string]any)
	var out []int64
	for name := range members {
		id, _ := r.Get(t, "members."+name+".vmid").(float64)
		out = append(out, int64(id))
	}
	slices.Sort(out)
	return out
}

// nodeOf is where a member is.
func nodeOf(t *testing.T, r *protocoltest.Resource, vmid int64) string {
	t.Helper()
	members, _ := r.Get(t, "members").(map[string]any)
	for name := range members {
		if r.Get(t, "members."+name+".vmid") == float64(vmid) {
			node, _ := r.Get(t, "members."+name+".node_name").(string)
			return node
		}
	}
	t.Fatalf("there is no member %d", vmid)
	return ""
}

// wants fails the test unless one diagnostic holds all the texts.
func wants(t *testing.T, diags []*tfprotov6.Diagnostic, texts ...string) {
	t.Helper()
	if !slices.ContainsFunc(diags, func(d *tfprotov6.Diagnostic) bool {
		text := protocoltest.Text([]*tfprotov6.Diagnostic{d})
		return !slices.ContainsFunc(texts, func(want string) bool { return !strings.Contains(text, want) })
	}) {
		t.Errorf("no diagnostic holds all of %q:\n%s", texts, protocoltest.Text(diags))
	}
}

func TestAPoolIsMadeChangedImportedAndDestroyed(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	base := config(env, values{"comment": "for agents"})
	r := makePool(t, server, base)
	if r.Get(t, "id") != env.Owner+"-warm" || r.Get(t, "ready") != float64(2) || r.Get(t, "claimed") != float64(0) || r.Get(t, "headroom") != nil {
		t.Errorf("made as %v", r.Get(t, ""))
	}
	first := ids(t, r)
	apply(t, server, r, with(base, values{"comment": nil, "size": 3, "attest": "sample", "limits": values{"members": 5}}), "update")
	if got := ids(t, r); len(got) != 3 || !slices.Contains(got, first[0]) || !slices.Contains(got, first[1]) || r.Get(t, "headroom") != float64(2) {
		t.Errorf("grown to %v, headroom %v; was %v", got, r.Get(t, "headroom"), first)
	}
	inPlace := with(base, values{"member": shape(values{"memory": 160, "tags": []string{"blue"}, "network": values{"mode": "unmanaged"}})})
	apply(t, server, r, inPlace, "update")
	again, diags := server.Import(t, "sandbox_pool", env.Owner+"-warm")
	protocoltest.NoErrors(t, diags)
	// What only a configuration can say is planned, and changes nothing on the server.
	before := ids(t, r)
	apply(t, server, again, inPlace, "update")
	if got := ids(t, again); !slices.Equal(got, before) {
		t.Errorf("the apply after an import made %v of %v", got, before)
	}
	protocoltest.NoErrors(t, server.Refresh(t, r))
}

func TestAClaimedMemberPlansEmptyAndThePoolIsRefilled(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	poolConfig := config(env, values{"size": 1})
	pool := makePool(t, server, poolConfig)
	member := ids(t, pool)[0]

	container := server.NewResource(t, "sandbox_container")
	want := values{"hostname": "agent-1", "claim_from_pool_id": env.Owner + "-warm", "memory": 192, "tags": []string{"ci"}, "description": "a job", "lease": values{"ttl": "1h"}}
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), container)) })
	apply(t, server, container, want, "create")
	if got := int64(container.VMID(t)); got != member {
		t.Errorf("container %d, want member %d", got, member)
	}
	if container.Get(t, "pool_id") != env.Owner+"-warm" || container.Get(t, "template_id") != float64(env.TemplateID) || container.Get(t, "template_current") != true {
		t.Errorf("claimed as %v", container.Get(t, ""))
	}
	apply(t, server, container, with(want, values{"memory": 128, "hostname": "agent-1"}), "update")

	// The second plan of the pool refills it, the third is empty.
	protocoltest.NoErrors(t, server.Refresh(t, pool))
	if pool.Get(t, "ready") != float64(0) || pool.Get(t, "claimed") != float64(1) {
		t.Errorf("after the claim the pool reads as %v", pool.Get(t, ""))
	}
	apply(t, server, pool, poolConfig, "update")

	diags := server.Destroy(t, t.Context(), pool)
	wants(t, diags, "agent-1", "force = true", "SBX307")
	settled(t, server, pool, poolConfig)

	imported, diags := server.Import(t, "sandbox_container", fmt.Sprint(member))
	protocoltest.NoErrors(t, diags)
	if imported.Get(t, "claim_from_pool_id") != env.Owner+"-warm" {
		t.Errorf("imported with claim_from_pool_id %v", imported.Get(t, "claim_from_pool_id"))
	}
	_, diags = server.Import(t, "sandbox_container", fmt.Sprint(ids(t, pool)[0]))
	wants(t, diags, "a member of the pool", "claim_from_pool_id")
}

func TestAnEmptyPoolIsAnErrorThatSaysSoOrAClone(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	makePool(t, server, config(env, values{"size": 0}))
	r := server.NewResource(t, "sandbox_container")
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	want := values{"hostname": "cold-1", "claim_from_pool_id": env.Owner + "-warm"}
	plan := server.Plan(t, r, want)
	diags := server.Apply(t, t.Context(), plan)
	wants(t, diags, "SBX314", "size", `on_empty = "clone"`)
	if r.Exists() {
		t.Errorf("a state after a claim of nothing: %v", r.Get(t, ""))
	}
	apply(t, server, r, with(want, values{"on_empty": "clone", "template_id": env.TemplateID}), "create")
	if r.Get(t, "pool_id") != env.Owner+"-warm" {
		t.Errorf("pool_id is %v", r.Get(t, "pool_id"))
	}
}

func TestWhatAClaimCantBeIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	for name, c := range map[string]struct {
		config values
		wants  []string
	}{
		"a vmid":            {values{"vmid": env.VMIDs.First}, []string{"vmid"}},
		"a pool":            {values{"pool_id": "other"}, []string{"pool_id"}},
		"a template's file": {values{"template_file_id": "local:vztmpl/x.tar.gz"}, []string{"template_file_id"}},
		"on_empty":          {values{"on_empty": "clone", "claim_from_pool_id": nil}, []string{"claim_from_pool_id"}},
		"no pool's name":    {values{"claim_from_pool_id": "not a pool"}, []string{"no pool's name"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := server.Plan(t, server.NewResource(t, "sandbox_container"), with(values{"hostname": "x", "claim_from_pool_id": "warm"}, c.config))
			wants(t, plan.Diags, c.wants...)
			if !protocoltest.HasErrors(plan.Diags) {
				t.Error("it is planned all the same")
			}
		})
	}
}

func TestWhatAPoolCantBeIsRefusedAtPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	for name, c := range map[string]struct {
		config values
		wants  []string
	}{
		"a name":         {values{"name": "a pool"}, []string{"no pool's name"}},
		"no roll":        {values{"update": values{"max_unavailable": 0, "max_surge": 0}}, []string{"can't both be 0", "update"}},
		"limits":         {values{"limits": values{"memory": 200}}, []string{"256 MiB", "56 MiB more than the limit of 200 MiB", "limits"}},
		"no template":    {values{"member": shape(values{"template_id": 999999})}, []string{"There is no template 999999", "member"}},
		"capacity":       {values{"member": shape(values{"memory": 100000000})}, []string{"2 of 2 new members find no place", "MiB more than may still be promised"}},
		"an unknown tag": {values{"member": shape(values{"tags": []string{"no tag!"}})}, []string{"member", "no tag!"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := server.Plan(t, server.NewResource(t, "sandbox_pool"), with(config(env, nil), c.config))
			wants(t, plan.Diags, c.wants...)
			if !protocoltest.HasErrors(plan.Diags) {
				t.Error("it is planned all the same")
			}
		})
	}
}

func TestAMemberThatDriftedIsNamedAndReplaced(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	c := client(t, env)
	r := makePool(t, server, config(env, nil))
	before := ids(t, r)
	if err := c.UpdateLXC(t.Context(), nodeOf(t, r, before[0]), int(before[0]), pve.LXCUpdate{Set: map[string]string{"memory": "320"}}); err != nil {
		t.Fatal(err)
	}
	diags := server.Refresh(t, r)
	protocoltest.NoErrors(t, diags)
	wants(t, diags, fmt.Sprint(before[0]), "drifted", "memory was changed")
	apply(t, server, r, config(env, nil), "update")
	after := ids(t, r)
	if slices.Contains(after, before[0]) || !slices.Contains(after, before[1]) {
		t.Errorf("members %v, were %v", after, before)
	}
}

// Others attest with the firewall, too: a member that somebody has opened isn't kept.
func TestAMemberWhoseFirewallWasOpenedIsReplaced(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	server := protocoltest.For(t, env, nil)
	c := client(t, env)
	base := config(env, values{"size": 1})
	r := makePool(t, server, base)
	before := ids(t, r)[0]
	scope := pve.LXCFirewall(nodeOf(t, r, before), int(before))
	if err := c.UpdateFirewallOptions(t.Context(), scope, pve.LXCUpdate{Set: map[string]string{"policy_in": "ACCEPT"}}); err != nil {
		t.Fatal(err)
	}
	diags := server.Refresh(t, r)
	wants(t, diags, "drifted", "policy_in")
	apply(t, server, r, base, "update")
	if after := ids(t, r)[0]; after == before {
		t.Error("the opened member was kept")
	}
}

func TestAStorageThatFillsUpIsOneErrorAndKeepsTheGoodMembers(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsLab(t, "fills a storage at a chosen clone")
	server := protocoltest.For(t, env, nil)
	base := config(env, values{"size": 10, "overcommit": values{"cores": 0, "memory": 0, "disk": 0}})
	if _, err := env.Lab.Control.Inject(t.Context(), control.Fault{Method: "POST", Pattern: "/clone$", Nth: 7, Count: -1, Kind: control.Status, Status: 500, Reason: "clone failed: No space left on device"}); err != nil {
		t.Fatal(err)
	}
	r := server.NewResource(t, "sandbox_pool")
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	plan := server.Plan(t, r, base)
	diags := server.Apply(t, t.Context(), plan)
	errors := 0
	for _, d := range diags {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			errors++
		}
	}
	if errors != 1 {
		t.Errorf("%d errors: %s", errors, protocoltest.Text(diags))
	}
	wants(t, diags, "SBX403", "No space left on device")
	if r.Get(t, "ready") != float64(6) || len(ids(t, r)) != 6 {
		t.Errorf("tracked: %v", r.Get(t, ""))
	}
	if err := env.Lab.Control.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	good := ids(t, r)
	r.Tainted = false // terraform untaint
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, base, "update")
	after := ids(t, r)
	for _, id := range good {
		if !slices.Contains(after, id) {
			t.Errorf("the good member %d was not kept: %v", id, after)
		}
	}
}

func TestAStoppedCreationIsFilledByTheNextApply(t *testing.T) {
	t.Parallel()
	env := acctest.New(t, acctest.Delays(slowClones()))
	acctest.NeedsLab(t, "stops in the middle of many clones")
	server := protocoltest.For(t, env, nil)
	base := config(env, values{"size": 6})
	r := server.NewResource(t, "sandbox_pool")
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), r)) })
	id, err := env.Lab.Control.Inject(t.Context(), control.Fault{Method: "POST", Pattern: "/clone$", Nth: 3, Count: 1, Kind: control.Hold})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	go func() {
		_, _ = env.Lab.Control.WaitHeld(context.Background(), id, 1, 0)
		stop()
		_ = env.Lab.Control.Release(context.Background(), id)
	}()
	diags := server.Apply(t, ctx, server.Plan(t, r, base))
	protocoltest.NoErrors(t, diags)
	wants(t, diags, "Unfinished", "of 6 members were ready")
	if err := env.Lab.Control.Reset(t.Context()); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, base, "update")
	if r.Get(t, "ready") != float64(6) {
		t.Errorf("filled to %v", r.Get(t, "ready"))
	}
}

func slowClones() lab.Delays {
	d := lab.Fast()
	d.CloneLinked *= 4
	return d
}

// A template that was built anew rolls the members that nobody has claimed. A claimed one keeps its generation, and says so.
func TestANewTemplateBuildRollsUnclaimedMembersOnly(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsLab(t, "writes the marker of another build on the template")
	server := protocoltest.For(t, env, nil)
	build := func(id string) {
		t.Helper()
		marker, err := sandbox.TemplateMarker(env.Owner, strings.Repeat("a", sandbox.ClaimLength), env.TemplateID, sandbox.PhaseReady, sandbox.TemplateSummary{BuildID: id})
		if err != nil {
			t.Fatal(err)
		}
		if err := env.Lab.Control.ChangeGuest(t.Context(), control.Guest{VMID: env.TemplateID, Set: map[string]string{"description": marker.String() + "\n"}}); err != nil {
			t.Fatal(err)
		}
	}
	build("20261201T080000Z")
	t.Cleanup(func() { // the sweep looks for the owner's mark
		_ = env.Lab.Control.ChangeGuest(context.WithoutCancel(t.Context()), control.Guest{VMID: env.TemplateID, Set: map[string]string{"description": ""}})
	})
	base := config(env, values{"size": 2})
	r := makePool(t, server, base)
	container := server.NewResource(t, "sandbox_container")
	want := values{"hostname": "keeps", "claim_from_pool_id": env.Owner + "-warm"}
	t.Cleanup(func() { protocoltest.NoErrors(t, server.Destroy(t, context.WithoutCancel(t.Context()), container)) })
	apply(t, server, container, want, "create")
	protocoltest.NoErrors(t, server.Refresh(t, r))
	apply(t, server, r, base, "update")
	before := ids(t, r)

	build("20261202T080000Z")
	later := protocoltest.For(t, env, nil) // the next run
	protocoltest.NoErrors(t, later.Refresh(t, container))
	if container.Get(t, "template_current") != false {
		t.Errorf("template_current is %v", container.Get(t, "template_current"))
	}
	settled(t, later, container, want)
	diags := later.Refresh(t, r)
	protocoltest.NoErrors(t, diags)
	wants(t, diags, "outdated", "was built anew")
	diags = apply(t, later, r, base, "update")
	wants(t, diags, "Claimed members keep what they have", "keeps")
	for _, id := range ids(t, r) {
		if slices.Contains(before, id) {
			t.Errorf("member %d of the old build was kept", id)
		}
	}
	settled(t, later, container, want)
}
