package vztmpl_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/packer/packer-plugin-sandbox/internal/packertest"
)

func TestMain(m *testing.M) {
	code := m.Run()
	packertest.Clean()
	os.Exit(code)
}

func TestATemplateIsExportedAsATemplateFile(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	c := packertest.New(t).Lab(l)
	c.Setenv("SANDBOX_NODE_SSH_HOST", l.SSHHost())
	c.Setenv("SANDBOX_NODE_SSH_PORT", fmt.Sprint(l.SSHPort()))
	c.Setenv("SANDBOX_NODE_SSH_PRIVATE_KEY", l.PrivateKey())
	c.Setenv("SANDBOX_NODE_SSH_HOST_KEY", l.SSHHostKey())
	configuration := `
packer {
  required_plugins {
    sandbox = { version = ">= 0.1.0", source = "github.com/agentsandbox/sandbox" }
  }
}
source "sandbox-lxc" "small" {
  template_name        = "small"
  os_template          = "` + lab.TemplateFile + `"
  provider_public_keys = ["` + strings.TrimSpace(l.PublicKey()) + `"]
  rootfs { disk_size = 1 }
}
build {
  sources = ["source.sandbox-lxc.small"]
  post-processor "sandbox-vztmpl" { filename = "small.tar.zst" }
}
`
	c.Write("t.pkr.hcl", configuration)
	c.Must("init", "t.pkr.hcl")
	if out := c.Must("build", "t.pkr.hcl"); !strings.Contains(out, "Template file local:vztmpl/small.tar.zst") {
		t.Errorf("it says\n%s", out)
	}
	client, err := pve.New(pve.Config{Endpoint: l.Endpoint(), Token: l.Token(), TLS: pve.TLSConfig{Fingerprint: l.Fingerprint()}})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	archives := func() (backups, files []string) {
		volumes, err := client.StorageContent(t.Context(), l.Nodes()[0], "local", "", 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range volumes {
			switch v.Content {
			case "backup":
				backups = append(backups, v.VolID)
			case "vztmpl":
				files = append(files, v.VolID)
			}
		}
		return backups, files
	}
	if backups, files := archives(); len(backups) != 0 || !strings.Contains(strings.Join(files, " "), "local:vztmpl/small.tar.zst") {
		t.Errorf("backups %v, template files %v", backups, files)
	}
	// It is a template file like any other: the next one is built from it. One of the same name is not written over.
	c.Write("t.pkr.hcl", strings.NewReplacer(lab.TemplateFile, "local:vztmpl/small.tar.zst", `"small"`, `"second"`, ".small", ".second", "small.tar.zst\" }", "small.tar.zst\" }").Replace(configuration))
	c.Fails([]string{"local:vztmpl/small.tar.zst is there already"}, "build", "t.pkr.hcl")
	if backups, _ := archives(); len(backups) != 0 {
		t.Errorf("an archive is left: %v", backups)
	}
}
