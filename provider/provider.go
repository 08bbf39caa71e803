// Package provider is the Terraform provider "sandbox": its schema, its configuration and the list of what it serves.
package provider

import (
	"context"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/ephemeral"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/agentrun"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/backup"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/cluster"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/container"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/datacenterfirewall"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/diagnostics"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/exec"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/exposure"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/file"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/firewall"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/functions"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/mission"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/nodeguard"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/pool"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/portforward"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/preflight"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/reaper"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/rollback"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/secrets"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/snapshot"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/sshkey"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/tailscale"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/template"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/workspace"
)

var (
	_ provider.Provider                       = (*sandboxProvider)(nil)
	_ provider.ProviderWithEphemeralResources = (*sandboxProvider)(nil)
	_ provider.ProviderWithFunctions          = (*sandboxProvider)(nil)
)

// Options are what a provider gets from outside. The zero value is right for production.
type Options struct {
	// Version of the binary, "dev" when it wasn't set at build time.
	Version string
	// Getenv reads an environment variable; nil means os.Getenv.
	Getenv func(string) string
	// Connection may change how the server is talked to (time, patience), for tests.
	Connection func(*pve.Config)
	// Domain is handed to the domain (time, randomness), for tests.
	Domain sandbox.Options
}

// New returns a constructor of the provider, as the plugin servers want it.
func New(version string) func() provider.Provider { return NewWith(Options{Version: version}) }

// NewWith is New with more to say.
func NewWith(options Options) func() provider.Provider {
	return func() provider.Provider { return &sandboxProvider{options: options} }
}

type sandboxProvider struct{ options Options }

func (p *sandboxProvider) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "sandbox"
	resp.Version = p.options.Version
}

func (p *sandboxProvider) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema = providerSchema()
}

func (p *sandboxProvider) Resources(context.Context) []func() resource.Resource {
	return []func() resource.Resource{
		agentrun.NewResource,
		backup.NewResource,
		container.NewResource,
		datacenterfirewall.NewResource,
		exec.NewResource,
		exposure.NewResource,
		file.NewResource,
		firewall.NewResource,
		mission.NewResource,
		nodeguard.NewResource,
		pool.NewResource,
		reaper.NewResource,
		rollback.NewResource,
		snapshot.NewResource,
		workspace.NewResource,
	}
}

func (p *sandboxProvider) DataSources(context.Context) []func() datasource.DataSource {
	return []func() datasource.DataSource{
		audit.NewDataSource,
		agents.NewDataSource,
		cluster.NewDataSource,
		container.NewDataSource,
		diagnostics.NewDataSource,
		exposure.NewDataSource,
		file.NewDataSource,
		preflight.NewDataSource,
		secrets.NewDataSource,
		snapshot.NewDataSource,
		template.NewDataSource,
		workspace.NewDataSource,
	}
}

func (p *sandboxProvider) EphemeralResources(context.Context) []func() ephemeral.EphemeralResource {
	return []func() ephemeral.EphemeralResource{
		portforward.NewEphemeralResource,
		secrets.NewEphemeralResource,
		sshkey.NewEphemeralResource,
		tailscale.NewEphemeralResource,
	}
}

func (p *sandboxProvider) Functions(context.Context) []func() function.Function {
	return functions.All()
}
