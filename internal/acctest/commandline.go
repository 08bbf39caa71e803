package acctest

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/tfcli"
)

// Factories is what a TestCase needs to run the provider inside the test's process. The function is called for every
// command of the command line, so what must last lives outside the provider.
func Factories(newProvider func() provider.Provider) map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"sandbox": func() (tfprotov6.ProviderServer, error) {
			return providerserver.NewProtocol6WithError(newProvider())()
		},
	}
}

// CommandLine is the Terraform or OpenTofu that the tests run on. The test fails when there is none.
func CommandLine(t testing.TB) *tfcli.CLI {
	t.Helper()
	cli, err := found()
	if err != nil {
		t.Fatal(err)
	}
	return cli
}

var found = sync.OnceValues(func() (*tfcli.CLI, error) { return tfcli.Find(context.Background()) })

// prepareCommandLine tells terraform-plugin-testing what to run. It reads variables of the process, which parallel tests
// share, so they are set once for all.
func prepareCommandLine(t testing.TB) {
	t.Helper()
	cli := CommandLine(t)
	prepared.Do(func() {
		variables := map[string]string{
			"TF_ACC":             "1",
			tfcli.PathVariable:   cli.Path,
			"TF_CLI_CONFIG_FILE": os.DevNull, // the user's own could reroute the provider; a missing one warns at each command
			"CHECKPOINT_DISABLE": "1",
		}
		if cli.Product == tfcli.OpenTofu {
			// Else it takes the provider's namespace for Terraform's legacy one, and refuses.
			variables["TF_ACC_PROVIDER_HOST"] = cli.RegistryHost()
		}
		for name, value := range variables {
			if err := os.Setenv(name, value); err != nil {
				t.Fatal(err)
			}
		}
	})
}

var prepared sync.Once
