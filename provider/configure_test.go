package provider_test

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"golang.org/x/crypto/ssh"

	"github.com/agentsandbox/terraform-provider-sandbox/provider"
	"github.com/agentsandbox/terraform-provider-sandbox/provider/internal/protocoltest"
)

type values = protocoltest.Values

// configure configures a fresh provider and returns what it had to say. Nothing listens at the endpoint: configuring
// must not ask.
func configure(t *testing.T, config values, variables map[string]string) []*tfprotov6.Diagnostic {
	t.Helper()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: func(name string) string { return variables[name] }}))
	return server.Configure(t, config)
}

func minimal(more values) values {
	config := values{"endpoint": "https://127.0.0.1:1", "api_token": "u@pve!test=00000000-0000-0000-0000-000000000000", "owner": "me"}
	for name, v := range more {
		if v == nil {
			delete(config, name)
			continue
		}
		config[name] = v
	}
	return config
}

func TestConfigureAsksNoServer(t *testing.T) {
	t.Parallel()
	if diags := configure(t, minimal(nil), nil); len(diags) > 0 {
		t.Errorf("unexpected: %s", protocoltest.Text(diags))
	}
}

func TestConfigureRefuses(t *testing.T) {
	t.Parallel()
	missing := filepath.Join(t.TempDir(), "missing")
	for name, test := range map[string]struct {
		config values
		env    map[string]string
		want   []string // all of them in one diagnostic's text
	}{
		"no endpoint":              {minimal(values{"endpoint": nil}), nil, []string{"endpoint", "SANDBOX_ENDPOINT", "missing"}},
		"no credentials":           {minimal(values{"api_token": nil}), nil, []string{"api_token", "no credentials"}},
		"token of another form":    {minimal(values{"api_token": "abc"}), nil, []string{"api_token", "user@realm!name=uuid"}},
		"token beside a login":     {minimal(values{"username": "root@pam", "password": "secret"}), nil, []string{"api_token"}},
		"plain http":               {minimal(values{"endpoint": "http://pve.example.org:8006"}), nil, []string{"endpoint", "clear"}},
		"password without user":    {minimal(values{"api_token": nil, "password": "secret"}), nil, []string{"username", "missing"}},
		"CA file that isn't there": {minimal(values{"ca_file": missing}), nil, []string{"ca_file"}},
		"two ways to verify":       {minimal(values{"insecure": true, "fingerprint": strings.Repeat("ab", 32)}), nil, []string{"fingerprint", "insecure"}},
		"broken fingerprint":       {minimal(values{"fingerprint": "abc"}), nil, []string{"fingerprint"}},
		"half a range":             {minimal(values{"vmid_range": values{"first": 1000}}), nil, []string{"vmid_range.last", "missing"}},
		"a range backwards":        {minimal(values{"vmid_range": values{"first": 2000, "last": 1000}}), nil, []string{"vmid_range"}},
		"addresses for fewer ids than there are": {
			minimal(values{"vmid_range": values{"first": 1000, "last": 1999}, "address_range": values{"cidr": "10.0.0.0/24", "first": "10.0.0.10"}}),
			nil, []string{"address_range", "smaller"}},
		"a gateway that would be a guest": {
			minimal(values{"vmid_range": values{"first": 1000, "last": 1009}, "address_range": values{"cidr": "10.0.0.0/24", "first": "10.0.0.10", "gateway": "10.0.0.12"}}),
			nil, []string{"address_range", "gateway"}},
		"an address that is none":         {minimal(values{"address_range": values{"cidr": "10.0.0.0/24", "first": "x"}}), nil, []string{"address_range.first", `"x"`}},
		"an owner that can't be marked":   {minimal(values{"owner": "a b"}), nil, []string{"owner"}},
		"a number variable that is none":  {minimal(nil), map[string]string{"SANDBOX_MAX_CLONES": "many"}, []string{"SANDBOX_MAX_CLONES", "whole number", "max_clones"}},
		"a truth variable that is none":   {minimal(nil), map[string]string{"SANDBOX_INSECURE": "perhaps"}, []string{"SANDBOX_INSECURE", "true or false"}},
		"a key file that isn't there":     {minimal(values{"guest_ssh": values{"private_key_file": missing}}), nil, []string{"guest_ssh.private_key_file"}},
		"a key that is none":              {minimal(values{"guest_ssh": values{"private_key": "nonsense"}}), nil, []string{"Unable to configure the provider"}},
		"a jump without a host":           {minimal(values{"guest_ssh": values{"proxy_jump": values{"port": 22}}}), nil, []string{"guest_ssh.proxy_jump.host", "missing"}},
		"a timeout that is no duration":   {minimal(values{"guest_ssh": values{"timeout": "soon"}}), nil, []string{"guest_ssh.timeout"}},
		"a timeout variable that is none": {minimal(nil), map[string]string{"SANDBOX_GUEST_SSH_TIMEOUT": "soon"}, []string{"guest_ssh.timeout", "SANDBOX_GUEST_SSH_TIMEOUT"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			diags := configure(t, test.config, test.env)
			if !protocoltest.HasErrors(diags) {
				t.Fatalf("it was accepted: %s", protocoltest.Text(diags))
			}
			for _, d := range diags {
				text := protocoltest.Text([]*tfprotov6.Diagnostic{d})
				if containsAll(text, test.want) {
					return
				}
			}
			t.Errorf("no diagnostic holds %q:\n%s", test.want, protocoltest.Text(diags))
		})
	}
}

func containsAll(text string, wants []string) bool {
	for _, want := range wants {
		if !strings.Contains(text, want) {
			return false
		}
	}
	return true
}

func TestConfigurationCountsMoreThanEnvironment(t *testing.T) {
	t.Parallel()
	// Each variable alone would be refused, so that an accepted configuration proves that it wasn't used.
	diags := configure(t, minimal(values{"insecure": false, "max_clones": 3, "vmid_range": values{"first": 1000, "last": 1999}}), map[string]string{
		"SANDBOX_ENDPOINT":         "nonsense",
		"PROXMOX_VE_API_TOKEN":     "nonsense",
		"SANDBOX_OWNER":            "a b",
		"SANDBOX_MAX_CLONES":       "many",
		"SANDBOX_INSECURE":         "perhaps",
		"SANDBOX_VMID_RANGE_FIRST": "5000",
		"PROXMOX_VE_USERNAME":      "nobody", // beside the configured token: a leftover, not a contradiction
	})
	if len(diags) > 0 {
		t.Errorf("unexpected: %s", protocoltest.Text(diags))
	}
}

func TestVariablesStandForEveryAttribute(t *testing.T) {
	t.Parallel()
	key := writeKey(t, 0o600)
	diags := configure(t, values{}, map[string]string{
		"PROXMOX_VE_ENDPOINT":                           "https://127.0.0.1:1/api2/json",
		"SANDBOX_ENDPOINT":                              "https://127.0.0.1:2",
		"PROXMOX_VE_USERNAME":                           "root@pam",
		"PROXMOX_VE_PASSWORD":                           "secret",
		"SANDBOX_OWNER":                                 "me",
		"SANDBOX_FINGERPRINT":                           strings.Repeat("ab:", 31) + "ab",
		"SANDBOX_VMID_RANGE_FIRST":                      "1000",
		"SANDBOX_VMID_RANGE_LAST":                       "1099",
		"SANDBOX_ADDRESS_RANGE_CIDR":                    "10.0.0.0/16",
		"SANDBOX_ADDRESS_RANGE_FIRST":                   "10.0.1.0",
		"SANDBOX_ADDRESS_RANGE_GATEWAY":                 "10.0.0.1",
		"SANDBOX_NODES":                                 "pve1, pve2",
		"SANDBOX_TEMPLATE_ID":                           "9000",
		"SANDBOX_GUEST_SSH_PRIVATE_KEY_FILE":            key,
		"SANDBOX_GUEST_SSH_PORT":                        "2222",
		"SANDBOX_GUEST_SSH_TIMEOUT":                     "90s",
		"SANDBOX_GUEST_SSH_PROXY_JUMP_HOST":             "jump.example.org",
		"SANDBOX_GUEST_SSH_PROXY_JUMP_HOST_KEY":         publicKeyOf(t, key),
		"SANDBOX_GUEST_SSH_PROXY_JUMP_PRIVATE_KEY_FILE": key,
	})
	if len(diags) > 0 {
		t.Errorf("unexpected: %s", protocoltest.Text(diags))
	}
}

func TestInsecureWarnsOnEachRun(t *testing.T) {
	t.Parallel()
	for name, diags := range map[string][]*tfprotov6.Diagnostic{
		"configured": configure(t, minimal(values{"insecure": true}), nil),
		"variable":   configure(t, minimal(nil), map[string]string{"PROXMOX_VE_INSECURE": "1"}),
	} {
		if text := protocoltest.Text(diags); !containsAll(text, []string{"WARNING", "insecure", "fingerprint"}) {
			t.Errorf("%s: no warning: %s", name, text)
		}
	}
}

func TestAPrivateKeyThatOthersCanReadWarns(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		t.Skip("permissions aren't in the mode there")
	}
	open := writeKey(t, 0o644)
	diags := configure(t, minimal(values{"guest_ssh": values{"private_key_file": open}}), nil)
	if text := protocoltest.Text(diags); !containsAll(text, []string{"WARNING", "0644", "chmod 600 " + open}) {
		t.Errorf("no warning: %s", text)
	}
	if diags := configure(t, minimal(values{"guest_ssh": values{"private_key_file": writeKey(t, 0o600)}}), nil); len(diags) > 0 {
		t.Errorf("a private file warns: %s", protocoltest.Text(diags))
	}
}

func TestAnUnpinnedJumpHostWarns(t *testing.T) {
	t.Parallel()
	diags := configure(t, minimal(values{"guest_ssh": values{"private_key_file": writeKey(t, 0o600), "proxy_jump": values{"host": "jump.example.org"}}}), nil)
	if text := protocoltest.Text(diags); !containsAll(text, []string{"WARNING", "ssh-keyscan jump.example.org"}) {
		t.Errorf("no warning: %s", text)
	}
}

func TestAnUnknownProviderPlansButDoesNotApply(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	diags := server.Configure(t, minimal(values{"endpoint": protocoltest.Unknown, "vmid_range": values{"first": protocoltest.Unknown, "last": 5000}}))
	protocoltest.NoErrors(t, diags)
	if text := protocoltest.Text(diags); !containsAll(text, []string{"WARNING", "endpoint", "vmid_range.first"}) {
		t.Errorf("no warning that names the attributes: %s", text)
	}
	r := server.NewResource(t, "sandbox_container")
	plan := server.Plan(t, r, values{"hostname": "web-1", "template_id": 9000})
	protocoltest.NoErrors(t, plan.Diags)
	if got := plan.Get(t, "network.ipv4"); got != protocoltest.Unknown {
		t.Errorf("network.ipv4 depends on the provider block, and was planned as %v", got)
	}
	diags = server.Apply(t, t.Context(), plan)
	if text := protocoltest.Text(diags); !containsAll(text, []string{"ERROR", "endpoint, vmid_range.first", "-target"}) {
		t.Errorf("no error that says what to do: %s", text)
	}
	if r.Exists() {
		t.Error("something is tracked though nothing was made")
	}
}

func TestEveryWriteNeedsAnOwner(t *testing.T) {
	t.Parallel()
	server := protocoltest.Start(t, provider.NewWith(provider.Options{Getenv: protocoltest.NoEnvironment}))
	protocoltest.NoErrors(t, server.Configure(t, minimal(values{"owner": nil})))
	plan := server.Plan(t, server.NewResource(t, "sandbox_container"), values{"hostname": "web-1", "template_id": 9000})
	if text := protocoltest.Text(plan.Diags); !containsAll(text, []string{"ERROR", "owner", "SANDBOX_OWNER"}) {
		t.Errorf("a plan without an owner says: %s", text)
	}
}

func writeKey(t *testing.T, mode os.FileMode) string {
	t.Helper()
	_, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	block, err := ssh.MarshalPrivateKey(private, "test")
	if err != nil {
		t.Fatal(err)
	}
	name := filepath.Join(t.TempDir(), "id_ed25519")
	if err := os.WriteFile(name, pem.EncodeToMemory(block), mode); err != nil {
		t.Fatal(err)
	}
	return name
}

func publicKeyOf(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := ssh.ParsePrivateKey(text)
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(signer.PublicKey())))
}
