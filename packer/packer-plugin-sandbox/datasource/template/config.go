//go:generate packer-sdc mapstructure-to-hcl2 -type Config,DatasourceOutput
//go:generate packer-sdc struct-markdown

package template

import (
	"github.com/hashicorp/packer-plugin-sdk/common"

	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/access"
)

// Config says which template is looked for.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`
	access.Config       `mapstructure:",squash"`

	// The template's name.
	Name string `mapstructure:"name"`
	// Tags that it must all have.
	Tags []string `mapstructure:"tags"`
	// The node that it must be on.
	Node string `mapstructure:"node"`
	// Only templates that carry the marker of `owner`. Default: `false`.
	OwnedOnly bool `mapstructure:"owned_only"`
	// Take the newest of several. Without it, several are an error. Default: `false`.
	Newest bool `mapstructure:"newest"`
}

// DatasourceOutput is what was found.
type DatasourceOutput struct {
	// The template's id, for clone_vm_id.
	VMID int `mapstructure:"vm_id"`
	// Its node.
	Node string `mapstructure:"node"`
	// Its name.
	Name string `mapstructure:"name"`
	// Its tags.
	Tags []string `mapstructure:"tags"`
	// The build that made it; empty for a template that wasn't built by this plugin.
	BuildID string `mapstructure:"build_id"`
	// When it was built, RFC 3339.
	BuiltAt string `mapstructure:"built_at"`
	// What it was built from.
	Source string `mapstructure:"source"`
	// Its distribution, `debian:13`.
	OS string `mapstructure:"os"`
	// The audit's grade at the build.
	Grade string `mapstructure:"grade"`
	// The audit's points at the build.
	Score int `mapstructure:"score"`
	// The agents inside: version by name.
	Agents map[string]string `mapstructure:"agents"`
}
