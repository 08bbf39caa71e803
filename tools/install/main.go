// Command install builds the provider into a local filesystem mirror and prints the CLI configuration that makes
// Terraform and OpenTofu take it from there; beside it, the Packer plugin and what makes Packer take it. It changes nothing outside the mirror: whether and where to use the
// configuration is the user's decision.
package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The provider's address below a registry host.
const (
	source  = "agentsandbox/sandbox"
	program = "terraform-provider-sandbox"
)

// hosts are the registries that the short source stands for: Terraform's and OpenTofu's.
var hosts = []string{"registry.terraform.io", "registry.opentofu.org"}

func main() {
	version := flag.String("version", "0.1.0", "version that the provider reports and is found under")
	mirror := flag.String("mirror", ".cache/mirror", "folder of the filesystem mirror")
	plugin := flag.String("plugin", "", "folder of the Packer plugin's module, to install it too")
	flag.Parse()
	if err := install(*version, *mirror, *plugin); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func install(version, mirror, plugin string) error {
	mirror, err := filepath.Abs(mirror)
	if err != nil {
		return err
	}
	platform := runtime.GOOS + "_" + runtime.GOARCH
	name := program + "_v" + version
	if runtime.GOOS == "windows" {
		name += ".exe"
	}

	// The unpacked layout: HOST/NAMESPACE/TYPE/VERSION/PLATFORM/. One build, under both hosts.
	var built string
	for _, host := range hosts {
		folder := filepath.Join(mirror, host, filepath.FromSlash(source), version, platform)
		if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // others may use the mirror
			return err
		}
		target := filepath.Join(folder, name)
		if built == "" {
			if err := build(version, target); err != nil {
				return err
			}
			built = target
			continue
		}
		if err := copyFile(built, target); err != nil {
			return err
		}
	}

	configuration := filepath.Join(mirror, "cli.tfrc")
	if err := os.WriteFile(configuration, []byte(cliConfiguration(mirror)), 0o644); err != nil { //nolint:gosec // no secret, others may use it
		return err
	}
	fmt.Print(explanation(version, mirror, configuration))
	if plugin == "" {
		return nil
	}
	root, err := installPlugin(plugin, version, mirror)
	if err != nil {
		return err
	}
	fmt.Print(pluginExplanation(version, root))
	return nil
}

func build(version, target string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", //nolint:noctx // runs as long as the user lets it
		"-ldflags", "-s -w -X main.version="+version, "-o", target, "./provider/terraform-provider-sandbox")
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("go build: %w\n%s", err, said.String())
	}
	return nil
}

func copyFile(from, to string) error {
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, 0o755) //nolint:gosec // a program
}
