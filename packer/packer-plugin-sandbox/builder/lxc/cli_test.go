package lxc_test

import (
	archive "archive/tar"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	packertest.Clean()
	os.Exit(code)
}

const header = `
packer {
  required_plugins {
    sandbox = { version = ">= 0.1.0", source = "github.com/agentsandbox/sandbox" }
  }
}
`

// build is a configuration with one build of a small template, and more in its source and build blocks.
func build(l *lab.Lab, source, body string) string {
	return header + `
source "sandbox-lxc" "small" {
  template_name        = "small"
  os_template          = "` + lab.TemplateFile + `"
  provider_public_keys = ["` + strings.TrimSpace(l.PublicKey()) + `"]
  rootfs { disk_size = 1 }
  cores  = 1
  memory = 256
` + source + `
}
build {
  sources = ["source.sandbox-lxc.small"]
` + body + `
}
`
}

// templates are the templates of the plugin's owner on the server, and strays everything else that it has made there.
func left(t *testing.T, l *lab.Lab) (templates, strays []int) {
	t.Helper()
	dump, err := l.Control().Dump(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range dump.Guests {
		if g.VMID == lab.TemplateID {
			continue
		}
		_, marker := sandbox.SplitDescription(g.Config["description"])
		if g.Config["template"] == "1" && marker != nil && marker.Phase == sandbox.PhaseReady && marker.VMID == g.VMID {
			templates = append(templates, g.VMID)
		} else {
			strays = append(strays, g.VMID)
		}
	}
	if len(dump.Strays) > 0 {
		t.Errorf("volumes without a container: %v", dump.Strays)
	}
	return templates, strays
}

func TestABuildMakesATemplateThatProvesItself(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, "", `
  provisioner "shell" {
    inline = ["echo built in ${build.VMID} > /etc/built"]
  }
`))
	c.Must("init", "t.pkr.hcl")
	c.Must("validate", "t.pkr.hcl")
	out := c.Must("build", "t.pkr.hcl")
	templates, strays := left(t, l)
	if len(templates) != 1 || len(strays) != 0 {
		t.Fatalf("templates %v, strays %v\n%s", templates, strays, out)
	}
	t.Log(out)
}

// guest is a container's configuration on the server.
func guest(t *testing.T, l *lab.Lab, vmid int) *pve.LXCConfig {
	t.Helper()
	client, err := pve.New(pve.Config{Endpoint: l.Endpoint(), Token: l.Token(), TLS: pve.TLSConfig{Fingerprint: l.Fingerprint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	cfg, err := client.LXCConfig(t.Context(), l.Nodes()[0], vmid)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func TestDebugBuildsStepByStepAndKeepsTheKey(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, "", ""))
	c.Must("init", "t.pkr.hcl")
	out := c.Must("build", "-debug", "t.pkr.hcl") // without a terminal nobody is asked between the steps
	if !strings.Contains(out, "Debug mode enabled") || !strings.Contains(out, "Saving key for debug purposes: small.pem") {
		t.Errorf("it says\n%s", out)
	}
	if keys, _ := filepath.Glob(filepath.Join(c.Dir, "*.pem")); len(keys) != 1 {
		t.Errorf("the build's key is in %v", keys)
	}
	if templates, strays := left(t, l); len(templates) != 1 || len(strays) != 0 {
		t.Errorf("there is %v %v", templates, strays)
	}
}

// TestTheSealedTemplateHoldsNothingOfTheBuild looks into a clone.
func TestTheSealedTemplateHoldsNothingOfTheBuild(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Write("t.pkr.hcl", build(l, "", ""))
	c.Must("init", "t.pkr.hcl")
	c.Must("build", "t.pkr.hcl")
	templates, _ := left(t, l)
	if len(templates) != 1 {
		t.Fatal(templates)
	}
	var tar bytes.Buffer
	if err := l.Engine().Export(t.Context(), templates[0], "", &tar); err != nil {
		t.Fatal(err)
	}
	files := map[string]string{}
	for r := archive.NewReader(&tar); ; {
		h, err := r.Next()
		if err != nil {
			break
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		files["/"+strings.TrimPrefix(strings.TrimPrefix(h.Name, "./"), "/")] = string(text)
	}
	for name := range files {
		if strings.Contains(name, "ssh_host_") || strings.Contains(name, "known_hosts") {
			t.Errorf("%s is in the template", name)
		}
	}
	if got := strings.TrimSpace(files["/root/.ssh/authorized_keys"]); got != strings.TrimSpace(l.PublicKey()) {
		t.Errorf("root's keys are %q", got)
	}
	if id, there := files["/etc/machine-id"]; !there || strings.TrimSpace(id) != "" {
		t.Errorf("the machine id is %q (%v)", id, there)
	}
	if !strings.Contains(files["/etc/sandbox/template.json"], `"name": "small"`) {
		t.Errorf("the manifest is %q", files["/etc/sandbox/template.json"])
	}
	if !strings.Contains(files["/etc/systemd/system/sandbox-firstboot.service"], "ssh-keygen -A") {
		t.Error("nothing makes host keys at first boot")
	}
	// The marker tells the API what the manifest tells who is inside.
	_, marker := sandbox.SplitDescription(guest(t, l, templates[0]).Text("description"))
	s, ok := marker.Summary()
	sum := sha256.Sum256([]byte(files["/etc/sandbox/template.json"]))
	if !ok || s.Digest != hex.EncodeToString(sum[:]) || s.Source != lab.TemplateFile || s.Grade == "" {
		t.Errorf("the marker says %+v", s)
	}
}
