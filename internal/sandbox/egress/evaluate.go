package egress

import "net/netip"

// Connection is a new connection that a list of rules decides about.
type Connection struct {
	// Direction is In or Out, as the guest sees it.
	Direction string
	From, To  netip.Addr
	Proto     string
	Port      int
}
