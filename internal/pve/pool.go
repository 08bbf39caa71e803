package pve

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// Pool is a resource pool.
type Pool struct {
	ID      string       `pve:"poolid,must"`
	Comment string       `pve:"comment"`
	Members []PoolMember `pve:"members"`
	Extra   Extra
}

// PoolMember is a guest or storage in a pool. Name and status of a guest are up
// to 10 s old, and missing for a new one.
type PoolMember struct {
	// ID is "lxc/105", "qemu/106" or "storage/pve1/local".
	ID string `pve:"id"`
	// Type is "lxc", "qemu" or "storage".
	Type    string `pve:"type"`
	VMID    int    `pve:"vmid"`
	Node    string `pve:"node"`
	Storage string `pve:"storage"`
	Extra   Extra
}

// UnmarshalJSON takes numbers as strings, and keeps what it doesn't know.
func (m *PoolMember) UnmarshalJSON(data []byte) error { return decodeObject(data, m) }

// Pools lists the pools that the identity may see, without their members.
func (c *Client) Pools(ctx context.Context) ([]Pool, error) {
	return getList[Pool](ctx, c, "/pools", nil)
}

// Pool returns a pool with its members; one that isn't there is an error that
// means NoSuchPool. The query form is the only one for nested pools ("a/b").
func (c *Client) Pool(ctx context.Context, id string) (Pool, error) {
	list, err := getList[Pool](ctx, c, "/pools", params{"poolid": id})
	if err != nil {
		return Pool{}, err
	}
	if len(list) != 1 || list[0].ID != id {
		return Pool{}, &AnswerError{Method: "GET", Path: "/pools", Err: fmt.Errorf("asked for pool %q, got %d pools", id, len(list))}
	}
	return list[0], nil
}

// CreatePool makes a pool; the parent of a nested one must exist.
func (c *Client) CreatePool(ctx context.Context, id, comment string) error {
	p := params{"poolid": id}
	p.setText("comment", comment)
	return c.post(ctx, "/pools", p)
}

// DeletePool removes a pool, which must be empty.
func (c *Client) DeletePool(ctx context.Context, id string) error {
	return c.del(ctx, "/pools", params{"poolid": id})
}

// SetPoolComment changes a pool's comment, and can clear it.
func (c *Client) SetPoolComment(ctx context.Context, id, comment string) error {
	return c.put(ctx, "/pools", params{"poolid": id, "comment": comment})
}

// AddToPool puts guests into a pool. One that is a member already is an error
// (AlreadyMember), as is one of another pool (OtherPool) unless move is set. A
// vmid that doesn't exist is accepted by the server without a word.
func (c *Client) AddToPool(ctx context.Context, id string, vmids []int, move bool) error {
	p := params{"poolid": id, "vms": joinVMIDs(vmids)}
	p.setFlag("allow-move", move)
	return c.put(ctx, "/pools", p)
}

// RemoveFromPool takes guests out of a pool. One that isn't in it is an error
// that means NotMember.
func (c *Client) RemoveFromPool(ctx context.Context, id string, vmids []int) error {
	return c.put(ctx, "/pools", params{"poolid": id, "vms": joinVMIDs(vmids), "delete": "1"})
}

func joinVMIDs(vmids []int) string {
	parts := make([]string, len(vmids))
	for i, id := range vmids {
		parts[i] = strconv.Itoa(id)
	}
	return strings.Join(parts, ",")
}
