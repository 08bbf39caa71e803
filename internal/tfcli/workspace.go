package tfcli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/terraform-exec/tfexec"
)

// Workspace is a working directory with a copy of a configuration, its state, and the provider of this checkout.
type Workspace struct {
	*tfexec.Terraform
	Dir string
}

// WorkspaceOptions says what a Workspace is made of.
type WorkspaceOptions struct {
	Config      string            // folder with the configuration; its files are copied, its sub-folders too
	Dir         string            // an empty folder for the copy, state, plans and CLI configuration
	ProviderDir string            // folder with the provider's binary (BuildProvider)
	Environment map[string]string // on top of this process's own, less what would reroute the command line
	Stdout      io.Writer         // where the command line's words go; nil for nowhere
}

// NewWorkspace lays out a working directory. Nothing is run yet.
func (c *CLI) NewWorkspace(o WorkspaceOptions) (*Workspace, error) {
	config := filepath.Join(o.Dir, "config")
	if err := os.CopyFS(config, os.DirFS(o.Config)); err != nil {
		return nil, fmt.Errorf("copying %s: %w", o.Config, err)
	}
	rc, err := c.WriteConfig(o.Dir, o.ProviderDir)
	if err != nil {
		return nil, err
	}
	tf, err := tfexec.NewTerraform(config, c.Path)
	if err != nil {
		return nil, err
	}
	env := inherited()
	for name, value := range o.Environment {
		env[name] = value
	}
	env["TF_CLI_CONFIG_FILE"] = rc
	env["TF_DATA_DIR"] = filepath.Join(o.Dir, "data")
	env["CHECKPOINT_DISABLE"] = "1"
	if err := tf.SetEnv(env); err != nil {
		return nil, err
	}
	if o.Stdout != nil {
		tf.SetStdout(o.Stdout)
		tf.SetStderr(o.Stdout)
	}
	return &Workspace{Terraform: tf, Dir: config}, nil
}

// inherited is this process's environment without what steers the command line or the provider: a run answers to what
// the caller says, not to what a user happens to have exported.
func inherited() map[string]string {
	env := map[string]string{}
	for _, pair := range os.Environ() {
		name, value, _ := strings.Cut(pair, "=")
		for _, prefix := range []string{"TF_", "SANDBOX_", "PROXMOX_VE_"} {
			if strings.HasPrefix(name, prefix) {
				name = ""
				break
			}
		}
		if name != "" {
			env[name] = value
		}
	}
	return env
}
