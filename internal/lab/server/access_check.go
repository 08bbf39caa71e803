package server

import (
	"fmt"
	"strings"
)

// checkUserParam is the part of a permission expression about the user in the parameters: "self" or a privilege on the
// user's realm.
func (c *call) checkUserParam(what string) error {
	name := c.params.str("userid")
	if what == "self" {
		if self, _ := splitAuthID(c.authID); self == name {
			return nil
		}
		return forbidden("")
	}
	_, realm, err := splitUserID(name)
	if err != nil {
		return err
	}
	return c.check("/access/realm/"+realm, what)
}

// checkUserGroup demands one of the privileges on a group of the user in the parameters, or on all groups.
func (c *call) checkUserGroup(privileges []any, options []any) error {
	var wanted []string
	for _, p := range privileges {
		wanted = append(wanted, p.(string))
	}
	var groups []string
	for _, g := range c.s.st.Groups {
		if g.Users[c.params.str("userid")] {
			groups = append(groups, g.ID)
		}
	}
	if len(options) > 0 && fmt.Sprint(options[0]) == "groups_param" {
		given := c.params.list("groups")
		for _, g := range given {
			if err := c.checkAny("/access/groups/"+g, wanted...); err != nil {
				return err
			}
		}
		if len(given) > 0 && fmt.Sprint(options[1]) == "create" {
			return nil
		}
	}
	for _, g := range groups {
		if c.checkAny("/access/groups/"+g, wanted...) == nil {
			return nil
		}
	}
	return c.checkAny("/access/groups", wanted...)
}

// splitUserID splits name@realm, with the server's complaints.
func splitUserID(id string) (name, realm string, err error) {
	if len(id) < 3 {
		return "", "", failf("user name '%s' is too short", id)
	}
	at := strings.LastIndex(id, "@")
	if at < 1 || !realmForm.MatchString(id[at+1:]) || strings.ContainsAny(id[:at], " :/") {
		return "", "", failf("value '%s' does not look like a valid user name", id)
	}
	return id[:at], id[at+1:], nil
}
