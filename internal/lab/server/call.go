package server

import (
	"context"
	"fmt"
	"strconv"
	"strings"
)

// call is one request to the API, authenticated, with its parameters checked.
type call struct {
	s      *Server
	ctx    context.Context // ends when the server closes, not when the client goes: as on the real server
	method string
	path   string // without /api2/json
	route  *route
	// authID is who asks: "admin@pve" or, with a token, "admin@pve!ci". Empty where no login is needed.
	authID string
	// ticket says that a password login's ticket was used. Only root@pam with a ticket is root.
	ticket bool
	node   *node // of the path's {node}, or the node that was asked
	params params
}

// params are a request's parameters by name: path, query and body together. Booleans are "0" or "1".
type params map[string]string

func (p params) has(name string) bool   { _, ok := p[name]; return ok }
func (p params) str(name string) string { return p[name] }
func (p params) flag(name string) bool  { return p[name] == "1" }

// num is an integer parameter, 0 without.
func (p params) num(name string) int {
	n, _ := strconv.Atoi(p[name])
	return n
}

// list splits a list parameter: the server takes commas, semicolons and blanks.
func (p params) list(name string) []string { return splitList(p[name]) }

func splitList(value string) []string {
	return strings.FieldsFunc(value, func(r rune) bool { return r == ',' || r == ';' || r == ' ' || r == '\t' || r == '\n' || r == 0 })
}

// handler answers a call, holding the state lock. What it returns is the answer's data.
type handler func(c *call) (any, error)

// listing is a result with the total beside the data, as task lists and logs have.
type listing struct {
	data  any
	total int
}

// root says that the call has the rights of the superuser: root@pam by password. A token of root@pam hasn't.
func (c *call) root() bool { return c.authID == rootUser && c.ticket }

// vmid is the path's container.
func (c *call) vmid() int { return c.params.num("vmid") }

// guest is the container of the path on the node of the path, or the server's error for one that isn't there.
func (c *call) guest() (*guest, error) { return c.s.guestOn(c.node.Name, c.vmid()) }

// guestOn finds a container on a node.
func (s *Server) guestOn(node string, vmid int) (*guest, error) {
	g := s.st.Guests[vmid]
	if g == nil || g.Node != node {
		return nil, failf("Configuration file 'nodes/%s/lxc/%d.conf' does not exist", node, vmid)
	}
	return g, nil
}

// sleep waits without the state lock.
func (c *call) sleep(d delay) error { return c.s.sleep(c.ctx, d) }

// check demands all the privileges on a path; the error is the server's 403.
func (c *call) check(path string, privileges ...string) error {
	for _, privilege := range privileges {
		if !c.may(path, privilege) {
			return forbidden(fmt.Sprintf("%s, %s", path, privilege))
		}
	}
	return nil
}

// checkAny demands one of the privileges on a path; the error names all, as the server does: "/vms/1, A|B".
func (c *call) checkAny(path string, privileges ...string) error {
	for _, privilege := range privileges {
		if c.may(path, privilege) {
			return nil
		}
	}
	return forbidden(fmt.Sprintf("%s, %s", path, strings.Join(privileges, "|")))
}

// checkGuest demands privileges on /vms/ID. A guest's pool counts: its rights are in the path's by the pool's ACL.
func (c *call) checkGuest(vmid int, privileges ...string) error {
	return c.check(fmt.Sprintf("/vms/%d", vmid), privileges...)
}

// may says whether the caller has a privilege on a path.
func (c *call) may(path, privilege string) bool {
	if c.root() {
		return true
	}
	_, ok := c.s.privileges(c.authID, path)[privilege]
	return ok
}
