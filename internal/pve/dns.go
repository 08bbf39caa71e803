package pve

import "context"

// NodeDNS is a node's resolver: what its containers are given that have none of
// their own.
type NodeDNS struct {
	DNS1   string `pve:"dns1"`
	DNS2   string `pve:"dns2"`
	DNS3   string `pve:"dns3"`
	Search string `pve:"search"`
	Extra  Extra
}

// Servers are the addresses that are set, in their order.
func (d NodeDNS) Servers() []string {
	var servers []string
	for _, s := range []string{d.DNS1, d.DNS2, d.DNS3} {
		if s != "" {
			servers = append(servers, s)
		}
	}
	return servers
}

// NodeDNS reads a node's resolver. It needs Sys.Audit on the node.
func (c *Client) NodeDNS(ctx context.Context, node string) (NodeDNS, error) {
	return getObject[NodeDNS](ctx, c, nodePath(node)+"/dns", nil)
}
