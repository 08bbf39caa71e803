// Package base is what every resource and data source of the provider embeds: how it gets the configured provider, and
// how an error of the layers below becomes a diagnostic.
package base

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/agentrun"
)

// Data is what the provider's Configure hands to everything it serves.
type Data struct {
	// Manager runs the life of sandboxes. It is nil while attributes of the provider block are unknown.
	Manager *sandbox.Manager
	// Runs starts and follows runs of agents. It is nil whenever Manager is.
	Runs *agentrun.Engine
	// Unknown names the attributes of the provider block that aren't known yet, sorted.
	Unknown []string
	// Settings are the provider block's facts; attributes that depend on them take their defaults from here. Only
	// meaningful while Manager isn't nil.
	Settings sandbox.Settings
	// Now is the time, from outside so that tests can set it.
	Now func() time.Time

	// Opened holds what ephemeral resources keep open.
	Opened Opened

	tracked sync.Map // of vmid
}

// Track notes that a state holds the container with this id.
func (d *Data) Track(vmid int64) {
	if d != nil {
		d.tracked.Store(vmid, true)
	}
}

// Tracks tells whether a state is known to hold the container with this id. Terraform plans a replacement as a creation
// that knows nothing of what it replaces, so an id may be taken by the very container that will be gone by then.
func (d *Data) Tracks(vmid int64) bool {
	if d == nil {
		return false
	}
	_, ok := d.tracked.Load(vmid)
	return ok
}

// Known tells whether the provider is configured. It is not during validation (d is nil), nor while attributes of the
// provider block are unknown.
func (d *Data) Known() bool { return d != nil && d.Manager != nil }

// unknownProvider adds the error of an operation that can't do without the server.
func (d *Data) unknownProvider(diags *diag.Diagnostics) {
	if d == nil {
		diags.AddError("The provider is not configured",
			"This operation ran before the provider was configured. This is a fault of the provider: please report it.")
		return
	}
	diags.AddError("The provider's configuration is not known yet",
		withCode(fmt.Sprintf("The provider block depends on values that are only known after apply: %s. "+
			"Create the resources that these come from first, for example with -target, or give the values directly.",
			strings.Join(d.Unknown, ", ")), sandbox.CodeUnknownProvider))
}

// ResourceBase gives a resource its Configure.
type ResourceBase struct{ Data *Data }

// Configure takes the provider's data. It is called without any during validation.
func (b *ResourceBase) Configure(_ context.Context, req resource.ConfigureRequest, resp *resource.ConfigureResponse) {
	b.Data = take(req.ProviderData, &resp.Diagnostics)
}

// Manager returns the manager for an operation that needs the server; without one it adds the error that says why.
func (b *ResourceBase) Manager(diags *diag.Diagnostics) (*sandbox.Manager, bool) {
	return manager(b.Data, diags)
}

// DataSourceBase gives a data source its Configure.
type DataSourceBase struct{ Data *Data }

// Configure takes the provider's data. It is called without any during validation.
func (b *DataSourceBase) Configure(_ context.Context, req datasource.ConfigureRequest, resp *datasource.ConfigureResponse) {
	b.Data = take(req.ProviderData, &resp.Diagnostics)
}

// Manager returns the manager for an operation that needs the server; without one it adds the error that says why.
func (b *DataSourceBase) Manager(diags *diag.Diagnostics) (*sandbox.Manager, bool) {
	return manager(b.Data, diags)
}

func manager(d *Data, diags *diag.Diagnostics) (*sandbox.Manager, bool) {
	if !d.Known() {
		d.unknownProvider(diags)
		return nil, false
	}
	return d.Manager, true
}

func take(providerData any, diags *diag.Diagnostics) *Data {
	if providerData == nil {
		return nil
	}
	data, ok := providerData.(*Data)
	if !ok {
		diags.AddError("Unexpected provider data",
			fmt.Sprintf("Expected %T, got %T. This is a fault of the provider: please report it.", data, providerData))
	}
	return data
}
