// Package provisioner tests the provisioners with a builder of somebody else's: Packer's communicator is all that they
// need.
package provisioner

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
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

// container makes a running container that Packer knows nothing of, and returns its address.
func container(t *testing.T, l *lab.Lab) string {
	t.Helper()
	client, err := pve.New(pve.Config{Endpoint: l.Endpoint(), Token: l.Token(), TLS: pve.TLSConfig{Fingerprint: l.Fingerprint()}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	m, err := sandbox.NewManager(client, sandbox.Settings{
		Owner: "tests", TemplateID: lab.TemplateID, Storage: lab.Storage, Bridge: lab.Bridge, FirewallSettle: l.FirewallSettle(), Management: []netip.Prefix{l.Management()},
		Addresses: &sandbox.AddressRange{CIDR: lab.AddressCIDR, First: lab.AddressFirst, Gateway: lab.AddressGateway},
		Guest: guest.Config{Auth: guest.Auth{PrivateKey: l.PrivateKey()}, Timeout: 20 * time.Second,
			ProxyJump: &guest.ProxyJump{Host: l.SSHHost(), Port: l.SSHPort(), Username: lab.SSHUser, HostKey: l.SSHHostKey()}},
	}, sandbox.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = m.Close() })
	out, err := m.Create(t.Context(), sandbox.Spec{
		Hostname: "somebodys", Started: true, WaitFor: sandbox.WaitForSSH, Network: sandbox.Network{IPv4: sandbox.AddressAuto, Mode: sandbox.ModeUnmanaged},
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return out.Sandbox.IPv4.String()
}

func TestTheAuditWorksWithTheNullBuilder(t *testing.T) {
	t.Parallel()
	l := packertest.StartLab(t, lab.Options{})
	address := container(t, l)
	c := packertest.New(t)
	c.Write("key", l.PrivateKey())
	configuration := func(grade string) string {
		return fmt.Sprintf(`
packer {
  required_plugins {
    sandbox = { version = ">= 0.1.0", source = "github.com/agentsandbox/sandbox" }
  }
}
source "null" "any" {
  ssh_host                     = %q
  ssh_username                 = "root"
  ssh_private_key_file         = "key"
  ssh_file_transfer_method     = "sftp"
  ssh_bastion_host             = %q
  ssh_bastion_port             = %d
  ssh_bastion_username         = "jump"
  ssh_bastion_private_key_file = "key"
}
build {
  sources = ["source.null.any"]
  provisioner "sandbox-audit" {
    minimum_grade = %q
    json_file     = "audit.json"
    sarif_file    = "audit.sarif"
    junit_file    = "audit.xml"
  }
}
`, address, l.SSHHost(), l.SSHPort(), grade)
	}
	c.Write("t.pkr.hcl", configuration("F"))
	c.Must("init", "t.pkr.hcl")
	c.Must("build", "t.pkr.hcl")
	var report struct {
		Grade    string `json:"grade"`
		Findings []struct {
			ID     string `json:"id"`
			Status string `json:"status"`
		} `json:"findings"`
	}
	raw, err := os.ReadFile(filepath.Join(c.Dir, "audit.json"))
	if err == nil {
		err = json.Unmarshal(raw, &report)
	}
	if err != nil || report.Grade == "" || len(report.Findings) < 20 {
		t.Fatalf("the report is %+v (%v)", report, err)
	}
	for file, want := range map[string]string{"audit.sarif": `"2.1.0"`, "audit.xml": "<testsuite"} {
		text, err := os.ReadFile(filepath.Join(c.Dir, file))
		if err != nil || !strings.Contains(string(text), want) {
			t.Errorf("%s: %v\n%s", file, err, text)
		}
	}
	// A system that nobody hardened doesn't pass, and hears what to do.
	c.Write("t.pkr.hcl", configuration("A"))
	c.Fails([]string{"minimum_grade is A", "Remedy:"}, "build", "t.pkr.hcl")
}

func TestProvisionersRefuseWhatCantBeMeant(t *testing.T) {
	t.Parallel()
	c := packertest.New(t)
	for body, says := range map[string]string{
		`provisioner "sandbox-agents" { agents = { claude-cod = "" } }`: "claude-code",
		`provisioner "sandbox-agents" { agents = {} }`:                  "agents is missing",
		`provisioner "sandbox-harden" { profile = "lax" }`:              `profile "lax"`,
		`provisioner "sandbox-harden" { provider_keys = ["x"] }`:        "provider_keys goes with seal",
		`provisioner "sandbox-audit" { minimum_grade = "E" }`:           `there is no grade "E"`,
		`provisioner "sandbox-audit" { stage = "later" }`:               `"later" is neither`,
	} {
		c.Write("t.pkr.hcl", `
packer {
  required_plugins {
    sandbox = { version = ">= 0.1.0", source = "github.com/agentsandbox/sandbox" }
  }
}
source "null" "any" { communicator = "none" }
build {
  sources = ["source.null.any"]
  `+body+`
}
`)
		c.Fails([]string{says}, "validate", "t.pkr.hcl")
	}
}
