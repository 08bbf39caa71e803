// packer-plugin-sandbox builds, hardens, audits and proves container templates for sandboxes on Proxmox VE.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/packer-plugin-sdk/plugin"

	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/builder/lxc"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/datasource/template"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/post-processor/manifest"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/post-processor/vztmpl"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/provisioner/agents"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/provisioner/audit"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/provisioner/harden"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/version"
)

func main() {
	set := plugin.NewSet()
	set.SetVersion(version.PluginVersion)
	set.RegisterBuilder("lxc", new(lxc.Builder))
	set.RegisterProvisioner("agents", new(agents.Provisioner))
	set.RegisterProvisioner("audit", new(audit.Provisioner))
	set.RegisterProvisioner("harden", new(harden.Provisioner))
	set.RegisterDatasource("template", new(template.Datasource))
	set.RegisterPostProcessor("manifest", new(manifest.PostProcessor))
	set.RegisterPostProcessor("vztmpl", new(vztmpl.PostProcessor))
	if err := set.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
