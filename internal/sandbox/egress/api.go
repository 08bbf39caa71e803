package egress

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

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
