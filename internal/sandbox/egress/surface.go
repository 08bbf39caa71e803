package egress

import (
	"context"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// Check reports what in p can't be done. Render refuses what it reports without
// Warning.
func Check(p Policy) []Problem { panic("egress: not written yet") }

// Render makes the rules and sets of a managed mode. It is pure: the same policy
// gives the same filter, so a plan can show it.
func Render(p Policy, n Naming) (Filter, error) { panic("egress: not written yet") }

// RenderGuest makes the whole firewall of a guest that has its own rules.
func RenderGuest(p Policy, nic NIC) (Guest, error) { panic("egress: not written yet") }

// GroupGuest makes the whole firewall of a guest that refers to a security group
// (which must be rendered of the same mode: off, web and allowlist end in a DROP,
// and the policy is DROP whatever the mode).
func GroupGuest(group string, nic NIC) Guest { panic("egress: not written yet") }

// Fresh is the state to hand to SyncGuest for a guest that is believed to have an
// empty firewall, such as a new clone of a template without one: it saves reading
// first. What is there all the same is found when it is read back, and replaced.
func Fresh() *Guest { return &Guest{} }

// SyncGuest brings a guest's firewall to want and reads it back. have is what it
// is believed to hold; nil reads it first. Sets are filled before the rules that
// name them are written, and emptied after. It returns what the server holds, and
// whether anything was written (then the server's loop has to run before it
// counts). What can't be brought to want is an error.
func SyncGuest(ctx context.Context, api API, node string, vmid int, have *Guest, want Guest) (got Guest, written bool, err error) {
	panic("egress: not written yet")
}

// ReadGuest reads a guest's firewall: its options and rules, and the sets of the
// names given (those that a policy renders). It costs 2 requests and one per set.
func ReadGuest(ctx context.Context, api API, node string, vmid int, sets ...string) (Guest, error) {
	panic("egress: not written yet")
}

// Differences says in words what of have isn't as want has it; nothing means that
// the wall stands.
func Differences(want, have Guest) []string { panic("egress: not written yet") }

// List is a scope's rules as they were read, with the digest that proves it.
type List struct {
	Rules  []Rule
	Digest string
	raw    []pve.FirewallRule
}

// ReadRules reads the rules of a scope.
func ReadRules(ctx context.Context, api API, scope pve.FirewallScope) (List, error) {
	panic("egress: not written yet")
}

// SyncRules brings the rules of a scope to want, in this order, with the fewest
// calls, and reads them back. have is what they are believed to be; nil reads
// them first. When somebody else writes meanwhile, they are read again once, and
// the second time a *ConflictError shows both lists.
func SyncRules(ctx context.Context, api API, scope pve.FirewallScope, have *List, want []Rule) (List, error) {
	panic("egress: not written yet")
}

// ConflictError says that a list isn't what it should be after it was written:
// somebody else writes it too.
type ConflictError struct {
	Scope      pve.FirewallScope
	Want, Have []Rule
	Err        error
}

func (e *ConflictError) Error() string { panic("egress: not written yet") }

// Permits says whether a list lets a new connection through that comes from
// source, to port of the protocol ("tcp", "udp"), in the direction in or out. The
// policy decides where no rule matches. Sets are looked up in filter.
func (f Filter) Permits(c Connection, policy string) (bool, Rule) { panic("egress: not written yet") }
