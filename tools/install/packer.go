package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// The Packer plugin's address, as required_plugins names it, and its module.
const (
	pluginSource  = "github.com/agentsandbox/sandbox"
	pluginProgram = "packer-plugin-sandbox"
	pluginVersion = "github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/version"
	// pluginAPI is the version of Packer's plugin protocol: it is part of the file's name.
	pluginAPI = "x5.0"
)

// installPlugin builds the Packer plugin into the layout that `packer init` makes and is content with: the binary under
// its full name, and its checksum beside it.
func installPlugin(module, version, mirror string) (string, error) {
	root := filepath.Join(mirror, "packer")
	folder := filepath.Join(root, filepath.FromSlash(pluginSource))
	if err := os.MkdirAll(folder, 0o755); err != nil { //nolint:gosec // others may use the mirror
		return "", err
	}
	name := fmt.Sprintf("%s_v%s_%s_%s_%s", pluginProgram, version, pluginAPI, runtime.GOOS, runtime.GOARCH)
	if runtime.GOOS == "windows" {
		name += ".exe"
	}
	target := filepath.Join(folder, name)
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", //nolint:noctx // runs as long as the user lets it
		"-ldflags", "-s -w -X "+pluginVersion+".Version="+version+" -X "+pluginVersion+".VersionPrerelease=", "-o", target, ".")
	cmd.Dir = module
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build of the Packer plugin: %w\n%s", err, said.String())
	}
	content, err := os.ReadFile(target)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(content)
	return root, os.WriteFile(target+"_SHA256SUM", []byte(hex.EncodeToString(sum[:])), 0o644) //nolint:gosec // no secret
}

func pluginExplanation(version, root string) string {
	return fmt.Sprintf(`
Packer plugin %[1]s is in %[2]s.

To use it, in this shell (Packer then looks for plugins nowhere else):

    export PACKER_PLUGIN_PATH=%[2]s

or copy it to where the others are: ~/.config/packer/plugins. Then, in your template, and followed by 'packer init':

    packer {
      required_plugins {
        sandbox = {
          source  = %[3]q
          version = ">= %[1]s"
        }
      }
    }
`, version, root, pluginSource)
}
