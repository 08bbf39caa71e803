package pve

import (
	"context"
)

// CreateFirewallGroup makes a security group. One that exists is an error that
// means AlreadyExists.
func (c *Client) CreateFirewallGroup(ctx context.Context, name, comment string) error {
	p := params{"group": name}
	p.setText("comment", comment)
	return c.post(ctx, "/cluster/firewall/groups", p)
}

// DeleteFirewallGroup removes a security group. One that has rules is an error
// that means NotEmpty; one that guests refer to is removed without a word, and
// leaves their references dangling.
func (c *Client) DeleteFirewallGroup(ctx context.Context, name string) error {
	return c.del(ctx, GroupFirewall(name).rules, nil)
}

// SetFirewallGroupComment sets a group's comment: to the server, a rename to the
// name that it has.
func (c *Client) SetFirewallGroupComment(ctx context.Context, name, comment string) error {
	return c.post(ctx, "/cluster/firewall/groups", params{"group": name, "rename": name, "comment": comment})
}

// FirewallIPSet is an IP set of a scope.
type FirewallIPSet struct {
	Name    string `pve:"name,must"`
	Comment string `pve:"comment"`
	// Digest is that of the list of sets, not of the set's entries.
	Digest string `pve:"digest"`
	Extra  Extra
}

// FirewallIPSetEntry is a member of a set.
type FirewallIPSetEntry struct {
	// CIDR is an address without a length, a network with one, or an alias.
	CIDR    string `pve:"cidr,must"`
	NoMatch bool   `pve:"nomatch"`
	Comment string `pve:"comment"`
	// Digest is that of all entries.
	Digest string `pve:"digest"`
	Extra  Extra
}

// FirewallIPSets lists the IP sets of the datacenter or of a guest.
func (c *Client) FirewallIPSets(ctx context.Context, scope FirewallScope) ([]FirewallIPSet, error) {
	return getList[FirewallIPSet](ctx, c, scope.sets, nil)
}

// CreateFirewallIPSet makes an empty set. One that exists is an error that means
// AlreadyExists.
func (c *Client) CreateFirewallIPSet(ctx context.Context, scope FirewallScope, name, comment string) error {
	p := params{"name": name}
	p.setText("comment", comment)
	return c.post(ctx, scope.sets, p)
}

// DeleteFirewallIPSet removes a set, one that has entries only by force. Rules
// that name it don't keep it.
func (c *Client) DeleteFirewallIPSet(ctx context.Context, scope FirewallScope, name string, force bool) error {
	p := params{}
	p.setFlag("force", force)
	return c.del(ctx, scope.sets+"/"+escapeSegment(name), p)
}

// FirewallIPSet lists the entries of a set.
func (c *Client) FirewallIPSet(ctx context.Context, scope FirewallScope, name string) ([]FirewallIPSetEntry, error) {
	return getList[FirewallIPSetEntry](ctx, c, scope.sets+"/"+escapeSegment(name), nil)
}

// AddFirewallIPSetEntry adds an entry. One that is there is an error that means
// AlreadyExists.
func (c *Client) AddFirewallIPSetEntry(ctx context.Context, scope FirewallScope, name string, entry FirewallIPSetEntry) error {
	p := params{"cidr": entry.CIDR}
	p.setFlag("nomatch", entry.NoMatch)
	p.setText("comment", entry.Comment)
	return c.post(ctx, scope.sets+"/"+escapeSegment(name), p)
}

// DeleteFirewallIPSetEntry removes an entry. One that isn't there is no error on
// the server.
func (c *Client) DeleteFirewallIPSetEntry(ctx context.Context, scope FirewallScope, name, cidr, digest string) error {
	p := params{}
	p.setText("digest", digest)
	return c.del(ctx, scope.sets+"/"+escapeSegment(name)+"/"+escapeSegment(cidr), p)
}

// FirewallAlias is a name for an address or network.
type FirewallAlias struct {
	Name    string `pve:"name,must"`
	CIDR    string `pve:"cidr,must"`
	Comment string `pve:"comment"`
	Digest  string `pve:"digest"`
	Extra   Extra
}

// FirewallAliases lists the aliases of the datacenter. "local_network" is one
// where somebody has set it; else the server finds out its own.
func (c *Client) FirewallAliases(ctx context.Context) ([]FirewallAlias, error) {
	return getList[FirewallAlias](ctx, c, "/cluster/firewall/aliases", nil)
}
