package tfcli

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// Source is the provider's short source address, as a required_providers block writes it.
const Source = "agentsandbox/sandbox"

// BuildProvider compiles the provider of this checkout into dir and returns dir, the folder to override with.
func BuildProvider(ctx context.Context, dir string) (string, error) {
	root, err := RepositoryRoot()
	if err != nil {
		return "", err
	}
	binary := filepath.Join(dir, "terraform-provider-sandbox"+exeSuffix())
	// No VCS stamping: a checkout that belongs to another user must build too.
	cmd := exec.CommandContext(ctx, "go", "build", "-buildvcs=false", "-o", binary, "./provider/terraform-provider-sandbox")
	cmd.Dir = root
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building the provider: %w\n%s", err, said.String())
	}
	return dir, nil
}

// WriteConfig writes a CLI configuration into dir that takes the provider from the folder providerDir, without init
// and without any registry, and returns the file's name.
func (c *CLI) WriteConfig(dir, providerDir string) (string, error) {
	content := fmt.Sprintf("provider_installation {\n  dev_overrides {\n    %q = %q\n  }\n  direct {}\n}\n",
		c.RegistryHost()+"/"+Source, filepath.ToSlash(providerDir))
	file := filepath.Join(dir, "cli.tfrc")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		return "", err
	}
	return file, nil
}
