package engine

import "net/netip"

// Verdict is what a packet filter does with a new connection.
type Verdict int

// Verdicts. The zero value lets pass.
const (
	Accepted Verdict = iota
	Dropped          // silently: who connects waits until it gives up
	Rejected         // with an answer: connection refused
)

// Connection is a new connection of which at least one end is a guest.
type Connection struct {
	// From and To are the guests' ids, 0 for what is no guest: the node, or an address that nobody has.
	From, To int
	// FromMAC and ToMAC are the hardware addresses of the guests' interfaces, where there is one.
	FromMAC, ToMAC string
	// Protocol is the IP protocol's number: 6 is TCP, 17 UDP.
	Protocol     int
	Source, Dest netip.AddrPort
}

// PacketFilter is an engine without a packet filter of its own that asks about each new connection. What is established
// stays, as with a filter that tracks connections.
type PacketFilter interface {
	// SetFilter hands over the judge, once, before any guest runs. It may be called from many goroutines.
	SetFilter(judge func(Connection) Verdict)
}
