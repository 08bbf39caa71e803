package pve

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
)

// LocalAddress is the address that this machine reaches the endpoint from: what a
// server without address translation in between sees of us. It is an error where a
// proxy stands in between. Nothing is sent.
func (c *Client) LocalAddress(ctx context.Context) (netip.Addr, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+c.transport.host+"/", nil)
	if err != nil {
		return netip.Addr{}, err
	}
	if proxy, err := c.transport.base.Proxy(req); err != nil || proxy != nil {
		return netip.Addr{}, errors.Join(errors.New("a proxy stands between this machine and the server, which sees the proxy's address"), err)
	}
	host := c.transport.host
	if _, _, err := net.SplitHostPort(host); err != nil {
		host = net.JoinHostPort(host, "443")
	}
	conn, err := new(net.Dialer).DialContext(ctx, "udp", host)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("find the way to %s: %w", host, err)
	}
	defer func() { _ = conn.Close() }()
	from, err := netip.ParseAddrPort(conn.LocalAddr().String())
	return from.Addr().Unmap(), err
}
