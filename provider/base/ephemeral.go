package base

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// EphemeralBase gives an ephemeral resource its Configure.
type EphemeralBase struct{ Data *Data }

// Configure takes the provider's data. It is called without any during validation.
func (b *EphemeralBase) Configure(_ context.Context, req ephemeral.ConfigureRequest, resp *ephemeral.ConfigureResponse) {
	b.Data = take(req.ProviderData, &resp.Diagnostics)
}

// Manager returns the manager for an operation that needs the server; without one it adds the error that says why.
func (b *EphemeralBase) Manager(diags *diag.Diagnostics) (*sandbox.Manager, bool) {
	return manager(b.Data, diags)
}

// Opened holds what ephemeral resources keep open in this process between Open and Close: tunnels, and how to revoke
// what was made. Terraform carries private data from one to the other, in which no credential should stand; a number does.
type Opened struct {
	next atomic.Int64
	held sync.Map // of number, func(context.Context) diag.Diagnostics
}

// keyOpened names the number in the private data.
const keyOpened = "opened"

// privateData is the private data of a request or a response.
type privateData interface {
	GetKey(ctx context.Context, key string) ([]byte, diag.Diagnostics)
	SetKey(ctx context.Context, key string, value []byte) diag.Diagnostics
}

// Keep has end called by the Close that gets this private data.
func (o *Opened) Keep(ctx context.Context, private privateData, end func(context.Context) diag.Diagnostics) diag.Diagnostics {
	n := o.next.Add(1)
	o.held.Store(n, end)
	return private.SetKey(ctx, keyOpened, fmt.Appendf(nil, "%d", n))
}

// End calls what Keep was given, once.
func (o *Opened) End(ctx context.Context, private privateData) diag.Diagnostics {
	text, diags := private.GetKey(ctx, keyOpened)
	var n int64
	if _, err := fmt.Sscan(string(text), &n); err != nil {
		return diags // Open failed before it had anything to keep
	}
	end, ok := o.held.LoadAndDelete(n)
	if !ok {
		return diags
	}
	diags.Append(end.(func(context.Context) diag.Diagnostics)(ctx)...) //nolint:forcetypeassert // nothing else is stored
	return diags
}
