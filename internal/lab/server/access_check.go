package server

import "strings"

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
	realm, err := userRealm(name)
	if err != nil {
		return err
	}
	return c.check("/access/realm/"+realm, what)
}

// checkUserGroup demands one of the privileges on a group of the user in the parameters, or on all groups. Where the request
// gives groups, it must be allowed on each of these.
func (c *call) checkUserGroup(p *permExpr) error {
	if p.groups != "" {
		given := c.params.list("groups")
		for _, name := range given {
			if err := c.checkAny("/access/groups/"+name, p.privs...); err != nil {
				return err
			}
		}
		if len(given) > 0 && p.groups == "create" {
			return nil
		}
	}
	for _, name := range c.s.groupsOf(c.params.str("userid")) {
		if c.checkAny("/access/groups/"+name, p.privs...) == nil {
			return nil
		}
	}
	return c.checkAny("/access/groups", p.privs...)
}

// userRealm is the realm of name@realm, or the server's complaint about what isn't of that form.
func userRealm(id string) (string, error) {
	if len(id) < 3 {
		return "", failf("user name '%s' is too short", id)
	}
	at := strings.LastIndex(id, "@")
	if at < 1 || !realmForm.MatchString(id[at+1:]) || strings.ContainsAny(id[:at], " :/") {
		return "", failf("value '%s' does not look like a valid user name", id)
	}
	return id[at+1:], nil
}
