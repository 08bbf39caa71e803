package pve

import (
	"context"
	"strconv"
)

// QEMUNets returns the interfaces of a virtual machine by index (net0 is 0): all
// that is read of one. The model of the card stands where a container's interface
// has its name.
func (c *Client) QEMUNets(ctx context.Context, node string, vmid int) (map[int]Net, error) {
	path := nodePath(node) + "/qemu/" + strconv.Itoa(vmid) + "/config"
	raw, err := c.get(ctx, path, nil)
	if err != nil {
		return nil, err
	}
	cfg, err := ParseLXCConfig(raw) // keys and property strings are of the same form
	if err != nil {
		return nil, &AnswerError{Method: "GET", Path: path, Err: err}
	}
	return cfg.Nets(), nil
}
