package egress

// Mode is what a sandbox may reach.
type Mode string

// The modes. In every managed one, the only way in is SSH from the management
// networks.
const (
	// Off lets nothing out, not even DNS.
	Off Mode = "off"
	// Web drops private, link-local, tailnet and metadata ranges, then lets DNS to
	// the resolvers and TCP 80 and 443 out.
	Web Mode = "web"
	// NAT drops the same ranges, then lets everything out.
	NAT Mode = "nat"
	// Allowlist lets DNS to the resolvers out, then only what is allowed by name.
	Allowlist Mode = "allowlist"
	// Unmanaged leaves the firewall alone.
	Unmanaged Mode = "unmanaged"
)

// Modes are the managed modes, from the strictest.
func Modes() []Mode { return []Mode{Off, Allowlist, Web, NAT} }

// Managed says whether the mode has rules.
func (m Mode) Managed() bool {
	switch m {
	case Off, Web, NAT, Allowlist:
		return true
	}
	return false
}
