package preflight

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Role is a role that holds what the provider needs on one kind of path, and nothing else.
type Role struct {
	ID         string
	Privileges []string // sorted
}

// Grant gives a role on a path.
type Grant struct {
	Path string
	Role string
	// Propagate says that the role counts below the path too. On "/" it doesn't: that would be everywhere.
	Propagate bool
}

// Plan is the least that the features need: one role for each kind of path, because a role that had all of it would,
// given on the template's path, allow its destruction.
type Plan struct {
	Roles  []Role
	Grants []Grant
}

// DefaultPrefix begins the roles' names.
const DefaultPrefix = "Sandbox"

// roleNames end them.
var roleNames = map[Place]string{
	Guests: "Guests", Template: "Template", Storage: "Storage", BackupStorage: "Backups", FileStorage: "Files",
	Bridge: "Bridge", Pool: "Pool", Root: "Cluster", Nodes: "Node",
}

// Least plans the roles for the features on a target.
func Least(target Target, features []Feature, prefix string) Plan {
	if prefix == "" {
		prefix = DefaultPrefix
	}
	privileges := map[Place]map[string]bool{}
	var places []Place
	for _, n := range Needs(features...) {
		if privileges[n.On] == nil {
			privileges[n.On] = map[string]bool{}
			places = append(places, n.On)
		}
		privileges[n.On][n.Privilege] = true
	}
	var plan Plan
	for _, place := range places {
		role := Role{ID: prefix + roleNames[place], Privileges: slices.Sorted(maps.Keys(privileges[place]))}
		plan.Roles = append(plan.Roles, role)
		for _, path := range target.paths(place) {
			plan.Grants = append(plan.Grants, Grant{Path: path, Role: role.ID, Propagate: path != "/"})
		}
	}
	return plan
}

// Commands are the pveum calls that make the plan real for a user and its token, for a shell as root on a node of
// Proxmox VE 8 or 9. existing are the roles that the server has, by name: those that are right already need nothing.
func (p Plan) Commands(user, token string, existing map[string][]string) []string {
	var out []string
	for _, r := range p.Roles {
		have, there := existing[r.ID]
		switch {
		case !there:
			out = append(out, fmt.Sprintf("pveum role add %s --privs %s", r.ID, quote(strings.Join(r.Privileges, " "))))
		case !slices.Equal(slices.Sorted(slices.Values(have)), r.Privileges):
			out = append(out, fmt.Sprintf("pveum role modify %s --privs %s", r.ID, quote(strings.Join(r.Privileges, " "))))
		}
	}
	for _, g := range p.merged() {
		propagate := ""
		if !g.Propagate {
			propagate = " --propagate 0"
		}
		out = append(out, fmt.Sprintf("pveum acl modify %s --users %s --roles %s%s", g.Path, user, g.Role, propagate))
		if token != "" {
			out = append(out, fmt.Sprintf("pveum acl modify %s --tokens %s --roles %s%s", g.Path, quote(user+"!"+token), g.Role, propagate))
		}
	}
	return out
}

// merged joins the grants of one path.
func (p Plan) merged() []Grant {
	var out []Grant
	for _, g := range p.Grants {
		i := slices.IndexFunc(out, func(have Grant) bool { return have.Path == g.Path })
		if i < 0 {
			out = append(out, g)
			continue
		}
		out[i].Role += "," + g.Role
	}
	return out
}

// quote is for a shell; "!" is history in an interactive one.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
