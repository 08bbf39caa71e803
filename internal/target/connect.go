package target

import (
	"github.com/agentsandbox/terraform-provider-sandbox/internal/guest"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox"
)

// Connection is how the access layer reaches the server.
func (t *Target) Connection() pve.Config {
	return pve.Config{
		Endpoint: t.Endpoint,
		Token:    t.APIToken,
		Username: t.Username,
		Password: t.Password,
		TLS:      pve.TLSConfig{CAFile: t.CAFile, Fingerprint: t.Fingerprint, Insecure: t.Insecure},
	}
}

// GuestAccess is how guests are logged in to.
func (t *Target) GuestAccess() guest.Config {
	access := guest.Config{Username: t.SSH.Username, Auth: guest.Auth{PrivateKeyFile: t.SSH.PrivateKeyFile}}
	if jump := t.SSH.ProxyJump; jump != nil {
		access.ProxyJump = &guest.ProxyJump{Host: jump.Host, Port: jump.Port, Username: jump.Username, HostKey: jump.HostKey}
	}
	return access
}

// Settings is what the domain knows of the provider block.
func (t *Target) Settings() sandbox.Settings {
	return sandbox.Settings{
		Owner:      t.Owner,
		VMIDs:      sandbox.VMIDRange{First: t.VMIDs.First, Last: t.VMIDs.Last},
		Addresses:  &sandbox.AddressRange{CIDR: t.Addresses.CIDR, First: t.Addresses.First, Gateway: t.Addresses.Gateway},
		Nodes:      t.Nodes,
		TemplateID: t.TemplateID,
		Storage:    t.Storage,
		Bridge:     t.Bridge,
		Guest:      t.GuestAccess(),

		Management: t.Management, FirewallSettle: t.FirewallSettle,
	}
}
