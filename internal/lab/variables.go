package lab

import (
	"net"
	"strconv"
	"strings"
)

// Variables is what ProviderBlock says, as the provider's variables: for configurations whose provider block is empty.
func (l *Lab) Variables() map[string]string {
	hosts, keys := l.nodeAccess()
	return map[string]string{
		"SANDBOX_NODE_SSH_USERNAME":             "root",
		"SANDBOX_NODE_SSH_PRIVATE_KEY":          l.PrivateKey(),
		"SANDBOX_NODE_SSH_HOSTS":                hosts,
		"SANDBOX_NODE_SSH_HOST_KEYS":            keys,
		"SANDBOX_ENDPOINT":                      l.Endpoint(),
		"SANDBOX_API_TOKEN":                     l.Token(),
		"SANDBOX_FINGERPRINT":                   l.Fingerprint(),
		"SANDBOX_OWNER":                         "lab",
		"SANDBOX_NODES":                         l.Nodes()[0],
		"SANDBOX_TEMPLATE_ID":                   strconv.Itoa(TemplateID),
		"SANDBOX_STORAGE":                       Storage,
		"SANDBOX_BRIDGE":                        Bridge,
		"SANDBOX_VMID_RANGE_FIRST":              strconv.Itoa(VMIDFirst),
		"SANDBOX_VMID_RANGE_LAST":               strconv.Itoa(VMIDLast),
		"SANDBOX_ADDRESS_RANGE_CIDR":            AddressCIDR.String(),
		"SANDBOX_ADDRESS_RANGE_FIRST":           AddressFirst.String(),
		"SANDBOX_ADDRESS_RANGE_GATEWAY":         AddressGateway.String(),
		"SANDBOX_MANAGEMENT_CIDRS":              l.Management().String(),
		"SANDBOX_FIREWALL_SETTLE":               l.FirewallSettle().String(),
		"SANDBOX_GUEST_SSH_USERNAME":            GuestUser,
		"SANDBOX_GUEST_SSH_PRIVATE_KEY":         l.PrivateKey(),
		"SANDBOX_GUEST_SSH_PROXY_JUMP_HOST":     l.SSHHost(),
		"SANDBOX_GUEST_SSH_PROXY_JUMP_PORT":     strconv.Itoa(l.SSHPort()),
		"SANDBOX_GUEST_SSH_PROXY_JUMP_USERNAME": SSHUser,
		"SANDBOX_GUEST_SSH_PROXY_JUMP_HOST_KEY": l.SSHHostKey(),
	}
}

// nodeAccess is where the nodes' SSH server is, and its key, as the provider's variables have them: one for all of them.
func (l *Lab) nodeAccess() (hosts, keys string) {
	var h, k []string
	for _, node := range l.Nodes() {
		h = append(h, node+"="+net.JoinHostPort(l.SSHHost(), strconv.Itoa(l.SSHPort())))
		k = append(k, node+"="+l.SSHHostKey())
	}
	return strings.Join(h, ","), strings.Join(k, ",")
}
