package pve

import (
	"context"
	"slices"
)

// NetworkInterface is an interface of a node.
type NetworkInterface struct {
	// Name is the interface's name ("vmbr0").
	Name string `pve:"iface,must"`
	// Type is "bridge", "eth", "bond", "vlan", "OVSBridge", …
	Type   string `pve:"type"`
	Active bool   `pve:"active"`
	CIDR   string `pve:"cidr"`
	CIDR6  string `pve:"cidr6"`
	// Gateway is set on the interface that the node's default route leads over.
	Gateway  string `pve:"gateway"`
	Gateway6 string `pve:"gateway6"`
	Extra    Extra
}

// Bridges returns the names of a node's bridges, sorted: Linux and Open vSwitch
// ones, and the virtual networks of the cluster's SDN. The identity sees those it
// may use or audit, so one that is missing may be hidden; one of a change that
// was not applied yet is among them.
func (c *Client) Bridges(ctx context.Context, node string) ([]string, error) {
	list, err := getList[NetworkInterface](ctx, c, nodePath(node)+"/network", params{"type": "any_bridge"})
	if err != nil {
		return nil, err
	}
	names := make([]string, 0, len(list))
	for _, i := range list {
		names = append(names, i.Name)
	}
	slices.Sort(names)
	return names, nil
}

// Interfaces returns the interfaces of a node that the identity may see.
func (c *Client) Interfaces(ctx context.Context, node string) ([]NetworkInterface, error) {
	return getList[NetworkInterface](ctx, c, nodePath(node)+"/network", nil)
}
