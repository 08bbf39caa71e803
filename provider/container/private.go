package container

import (
	"context"
	"encoding/json"
	"net/netip"

	"github.com/hashicorp/terraform-plugin-framework/diag"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Keys of the private state, which Terraform keeps beside the state and shows to nobody.
const (
	// keyTask holds the UPID of the task that makes the container: what a destroy has to wait for or to stop when the
	// creation failed or was cut.
	keyTask = "task"
	// keyUnfinished is true from a creation that was stopped until an update has finished it.
	keyUnfinished = "unfinished"
	// keyBaseline holds the posture that the container is meant to have.
	keyBaseline = "baseline"
	// keyPending is true while the last update left settings that wait for a restart.
	keyPending = "pending"
	// keyPinned holds the addresses of the domains in network.allow that the firewall was written with.
	keyPinned = "pinned"
	// keyRollback names the snapshot of a rollback that was cut, from the refresh that saw it until an update has
	// completed it.
	keyRollback = "rollback"
)

// private is the private state of a request or a response.
type private interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// remember stores a value as JSON.
func remember(ctx context.Context, p private, diags *diag.Diagnostics, key string, value any) {
	text, err := json.Marshal(value)
	if err != nil {
		diags.AddError("Unable to write the private state", key+": "+err.Error())
		return
	}
	diags.Append(p.SetKey(ctx, key, text)...)
}

// recall reads what remember stored; the zero value when there is nothing.
func recall[T any](ctx context.Context, p private, diags *diag.Diagnostics, key string) T {
	var value T
	text, d := p.GetKey(ctx, key)
	diags.Append(d...)
	if len(text) == 0 {
		return value
	}
	if err := json.Unmarshal(text, &value); err != nil {
		diags.AddError("Unable to read the private state", key+": "+err.Error())
	}
	return value
}

// baseline is the posture that the container is meant to have; nil when none was taken yet.
func baseline(ctx context.Context, p private, diags *diag.Diagnostics) *sandbox.Posture {
	return recall[*sandbox.Posture](ctx, p, diags, keyBaseline)
}

// takeBaseline makes posture what later refreshes are compared with.
func takeBaseline(ctx context.Context, p private, diags *diag.Diagnostics, posture sandbox.Posture) {
	posture.Pending, posture.Proof = nil, "" // pass by themselves
	remember(ctx, p, diags, keyBaseline, posture)
}

// noteRollback keeps in mind whether a rollback was cut.
func noteRollback(ctx context.Context, p private, diags *diag.Diagnostics, s sandbox.Sandbox) {
	if s.RollingBack != "" {
		remember(ctx, p, diags, keyRollback, s.RollingBack)
	} else {
		forget(ctx, p, diags, keyRollback)
	}
}

// forget removes a key.
func forget(ctx context.Context, p private, diags *diag.Diagnostics, key string) {
	diags.Append(p.SetKey(ctx, key, nil)...)
}

// pinned are addresses by domain.
type pinned map[string][]netip.Addr

func rememberPinned(ctx context.Context, p private, diags *diag.Diagnostics, addresses pinned) {
	if len(addresses) == 0 {
		forget(ctx, p, diags, keyPinned)
		return
	}
	remember(ctx, p, diags, keyPinned, addresses)
}

// hasMoved says whether the last refresh has seen a domain at other addresses than the pinned ones.
func hasMoved(state *Model) bool {
	is, ok := postureOf(state.Posture)
	return ok && sandbox.HasMoved(is.Firewall)
}
