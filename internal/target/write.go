package target

import (
	"fmt"
	"strconv"
	"strings"
)

// ProviderConfig is a provider block for this target, followed by whatever further attributes the caller wants to set.
func (t *Target) ProviderConfig(attributes ...string) string {
	var b strings.Builder
	line := func(name, value string) { fmt.Fprintf(&b, "  %-14s = %s\n", name, value) }
	quoted := func(name, value string) {
		if value != "" {
			line(name, quote(value))
		}
	}
	b.WriteString("provider \"sandbox\" {\n")
	quoted("endpoint", t.Endpoint)
	quoted("api_token", t.APIToken)
	quoted("username", t.Username)
	quoted("password", t.Password)
	quoted("fingerprint", t.Fingerprint)
	quoted("ca_file", t.CAFile)
	if t.Insecure {
		line("insecure", "true")
	}
	quoted("owner", t.Owner)
	line("vmid_range", fmt.Sprintf("{ first = %d, last = %d }", t.VMIDs.First, t.VMIDs.Last))
	line("address_range", t.addressRange())
	line("nodes", t.nodeList())
	line("template_id", strconv.Itoa(t.TemplateID))
	quoted("storage", t.Storage)
	quoted("bridge", t.Bridge)
	if len(t.Management) > 0 {
		line("management_cidrs", quoteAll(t.management()))
	}
	if t.FirewallSettle > 0 {
		quoted("firewall_settle", t.FirewallSettle.String())
	}
	line("guest_ssh", t.guestSSH())
	for _, attribute := range attributes {
		fmt.Fprintf(&b, "  %s\n", attribute)
	}
	b.WriteString("}\n")
	return b.String()
}

// Variables is the same as variables of the provider, for configurations whose provider block is empty.
func (t *Target) Variables() map[string]string {
	variables := map[string]string{
		"SANDBOX_ENDPOINT":                   t.Endpoint,
		"SANDBOX_API_TOKEN":                  t.APIToken,
		"SANDBOX_USERNAME":                   t.Username,
		"SANDBOX_PASSWORD":                   t.Password,
		"SANDBOX_FINGERPRINT":                t.Fingerprint,
		"SANDBOX_CA_FILE":                    t.CAFile,
		"SANDBOX_OWNER":                      t.Owner,
		"SANDBOX_VMID_RANGE_FIRST":           strconv.Itoa(t.VMIDs.First),
		"SANDBOX_VMID_RANGE_LAST":            strconv.Itoa(t.VMIDs.Last),
		"SANDBOX_ADDRESS_RANGE_CIDR":         t.Addresses.CIDR.String(),
		"SANDBOX_ADDRESS_RANGE_FIRST":        t.Addresses.First.String(),
		"SANDBOX_NODES":                      strings.Join(t.Nodes, ","),
		"SANDBOX_TEMPLATE_ID":                strconv.Itoa(t.TemplateID),
		"SANDBOX_STORAGE":                    t.Storage,
		"SANDBOX_BRIDGE":                     t.Bridge,
		"SANDBOX_GUEST_SSH_USERNAME":         t.SSH.Username,
		"SANDBOX_GUEST_SSH_PRIVATE_KEY_FILE": t.SSH.PrivateKeyFile,
	}
	if t.FirewallSettle > 0 {
		variables["SANDBOX_FIREWALL_SETTLE"] = t.FirewallSettle.String()
	}
	variables["SANDBOX_MANAGEMENT_CIDRS"] = strings.Join(t.management(), ",")
	if t.Insecure {
		variables["SANDBOX_INSECURE"] = "true"
	}
	if t.Addresses.Gateway.IsValid() {
		variables["SANDBOX_ADDRESS_RANGE_GATEWAY"] = t.Addresses.Gateway.String()
	}
	if jump := t.SSH.ProxyJump; jump != nil {
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_HOST"] = jump.Host
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_PORT"] = strconv.Itoa(jump.Port)
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_USERNAME"] = jump.Username
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_HOST_KEY"] = jump.HostKey
		variables["SANDBOX_GUEST_SSH_PROXY_JUMP_PRIVATE_KEY_FILE"] = t.SSH.PrivateKeyFile
	}
	for name, value := range variables {
		if value == "" {
			delete(variables, name)
		}
	}
	return variables
}

func (t *Target) addressRange() string {
	a := fmt.Sprintf("cidr = %q, first = %q", t.Addresses.CIDR, t.Addresses.First)
	if t.Addresses.Gateway.IsValid() {
		a += fmt.Sprintf(", gateway = %q", t.Addresses.Gateway)
	}
	return "{ " + a + " }"
}

func (t *Target) nodeList() string { return quoteAll(t.Nodes) }

func (t *Target) management() []string {
	var all []string
	for _, prefix := range t.Management {
		all = append(all, prefix.String())
	}
	return all
}

func quoteAll(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = quote(text)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}

func (t *Target) guestSSH() string {
	s := fmt.Sprintf("{\n    username         = %s\n    private_key_file = %s\n", quote(t.SSH.Username), quote(t.SSH.PrivateKeyFile))
	if jump := t.SSH.ProxyJump; jump != nil {
		s += fmt.Sprintf("    proxy_jump       = { host = %s, port = %d, username = %s, host_key = %s, private_key_file = %s }\n",
			quote(jump.Host), jump.Port, quote(jump.Username), quote(jump.HostKey), quote(t.SSH.PrivateKeyFile))
	}
	return s + "  }"
}

// quote writes a string literal of the configuration language. Template sequences are taken literally.
func quote(s string) string {
	return strings.NewReplacer("${", "$${", "%{", "%%{").Replace(strconv.Quote(s))
}
