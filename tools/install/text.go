package main

import (
	"fmt"
	"path/filepath"
	"strings"
)

// cliConfiguration makes both products look for this provider in the mirror and for everything else where they always do.
func cliConfiguration(mirror string) string {
	var addresses []string
	for _, host := range hosts {
		addresses = append(addresses, fmt.Sprintf("%q", host+"/"+source))
	}
	list := strings.Join(addresses, ", ")
	return fmt.Sprintf(`provider_installation {
  filesystem_mirror {
    path    = %q
    include = [%s]
  }
  direct {
    exclude = [%s]
  }
}
`, filepath.ToSlash(mirror), list, list)
}

func explanation(version, mirror, configuration string) string {
	return fmt.Sprintf(`Provider %[1]s is in %[2]s.

To use it, for Terraform and for OpenTofu, in this shell:

    export TF_CLI_CONFIG_FILE=%[3]s

or put this into ~/.terraformrc (Terraform) or ~/.tofurc (OpenTofu):

%[4]s
Then, in your configuration, and followed by 'terraform init' or 'tofu init':

    terraform {
      required_providers {
        sandbox = {
          source  = %[5]q
          version = %[1]q
        }
      }
    }

A lock file that knows another build of this version refuses the new one: remove its entry from .terraform.lock.hcl
after 'make install', or build under another number (make install VERSION=0.1.1).
`, version, mirror, configuration, indent(cliConfiguration(mirror)), source)
}

func indent(text string) string {
	return "    " + strings.ReplaceAll(strings.TrimSuffix(text, "\n"), "\n", "\n    ") + "\n"
}
