package server

import (
	"fmt"
	"time"
)

// fwLevel is one file of the firewall's configuration, opened: the datacenter's, a node's, a guest's. A security group is
// opened as the datacenter's with the group's rules.
type fwLevel struct {
	s   *Server
	env string // what rules may be there: cluster, host, ct, group
	// options, rules, ipsets and aliases are the file's; nil for what its kind doesn't have.
	options map[string]string
	rules   *[]fwRule
	ipsets  map[string]*fwIPSet
	aliases map[string]*fwAlias
	// keep stores the file after a write; nil where it is stored already.
	keep func()
}

// fwScope is a kind of file: how a call names one, and how it is opened.
type fwScope struct {
	file func(c *call) string
	open func(c *call) (*fwLevel, error)
}

var (
	fwDatacenter = fwScope{func(*call) string { return "cluster" }, openDatacenterFirewall}
	fwGroup      = fwScope{fwDatacenter.file, openGroupFirewall}
	fwNode       = fwScope{func(c *call) string { return "host-" + c.node.Name }, openNodeFirewall}
	fwGuest      = fwScope{func(c *call) string { return guestFile(c.vmid()) }, openGuestFirewall}
)

func openDatacenterFirewall(c *call) (*fwLevel, error) {
	f := c.s.st.Firewall
	return &fwLevel{
		s: c.s, env: "cluster", options: made(&f.Options), rules: &f.Rules, ipsets: made(&f.IPSets), aliases: made(&f.Aliases),
	}, nil
}

func openGroupFirewall(c *call) (*fwLevel, error) {
	name := c.params.str("group")
	group := c.s.st.Firewall.Groups[name]
	if group == nil {
		return nil, failf("no such security group '%s'", name)
	}
	l, err := openDatacenterFirewall(c)
	if err == nil {
		l.env, l.rules = "group", &group.Rules
	}
	return l, err
}

func openNodeFirewall(c *call) (*fwLevel, error) {
	if c.node.Firewall == nil {
		c.node.Firewall = &nodeFirewall{}
	}
	f := c.node.Firewall
	return &fwLevel{s: c.s, env: "host", options: made(&f.Options), rules: &f.Rules}, nil
}

// openGuestFirewall opens a guest's file, also of a guest that doesn't exist: the server doesn't look.
func openGuestFirewall(c *call) (*fwLevel, error) {
	f := c.s.guestFirewallOf(c.vmid())
	if f == nil {
		f = &guestFirewall{}
	}
	l := c.s.guestFirewallLevel(f)
	l.keep = func() { c.s.keepGuestFirewall(c.vmid(), f) }
	return l, nil
}

func (s *Server) guestFirewallLevel(f *guestFirewall) *fwLevel {
	return &fwLevel{
		s: s, env: "ct", options: made(&f.Options), rules: &f.Rules, ipsets: made(&f.IPSets), aliases: made(&f.Aliases),
	}
}

// guestFirewallOf is the file of a guest's number, nil if there is none. A file that was there before the guest is its.
func (s *Server) guestFirewallOf(vmid int) *guestFirewall {
	stray := s.st.Firewall.Strays[vmid]
	g := s.st.Guests[vmid]
	if g == nil {
		return stray
	}
	if g.Firewall == nil && stray != nil {
		g.Firewall = stray
	}
	delete(s.st.Firewall.Strays, vmid)
	return g.Firewall
}

// keepGuestFirewall stores a guest's file, or removes it when nothing is left in it.
func (s *Server) keepGuestFirewall(vmid int, f *guestFirewall) {
	if f.empty() {
		f = nil
	}
	if g := s.st.Guests[vmid]; g != nil {
		g.Firewall = f
		return
	}
	delete(s.st.Firewall.Strays, vmid)
	if f != nil {
		made(&s.st.Firewall.Strays)[vmid] = f
	}
}

// dropGuestFirewall removes a destroyed guest's file, whoever wrote it.
func (s *Server) dropGuestFirewall(vmid int) {
	delete(s.st.Firewall.Strays, vmid)
	delete(s.st.Firewall.Written, guestFile(vmid))
	s.st.Firewall.Changes++
}

// fwRead makes a handler that reads a level.
func fwRead(scope fwScope, read func(c *call, l *fwLevel) (any, error)) handler {
	return func(c *call) (any, error) {
		l, err := scope.open(c)
		if err != nil {
			return nil, err
		}
		return read(c, l)
	}
}

// fwWrite makes a handler that changes a level under the cluster-wide lock of its file. Answers have no data.
func fwWrite(scope fwScope, change func(c *call, l *fwLevel) error) handler {
	return func(c *call) (any, error) {
		file := scope.file(c)
		unlock, err := c.lockFirewall(file)
		if err != nil {
			return nil, err
		}
		defer unlock()
		if err := c.sleep(c.s.delays().Config); err != nil {
			return nil, err
		}
		l, err := scope.open(c) // what is there now: somebody may have written meanwhile
		if err != nil {
			return nil, err
		}
		if err := change(c, l); err != nil {
			return nil, err
		}
		if l.keep != nil {
			l.keep()
		}
		c.s.firewallWritten(file)
		return nil, nil
	}
}

// firewallWritten notes a write.
func (s *Server) firewallWritten(file string) {
	s.st.Firewall.Changes++
	made(&s.st.Firewall.Written)[file] = s.now()
}

// lockFirewall takes a file's cluster-wide lock. Whoever finds it taken asks again only after Delays.ClusterLockRetry: that
// is why rules that are written in parallel take a second and more on a real cluster.
func (c *call) lockFirewall(file string) (func(), error) {
	name := "firewall-" + file
	delays := c.s.delays()
	var waited delay
	for c.s.fileLocks[name] {
		if waited >= delays.LockTimeout {
			return nil, failf("cfs-lock '%s' error: got lock request timeout", name)
		}
		pause := max(delays.ClusterLockRetry, fwShortestRetry)
		if err := c.sleep(pause); err != nil {
			return nil, err
		}
		waited += pause
	}
	c.s.fileLocks[name] = true
	return func() { delete(c.s.fileLocks, name) }, nil
}

// findIPSet finds a set by its name in a rule; scope is "guest/", "dc/", or empty for both, the guest's first.
func (l *fwLevel) findIPSet(scope, name string) *fwIPSet {
	if scope != "dc/" && l.env == "ct" {
		if set := l.ipsets[name]; set != nil {
			return set
		}
	}
	if scope != "guest/" {
		return l.s.st.Firewall.IPSets[name]
	}
	return nil
}

// findAlias finds an alias as findIPSet a set. key is its name in lower case.
func (l *fwLevel) findAlias(scope, key string) *fwAlias {
	if scope != "dc/" && l.env == "ct" {
		if alias := l.aliases[key]; alias != nil {
			return alias
		}
	}
	if scope != "guest/" {
		return l.s.st.Firewall.Aliases[key]
	}
	return nil
}

// guestFile is the name of a guest's file in locks and among the times of writes.
func guestFile(vmid int) string { return fmt.Sprintf("vm-%d", vmid) }

// fwShortestRetry keeps a lab without delays from asking all the time.
const fwShortestRetry = time.Millisecond
