//go:generate packer-sdc mapstructure-to-hcl2 -type Config
//go:generate packer-sdc struct-markdown

package audit

import (
	"github.com/hashicorp/packer-plugin-sdk/common"
	"github.com/hashicorp/packer-plugin-sdk/template/interpolate"
)

// Config says what is right, and how good is good enough.
type Config struct {
	common.PackerConfig `mapstructure:",squash"`

	// The build fails below this grade: `A+`, `A`, `B`, `C`, `D` or `F`. Default: `A`.
	MinimumGrade string `mapstructure:"minimum_grade"`
	// `strict`, `standard` or `docker`. Default: what sandbox-harden has recorded, else `standard`.
	Profile string `mapstructure:"profile"`
	// `guest` for a system that runs, `template` for one that is sealed already. Default: `guest`.
	Stage string `mapstructure:"stage"`
	// The account that agents run as. Default: `agent`.
	AgentUser string `mapstructure:"agent_user"`
	// Public keys that may log in, in the format of authorized_keys. The key of the build itself is allowed too. Default: nobody says.
	AllowedKeys []string `mapstructure:"allowed_keys"`
	// TCP ports besides 22 that may listen on more than the loopback.
	Ports []int `mapstructure:"ports"`
	// Agents that must be installed: version by name.
	Agents map[string]string `mapstructure:"agents"`
	// Files of this machine that get the report as JSON, as SARIF 2.1.0 and as JUnit XML.
	JSONFile string `mapstructure:"json_file"`
	// See `json_file`.
	SARIFFile string `mapstructure:"sarif_file"`
	// See `json_file`.
	JUnitFile string `mapstructure:"junit_file"`
	// Run by `sudo -n`, where Packer doesn't log in as root. Default: `false`.
	Sudo bool `mapstructure:"sudo"`

	ctx interpolate.Context
}
