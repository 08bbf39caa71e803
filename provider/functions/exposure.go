package functions

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

var (
	_ function.Function = exposureName{}
	_ function.Function = exposureURL{}
	_ function.Function = proxyConfig{}
	_ function.Function = developmentPorts{}
)

type exposureName struct{}

// NewExposureName returns the function exposure_name.
func NewExposureName() function.Function { return exposureName{} }

func (exposureName) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "exposure_name"
}

func (exposureName) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "Name of a port exposure",
		MarkdownDescription: "Returns the name that `sandbox_port_exposure` gives its units on the node: `sbx-<vmid>-<port>`.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "container_id", MarkdownDescription: "The container's `id` (the vmid)."},
			function.Int64Parameter{Name: "port", MarkdownDescription: "Port in the container, 1 to 65535."},
		},
		Return: function.StringReturn{},
	}
}

func (exposureName) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var id string
	var port int64
	if resp.Error = req.Arguments.Get(ctx, &id, &port); resp.Error != nil {
		return
	}
	_, vmid, err := sandbox.ParseContainerID(id)
	switch {
	case err != nil:
		resp.Error = function.NewArgumentFuncError(0, err.Error())
	case port < 1 || port > 65535:
		resp.Error = function.NewArgumentFuncError(1, fmt.Sprintf("%d is no port (1 to 65535)", port))
	default:
		resp.Error = resp.Result.Set(ctx, exposure.Name(vmid, int(port)))
	}
}

type exposureURL struct{}

// NewExposureURL returns the function exposure_url.
func NewExposureURL() function.Function { return exposureURL{} }

func (exposureURL) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "exposure_url"
}

func (exposureURL) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "URL of a port",
		MarkdownDescription: "Returns the URL of a port on a host, such as `http://pve1.example.org:20123`: for an exposure as others than the node see it, through a proxy or an SSH tunnel. " +
			"The port is left out where it is the scheme's own, and an IPv6 address gets its brackets.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "protocol", MarkdownDescription: "`http`, `https` or `tcp`."},
			function.StringParameter{Name: "host", MarkdownDescription: "Host name or IP address."},
			function.Int64Parameter{Name: "port", MarkdownDescription: "Port, 1 to 65535."},
		},
		Return: function.StringReturn{},
	}
}

func (exposureURL) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var protocol, host string
	var port int64
	if resp.Error = req.Arguments.Get(ctx, &protocol, &host, &port); resp.Error != nil {
		return
	}
	text, err := exposure.URL(protocol, host, int(port))
	if err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, text)
}

type proxyConfig struct{}

// NewProxyConfig returns the function proxy_config.
func NewProxyConfig() function.Function { return proxyConfig{} }

func (proxyConfig) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "proxy_config"
}

func (proxyConfig) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Configuration of a reverse proxy for exposures",
		MarkdownDescription: "Returns blocks for a Caddyfile or for nginx, one for each route, sorted by host. WebSockets and event streams of development servers pass. " +
			"Put it into a file of the proxy on the node; what Caddy serves has certificates, nginx listens on port 80. A name or backend that isn't one is an error, so that no value can end a block.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "kind", MarkdownDescription: "`caddy` or `nginx`."},
			function.MapParameter{Name: "routes", ElementType: types.StringType, MarkdownDescription: "By the host name that clients ask for, where it leads: `host:port`, or the `url` of an exposure with `http` or `tcp`."},
		},
		Return: function.StringReturn{},
	}
}

func (proxyConfig) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var kind string
	var given map[string]string
	if resp.Error = req.Arguments.Get(ctx, &kind, &given); resp.Error != nil {
		return
	}
	routes := make([]exposure.Route, 0, len(given))
	for _, host := range slices.Sorted(maps.Keys(given)) {
		routes = append(routes, exposure.Route{Host: host, Backend: given[host]})
	}
	text, err := exposure.Proxy(kind, routes)
	if err != nil {
		resp.Error = function.NewFuncError(err.Error())
		return
	}
	resp.Error = resp.Result.Set(ctx, text)
}

type developmentPorts struct{}

// NewDevelopmentPorts returns the function development_ports.
func NewDevelopmentPorts() function.Function { return developmentPorts{} }

func (developmentPorts) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "development_ports"
}

func (developmentPorts) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary:             "The common ports of development servers",
		MarkdownDescription: "Returns the ports that development servers listen on by default, by what is found there: `node` 3000, `vite` 5173, `django` 8000, `web` 8080, `jupyter` 8888. For the `for_each` of a `sandbox_port_exposure`, when an agent may start any of them.",
		Return:              function.MapReturn{ElementType: types.Int64Type},
	}
}

func (developmentPorts) Run(ctx context.Context, _ function.RunRequest, resp *function.RunResponse) {
	resp.Error = resp.Result.Set(ctx, exposure.DevelopmentPorts())
}
