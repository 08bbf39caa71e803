//go:generate packer-sdc mapstructure-to-hcl2 -type Config,Download,Binary
//go:generate packer-sdc struct-markdown

package agents

import (
	"github.com/hashicorp/packer-plugin-sdk/common"
	"github.com/hashicorp/packer-plugin-sdk/template/interpolate"
)

// Config says which agents are installed, and from where.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`

	// Version by name: `{ claude-code = "2.1.332", codex = "" }`. An empty version is the registry's own pin. The names are those of
	// the Terraform data source sandbox_agents.
	Agents map[string]string `mapstructure:"agents" required:"true"`
	// JSON files with definitions of further agents, in the registry's form; they come before the registry's own.
	Definitions []string `mapstructure:"definitions"`
	// Where Node.js comes from, for agents of npm: the archive of nodejs.org, or a mirror's. Without it the system must have a
	// version that is new enough.
	Node Download `mapstructure:"node"`
	// Where uv comes from, for agents of PyPI. Without it the system must have it.
	UV Download `mapstructure:"uv"`
	// Archives of agents that are one binary, each with its checksum.
	Binaries []Binary `mapstructure:"binary"`
	// An npm mirror's URL. Default: npm's own.
	NPMRegistry string `mapstructure:"npm_registry"`
	// A PyPI mirror's index URL. Default: PyPI's own.
	PyPIIndex string `mapstructure:"pypi_index"`
	// Run by `sudo -n`, where Packer doesn't log in as root. Default: `false`.
	Sudo bool `mapstructure:"sudo"`

	ctx interpolate.Context
}

// Download is a file whose content is known.
type Download struct {
	// What it holds, `22.23.3` of Node.js.
	Version string `mapstructure:"version" required:"true"`
	// Fetched by the container itself; `{version}` and `{arch}` are replaced. Either this or `file`.
	URL string `mapstructure:"url"`
	// A file of this machine that is sent instead: for builds without a network.
	File string `mapstructure:"file"`
	// Its SHA-256, 64 hexadecimal digits.
	SHA256 string `mapstructure:"sha256" required:"true"`
}

// Binary is the archive of an agent.
type Binary struct {
	// The agent's name.
	Name string `mapstructure:"name" required:"true"`
	// Fetched by the container itself. Default: the registry's.
	URL string `mapstructure:"url"`
	// A file of this machine that is sent instead.
	File string `mapstructure:"file"`
	// Its SHA-256.
	SHA256 string `mapstructure:"sha256" required:"true"`
}
