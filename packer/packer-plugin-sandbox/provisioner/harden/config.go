//go:generate packer-sdc mapstructure-to-hcl2 -type Config
//go:generate packer-sdc struct-markdown

package harden

import (
	"github.com/hashicorp/packer-plugin-sdk/common"
	"github.com/hashicorp/packer-plugin-sdk/template/interpolate"
)

// Config says what the system is for.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`

	// `strict` (no nesting), `standard` (nesting, so that systemd's and the agents' own sandboxes work) or `docker` (Docker inside).
	// Default: `standard`.
	Profile string `mapstructure:"profile"`
	// The account that agents run as. Default: `agent`.
	AgentUser string `mapstructure:"agent_user"`
	// Its uid, the same in every template because files on workspaces carry it. Default: `1000`.
	AgentUID int `mapstructure:"agent_uid"`
	// How many processes one user, and one service, may have. Default: `4096`.
	TasksMax int `mapstructure:"tasks_max"`
	// Leave packages as they are: nothing is upgraded, installed or purged. For builds without a way to a package mirror; the audit
	// then doesn't know that all is upgraded. Default: `false`.
	SkipPackages bool `mapstructure:"skip_packages"`
	// Also clean up and take the identity (host keys, machine id). The builder sandbox-lxc does that itself, last of all; for other
	// builders set it on the last provisioner. Default: `false`.
	Seal bool `mapstructure:"seal"`
	// With `seal`: root's keys afterwards. Default: left as they are.
	ProviderKeys []string `mapstructure:"provider_keys"`
	// Run by `sudo -n`, where Packer doesn't log in as root. Default: `false`.
	Sudo bool `mapstructure:"sudo"`

	ctx interpolate.Context
}
