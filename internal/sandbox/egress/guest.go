package egress

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// NIC is what the switches of a guest's firewall depend on.
type NIC struct {
	// Static says that every address family which is in use has a static
	// address, so that the server can filter by it.
	Static bool
	// DHCP says that the guest asks for an address of either family.
	DHCP bool
	// IPv6 says that the guest uses IPv6 at all (SLAAC, DHCP or static).
	IPv6 bool
}

// Options are the switches of a guest's firewall that a managed mode sets. The
// server's other options stay as they are.
type Options struct {
	Enable              bool
	PolicyIn, PolicyOut string
	MACFilter, IPFilter bool
	DHCP, NDP, RAdv     bool
}

// Guest is the whole firewall of one guest, as a managed mode wants it. Nothing
// else may be in it: rules that a template brought along are replaced.
type Guest struct {
	Options Options
	Filter
}

// API is what the server must be able to do; *pve.Client does it.
type API interface {
	FirewallRules(ctx context.Context, scope pve.FirewallScope) ([]pve.FirewallRule, error)
	CreateFirewallRule(ctx context.Context, scope pve.FirewallScope, rule pve.FirewallRule, digest string) error
	ReplaceFirewallRule(ctx context.Context, scope pve.FirewallScope, pos int, rule pve.FirewallRule, digest string) error
	MoveFirewallRule(ctx context.Context, scope pve.FirewallScope, from, before int, digest string) error
	DeleteFirewallRule(ctx context.Context, scope pve.FirewallScope, pos int, digest string) error
	FirewallOptions(ctx context.Context, scope pve.FirewallScope) (pve.FirewallOptions, error)
	UpdateFirewallOptions(ctx context.Context, scope pve.FirewallScope, update pve.LXCUpdate) error
	FirewallIPSets(ctx context.Context, scope pve.FirewallScope) ([]pve.FirewallIPSet, error)
	CreateFirewallIPSet(ctx context.Context, scope pve.FirewallScope, name, comment string) error
	DeleteFirewallIPSet(ctx context.Context, scope pve.FirewallScope, name string, force bool) error
	FirewallIPSet(ctx context.Context, scope pve.FirewallScope, name string) ([]pve.FirewallIPSetEntry, error)
	AddFirewallIPSetEntry(ctx context.Context, scope pve.FirewallScope, name string, entry pve.FirewallIPSetEntry) error
	DeleteFirewallIPSetEntry(ctx context.Context, scope pve.FirewallScope, name, cidr, digest string) error
}

var _ API = (*pve.Client)(nil)
