package engine

import (
	"context"
	"net/netip"
	"time"
)

// Contact is a connection, or a datagram, that left the lab.
type Contact struct {
	At           time.Time
	Protocol     int // the IP protocol's number: 6 is TCP, 17 UDP
	Source, Dest netip.AddrPort
}

// Outside is an engine that can put the rest of the world behind its node, in which every address answers: what a firewall
// holds back is there to be reached without it.
type Outside interface {
	// Contacts are those that have reached the outside, oldest first.
	Contacts(ctx context.Context) ([]Contact, error)
}
