package pve

import (
	"context"
	"fmt"
)

// HAResource is a guest that the high-availability manager has.
type HAResource struct {
	// SID is "ct:105" or "vm:106".
	SID string `pve:"sid,must"`
	// State is the state asked for: "started", "stopped", "disabled", "ignored".
	State string `pve:"state"`
	Group string `pve:"group"`
	Extra Extra
}

// HAResources lists the guests that the high-availability manager has. A server
// without one has none.
func (c *Client) HAResources(ctx context.Context) ([]HAResource, error) {
	list, err := getList[HAResource](ctx, c, "/cluster/ha/resources", nil)
	if Means(err, UnsupportedPath) {
		return nil, nil
	}
	return list, err
}

// HASID is the id that the high-availability manager knows a container by.
func HASID(vmid int) string { return fmt.Sprintf("ct:%d", vmid) }
