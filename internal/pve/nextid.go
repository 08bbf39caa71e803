package pve

import "context"

// IDFree reports whether no guest of the cluster has the vmid. Everybody may ask,
// and guests that the identity can't see count too: it is the one statement about
// absence that needs no privilege.
func (c *Client) IDFree(ctx context.Context, vmid int) (bool, error) {
	p := params{}
	p.setInt("vmid", vmid)
	_, err := c.get(ctx, "/cluster/nextid", p)
	if Means(err, GuestExists) {
		return false, nil
	}
	return err == nil, err
}
