package pve

import (
	"encoding/json"
	"net/http"
	"testing"
)

func TestFirewallCallsAreSentAsTheAPITakesThem(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, nil) })
	c, _ := testClient(t, s.URL)
	ctx := t.Context()
	rule := FirewallRule{Type: "in", Action: "ACCEPT", Proto: "tcp", DPort: "22"}
	for _, call := range []struct {
		send func() error
		want string
	}{
		{func() error {
			return c.UpdateFirewallOptions(ctx, LXCFirewall("pve1", 100), LXCUpdate{Set: map[string]string{"enable": Bool(false)}, Delete: []string{"ipfilter"}, Digest: "d"})
		},
			"PUT /nodes/pve1/lxc/100/firewall/options?delete=ipfilter&digest=d&enable=0"},
		{func() error {
			return c.UpdateFirewallOptions(ctx, ClusterFirewall(), LXCUpdate{Set: map[string]string{"enable": "1"}})
		}, "PUT /cluster/firewall/options?enable=1"},
		{func() error { return c.CreateFirewallRule(ctx, GroupFirewall("g-1"), rule, "") }, "POST /cluster/firewall/groups/g-1?action=ACCEPT&dport=22&enable=0&proto=tcp&type=in"},
		{func() error { return c.MoveFirewallRule(ctx, NodeFirewall("pve1"), 3, 0, "d") }, "PUT /nodes/pve1/firewall/rules/3?digest=d&moveto=0"},
		{func() error { return c.DeleteFirewallRule(ctx, LXCFirewall("pve1", 100), 2, "d") }, "DELETE /nodes/pve1/lxc/100/firewall/rules/2?digest=d"},
	} {
		if err := call.send(); err != nil {
			t.Error(err)
		}
		seen := s.seen()
		r := seen[len(seen)-1]
		parameters := r.raw
		if r.method == http.MethodDelete {
			parameters = r.query.Encode()
		}
		if got := r.method + " " + r.path + "?" + parameters; got != call.want {
			t.Errorf("sent %s\nwant %s", got, call.want)
		}
	}
	before := len(s.seen())
	if err := c.UpdateFirewallOptions(ctx, ClusterFirewall(), LXCUpdate{}); err != nil || len(s.seen()) != before {
		t.Errorf("an empty change was sent: %v", err)
	}
}

func TestFirewallOptionsAreNilWhereTheDefaultCountsAndATimeStampIsOn(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) {
		data(w, json.RawMessage(`{"digest":"da39","policy_in":"DROP","enable":1796101057}`))
	})
	c, _ := testClient(t, s.URL)
	o, err := c.FirewallOptions(t.Context(), ClusterFirewall())
	if err != nil || o.Enable == nil || !*o.Enable || *o.PolicyIn != "DROP" || o.MACFilter != nil || o.PolicyOut != nil {
		t.Errorf("%+v, %v", o, err)
	}
}

func TestGroupsAndSetsAreSentAsTheAPITakesThem(t *testing.T) {
	t.Parallel()
	s := serve(t, func(w http.ResponseWriter, _ request) { data(w, nil) })
	c, _ := testClient(t, s.URL)
	ctx := t.Context()
	for _, call := range []struct {
		send func() error
		want string
	}{
		{func() error { return c.CreateFirewallGroup(ctx, "g-1", "ours") }, "POST /cluster/firewall/groups?comment=ours&group=g-1"},
		{func() error { return c.SetFirewallGroupComment(ctx, "g-1", "") }, "POST /cluster/firewall/groups?comment=&group=g-1&rename=g-1"},
		{func() error { return c.DeleteFirewallGroup(ctx, "g-1") }, "DELETE /cluster/firewall/groups/g-1?"},
		{func() error { return c.CreateFirewallIPSet(ctx, ClusterFirewall(), "s1", "") }, "POST /cluster/firewall/ipset?name=s1"},
		{func() error { return c.CreateFirewallIPSet(ctx, QEMUFirewall("pve1", 100), "s1", "") }, "POST /nodes/pve1/qemu/100/firewall/ipset?name=s1"},
		{func() error {
			return c.AddFirewallIPSetEntry(ctx, LXCFirewall("pve1", 100), "s1", FirewallIPSetEntry{CIDR: "10.0.0.0/8", NoMatch: true})
		},
			"POST /nodes/pve1/lxc/100/firewall/ipset/s1?cidr=10.0.0.0%2F8&nomatch=1"},
		{func() error { return c.DeleteFirewallIPSetEntry(ctx, ClusterFirewall(), "s1", "10.0.0.0/8", "") }, "DELETE /cluster/firewall/ipset/s1/10.0.0.0%2F8?"},
		{func() error { return c.DeleteFirewallIPSet(ctx, ClusterFirewall(), "s1", true) }, "DELETE /cluster/firewall/ipset/s1?force=1"},
	} {
		if err := call.send(); err != nil {
			t.Error(err)
		}
		seen := s.seen()
		r := seen[len(seen)-1]
		parameters := r.raw
		if r.method == http.MethodDelete {
			parameters = r.query.Encode()
		}
		if got := r.method + " " + r.path + "?" + parameters; got != call.want {
			t.Errorf("sent %s\nwant %s", got, call.want)
		}
	}
	if got := GroupFirewall("g-1").String() + " " + LXCFirewall("pve1", 100).String(); got != "/cluster/firewall/groups/g-1 /nodes/pve1/lxc/100/firewall" {
		t.Errorf("scopes are called %s", got)
	}
}
