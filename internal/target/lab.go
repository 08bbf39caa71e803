package target

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab"
)

// FromLab describes a lab. The private key that its templates trust is written into dir, because a user has it in a file.
// The owner is left to the caller.
func FromLab(l *lab.Lab, dir string) (Target, error) {
	key := filepath.Join(dir, "id_ed25519")
	if err := os.WriteFile(key, []byte(l.PrivateKey()), 0o600); err != nil {
		return Target{}, err
	}
	return Target{
		Endpoint:       l.Endpoint(),
		APIToken:       l.Token(),
		Fingerprint:    l.Fingerprint(),
		Nodes:          l.Nodes(),
		TemplateID:     lab.TemplateID,
		TemplateFile:   lab.TemplateFile,
		Storage:        lab.Storage,
		Backups:        "local",
		Bridge:         lab.Bridge,
		VMIDs:          VMIDRange{First: lab.VMIDFirst, Last: lab.VMIDLast},
		Addresses:      AddressRange{CIDR: lab.AddressCIDR, First: lab.AddressFirst, Gateway: lab.AddressGateway},
		Management:     []netip.Prefix{l.Management()},
		FirewallSettle: l.FirewallSettle(),
		SSH: SSH{
			Username:       lab.GuestUser,
			PrivateKeyFile: key,
			PublicKey:      strings.TrimSpace(l.PublicKey()),
			ProxyJump:      &ProxyJump{Host: l.SSHHost(), Port: l.SSHPort(), Username: lab.SSHUser, HostKey: l.SSHHostKey()},
		},
	}, nil
}
