// Command terraform-provider-sandbox is the Terraform provider "sandbox" as a plugin; Terraform starts it.
package main

import (
	"context"
	"flag"
	"log"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
)

// version is set at build time.
var version = "dev"

// address is the provider's in the registry. Terraform checks it only when a debugger is attached.
const address = "registry.terraform.io/agentsandbox/sandbox"

func main() {
	debug := flag.Bool("debug", false, "serve for a debugger, and print how to attach Terraform to it")
	flag.Parse()
	err := providerserver.Serve(context.Background(), provider.New(version), providerserver.ServeOpts{
		Address: address,
		Debug:   *debug,
	})
	if err != nil {
		log.Fatal(err)
	}
}
