package egress_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

var static = egress.NIC{Static: true}

func guestPolicy(t *testing.T, mode egress.Mode, allow ...egress.Allow) egress.Guest {
	t.Helper()
	p := policy(mode)
	p.Allow = append(p.Allow, allow...)
	g, err := egress.RenderGuest(p, static)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// many are more networks than stand in a guest's rules themselves.
func many(ports string) []egress.Allow {
	var out []egress.Allow
	for i := range 70 {
		out = append(out, egress.Allow{To: fmt.Sprintf("203.0.%d.0/24", i), Ports: ports})
	}
	return out
}

func TestFewNetworksStandInTheRulesAndManyInASet(t *testing.T) {
	t.Parallel()
	few := guestPolicy(t, egress.Allowlist, egress.Allow{To: "203.0.112.7", Ports: "8443"})
	if len(few.Sets) != 0 || !slices.ContainsFunc(few.Rules, func(r egress.Rule) bool {
		return r.Action == egress.Accept && r.Dest == "203.0.112.7" && r.DPort == "8443"
	}) {
		t.Errorf("few: sets %v, rules %v", few.Sets, few.Rules)
	}
	lots := guestPolicy(t, egress.Allowlist, many("8443")...)
	if !slices.ContainsFunc(lots.Sets, func(s egress.Set) bool { return s.Name == "sbx-allow-tcp-8443" && len(s.Entries) == 70 }) {
		t.Errorf("many: sets %v", lots.Sets)
	}
	s := newServer(t)
	for _, want := range []egress.Guest{few, lots, few} { // and one becomes the other
		s.syncGuest(nil, want)
	}
}

func (s *server) syncGuest(have *egress.Guest, want egress.Guest) (egress.Guest, bool) {
	s.t.Helper()
	got, written, err := egress.SyncGuest(s.t.Context(), s.client, s.node, lab.TemplateID, have, want)
	if err != nil {
		s.t.Fatal(err)
	}
	if d := egress.Differences(want, got); len(d) > 0 {
		s.t.Errorf("differences: %v", d)
	}
	return got, written
}

func TestAFreshGuestIsWrittenWithoutBeingReadFirst(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	want := guestPolicy(t, egress.NAT)
	seen := s.requests(func() { s.syncGuest(egress.Fresh(), want) })
	if most := len(want.Rules) + 4; len(seen) > most {
		t.Errorf("%d requests, want at most %d (switches, rules, three reads): %v", len(seen), most, seen)
	}
	if _, written := s.syncGuest(nil, want); written {
		t.Error("what is as it should be was written again")
	}
}

func TestWhatATemplateBroughtAlongIsReplaced(t *testing.T) {
	t.Parallel()
	for _, have := range []*egress.Guest{nil, egress.Fresh()} {
		s := newServer(t)
		ctx, scope := t.Context(), pve.LXCFirewall(s.node, lab.TemplateID)
		for _, r := range []pve.FirewallRule{{Type: "out", Action: "ACCEPT", Enable: true}, {Type: "group", Action: "nosuch", Enable: true}} {
			if err := s.client.CreateFirewallRule(ctx, scope, r, ""); err != nil {
				t.Fatal(err)
			}
		}
		if err := s.client.CreateFirewallIPSet(ctx, scope, "ipfilter-net0", ""); err != nil {
			t.Fatal(err)
		}
		if err := s.client.AddFirewallIPSetEntry(ctx, scope, "ipfilter-net0", pve.FirewallIPSetEntry{CIDR: "10.0.0.0/8"}); err != nil {
			t.Fatal(err)
		}
		if err := s.client.UpdateFirewallOptions(ctx, scope, pve.LXCUpdate{Set: map[string]string{"policy_out": "ACCEPT", "ipfilter": "0", "radv": "1"}}); err != nil {
			t.Fatal(err)
		}
		want := guestPolicy(t, egress.Allowlist, egress.Allow{To: "10.1.0.0/16", Ports: "5432"})
		s.syncGuest(have, want)
		got, err := egress.ReadGuest(ctx, s.client, s.node, lab.TemplateID, true)
		if err != nil {
			t.Fatal(err)
		}
		if d := egress.Differences(want, got); len(d) > 0 {
			t.Errorf("on the server: %v", d)
		}
	}
}

func TestEachKindOfDriftIsNamed(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	ctx, scope := t.Context(), pve.LXCFirewall(s.node, lab.TemplateID)
	want := guestPolicy(t, egress.Allowlist, many("443")...)
	for _, c := range []struct {
		name, says string
		meddle     func() error
	}{
		{"switched off", "enable is 0", func() error {
			return s.client.UpdateFirewallOptions(ctx, scope, pve.LXCUpdate{Set: map[string]string{"enable": "0"}})
		}},
		{"policy opened", "policy_out is ACCEPT", func() error {
			return s.client.UpdateFirewallOptions(ctx, scope, pve.LXCUpdate{Delete: []string{"policy_out"}})
		}},
		{"spoofing allowed", "macfilter is 0", func() error {
			return s.client.UpdateFirewallOptions(ctx, scope, pve.LXCUpdate{Set: map[string]string{"macfilter": "0"}})
		}},
		{"a rule on top", "rule not ours: out ACCEPT", func() error {
			return s.client.CreateFirewallRule(ctx, scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true}, "")
		}},
		{"rules reordered", "another order", func() error { return s.client.MoveFirewallRule(ctx, scope, 3, 0, "") }},
		{"a rule switched off", "rule missing", func() error {
			return s.client.ReplaceFirewallRule(ctx, scope, 0, pve.FirewallRule{Type: "in", Action: "ACCEPT"}, "")
		}},
		{"a set widened", "too many", func() error {
			return s.client.AddFirewallIPSetEntry(ctx, scope, "sbx-allow-tcp-443", pve.FirewallIPSetEntry{CIDR: "1.0.0.0/8"})
		}},
		{"a set of somebody else's", "not ours", func() error { return s.client.CreateFirewallIPSet(ctx, scope, "ipfilter-net0", "") }},
	} {
		s.syncGuest(nil, want)
		if err := c.meddle(); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		got, err := egress.ReadGuest(ctx, s.client, s.node, lab.TemplateID, true)
		if err != nil {
			t.Fatal(err)
		}
		if d := strings.Join(egress.Differences(want, got), "; "); !strings.Contains(d, c.says) {
			t.Errorf("%s: %q doesn't say %q", c.name, d, c.says)
		}
	}
	s.syncGuest(nil, want)
}

// At each request of a write something goes wrong: either there is an error, or
// the wall stands as it was wanted. It is never open and called a success.
func TestNoFaultMakesAnOpenGuestASuccess(t *testing.T) {
	t.Parallel()
	for _, kind := range []control.Fault{
		{Kind: control.Status, Status: 500, Reason: "cfs-lock 'file-pve' error: got lock request timeout"},
		{Kind: control.Status, Status: 403, Reason: "Permission check failed (/vms/9000, VM.Config.Network)"},
		{Kind: control.StatusAfter, Status: 596, Reason: "Broken pipe"},
		{Kind: control.DropAfter},
	} {
		t.Run(kind.Kind+" "+kind.Reason, func(t *testing.T) {
			t.Parallel()
			s := newServer(t)
			want := guestPolicy(t, egress.Allowlist)
			for n := 1; n < 60; n++ {
				if err := s.client.UpdateFirewallOptions(t.Context(), pve.LXCFirewall(s.node, lab.TemplateID), pve.LXCUpdate{Set: map[string]string{"enable": "0"}}); err != nil {
					t.Fatal(err)
				}
				s.sync(pve.LXCFirewall(s.node, lab.TemplateID), nil, nil)
				kind.Pattern, kind.Nth = "/firewall/", n
				s.inject(kind)
				got, _, err := egress.SyncGuest(t.Context(), s.client, s.node, lab.TemplateID, nil, want)
				fired := false
				states, ferr := s.lab.Control().Faults(t.Context())
				if ferr != nil {
					t.Fatal(ferr)
				}
				for _, f := range states {
					fired = fired || f.Fired > 0
				}
				if rerr := s.lab.Control().Reset(t.Context()); rerr != nil {
					t.Fatal(rerr)
				}
				on, rerr := egress.ReadGuest(t.Context(), s.client, s.node, lab.TemplateID, true)
				if rerr != nil {
					t.Fatal(rerr)
				}
				if err == nil && (len(egress.Differences(want, on)) > 0 || len(egress.Differences(want, got)) > 0) {
					t.Errorf("request %d: a success, but %v", n, egress.Differences(want, on))
				}
				if !fired {
					return
				}
			}
			t.Error("still hitting requests")
		})
	}
}

func TestAServerThatTakesNothingIsAnErrorNotASuccess(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	s.inject(control.Fault{Method: "PUT", Pattern: "/firewall/options$", Count: -1, Kind: control.Status, Status: 200, Reason: "OK", Body: ptr(`{"data":null}`)})
	_, _, err := egress.SyncGuest(t.Context(), s.client, s.node, lab.TemplateID, egress.Fresh(), guestPolicy(t, egress.Off))
	var incomplete *egress.IncompleteError
	if !errors.As(err, &incomplete) || !strings.Contains(err.Error(), "enable is 0") {
		t.Errorf("got %v, want an error that names what is missing", err)
	}
}

func ptr[T any](v T) *T { return &v }
