package pve

import "context"

// Role is a named set of privileges.
type Role struct {
	ID string `pve:"roleid,must"`
	// Privileges are joined by commas.
	Privileges string `pve:"privs"`
	// Special says that it is built in.
	Special bool `pve:"special"`
	Extra   Extra
}

// Roles lists the roles of the server; everybody may see them.
func (c *Client) Roles(ctx context.Context) ([]Role, error) {
	return getList[Role](ctx, c, "/access/roles", nil)
}
