// packer-plugin-sandbox builds, hardens, audits and proves container templates for sandboxes on Proxmox VE.
package main

import (
	"fmt"
	"os"

	"github.com/hashicorp/packer-plugin-sdk/plugin"

	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/builder/lxc"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/version"
)

func main() {
	set := plugin.NewSet()
	set.SetVersion(version.PluginVersion)
	set.RegisterBuilder("lxc", new(lxc.Builder))
	if err := set.Run(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
