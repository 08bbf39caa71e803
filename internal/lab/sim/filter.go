package sim

import (
	"context"
	"net"
	"net/netip"
	"syscall"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// IP protocols by number.
const (
	tcp = 6
	udp = 17
)

// givesUp is after how long somebody whose packets are lost gives up; Linux takes two minutes.
const givesUp = 5 * time.Second

// SetFilter makes a judge decide about each new connection.
func (e *Engine) SetFilter(judge func(engine.Connection) engine.Verdict) {
	e.network.judge.Store(&judge)
}

// connection describes what a guest, or the node (nil), is about to open.
func (n *network) connection(from *host, to netip.AddrPort, protocol int) engine.Connection {
	n.mu.Lock()
	defer n.mu.Unlock()
	c := engine.Connection{Protocol: protocol, Dest: netip.AddrPortFrom(to.Addr().Unmap(), to.Port()), Source: netip.AddrPortFrom(nodeAddress, 40000)}
	if from != nil {
		c.From = from.id
		c.Source = netip.AddrPortFrom(from.source(to.Addr()), 40000)
		c.FromMAC = from.mac(c.Source.Addr())
	}
	if target := n.owners[c.Dest.Addr()]; target != nil {
		c.To, c.ToMAC = target.id, target.mac(c.Dest.Addr())
	}
	return c
}

// mac is that of the interface with an address; the network is locked.
func (h *host) mac(addr netip.Addr) string {
	for _, c := range h.nics {
		for _, a := range c.addresses {
			if a.Addr() == addr {
				return c.MAC
			}
		}
	}
	return ""
}

// pass asks the judge. A connection whose packets are dropped waits as long as its maker does.
func (n *network) pass(ctx context.Context, c engine.Connection) error {
	switch n.verdict(c) {
	case engine.Rejected:
		return syscall.ECONNREFUSED
	case engine.Dropped:
		timer := time.NewTimer(givesUp)
		defer timer.Stop()
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
			return syscall.ETIMEDOUT
		}
	}
	return nil
}

// verdict is the judge's. What a guest sends to itself never leaves it.
func (n *network) verdict(c engine.Connection) engine.Verdict {
	judge := n.judge.Load()
	if judge == nil || c.Dest.Addr().IsLoopback() || c.From != 0 && c.From == c.To {
		return engine.Accepted
	}
	return (*judge)(c)
}

// Permits says whether a packet from the guest to an address, "10.77.0.12:53", would leave it: what the rules say, not
// whether anybody answers. A link that is down lets nothing pass.
func (h *host) Permits(protocol, address string) (bool, error) {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return false, err
	}
	number, known := map[string]int{"tcp": tcp, "udp": udp}[protocol]
	if !known {
		return false, net.UnknownNetworkError(protocol)
	}
	h.network.mu.Lock()
	linked := h.linked()
	h.network.mu.Unlock()
	return linked && h.network.verdict(h.network.connection(h, to, number)) == engine.Accepted, nil
}
