// Package tfcli finds and drives the command line, Terraform or OpenTofu, that tests, examples and the demo run the
// provider with. It keeps to a folder that the caller names: no plugin cache, no user configuration, no call home.
package tfcli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/hashicorp/go-version"
)

// Product is whose command line it is. The two number their versions independently, so a version without its product
// says nothing about what it can do.
type Product string

// The command lines that can run this provider.
const (
	Terraform Product = "Terraform"
	OpenTofu  Product = "OpenTofu"
)

// Minimum is the oldest version that the provider supports, on both products: write-only attributes came with it.
var Minimum = version.Must(version.NewVersion("1.11.0"))

// PathVariable is the variable of terraform-plugin-testing that names the command line to use.
const PathVariable = "TF_ACC_TERRAFORM_PATH"

// CLI is a command line that was found.
type CLI struct {
	Path    string // absolute
	Product Product
	Version *version.Version
}

// Find returns the command line to use: what TF_ACC_TERRAFORM_PATH names, else terraform or tofu on the PATH, else the
// OpenTofu that `make tofu` has built. One that is older than Minimum is passed over, unless it was named.
func Find(ctx context.Context) (*CLI, error) {
	if named := os.Getenv(PathVariable); named != "" {
		return Inspect(ctx, named)
	}
	var passed []string
	for _, candidate := range candidates() {
		cli, err := Inspect(ctx, candidate)
		if err != nil {
			passed = append(passed, err.Error())
			continue
		}
		return cli, nil
	}
	if len(passed) > 0 {
		return nil, fmt.Errorf("no usable command line: %s; `make tofu` builds OpenTofu into .cache/bin", strings.Join(passed, "; "))
	}
	return nil, fmt.Errorf("neither terraform nor tofu is on the PATH; `make tofu` builds OpenTofu into .cache/bin, or set %s", PathVariable)
}

// candidates lists the command lines that exist, best first.
func candidates() []string {
	var found []string
	for _, name := range []string{"terraform", "tofu"} {
		if path, err := exec.LookPath(name); err == nil {
			found = append(found, path)
		}
	}
	if root, err := RepositoryRoot(); err == nil {
		built := filepath.Join(root, ".cache", "bin", "tofu"+exeSuffix())
		if _, err := os.Stat(built); err == nil {
			found = append(found, built)
		}
	}
	return found
}

// Inspect asks a command line what it is, by its own words, not by the name of its file.
func Inspect(ctx context.Context, path string) (*CLI, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, path, "version", "-json")
	cmd.Env = append(os.Environ(), "CHECKPOINT_DISABLE=1", "TF_CLI_CONFIG_FILE="+os.DevNull)
	numbers, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", path, err)
	}
	var answer struct {
		Version string `json:"terraform_version"` // OpenTofu uses the same key
	}
	if err := json.Unmarshal(numbers, &answer); err != nil {
		return nil, fmt.Errorf("%s version -json: %w", path, err)
	}
	v, err := version.NewVersion(answer.Version)
	if err != nil {
		return nil, fmt.Errorf("%s version -json: %w", path, err)
	}
	if v.Core().LessThan(Minimum) {
		return nil, fmt.Errorf("%s is version %s, the provider needs %s", path, v, Minimum)
	}

	words := exec.CommandContext(ctx, path, "version")
	words.Env = cmd.Env
	said, err := words.Output()
	if err != nil {
		return nil, fmt.Errorf("%s version: %w", path, err)
	}
	cli := &CLI{Path: path, Product: Terraform, Version: v}
	if strings.Contains(string(said), string(OpenTofu)) {
		cli.Product = OpenTofu
	}
	return cli, nil
}

// Name is the product and its version, as people say it: "OpenTofu 1.12.6".
func (c *CLI) Name() string { return fmt.Sprintf("%s %s", c.Product, c.Version) }

// RegistryHost is the host that a short provider source stands for: each product has a registry of its own.
func (c *CLI) RegistryHost() string {
	if c.Product == OpenTofu {
		return "registry.opentofu.org"
	}
	return "registry.terraform.io"
}

// AtLeast says whether the command line is of the product and not older than the version.
func (c *CLI) AtLeast(product Product, oldest string) bool {
	return c.Product == product && !c.Version.Core().LessThan(version.Must(version.NewVersion(oldest)))
}

// RepositoryRoot is the folder of the provider's go.mod at or above the working directory.
func RepositoryRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && strings.HasPrefix(string(content), "module "+modulePath+"\n") {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("not inside a checkout of terraform-provider-sandbox")
		}
		dir = parent
	}
}

const modulePath = "github.com/agentsandbox/terraform-provider-sandbox"

func exeSuffix() string {
	if runtime.GOOS == "windows" {
		return ".exe"
	}
	return ""
}
