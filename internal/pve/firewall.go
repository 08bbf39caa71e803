package pve

import (
	"context"
	"strconv"
	"strings"
)

// FirewallScope is where firewall rules and options belong.
type FirewallScope struct{ rules, options, sets string }

// String is the scope's path in the API.
func (s FirewallScope) String() string { return strings.TrimSuffix(s.rules, "/rules") }

// LXCFirewall is a container's firewall. The server answers with an empty one
// for a container that doesn't exist.
func LXCFirewall(node string, vmid int) FirewallScope {
	base := lxcPath(node, vmid) + "/firewall"
	return FirewallScope{rules: base + "/rules", options: base + "/options", sets: base + "/ipset"}
}

// QEMUFirewall is a virtual machine's firewall.
func QEMUFirewall(node string, vmid int) FirewallScope {
	base := nodePath(node) + "/qemu/" + strconv.Itoa(vmid) + "/firewall"
	return FirewallScope{rules: base + "/rules", options: base + "/options", sets: base + "/ipset"}
}

// NodeFirewall is a node's own firewall: what may reach the node itself.
func NodeFirewall(node string) FirewallScope {
	base := nodePath(node) + "/firewall"
	return FirewallScope{rules: base + "/rules", options: base + "/options"}
}

// ClusterFirewall is the datacenter's firewall; its option "enable" is the
// switch for all.
func ClusterFirewall() FirewallScope {
	return FirewallScope{rules: "/cluster/firewall/rules", options: "/cluster/firewall/options", sets: "/cluster/firewall/ipset"}
}

// GroupFirewall is a security group; it has rules and no options.
func GroupFirewall(group string) FirewallScope {
	return FirewallScope{rules: "/cluster/firewall/groups/" + escapeSegment(group)}
}

// FirewallOptions are the options of a scope: nil where the server has no value
// of its own and its default counts.
type FirewallOptions struct {
	// Enable defaults to off for a guest and the datacenter, to on for a node.
	// The datacenter's may be the time stamp since when it is on.
	Enable    *bool   `pve:"enable"`
	PolicyIn  *string `pve:"policy_in"`
	PolicyOut *string `pve:"policy_out"`
	// MACFilter defaults to on, IPFilter, DHCP and RAdv to off, NDP to on.
	MACFilter *bool   `pve:"macfilter"`
	IPFilter  *bool   `pve:"ipfilter"`
	DHCP      *bool   `pve:"dhcp"`
	NDP       *bool   `pve:"ndp"`
	RAdv      *bool   `pve:"radv"`
	LogIn     *string `pve:"log_level_in"`
	LogOut    *string `pve:"log_level_out"`
	Digest    string  `pve:"digest"`
	Extra     Extra
}

// FirewallOptions reads the options of a scope.
func (c *Client) FirewallOptions(ctx context.Context, scope FirewallScope) (FirewallOptions, error) {
	return getObject[FirewallOptions](ctx, c, scope.options, nil)
}

// UpdateFirewallOptions sets and removes options, by their names in the API.
func (c *Client) UpdateFirewallOptions(ctx context.Context, scope FirewallScope, update LXCUpdate) error {
	if update.Empty() {
		return nil
	}
	p := params{}.with(update.Set)
	p.setText("delete", joinKeys(update.Delete))
	p.setText("digest", update.Digest)
	return c.put(ctx, scope.options, p)
}

// FirewallRule is a rule. Text that is empty isn't sent.
type FirewallRule struct {
	// Pos is the rule's place in its list, from 0. It changes with every insert.
	Pos int `pve:"pos"`
	// Type is "in", "out", "forward" or "group"; for the last one Action names
	// the group.
	Type   string `pve:"type,must"`
	Action string `pve:"action,must"`
	// Enable is off by default on the server, so it is always sent.
	Enable   bool   `pve:"enable"`
	Macro    string `pve:"macro"`
	Proto    string `pve:"proto"`
	Source   string `pve:"source"`
	Dest     string `pve:"dest"`
	SPort    string `pve:"sport"`
	DPort    string `pve:"dport"`
	ICMPType string `pve:"icmp-type"`
	Iface    string `pve:"iface"`
	Log      string `pve:"log"`
	Comment  string `pve:"comment"`
	// Digest is that of the whole list.
	Digest string `pve:"digest"`
	Extra  Extra
}

func (r FirewallRule) params() params {
	p := params{"type": r.Type, "action": r.Action, "enable": Bool(r.Enable)}
	for key, value := range r.optional() {
		p.setText(key, value)
	}
	return p
}

func (r FirewallRule) optional() map[string]string {
	return map[string]string{
		"macro": r.Macro, "proto": r.Proto, "source": r.Source, "dest": r.Dest, "sport": r.SPort, "dport": r.DPort,
		"icmp-type": r.ICMPType, "iface": r.Iface, "log": r.Log, "comment": r.Comment,
	}
}

// FirewallRules lists the rules of a scope in their order.
func (c *Client) FirewallRules(ctx context.Context, scope FirewallScope) ([]FirewallRule, error) {
	return getList[FirewallRule](ctx, c, scope.rules, nil)
}

// CreateFirewallRule inserts a rule at position 0: the server ignores another.
// Write a list from its last rule to its first.
func (c *Client) CreateFirewallRule(ctx context.Context, scope FirewallScope, rule FirewallRule, digest string) error {
	p := rule.params()
	p.setText("digest", digest)
	return c.post(ctx, scope.rules, p)
}

// ReplaceFirewallRule writes rule over that at position pos: what rule leaves
// empty is removed, as the server would keep it.
func (c *Client) ReplaceFirewallRule(ctx context.Context, scope FirewallScope, pos int, rule FirewallRule, digest string) error {
	p := rule.params()
	var gone []string
	for key, value := range rule.optional() {
		if value == "" {
			gone = append(gone, key)
		}
	}
	p.setText("delete", joinKeys(gone))
	p.setText("digest", digest)
	return c.put(ctx, scope.rules+"/"+strconv.Itoa(pos), p)
}

// MoveFirewallRule moves the rule at from before the one that is at before now.
func (c *Client) MoveFirewallRule(ctx context.Context, scope FirewallScope, from, before int, digest string) error {
	p := params{}
	p.setInt("moveto", before)
	p.setText("digest", digest)
	return c.put(ctx, scope.rules+"/"+strconv.Itoa(from), p)
}

// DeleteFirewallRule removes the rule at position pos.
func (c *Client) DeleteFirewallRule(ctx context.Context, scope FirewallScope, pos int, digest string) error {
	p := params{}
	p.setText("digest", digest)
	return c.del(ctx, scope.rules+"/"+strconv.Itoa(pos), p)
}

// FirewallGroup is a security group of the datacenter.
type FirewallGroup struct {
	Group   string `pve:"group,must"`
	Comment string `pve:"comment"`
	Digest  string `pve:"digest"`
	Extra   Extra
}

// FirewallGroups lists the security groups.
func (c *Client) FirewallGroups(ctx context.Context) ([]FirewallGroup, error) {
	return getList[FirewallGroup](ctx, c, "/cluster/firewall/groups", nil)
}
