package server

import (
	"regexp"
	"strings"
)

var aclCharacters = regexp.MustCompile(`\A/[A-Za-z0-9.\-_/]*\z`)

// normalPath is a path of the access control tree without doubled or trailing slashes; empty if it can't be one.
func normalPath(path string) string {
	var parts []string
	for _, part := range strings.Split(path, "/") {
		if part != "" {
			parts = append(parts, part)
		}
	}
	path = "/" + strings.Join(parts, "/")
	if !aclCharacters.MatchString(path) {
		return ""
	}
	return path
}

var aclPaths = regexp.MustCompile(`\A(/|/access(/groups(/[^/]+)?|/realm(/[^/]+)?)?|/nodes(/[^/]+)?|/pool(/[^/]+(/[^/]+){0,2})?|` +
	`/sdn(/controllers(/[^/]+)?|/dns(/[^/]+)?|/fabrics(/[^/]+)?|/ipams(/[^/]+)?|/zones(/[^/]+(/[^/]+(/[0-9]+)?)?)?)?|` +
	`/storage(/[^/]+)?|/vms(/[1-9][0-9]{2,})?|/mapping(/[a-z]+(/[^/]+)?)?)\z`)

// isACLPath says whether permissions can be set on a path.
func isACLPath(path string) bool { return aclPaths.MatchString(path) }

// checkModify is the right to change permissions on a path: Permissions.Modify there, or the owner's right of what
// the path is about.
func (c *call) checkModify(path string) error {
	path = normalPath(path)
	if path == "" {
		return nil // the handler refuses the path
	}
	if c.may(path, "Permissions.Modify") {
		return nil
	}
	owner := ""
	switch {
	case strings.HasPrefix(path, "/storage/"):
		owner = "Datastore.Allocate"
	case strings.HasPrefix(path, "/vms/"):
		owner = "VM.Allocate"
	case strings.HasPrefix(path, "/pool/"):
		owner = "Pool.Allocate"
	}
	if owner != "" && c.may(path, owner) {
		return nil
	}
	return forbidden(path + ", Permissions.Modify")
}
