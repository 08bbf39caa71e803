package acctest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ProviderConfig is a provider block for this environment, with whatever further attributes a test wants to set.
func (e *Environment) ProviderConfig(attributes ...string) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "  %-14s = %s\n", name, value) }
	quoted := func(name, value string) {
		if value != "" {
			line(name, quote(value))
		}
	}
	b.WriteString("provider \"sandbox\" {\n")
	quoted("endpoint", e.Endpoint)
	quoted("api_token", e.APIToken)
	quoted("username", e.Username)
	quoted("password", e.Password)
	quoted("fingerprint", e.Fingerprint)
	quoted("ca_file", e.CAFile)
	if e.Insecure {
		line("insecure", "true")
	}
	quoted("owner", e.Owner)
	line("vmid_range", fmt.Sprintf("{ first = %d, last = %d }", e.VMIDs.First, e.VMIDs.Last))
	line("address_range", e.addressRange())
	line("nodes", e.nodeList())
	line("template_id", strconv.Itoa(e.TemplateID))
	quoted("storage", e.Storage)
	quoted("bridge", e.Bridge)
	line("guest_ssh", e.guestSSH())
	for _, attribute := range attributes {
		fmt.Fprintf(&b, "  %s\n", attribute)
	}
	b.WriteString("}\n")
	return b.String()
}

// Variables is the same as variables of the provider, for configurations whose provider block is empty.
func (e *Environment) Variables() map[string]string {
	variables := map[string]string{
		"SANDBOX_ENDPOINT":                   e.Endpoint,
		"SANDBOX_API_TOKEN":                  e.APIToken,
		"SANDBOX_USERNAME":                   e.Username,
		"SANDBOX_PASSWORD":                   e.Password,
		"SANDBOX_FINGERPRINT":                e.Fingerprint,
		"SANDBOX_CA_FILE":                    e.CAFile,
		"SANDBOX_OWNER":                      e.Owner,
		"SANDBOX_VMID_RANGE_FIRST":           strconv.Itoa(e.VMIDs.First),
		"SANDBOX_VMID_RANGE_LAST":            strconv.Itoa(e.VMIDs.Last),
		"SANDBOX_ADDRESS_RANGE_CIDR":         e.Addresses.CIDR.String(),
		"SANDBOX_ADDRESS_RANGE_FIRST":        e.Addresses.First.String(),
		"SANDBOX_NODES":                      strings.Join(e.Nodes, ","),
		"SANDBOX_TEMPLATE_ID":                strconv.Itoa(e.TemplateID),
		"SANDBOX_STORAGE":                    e.Storage,
		"SANDBOX_BRIDGE":                     e.Bridge,
		"SANDBOX_GUEST_SSH_USERNAME":         e.SSH.Username,
		"SANDBOX_GUEST_SSH_PRIVATE_KEY_FILE": e.SSH.PrivateKeyFile,
	}
	if e.Insecure {
		variables["SANDBOX_INSECURE"] = "true"
	}
	if e.Addresses.Gateway.IsValid() {
		variables["SANDBOX_ADDRESS_RANGE_GATEWAY"] = e.Addresses.Gateway.String()
	}
	if jump := e.SSH.ProxyJump; jump != nil {
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_HOST"] = jump.Host
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_PORT"] = strconv.Itoa(jump.Port)
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_USERNAME"] = jump.Username
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_HOST_KEY"] = jump.HostKey
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_PRIVATE_KEY_FILE"] = e.SSH.PrivateKeyFile
	}
	for name, value := range variables {
		if value == "" {
			delete(variables, name)
		}
	}
	return variables
}

// PrivateKey is the content of the private key's file.
func (e *Environment) PrivateKey() (string, error) {
	content, err := os.ReadFile(e.SSH.PrivateKeyFile)
	return string(content), err
}

func (e *Environment) addressRange() string {
	a := fmt.Sprintf("cidr = %q, first = %q", e.Addresses.CIDR, e.Addresses.First)
	if e.Addresses.Gateway.IsValid() {
		a += fmt.Sprintf(", gateway = %q", e.Addresses.Gateway)
	}
	return "{ " + a + " }"
}

func (e *Environment) nodeList() string {
	quotedNames := make([]string, len(e.Nodes))
	for i, node := range e.Nodes {
		quotedNames[i] = quote(node)
	}
	return "[" + strings.Join(quotedNames, ", ") + "]"
}

func (e *Environment) guestSSH() string {
	s := fmt.Sprintf("{\n    username         = %s\n    private_key_file = %s\n", quote(e.SSH.Username), quote(e.SSH.PrivateKeyFile))
	if jump := e.SSH.ProxyJump; jump != nil {
		s += fmt.Sprintf("    proxy_jump       = { host = %s, port = %d, username = %s, host_key = %s, private_key_file = %s }\n",
			quote(jump.Host), jump.Port, quote(jump.Username), quote(jump.HostKey), quote(e.SSH.PrivateKeyFile))
	}
	return s + "  }"
}

// quote writes a string literal of the configuration language. Template sequences are taken literally.
func quote(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}
