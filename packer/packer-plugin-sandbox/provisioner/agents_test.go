package provisioner

import (
	archive "archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

// packed is the archive of an agent that is one script, and its sum.
func packed(t *testing.T, name, script string) (content []byte, sum string) {
	t.Helper()
	var out bytes.Buffer
	gz := gzip.NewWriter(&out)
	tw := archive.NewWriter(gz)
	if err := tw.WriteHeader(&archive.Header{Name: name, Mode: 0o755, Size: int64(len(script))}); err != nil {
		t.Fatal(err)
	}
	if _, err := tw.Write([]byte(script)); err != nil {
		t.Fatal(err)
	}
	if err := tw.Close(); err != nil {
		t.Fatal(err)
	}
	if err := gz.Close(); err != nil {
		t.Fatal(err)
	}
	digest := sha256.Sum256(out.Bytes())
	return out.Bytes(), hex.EncodeToString(digest[:])
}

func TestAnAgentGoesIntoTheTemplateAndItsManifest(t *testing.T) {
	t.Parallel()
	if err := lab.CheckEngine(lab.EngineNS); err != nil {
		t.Skipf("no real containers on this machine: %v", err)
	}
	const debian = "debian-12-standard_12.12-1_amd64.tar.zst"
	l := packertest.StartLab(t, lab.Options{EngineName: lab.EngineNS, TemplateFiles: []string{debian}})
	c := packertest.New(t).Lab(l)
	configuration := func(archive, sum string) string {
		return fmt.Sprintf(`
packer {
  required_plugins {
    sandbox = { version = ">= 0.1.0", source = "github.com/agentsandbox/sandbox" }
  }
}
source "sandbox-lxc" "agents" {
  template_name        = "agents"
  os_template          = "local:vztmpl/%s"
  provider_public_keys = [%q]
  rootfs { disk_size = 4 }
}
build {
  sources = ["source.sandbox-lxc.agents"]
  provisioner "sandbox-agents" {
    agents = { goose = "1.50.0" }
    binary {
      name   = "goose"
      file   = %q
      sha256 = %q
    }
  }
  post-processor "sandbox-manifest" {}
}
`, debian, strings.TrimSpace(l.PublicKey()), archive, sum)
	}
	for name, script := range map[string]string{
		"good": "#!/bin/sh\necho goose 1.50.0\n",
		"dead": "#!/bin/sh\necho native binary not installed\n", // exits with 0 all the same
		"old":  "#!/bin/sh\necho goose 1.49.0\n",
	} {
		content, sum := packed(t, "goose", script)
		if err := os.WriteFile(filepath.Join(c.Dir, name+".tar.gz"), content, 0o600); err != nil {
			t.Fatal(err)
		}
		c.Write("t.pkr.hcl", configuration(name+".tar.gz", sum))
		c.Must("init", "t.pkr.hcl")
		if name != "good" {
			c.Fails([]string{"unable to install the agents: goose"}, "build", "t.pkr.hcl")
			continue
		}
		if out := c.Must("build", "t.pkr.hcl"); !strings.Contains(out, "with goose 1.50.0") {
			t.Errorf("the artifact is told as\n%s", out)
		}
		for _, file := range []string{"agents.template.json", "agents.cdx.json"} {
			text, err := os.ReadFile(filepath.Join(c.Dir, file))
			if err != nil || !strings.Contains(string(text), `"1.50.0"`) || !strings.Contains(string(text), "goose") {
				t.Errorf("%s: %v\n%s", file, err, text)
			}
		}
	}
}
