package sandbox_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/control"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// managed gives the process the lab's management network.
func managed(w *world) option {
	return func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) {
		s.Management = []netip.Prefix{w.lab.Management()}
	}
}

// answers is a resolver that knows these names.
func answers(names map[string][]string) option {
	return func(_ *pve.Config, _ *sandbox.Settings, o *sandbox.Options) {
		o.Lookup = func(_ context.Context, domain string) ([]netip.Addr, error) {
			var out []netip.Addr
			for _, a := range names[domain] {
				out = append(out, netip.MustParseAddr(a))
			}
			if out == nil {
				return nil, fmt.Errorf("lookup %s: no such host", domain)
			}
			return out, nil
		}
	}
}

func webGroup(name string) sandbox.GroupSpec {
	return sandbox.GroupSpec{Name: name, Mode: sandbox.ModeWeb, Resolvers: []netip.Addr{netip.MustParseAddr("10.77.0.1")}}
}

// groups are the names of the groups and sets on the server.
func (w *world) firewallNames(p *process) (out []string) {
	w.t.Helper()
	groups, err := p.client.FirewallGroups(w.context())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, g := range groups {
		out = append(out, "group "+g.Group)
	}
	sets, err := p.client.FirewallIPSets(w.context(), pve.ClusterFirewall())
	if err != nil {
		w.t.Fatal(err)
	}
	for _, s := range sets {
		out = append(out, "set "+s.Name)
	}
	return out
}

func TestAGroupLivesFromItsModeToItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	ctx := w.context()
	spec := webGroup("agents")
	g, err := p.CreateGroup(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	want, err := p.RenderGroup(ctx, spec, nil)
	if err != nil || !slices.Equal(g.Rules, want.Rules) {
		t.Fatalf("%v\n%v", err, egress.RuleDifferences(want.Rules, g.Rules))
	}
	spec.Mode = sandbox.ModeAllowlist
	spec.Allow = []egress.Allow{{To: "203.0.113.0/24", Ports: "443"}, {To: "10.5.0.0/16", Ports: "5432"}}
	if g, err = p.UpdateGroup(ctx, spec, g); err != nil {
		t.Fatal(err)
	}
	read, err := p.ReadGroup(ctx, "agents")
	if err != nil || !slices.Equal(read.Rules, g.Rules) || len(read.Sets) != 2 {
		t.Errorf("%+v, %v", read, err)
	}
	spec.Mode, spec.Allow = sandbox.ModeOff, nil
	if _, err = p.UpdateGroup(ctx, spec, read); err != nil {
		t.Fatal(err)
	}
	if names := w.firewallNames(p); !slices.Equal(names, []string{"group agents"}) {
		t.Errorf("sets that no rule names are left: %v", names)
	}
	if err := p.DeleteGroup(ctx, "agents"); err != nil {
		t.Fatal(err)
	}
	if names := w.firewallNames(p); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
	if _, err := p.ReadGroup(ctx, "agents"); !errors.Is(err, sandbox.ErrGone) {
		t.Errorf("got %v, want gone", err)
	}
	if err := p.DeleteGroup(ctx, "agents"); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestAGroupOfAHundredRulesIsWithinItsFigures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	spec := sandbox.GroupSpec{Name: "hundred", Rules: egress.ManagementRules([]netip.Prefix{w.lab.Management()}, 0)}
	for i := len(spec.Rules); i < 100; i++ {
		spec.Rules = append(spec.Rules, egress.Rule{Type: egress.Out, Action: egress.Accept, Enabled: true, Proto: "tcp", DPort: fmt.Sprint(i), Dest: "203.0.113.0/24"})
	}
	var g sandbox.FirewallGroup
	n, list := w.requests(func() {
		var err error
		if g, err = p.CreateGroup(w.context(), spec); err != nil {
			t.Fatal(err)
		}
	})
	if n > 103 {
		t.Errorf("the first write took %d requests: %v", n, list)
	}
	spec.Rules[50].DPort = "5050"
	if n, list = w.requests(func() {
		var err error
		if g, err = p.UpdateGroup(w.context(), spec, g); err != nil {
			t.Fatal(err)
		}
	}); n > 3 {
		t.Errorf("one changed rule took %d requests: %v", n, list)
	}
	if !slices.Equal(g.Rules, spec.Rules) {
		t.Errorf("%v", egress.RuleDifferences(spec.Rules, g.Rules))
	}
}

func TestAGroupThatExistsIsNeverTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	ctx := w.context()
	if err := p.client.CreateFirewallGroup(ctx, "theirs", "somebody's"); err != nil {
		t.Fatal(err)
	}
	_, err := p.CreateGroup(ctx, webGroup("theirs"))
	if !errors.Is(err, sandbox.ErrGroupExists) || !strings.Contains(err.Error(), "terraform import") {
		t.Errorf("got %v, want an error with the import", err)
	}
	if rules, err := p.client.FirewallRules(ctx, pve.GroupFirewall("theirs")); err != nil || len(rules) > 0 {
		t.Errorf("their group was written to: %v, %v", rules, err)
	}
	if err := p.client.CreateFirewallIPSet(ctx, pve.ClusterFirewall(), "mine-allow-tcp-443", ""); err != nil {
		t.Fatal(err)
	}
	spec := webGroup("mine")
	spec.Allow = []egress.Allow{{To: "198.51.100.0/24", Ports: "443"}}
	if _, err := p.CreateGroup(ctx, spec); !errors.Is(err, sandbox.ErrGroupExists) || !strings.Contains(err.Error(), "mine-allow-tcp-443") {
		t.Errorf("got %v, want an error that names the set", err)
	}
}

func TestAGroupInUseIsNotDeletedAndItsUsersAreNamed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	ctx := w.context()
	if _, err := p.CreateGroup(ctx, webGroup("used")); err != nil {
		t.Fatal(err)
	}
	node := w.lab.Nodes()[0]
	reference := pve.FirewallRule{Type: "group", Action: "used", Enable: false}
	for _, scope := range []pve.FirewallScope{pve.LXCFirewall(node, lab.TemplateID), pve.NodeFirewall(node)} {
		if err := p.client.CreateFirewallRule(ctx, scope, reference, ""); err != nil {
			t.Fatal(err)
		}
	}
	err := p.DeleteGroup(ctx, "used")
	if !errors.Is(err, sandbox.ErrGroupInUse) || !strings.Contains(err.Error(), "container 9000") || !strings.Contains(err.Error(), "node "+node) {
		t.Errorf("got %v, want an error that names the container and the node", err)
	}
	if g, err := p.ReadGroup(ctx, "used"); err != nil || len(g.Rules) == 0 {
		t.Errorf("the group was changed: %+v, %v", g, err)
	}
	// What can't be read isn't shown to be free of it.
	w.inject(control.Fault{Method: "GET", Pattern: "/lxc/9000/firewall/rules$", Count: -1, Kind: control.Status, Status: 403, Reason: "Permission check failed (/vms/9000, VM.Audit)"})
	if err := p.DeleteGroup(ctx, "used"); !errors.Is(err, sandbox.ErrGroupInUse) {
		t.Errorf("got %v, want a refusal", err)
	}
}

func TestAListThatLocksUsOutIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	ours := w.lab.Management().String()
	in := func(action, from string) egress.Rule {
		return egress.Rule{Type: egress.In, Action: action, Enabled: true, Proto: "tcp", DPort: "22", Source: from}
	}
	out := egress.Rule{Type: egress.Out, Action: egress.Accept, Enabled: true}
	off := in(egress.Accept, ours)
	off.Enabled = false
	for _, c := range []struct {
		name   string
		rules  []egress.Rule
		locked bool
	}{
		{"accepted", []egress.Rule{in(egress.Accept, ours), out}, false},
		{"accepted from everywhere", []egress.Rule{in(egress.Accept, "")}, false},
		{"not mentioned", []egress.Rule{out}, true},
		{"dropped first", []egress.Rule{in(egress.Drop, "10.0.0.0/8"), in(egress.Accept, ours)}, true},
		{"accepted by a rule that is off", []egress.Rule{off}, true},
		{"accepted by an alias nobody here knows", []egress.Rule{in(egress.Accept, "admins")}, true},
	} {
		problems := p.CheckGroup(w.context(), sandbox.GroupSpec{Name: "list", Rules: c.rules})
		locked := slices.ContainsFunc(problems, func(p sandbox.Problem) bool { return p.Summary == "The list would lock us out" })
		if locked != c.locked {
			t.Errorf("%s: refused=%v, want %v: %v", c.name, locked, c.locked, problems)
		}
		if _, err := p.CreateGroup(w.context(), sandbox.GroupSpec{Name: "list", Rules: c.rules}); (err != nil) != c.locked {
			t.Errorf("%s: create: %v", c.name, err)
		} else if err == nil {
			if err := p.DeleteGroup(w.context(), "list"); err != nil {
				t.Error(err)
			}
		}
	}
	if names := w.firewallNames(p); len(names) > 0 {
		t.Errorf("left: %v", names)
	}
}

func TestAModeWithoutManagementNetworksIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	nowhere := func(_ *pve.Config, s *sandbox.Settings, _ *sandbox.Options) { s.Management = nil }
	if _, err := w.process(nowhere).CreateGroup(w.context(), webGroup("dark")); err == nil || !strings.Contains(err.Error(), "management_cidrs") {
		t.Errorf("got %v, want an error that names management_cidrs", err)
	}
}

func TestDomainsArePinnedAtApply(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	names := map[string][]string{"api.example.com": {"203.0.113.5", "2001:db8:113::5"}, "evil.example.com": {"169.254.169.254"}, "lan.example.com": {"203.0.113.5", "192.168.1.1"}}
	p := w.process(managed(w), answers(names))
	ctx := w.context()
	spec := sandbox.GroupSpec{Name: "domains", Mode: sandbox.ModeAllowlist, Resolvers: []netip.Addr{netip.MustParseAddr("10.77.0.1")}, Allow: []egress.Allow{{To: "api.example.com", Ports: "443", Resolve: true}}}
	g, err := p.CreateGroup(ctx, spec)
	if err != nil {
		t.Fatal(err)
	}
	if len(g.Sets) != 1 || fmt.Sprint(g.Sets[0].Entries) != "[203.0.113.5/32 2001:db8:113::5/128]" {
		t.Errorf("pinned: %v", g.Sets)
	}
	names["api.example.com"] = []string{"203.0.113.77"}
	if g, err = p.UpdateGroup(ctx, spec, g); err != nil || fmt.Sprint(g.Sets[0].Entries) != "[203.0.113.5/32 2001:db8:113::5/128]" {
		t.Errorf("what was pinned moved without being asked to: %v, %v", g.Sets, err)
	}
	g.Resolved = nil
	if g, err = p.UpdateGroup(ctx, spec, g); err != nil || fmt.Sprint(g.Sets[0].Entries) != "[203.0.113.77/32]" {
		t.Errorf("looked up again: %v, %v", g.Sets, err)
	}
	for _, name := range []string{"evil.example.com", "lan.example.com", "nosuch.example.com"} {
		spec.Allow[0].To = name
		if _, err := p.UpdateGroup(ctx, spec, g); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want a refusal", name, err)
		}
	}
	if read, err := p.ReadGroup(ctx, "domains"); err != nil || fmt.Sprint(read.Sets[0].Entries) != "[203.0.113.77/32]" {
		t.Errorf("a refusal changed the set: %v, %v", read.Sets, err)
	}
}

// At each request of a creation something goes wrong. Either the group is there as
// it was wanted, or there is an error, and a deletion and a second creation go
// through.
func TestFaultAtEachRequestOfAGroupIsAnErrorOrASuccess(t *testing.T) {
	t.Parallel()
	for _, bad := range badnesses() {
		t.Run(bad.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			spec := webGroup("victim")
			spec.Allow = []egress.Allow{{To: "198.51.100.0/24", Ports: "8443"}}
			w.loop(t, bad, func(t *testing.T, n int) {
				p := w.process(managed(w), impatient)
				var g sandbox.FirewallGroup
				var err error
				w.at(bad, n, func() { g, err = p.CreateGroup(w.context(), spec) })
				calm := w.process(managed(w))
				want, rerr := calm.RenderGroup(w.context(), spec, nil)
				if rerr != nil {
					t.Fatal(rerr)
				}
				if err == nil {
					read, rerr := calm.ReadGroup(w.context(), "victim")
					if rerr != nil || !slices.Equal(read.Rules, want.Rules) || len(read.Sets) != 1 {
						t.Errorf("a success, but %v %v", rerr, egress.RuleDifferences(want.Rules, read.Rules))
					}
				}
				if g.Name == "" && !errors.Is(err, sandbox.ErrGroupExists) && slices.Contains(w.firewallNames(calm), "group victim") && bad.fault.Count != -1 {
					t.Errorf("a group was made and isn't known: %v", err)
				}
				if derr := calm.DeleteGroup(w.context(), "victim"); derr != nil {
					t.Fatalf("after %v: delete: %v", err, derr)
				}
				if left := w.firewallNames(calm); len(left) > 0 {
					t.Errorf("after %v, left: %v", err, left)
				}
			})
		})
	}
}
