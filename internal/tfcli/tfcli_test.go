package tfcli

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
)

// fakeCLI is a command line that only tells its version.
func fakeCLI(t *testing.T, name, version, words string) string {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Skip("the fake command line is a shell script")
	}
	path := filepath.Join(t.TempDir(), name)
	script := fmt.Sprintf("#!/bin/sh\nif [ \"$2\" = -json ]; then echo '{\"terraform_version\":%q}'; else echo '%s'; fi\n", version, words)
	if err := os.WriteFile(path, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestInspectTellsTheProductByWhatItSaysNotByItsFileName(t *testing.T) {
	t.Parallel()
	cli, err := Inspect(t.Context(), fakeCLI(t, "terraform", "1.12.6", "OpenTofu v1.12.6"))
	if err != nil {
		t.Fatal(err)
	}
	if cli.Product != OpenTofu || cli.Name() != "OpenTofu 1.12.6" || cli.RegistryHost() != "registry.opentofu.org" {
		t.Errorf("got %s at %s", cli.Name(), cli.RegistryHost())
	}
}

func TestInspectRefusesACommandLineThatIsTooOld(t *testing.T) {
	t.Parallel()
	_, err := Inspect(t.Context(), fakeCLI(t, "terraform", "1.5.7", "Terraform v1.5.7"))
	if err == nil || !strings.Contains(err.Error(), "needs 1.11.0") {
		t.Errorf("got %v", err)
	}
}

func TestAVersionOfOneProductSaysNothingAboutTheOther(t *testing.T) {
	t.Parallel()
	cli, err := Inspect(t.Context(), fakeCLI(t, "tofu", "1.14.0", "OpenTofu v1.14.0"))
	if err != nil {
		t.Fatal(err)
	}
	if cli.AtLeast(Terraform, "1.14.0") || !cli.AtLeast(OpenTofu, "1.14.0") || cli.AtLeast(OpenTofu, "1.14.1") {
		t.Error("product and version are mixed up")
	}
}

func TestFindUsesWhatTheVariableNames(t *testing.T) {
	named := fakeCLI(t, "mine", "1.11.4", "Terraform v1.11.4")
	t.Setenv(PathVariable, named)
	cli, err := Find(t.Context())
	if err != nil || cli.Path != named {
		t.Errorf("got %+v, %v", cli, err)
	}
}

func TestFindSaysHowToGetACommandLineWhereThereIsNone(t *testing.T) {
	t.Setenv(PathVariable, "")
	t.Setenv("PATH", t.TempDir())
	t.Chdir(t.TempDir()) // outside the checkout, so that none was built either
	_, err := Find(t.Context())
	if err == nil || !strings.Contains(err.Error(), "make tofu") {
		t.Errorf("got %v", err)
	}
}

func TestRepositoryRootIsFoundFromASubFolder(t *testing.T) {
	t.Parallel()
	root, err := RepositoryRoot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, "terraform-registry-manifest.json")); err != nil {
		t.Error(err)
	}
}

func TestTheEnvironmentOfAWorkspaceHasNothingThatSteersTheProvider(t *testing.T) {
	for _, name := range []string{"TF_LOG", "TF_CLI_ARGS_apply", "SANDBOX_ENDPOINT", "PROXMOX_VE_API_TOKEN"} {
		t.Setenv(name, "of the user")
	}
	t.Setenv("NEUTRAL", "stays")
	env := inherited()
	for name := range env {
		if strings.HasPrefix(name, "TF_") || strings.HasPrefix(name, "SANDBOX_") || strings.HasPrefix(name, "PROXMOX_VE_") {
			t.Errorf("%s is inherited", name)
		}
	}
	if env["NEUTRAL"] != "stays" {
		t.Error("a variable that steers nothing got lost")
	}
}
