package sandbox_test

import (
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

func guard() sandbox.GuardSpec {
	return sandbox.GuardSpec{NodeName: "pve1", Bridge: "vmbr1", DHCP: true, Resolvers: []netip.Addr{netip.MustParseAddr("10.77.0.1")}}
}

// nodeRules are the rules of the first node as lines.
func (w *world) nodeRules(p *process) []string {
	w.t.Helper()
	rules, err := p.client.FirewallRules(w.context(), pve.NodeFirewall("pve1"))
	if err != nil {
		w.t.Fatal(err)
	}
	var out []string
	for _, r := range egress.FromServer(rules) {
		out = append(out, r.String())
	}
	return out
}

func (w *world) foreignRule(p *process, comment string) {
	w.t.Helper()
	rule := pve.FirewallRule{Type: "in", Action: "ACCEPT", Enable: true, Proto: "tcp", DPort: "9100", Source: "10.0.0.0/8", Log: "info", Comment: comment}
	if err := p.client.CreateFirewallRule(w.context(), pve.NodeFirewall("pve1"), rule, ""); err != nil {
		w.t.Fatal(err)
	}
}

func TestAGuardStandsOnTopAndLeavesForeignRulesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	w.foreignRule(p, "theirs 2")
	w.foreignRule(p, "theirs 1")
	before := w.nodeRules(p)
	g, err := p.CreateGuard(w.context(), guard())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"in ACCEPT udp on vmbr1 port 67,547 # sandbox_node_guard vmbr1: DHCP",
		"in ACCEPT DNS on vmbr1 to 10.77.0.1 # sandbox_node_guard vmbr1: DNS to the resolver",
		"in DROP on vmbr1 # sandbox_node_guard vmbr1: the rest of the node",
	}
	if got := w.nodeRules(p); !slices.Equal(got, append(slices.Clone(want), before...)) || g.Above != 0 || len(g.Rules) != 3 {
		t.Errorf("rules:\n%s", strings.Join(got, "\n"))
	}
	// Somebody puts an ACCEPT above it: that is drift, and is repaired by moving, not by touching theirs.
	w.foreignRule(p, "theirs 0")
	read, err := p.ReadGuard(w.context(), "pve1", "vmbr1")
	if err != nil || read.Above != 1 {
		t.Errorf("%+v, %v", read, err)
	}
	n, list := w.requests(func() {
		if _, err := p.UpdateGuard(w.context(), guard()); err != nil {
			t.Fatal(err)
		}
	})
	theirs := append([]string{strings.Replace(before[0], "theirs 1", "theirs 0", 1)}, before...)
	if got := w.nodeRules(p); !slices.Equal(got, append(slices.Clone(want), theirs...)) {
		t.Errorf("rules:\n%s", strings.Join(got, "\n"))
	}
	if writes := slices.DeleteFunc(list, func(r string) bool { return strings.HasPrefix(r, "GET") }); len(writes) != 1 {
		t.Errorf("%d writes of %d requests: %v", len(writes), n, writes)
	}
	if err := p.DeleteGuard(w.context(), "pve1", "vmbr1"); err != nil {
		t.Fatal(err)
	}
	if got := w.nodeRules(p); !slices.Equal(got, theirs) {
		t.Errorf("after the end:\n%s", strings.Join(got, "\n"))
	}
	if err := p.DeleteGuard(w.context(), "pve1", "vmbr1"); err != nil {
		t.Errorf("deleting what is gone: %v", err)
	}
}

func TestTwoGuardsOfANodeDontFight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	subnet := sandbox.GuardSpec{NodeName: "pve1", Subnet: netip.MustParsePrefix("10.99.0.0/16"), DHCP: true, Resolvers: []netip.Addr{netip.MustParseAddr("10.99.0.1"), netip.MustParseAddr("fd00::1")},
		Allow: []egress.Allow{{Ports: "3128", Protocol: "tcp"}}}
	for _, spec := range []sandbox.GuardSpec{guard(), subnet} {
		if _, err := p.CreateGuard(w.context(), spec); err != nil {
			t.Fatal(err)
		}
	}
	rules := w.nodeRules(p)
	for _, spec := range []sandbox.GuardSpec{guard(), subnet} {
		if g, err := p.UpdateGuard(w.context(), spec); err != nil || g.Above != 0 {
			t.Errorf("%s: %+v, %v", spec.Key(), g, err)
		}
	}
	if got := w.nodeRules(p); !slices.Equal(got, rules) {
		t.Errorf("they moved each other:\n%s\nfrom\n%s", strings.Join(got, "\n"), strings.Join(rules, "\n"))
	}
	if !slices.Contains(rules, "in ACCEPT udp from 0.0.0.0,10.99.0.0/16 from port 68 port 67 # sandbox_node_guard 10.99.0.0/16: DHCP") {
		t.Errorf("a client without an address isn't let in to DHCP:\n%s", strings.Join(rules, "\n"))
	}
}

func TestAGuardThatExistsIsNeverTakenOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	if _, err := p.CreateGuard(w.context(), guard()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CreateGuard(w.context(), guard()); !errors.Is(err, sandbox.ErrGuardExists) || !strings.Contains(err.Error(), "pve1/vmbr1") {
		t.Errorf("got %v, want an error with the import", err)
	}
}

func TestAGuardThatWouldLockSomebodyOutIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{Nodes: 2})
	p := w.process()
	for _, c := range []struct {
		name, says string
		change     func(*sandbox.GuardSpec)
	}{
		{"the node's own bridge", "cut nodes off", func(s *sandbox.GuardSpec) { s.Bridge = "vmbr0" }},
		{"a network with nodes in it", "cut nodes off", func(s *sandbox.GuardSpec) { s.Bridge, s.Subnet = "", netip.MustParsePrefix("10.10.0.0/16") }},
		{"a network with us in it", "lock us out", func(s *sandbox.GuardSpec) { s.Bridge, s.Subnet = "", netip.MustParsePrefix("127.0.0.0/8") }},
		{"everybody", "everybody", func(s *sandbox.GuardSpec) { s.Bridge, s.Subnet = "", netip.MustParsePrefix("0.0.0.0/0") }},
		{"host bits", "10.99.0.0/16", func(s *sandbox.GuardSpec) { s.Bridge, s.Subnet = "", netip.MustParsePrefix("10.99.0.1/16") }},
		{"nothing said", "One of bridge and subnet", func(s *sandbox.GuardSpec) { s.Bridge = "" }},
		{"all let in", "would open the node", func(s *sandbox.GuardSpec) { s.Allow = []egress.Allow{{}} }},
		{"no bridge's name", "no bridge's name", func(s *sandbox.GuardSpec) { s.Bridge = "a/b" }},
	} {
		spec := guard()
		c.change(&spec)
		if _, err := p.CreateGuard(w.context(), spec); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want %q", c.name, err, c.says)
		}
	}
	if err := p.client.UpdateFirewallOptions(w.context(), pve.NodeFirewall("pve1"), pve.LXCUpdate{Set: map[string]string{"enable": "0"}}); err != nil {
		t.Fatal(err)
	}
	if _, err := p.CreateGuard(w.context(), guard()); err == nil || !strings.Contains(err.Error(), "is off") {
		t.Errorf("a node whose firewall is off: %v", err)
	}
	if rules := w.nodeRules(p); len(rules) > 0 {
		t.Errorf("rules were written: %v", rules)
	}
}

func TestAManagementSetThatHoldsSandboxesWarns(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	if _, err := egress.SyncSet(w.context(), p.client, pve.ClusterFirewall(), nil, egress.Set{Name: "management", Entries: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8")}}); err != nil {
		t.Fatal(err)
	}
	spec := guard()
	spec.Bridge, spec.Subnet = "", netip.MustParsePrefix("10.99.0.0/16")
	problems, err := p.CheckGuard(w.context(), spec)
	if err != nil || !slices.ContainsFunc(problems, func(p sandbox.Problem) bool { return p.Warning && strings.Contains(p.Summary, "management set") }) {
		t.Errorf("%v, %v", problems, err)
	}
}

func TestWithoutThePrivilegeTheErrorSaysWhatAnAdministratorMustRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	w.inject(control.Fault{Method: "POST", Pattern: "^/nodes/pve1/firewall/rules$", Count: -1, Kind: control.Status, Status: 403, Reason: "Permission check failed (/nodes/pve1, Sys.Modify)"})
	_, err := p.CreateGuard(w.context(), guard())
	if err == nil {
		t.Fatal("no error")
	}
	drop := strings.Index(err.Error(), "pvesh create /nodes/pve1/firewall/rules --type in --action DROP --enable 1 --iface vmbr1 --comment 'sandbox_node_guard vmbr1: the rest of the node'")
	accept := strings.Index(err.Error(), "--proto udp --iface vmbr1 --dport 67,547")
	if drop < 0 || accept < drop {
		t.Errorf("the commands, the last rule first, aren't in the error:\n%v", err)
	}
}

// A stranger who writes at the same time loses nothing.
func TestAStrangersRuleOfTheSameMomentIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process()
	id := w.inject(control.Fault{Method: "POST", Pattern: "^/nodes/pve1/firewall/rules$", Nth: 2, Kind: control.Hold})
	done := make(chan error, 1)
	go func() {
		_, err := p.CreateGuard(w.context(), guard())
		done <- err
	}()
	if _, err := w.lab.Control().WaitHeld(w.context(), id, 1, 10e9); err != nil {
		t.Fatal(err)
	}
	w.foreignRule(w.process(), "theirs")
	if err := w.lab.Control().Release(w.context(), id); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	rules := w.nodeRules(p)
	if len(rules) != 4 || !strings.Contains(rules[3], "theirs") {
		t.Errorf("rules:\n%s", strings.Join(rules, "\n"))
	}
}

func TestTheDatacentersFirewallIsTurnedOnWhenNobodyIsLockedOut(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	off(t, w, p)
	state, err := p.EnableDatacenter(w.context(), sandbox.DatacenterSpec{})
	if err != nil || !state.Enabled {
		t.Fatalf("%+v, %v", state, err)
	}
	n, list := w.requests(func() {
		if _, err := p.EnableDatacenter(w.context(), sandbox.DatacenterSpec{}); err != nil {
			t.Error(err)
		}
	})
	if n != 1 {
		t.Errorf("one that is on took %v", list)
	}
	if err := p.DisableDatacenter(w.context()); err != nil {
		t.Error(err)
	}
	if state, err := p.ReadDatacenter(w.context()); err != nil || state.Enabled {
		t.Errorf("%+v, %v", state, err)
	}
}

// off turns the datacenter's firewall off.
func off(t *testing.T, w *world, p *process) {
	t.Helper()
	if err := p.client.UpdateFirewallOptions(w.context(), pve.ClusterFirewall(), pve.LXCUpdate{Set: map[string]string{"enable": "0"}}); err != nil {
		t.Fatal(err)
	}
}

func TestTheDatacentersFirewallStaysOffWhileSomebodyWouldBeLockedOut(t *testing.T) {
	t.Parallel()
	local, far := netip.MustParseAddr("10.10.10.50"), netip.MustParseAddr("198.51.100.9")
	node, cluster := pve.NodeFirewall("pve1"), pve.ClusterFirewall()
	for _, c := range []struct {
		name    string
		source  netip.Addr
		accept  []int
		says    string // "" where it is turned on
		prepare func(w *world, p *process) error
	}{
		{"from the node's own network", local, nil, "", nil},
		{"from afar", far, nil, "no rule lets 198.51.100.9 in", nil},
		{"from afar, in the management set", far, nil, "", func(w *world, p *process) error {
			_, err := egress.SyncSet(w.context(), p.client, cluster, nil, egress.Set{Name: "management", Entries: []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}})
			return err
		}},
		{"from afar, by a rule of the datacenter", far, nil, "", func(w *world, p *process) error {
			for _, port := range []string{"8006", "22"} {
				if err := p.client.CreateFirewallRule(w.context(), cluster, pve.FirewallRule{Type: "in", Action: "ACCEPT", Enable: true, Proto: "tcp", DPort: port, Source: "198.51.100.9"}, ""); err != nil {
					return err
				}
			}
			return nil
		}},
		{"near, but the node drops it", local, nil, "in DROP tcp port 8006", func(w *world, p *process) error {
			return p.client.CreateFirewallRule(w.context(), node, pve.FirewallRule{Type: "in", Action: "DROP", Enable: true, Proto: "tcp", DPort: "8006"}, "")
		}},
		{"near, and a guard is there", local, nil, "", func(w *world, p *process) error { _, err := p.CreateGuard(w.context(), guard()); return err }},
		{"a stranger's container would be filtered", local, nil, "container 9000", strangersFirewall},
		{"a stranger's container may be filtered", local, []int{lab.TemplateID}, "", strangersFirewall},
		{"a stranger's container loses nothing", local, nil, "", func(w *world, p *process) error {
			if err := strangersFirewall(w, p); err != nil {
				return err
			}
			return p.client.UpdateFirewallOptions(w.context(), pve.LXCFirewall("pve1", lab.TemplateID), pve.LXCUpdate{Set: map[string]string{"policy_in": "ACCEPT"}})
		}},
		{"a guest can't be read", local, nil, "can't be seen", func(w *world, _ *process) error {
			w.inject(control.Fault{Method: "GET", Pattern: "/lxc/9000/config$", Count: -1, Kind: control.Status, Status: 403, Reason: "Permission check failed (/vms/9000, VM.Audit)"})
			return nil
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, lab.Options{})
			p := w.process(managed(w))
			off(t, w, p)
			if c.prepare != nil {
				if err := c.prepare(w, p); err != nil {
					t.Fatal(err)
				}
			}
			_, err := p.EnableDatacenter(w.context(), sandbox.DatacenterSpec{Source: c.source, AcceptGuests: c.accept})
			state, rerr := p.ReadDatacenter(w.context())
			if rerr != nil || state.Enabled != (c.says == "") {
				t.Errorf("on=%v, %v", state.Enabled, rerr)
			}
			if c.says == "" {
				if err != nil {
					t.Error(err)
				}
				return
			}
			if !errors.Is(err, sandbox.ErrLockout) || !strings.Contains(fmt.Sprint(err), c.says) {
				t.Errorf("got %v, want %q", err, c.says)
			}
		})
	}
}

// strangersFirewall turns the template's own firewall on, at its interface and as
// a whole.
func strangersFirewall(w *world, p *process) error {
	cfg, err := p.client.LXCConfig(w.context(), "pve1", lab.TemplateID)
	if err != nil {
		return err
	}
	net0 := cfg.Nets()[0].With("firewall", "1").String()
	if err := p.client.UpdateLXC(w.context(), "pve1", lab.TemplateID, pve.LXCUpdate{Set: map[string]string{"net0": net0}}); err != nil {
		return err
	}
	return p.client.UpdateFirewallOptions(w.context(), pve.LXCFirewall("pve1", lab.TemplateID), pve.LXCUpdate{Set: map[string]string{"enable": "1"}})
}

func TestTheSwitchIsNotTurnedOffWhileGuestsAreFiltered(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	if err := strangersFirewall(w, p); err != nil {
		t.Fatal(err)
	}
	if err := p.DisableDatacenter(w.context()); !errors.Is(err, sandbox.ErrLockout) || !strings.Contains(err.Error(), "container 9000") {
		t.Errorf("got %v, want a refusal that names the container", err)
	}
}

func TestASwitchThatDoesNotTurnIsNoSuccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, lab.Options{})
	p := w.process(managed(w))
	off(t, w, p)
	body := `{"data":null}`
	w.inject(control.Fault{Method: "PUT", Pattern: "^/cluster/firewall/options$", Count: -1, Kind: control.Status, Status: 200, Reason: "OK", Body: &body})
	if _, err := p.EnableDatacenter(w.context(), sandbox.DatacenterSpec{}); err == nil || !strings.Contains(err.Error(), "all the same") {
		t.Errorf("got %v, want an error", err)
	}
}
