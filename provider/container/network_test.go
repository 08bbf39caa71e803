package container_test

import (
	"context"
	"net/netip"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/acctest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

// firewallOf is where the container's own firewall is.
func firewallOf(t *testing.T, r *protocoltest.Resource) pve.FirewallScope {
	t.Helper()
	return pve.LXCFirewall(r.Text(t, "node_name"), r.VMID(t))
}

func TestLeavingTheModeOutNeverMeansUnfiltered(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	for path, want := range map[string]any{"network.mode": "nat", "network.proof": "guarded", "posture.proof": "readback"} {
		if got := r.Get(t, path); got != want {
			t.Errorf("%s is %v, want %v", path, got, want)
		}
	}
	options, err := client(t, env).FirewallOptions(t.Context(), firewallOf(t, r))
	if err != nil || options.Enable == nil || !*options.Enable || options.PolicyIn == nil || *options.PolicyIn != "DROP" {
		t.Errorf("its firewall's options are %+v, %v", options, err)
	}
}

func TestAModeChangesInPlace(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	before := r.Get(t, "posture.firewall")
	apply(t, server, r, values{"hostname": "web-1", "network": values{"mode": "off"}}, "update")
	if r.Get(t, "network.mode") != "off" || equalLists(before, r.Get(t, "posture.firewall")) {
		t.Errorf("the firewall is still %v", r.Get(t, "posture.firewall"))
	}
	apply(t, server, r, values{"hostname": "web-1", "network": values{"mode": "allowlist", "allow": []any{values{"to": "192.0.2.0/24", "ports": "443"}}}}, "update")
	diags := apply(t, server, r, values{"hostname": "web-1", "network": values{"mode": "unmanaged"}}, "update")
	if r.Get(t, "posture.firewall") != nil {
		t.Errorf("an unmanaged container has a firewall that is looked at: %v", r.Get(t, "posture.firewall"))
	}
	_ = diags
}

func equalLists(a, b any) bool {
	x, okX := a.([]any)
	y, okY := b.([]any)
	return okX && okY && slices.Equal(x, y)
}

func TestOpenOnesAreWarnedAboutOnEachPlan(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	for _, network := range []values{{"mode": "unmanaged"}, {"proof": "none"}} {
		diags := server.Validate(t, resourceType, values{"hostname": "web-1", "network": network})
		protocoltest.NoErrors(t, diags)
		wants(t, diags, "WARNING", "network")
	}
}

func TestAFirewallThatWasLoosenedIsShownAndRepaired(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	server := protocoltest.For(t, env, nil)
	config := values{"hostname": "web-1"}
	r := create(t, server, config)
	c := client(t, env)
	scope := firewallOf(t, r)
	meant := r.Get(t, "posture.firewall")
	if err := c.CreateFirewallRule(t.Context(), scope, pve.FirewallRule{Type: "out", Action: "ACCEPT", Enable: true}, ""); err != nil {
		t.Fatal(err)
	}
	if err := c.UpdateFirewallOptions(t.Context(), scope, pve.LXCUpdate{Set: map[string]string{"policy_out": "ACCEPT"}}); err != nil {
		t.Fatal(err)
	}
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	wants(t, plan.Diags, "WARNING", "isolation", "policy_out=ACCEPT", "repaired in place")
	if plan.Action() != "update" {
		t.Fatalf("planned %s because of %v", plan.Action(), plan.Replace)
	}
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
	settled(t, server, r, config)
	if !equalLists(meant, r.Get(t, "posture.firewall")) {
		t.Errorf("the firewall is %v, was %v", r.Get(t, "posture.firewall"), meant)
	}
}

func TestTheDatacentersSwitchIsLookedAtInEachPlan(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "turns the datacenter's firewall off")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	r := create(t, server, values{"hostname": "web-1"})
	if err := client(t, env).UpdateFirewallOptions(t.Context(), pve.ClusterFirewall(), pve.LXCUpdate{Set: map[string]string{"enable": "0"}}); err != nil {
		t.Fatal(err)
	}
	server = protocoltest.For(t, env, nil)
	same := server.Plan(t, r, values{"hostname": "web-1"})
	protocoltest.NoErrors(t, same.Diags)
	wants(t, same.Diags, "WARNING", "datacenter's firewall is off")
	another := server.Plan(t, server.NewResource(t, resourceType), values{"hostname": "web-2"})
	wants(t, another.Diags, "ERROR", "datacenter's firewall is off", "--enable 1", "unmanaged")
}

func TestASecurityGroupHoldsTheRules(t *testing.T) {
	t.Parallel()
	acctest.NeedsLab(t, "makes a security group")
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	c := client(t, env)
	if err := c.CreateFirewallGroup(t.Context(), "agents", "made by a test"); err != nil {
		t.Fatal(err)
	}
	management := env.Management[0].String()
	if err := c.CreateFirewallRule(t.Context(), pve.GroupFirewall("agents"), pve.FirewallRule{Type: "in", Action: "ACCEPT", Enable: true, Proto: "tcp", DPort: "22", Source: management}, ""); err != nil {
		t.Fatal(err)
	}
	r := create(t, server, values{"hostname": "web-1", "network": values{"firewall_group": "agents", "mode": "off"}})
	rules, err := c.FirewallRules(t.Context(), firewallOf(t, r))
	if err != nil || len(rules) != 1 || rules[0].Type != "group" || rules[0].Action != "agents" {
		t.Errorf("its own rules are %+v, %v", rules, err)
	}
}

func TestANetworkModeThatCanNotBeIsRefusedBeforeAnyRequest(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	server := protocoltest.For(t, env, nil)
	for name, test := range map[string]struct {
		network values
		want    string
	}{
		"exceptions from nothing":       {values{"mode": "off", "allow": []any{values{"to": "192.0.2.1"}}}, `AttributeName("allow")`},
		"an exception that is none":     {values{"mode": "allowlist", "allow": []any{values{"to": "not an address"}}}, "not an address"},
		"canaries without SSH":          {values{"canaries": []string{"192.168.1.1"}}, "192.168.1.1"},
		"probed with nothing to probe":  {values{"proof": "probed"}, "canaries"},
		"canaries of an unfiltered one": {values{"mode": "unmanaged", "canaries": []string{"192.168.1.1:443"}}, "unmanaged"},
		"a group's name":                {values{"firewall_group": "9lives"}, "9lives"},
	} {
		plan := server.Plan(t, server.NewResource(t, resourceType), values{"hostname": "web-1", "network": test.network})
		if text := protocoltest.Text(plan.Diags); !protocoltest.HasErrors(plan.Diags) || !strings.Contains(text, test.want) {
			t.Errorf("%s: %s", name, text)
		}
	}
}

func TestRisksAreNamedWithAReason(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	server := protocoltest.For(t, env, nil)
	file := values{"hostname": "web-1", "template_file_id": env.TemplateFile}
	plan := server.Plan(t, server.NewResource(t, resourceType), file)
	wants(t, plan.Diags, "ERROR", "cores", "no_cpu_limit")
	risk := with(file, values{"allow_risks": []any{values{"rule": "no_cpu_limit", "reason": "the node has nothing else to do"}}})
	protocoltest.NoErrors(t, server.Plan(t, server.NewResource(t, resourceType), risk).Diags)
	var diags = server.Validate(t, resourceType, with(file, values{"allow_risks": []any{values{"rule": "no_cpu_limit", "reason": ""}}}))
	wants(t, diags, "ERROR", "reason")
}

func TestADomainsAddressesArePinnedUntilAnApplyFindsThatTheyHaveMoved(t *testing.T) {
	t.Parallel()
	env := acctest.New(t)
	acctest.NeedsFirewall(t, env)
	answer := netip.MustParseAddr("198.51.100.7")
	server := protocoltest.ForWith(t, env, nil, provider.Options{Domain: sandbox.Options{
		Lookup: func(context.Context, string) ([]netip.Addr, error) { return []netip.Addr{answer}, nil },
	}})
	config := values{"hostname": "web-1", "network": values{"mode": "allowlist", "allow": []any{values{"to": "pypi.example.org", "ports": "443", "resolve": "apply"}}}}
	r := create(t, server, config)
	pinned := r.Get(t, "posture.firewall")
	answer = netip.MustParseAddr("198.51.100.9")
	protocoltest.NoErrors(t, server.Refresh(t, r))
	plan := server.Plan(t, r, config)
	protocoltest.NoErrors(t, plan.Diags)
	wants(t, plan.Diags, "WARNING", "pypi.example.org", "198.51.100.9", "repaired in place")
	if plan.Action() != "update" {
		t.Fatalf("planned %s because of %v", plan.Action(), plan.Replace)
	}
	protocoltest.NoErrors(t, server.Apply(t, t.Context(), plan))
	settled(t, server, r, config)
	if equalLists(pinned, r.Get(t, "posture.firewall")) {
		t.Errorf("the firewall still is %v", pinned)
	}
	wants(t, server.Validate(t, resourceType, with(config, values{"network": values{"mode": "allowlist", "allow": []any{values{"to": "pypi.example.org", "resolve": "always"}}}})), "resolve", "apply")
}
