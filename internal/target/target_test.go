package target

import (
	"net/netip"
	"strings"
	"testing"
)

func sample() Target {
	return Target{
		Endpoint: "https://127.0.0.1:8006", APIToken: "u@pve!t=${x}", Owner: "o", Nodes: []string{"pve1", "pve2"}, TemplateID: 9000,
		Storage: "local", Bridge: "vmbr0", VMIDs: VMIDRange{100, 199},
		Addresses: AddressRange{CIDR: netip.MustParsePrefix("10.0.0.0/24"), First: netip.MustParseAddr("10.0.0.10")},
		SSH:       SSH{Username: "root", PrivateKeyFile: "/k", ProxyJump: &ProxyJump{Host: "127.0.0.1", Port: 2222, Username: "jump", HostKey: "ssh-ed25519 AAAA"}},
	}
}

func TestTheProviderBlockTakesValuesLiterally(t *testing.T) {
	t.Parallel()
	s := sample()
	block := s.ProviderConfig("adopt = true")
	for _, want := range []string{`api_token      = "u@pve!t=$${x}"`, `nodes          = ["pve1", "pve2"]`, "adopt = true", `host_key = "ssh-ed25519 AAAA"`} {
		if !strings.Contains(block, want) {
			t.Errorf("%s is missing in\n%s", want, block)
		}
	}
	if strings.Contains(block, "username       = \"\"") || strings.Contains(block, "insecure") {
		t.Errorf("attributes without a value are written:\n%s", block)
	}
}

func TestVariablesSayTheSameAsTheBlock(t *testing.T) {
	t.Parallel()
	s := sample()
	variables := s.Variables()
	for name, want := range map[string]string{
		"SANDBOX_API_TOKEN":                     "u@pve!t=${x}",
		"SANDBOX_NODES":                         "pve1,pve2",
		"SANDBOX_VMID_RANGE_LAST":               "199",
		"SANDBOX_GUEST_SSH_PROXY_JUMP_USERNAME": "jump",
	} {
		if variables[name] != want {
			t.Errorf("%s is %q, want %q", name, variables[name], want)
		}
	}
	for _, name := range []string{"SANDBOX_PASSWORD", "SANDBOX_ADDRESS_RANGE_GATEWAY", "SANDBOX_INSECURE"} {
		if value, ok := variables[name]; ok {
			t.Errorf("%s is set to %q, though the target has no such thing", name, value)
		}
	}
}
