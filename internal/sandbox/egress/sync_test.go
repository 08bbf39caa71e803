package egress_test

import (
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

func TestAGroupOfAHundredRulesIsWrittenOnceEachAndAChangeIsOneCall(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	want := make([]egress.Rule, 100)
	for i := range want {
		want[i] = out(i + 1)
	}
	var scope pve.FirewallScope
	var list egress.List
	first := s.requests(func() {
		scope = s.group("hundred")
		list = s.sync(scope, egress.Believed(nil, ""), want)
	})
	if len(first) != 102 {
		t.Errorf("the first write took %d requests, want 102: %v", len(first), first)
	}
	if !slices.Equal(list.Rules, want) {
		t.Errorf("the server holds %v", list.Rules)
	}
	changed := slices.Clone(want)
	changed[41].DPort = "4242"
	second := s.requests(func() { list = s.sync(scope, egress.Believed(list.Rules, list.Digest), changed) })
	if len(second) != 2 {
		t.Errorf("one changed rule took %d requests, want 2 (write, read back): %v", len(second), second)
	}
	third := s.requests(func() { s.sync(scope, nil, changed) })
	if len(third) != 1 {
		t.Errorf("nothing to change took %d requests, want 1: %v", len(third), third)
	}
}

func TestEveryModeIsWrittenAndReadBackAsItWasRendered(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for _, mode := range egress.Modes() {
		p := policy(mode)
		if mode != egress.Off {
			p.Allow = append(p.Allow, egress.Allow{To: "10.0.0.0/8", Ports: "5432,8000:8100"}, egress.Allow{To: "0.0.0.0/0", Protocol: "icmp"}, egress.Allow{To: "2001:db8::/32"})
		}
		name := "mode-" + string(mode)
		filter, err := egress.Render(p, egress.Naming{Scope: egress.DatacenterSets, Prefix: name})
		if err != nil {
			t.Fatal(err)
		}
		for _, set := range filter.Sets {
			if _, err := egress.SyncSet(t.Context(), s.client, pve.ClusterFirewall(), nil, set); err != nil {
				t.Fatalf("%s: %v", mode, err)
			}
		}
		scope := s.group(name)
		if got := s.sync(scope, nil, filter.Rules); !slices.Equal(got.Rules, filter.Rules) {
			t.Errorf("%s: %v", mode, egress.RuleDifferences(filter.Rules, got.Rules))
		}
		// From one mode to the next and back: only ever the calls that differ.
		if again := s.requests(func() { s.sync(scope, nil, filter.Rules) }); len(again) != 1 {
			t.Errorf("%s: writing it again took %v", mode, again)
		}
	}
}

func TestEachCallThatCanBeRefusedCarriesTheDigestItIsMeantFor(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	scope := s.group("digests")
	s.sync(scope, nil, outs(1, 2, 3, 4, 5))
	// Five kinds of changes at once: had one digest been guessed wrong, there were more reads than the first and the last.
	seen := s.requests(func() { s.sync(scope, nil, outs(9, 5, 2, 30, 1)) })
	reads := 0
	for _, r := range seen {
		if strings.HasPrefix(r, "GET") {
			reads++
		}
		if !strings.HasSuffix(r, " 200") {
			t.Errorf("refused: %s", r)
		}
	}
	if reads != 2 {
		t.Errorf("%d reads, want 2: %v", reads, seen)
	}
}

func TestAConflictIsReadAgainOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	scope := s.group("conflict")
	list := s.sync(scope, nil, outs(1, 2, 3))
	stranger := s.another()
	m := &meddler{Client: s.client, before: func(n int) {
		if n == 1 {
			if err := stranger.CreateFirewallRule(t.Context(), scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true, Comment: "a stranger's"}, ""); err != nil {
				t.Error(err)
			}
		}
	}}
	got, err := egress.SyncRules(t.Context(), m, scope, &list, outs(1, 20, 3))
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(got.Rules, outs(1, 20, 3)) {
		t.Errorf("the stranger's rule stayed, or ours is wrong: %v", got.Rules)
	}
}

func TestAConflictThatGoesOnIsAnErrorThatShowsBothLists(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	scope := s.group("fight")
	list := s.sync(scope, nil, outs(1, 2, 3))
	stranger := s.another()
	m := &meddler{Client: s.client, before: func(int) {
		if err := stranger.CreateFirewallRule(t.Context(), scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true, Comment: "a stranger's"}, ""); err != nil {
			t.Error(err)
		}
	}}
	_, err := egress.SyncRules(t.Context(), m, scope, &list, outs(1, 20, 3))
	var conflict *egress.ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("got %v, want a conflict", err)
	}
	for _, part := range []string{"a stranger's", "port 20", "/cluster/firewall/groups/fight"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("the error doesn't show %q:\n%v", part, err)
		}
	}
}

func TestAWriteThatIsRefusedHalfWayIsAnErrorAndTheNextRunFinishes(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	scope := s.group("halfway")
	s.inject(control.Fault{Method: "POST", Pattern: "^/cluster/firewall/groups/halfway$", Nth: 3, Kind: control.Status, Status: 403, Reason: "Permission check failed (/, Sys.Modify)"})
	_, err := egress.SyncRules(t.Context(), s.client, scope, nil, outs(1, 2, 3, 4))
	if !pve.Means(err, pve.Forbidden) {
		t.Fatalf("got %v, want the refusal", err)
	}
	if got := s.sync(scope, nil, outs(1, 2, 3, 4)); !slices.Equal(got.Rules, outs(1, 2, 3, 4)) {
		t.Errorf("%v", got.Rules)
	}
}

func TestALostAnswerIsNoSecondRule(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for i, kind := range []string{control.DropAfter, control.DropBefore, control.StatusAfter} {
		name := "lost-" + string(rune('a'+i))
		scope := s.group(name)
		s.inject(control.Fault{Method: "POST", Pattern: "^/cluster/firewall/groups/" + name + "$", Nth: 2, Kind: kind, Status: 596, Reason: "Broken pipe"})
		if got := s.sync(scope, nil, outs(1, 2, 3, 4)); !slices.Equal(got.Rules, outs(1, 2, 3, 4)) {
			t.Errorf("%s: %v", kind, got.Rules)
		}
	}
}

func TestALargeSetIsDiffedInPlaceAdditionsFirst(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("5,416 entries")
	}
	s := newServer(t)
	all := networks(5416 + 171)
	have := egress.Set{Name: "large", Entries: all[:5416]}
	if _, err := egress.SyncSet(t.Context(), s.client, pve.ClusterFirewall(), nil, have); err != nil {
		t.Fatal(err)
	}
	want := egress.Set{Name: "large", Entries: all[112:]}
	var got egress.Set
	seen := s.requests(func() {
		var err error
		if got, err = egress.SyncSet(t.Context(), s.client, pve.ClusterFirewall(), nil, want); err != nil {
			t.Fatal(err)
		}
	})
	writes := slices.DeleteFunc(slices.Clone(seen), func(r string) bool { return strings.HasPrefix(r, "GET") })
	if len(writes) != 283 || len(seen) > 290 {
		t.Errorf("%d writes of %d requests, want 283 of at most 290", len(writes), len(seen))
	}
	lastAdd := slices.IndexFunc(writes, func(r string) bool { return strings.HasPrefix(r, "DELETE") })
	if slices.ContainsFunc(writes[lastAdd:], func(r string) bool { return strings.HasPrefix(r, "POST") }) {
		t.Error("something was removed before the last addition")
	}
	if len(got.Entries) != 5475 {
		t.Errorf("%d entries, want 5475", len(got.Entries))
	}
}

func TestASetOfOursHoldsNoExceptionsAndNoAliases(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx, scope := t.Context(), pve.ClusterFirewall()
	want := egress.Set{Name: "meddled", Entries: []netip.Prefix{netip.MustParsePrefix("203.0.113.0/24"), netip.MustParsePrefix("2001:db8::/32")}}
	if _, err := egress.SyncSet(ctx, s.client, scope, nil, want); err != nil {
		t.Fatal(err)
	}
	for _, entry := range []pve.FirewallIPSetEntry{{CIDR: "203.0.113.7", NoMatch: true}, {CIDR: "198.51.100.0/24"}} {
		if err := s.client.AddFirewallIPSetEntry(ctx, scope, "meddled", entry); err != nil {
			t.Fatal(err)
		}
	}
	got, err := egress.SyncSet(ctx, s.client, scope, nil, want)
	if err != nil || len(got.Foreign) > 0 || len(got.Entries) != 2 {
		t.Errorf("%+v, %v", got, err)
	}
}
