package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	packertest.Clean()
	os.Exit(code)
}

func TestThePluginDescribesItself(t *testing.T) {
	t.Parallel()
	out, err := exec.CommandContext(t.Context(), packertest.Plugin(t), "describe").Output()
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Version        string   `json:"version"`
		SDKVersion     string   `json:"sdk_version"`
		APIVersion     string   `json:"api_version"`
		Protocol       string   `json:"protocol_version"`
		Builders       []string `json:"builders"`
		PostProcessors []string `json:"post_processors"`
		Provisioners   []string `json:"provisioners"`
		Datasources    []string `json:"datasources"`
	}
	if err := json.Unmarshal(out, &d); err != nil {
		t.Fatal(err)
	}
	if d.Version != packertest.Version || d.APIVersion != "x5.0" || d.Protocol != "v2" || d.SDKVersion == "" {
		t.Errorf("it is %+v", d)
	}
	for _, o := range []struct{ have, want []string }{
		{d.Builders, []string{"lxc"}}, {d.PostProcessors, []string{"manifest", "vztmpl"}},
		{d.Provisioners, []string{"agents", "audit", "harden"}}, {d.Datasources, []string{"template"}},
	} {
		if !slices.Equal(o.have, o.want) {
			t.Errorf("it has %v, want %v", o.have, o.want)
		}
	}
}

func TestPluginCheckIsContent(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), packertest.SDC(t), "plugin-check", filepath.Base(packertest.Plugin(t)))
	cmd.Dir = filepath.Dir(packertest.Plugin(t))
	if out, err := cmd.CombinedOutput(); err != nil || len(strings.TrimSpace(string(out))) > 0 {
		t.Errorf("plugin-check: %v\n%s", err, out)
	}
}

const small = `
packer {
  required_plugins {
    sandbox = { version = ">= 0.1.0", source = "github.com/agentsandbox/sandbox" }
  }
}
source "sandbox-lxc" "small" {
  template_name        = "small"
  os_template          = "` + lab.TemplateFile + `"
  provider_public_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE4Vh0CDHr2qLmLfZ1n2mS7dhCGWNuZ2tLdFFYiZSPSj x"]
  rootfs { storage_pool = "local-btrfs" }
}
build { sources = ["source.sandbox-lxc.small"] }
`

func TestValidateAndInspectSendNoRequest(t *testing.T) {
	t.Parallel()
	c := packertest.New(t)
	c.Setenv("SANDBOX_ENDPOINT", "https://127.0.0.1:1") // nobody answers there
	c.Setenv("SANDBOX_API_TOKEN", "packer@pve!build=00000000-0000-0000-0000-000000000000")
	c.Write("t.pkr.hcl", small)
	c.Must("init", "t.pkr.hcl")
	c.Must("validate", "t.pkr.hcl")
	if out := c.Must("inspect", "t.pkr.hcl"); !strings.Contains(out, "sandbox-lxc.small") {
		t.Errorf("inspect says\n%s", out)
	}
	out := c.Must("validate", "-machine-readable", "t.pkr.hcl")
	if !strings.Contains(out, "ui,say,The configuration is valid.") {
		t.Errorf("validate says\n%s", out)
	}
}

func TestEverythingThatIsWrongIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	c := packertest.New(t)
	c.Write("t.pkr.hcl", strings.NewReplacer(
		`template_name        = "small"`, `template_name = "not a name"
  vm_id         = 7
  template_url  = "ftp://example.org/x.zip"
  cores         = -1
  communicator  = "winrm"
  minimum_grade = "Z"
  lxc_raw       = ["lxc.apparmor.profile: unconfined"]
  username      = "root@pam"
  password      = "secret-of-the-test"
  token         = "00000000-0000-0000-0000-000000000000"
  network_adapters {
    ip      = "10.0.0.9"
    gateway = "10.0.0.1"
  }`, `provider_public_keys = ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE4Vh0CDHr2qLmLfZ1n2mS7dhCGWNuZ2tLdFFYiZSPSj x"]`, `provider_public_keys = ["not a key"]`,
	).Replace(small))
	c.Must("init", "t.pkr.hcl")
	out := c.Fails([]string{
		"proxmox_url is missing", "token and password are set", `"not a name" is no DNS name`, "7 is no id", "2 sources: os_template, template_url",
		"cores is negative", `"winrm" can't reach a container`, `there is no grade "Z"`, "lxc.apparmor.profile may not be set", "provider_public_keys[0] is no public key",
		"network_adapters[0].gateway goes with an address", "there is no login on the node",
	}, "validate", "t.pkr.hcl")
	if strings.Contains(out, "secret-of-the-test") {
		t.Errorf("the password is in\n%s", out)
	}
}

func TestATemplateIsFoundDescribedAndBuiltUpon(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	key := strings.TrimSpace(l.PublicKey())
	first := strings.Replace(small, `["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIE4Vh0CDHr2qLmLfZ1n2mS7dhCGWNuZ2tLdFFYiZSPSj x"]`, `["`+key+`"]`, 1)
	first = strings.Replace(first, `build { sources = ["source.sandbox-lxc.small"] }`, `
build {
  sources = ["source.sandbox-lxc.small"]
  post-processor "sandbox-manifest" {}
}`, 1)
	c.Write("first.pkr.hcl", first)
	c.Must("init", "first.pkr.hcl")
	out := c.Must("build", "-machine-readable", "first.pkr.hcl")
	if !strings.Contains(out, "artifact,0,builder-id,agentsandbox.sandbox.lxc") || !strings.Contains(out, "artifact,0,id,100") {
		t.Errorf("the artifact is told as\n%s", out)
	}
	var m struct {
		Name   string `json:"name"`
		Source struct{ Kind, Reference string }
	}
	readJSON(t, filepath.Join(c.Dir, "small.template.json"), &m)
	if m.Name != "small" || m.Source.Kind != "os_template" || m.Source.Reference != lab.TemplateFile {
		t.Errorf("the manifest is %+v", m)
	}
	var bom struct {
		Format     string `json:"bomFormat"`
		Spec       string `json:"specVersion"`
		Components []struct{ Name string }
	}
	readJSON(t, filepath.Join(c.Dir, "small.cdx.json"), &bom)
	if bom.Format != "CycloneDX" || bom.Spec != "1.6" || len(bom.Components) == 0 {
		t.Errorf("the bill of materials is %+v", bom)
	}

	second := strings.NewReplacer(`"small"`, `"second"`, "sandbox-lxc.small", "sandbox-lxc.second", `os_template          = "`+lab.TemplateFile+`"`,
		"clone_vm_id = data.sandbox-template.base.vm_id\n  communicator = \"pct\"", `rootfs { storage_pool = "local-btrfs" }`, "").Replace(first) + `
data "sandbox-template" "base" {
  name   = "small"
  newest = true
}
`
	c.Setenv("SANDBOX_NODE_SSH_HOST", l.SSHHost())
	c.Setenv("SANDBOX_NODE_SSH_PRIVATE_KEY", l.PrivateKey())
	c.Setenv("SANDBOX_NODE_SSH_PORT", strings.TrimSpace(l.Variables()["SANDBOX_GUEST_SSH_PROXY_JUMP_PORT"]))
	c.Setenv("SANDBOX_NODE_SSH_HOST_KEY", l.SSHHostKey())
	if err := os.Remove(filepath.Join(c.Dir, "first.pkr.hcl")); err != nil {
		t.Fatal(err)
	}
	c.Write("second.pkr.hcl", second)
	if out := c.Must("build", "second.pkr.hcl"); !strings.Contains(out, "Template 101 (second") {
		t.Errorf("the second build says\n%s", out)
	}
	c.Write("third.pkr.hcl", strings.Replace(second, `name   = "small"`, `name   = "nosuch"`, 1))
	c.Must("validate", "third.pkr.hcl") // data sources are asked by a build only
	c.Fails([]string{`no template that matches a template with name "nosuch"`}, "build", "third.pkr.hcl")
}

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}
