// Command schema prints the provider's schema in the form of `terraform providers schema -json`.
//
// It asks the provider's own server instead of a command line, so that the documentation of what an old command line
// doesn't know (identity, list resources, actions) doesn't depend on which one is installed.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
)

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "schema:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context) error {
	server, err := providerserver.NewProtocol6WithError(provider.New("docs")())()
	if err != nil {
		return err
	}
	schemas, err := dump(ctx, server)
	if err != nil {
		return err
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", "  ")
	return encoder.Encode(schemas)
}
