package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
)

// GroupSpec is what is wanted of a security group of the datacenter: a mode with
// what belongs to it, or rules as they are.
type GroupSpec struct {
	Name string
	// Mode is a managed mode; "" where Rules say everything.
	Mode  NetworkMode
	Rules []egress.Rule
	// Allow, Deny and Resolvers belong to a mode.
	Allow     []egress.Allow
	Deny      []netip.Prefix
	Resolvers []netip.Addr
}

// Domains are the names in Allow that are looked up.
func (s GroupSpec) Domains() []string {
	var out []string
	for _, a := range s.Allow {
		if a.Resolve && !slices.Contains(out, a.To) {
			out = append(out, a.To)
		}
	}
	return out
}

// FirewallGroup is a security group as the server holds it.
type FirewallGroup struct {
	Name  string
	Rules []egress.Rule
	// Digest proves that the rules are still those.
	Digest string
	// Sets are the group's own IP sets.
	Sets []egress.Set
	// Resolved are the addresses of domains that the rules were rendered with, by
	// domain. Read doesn't know them.
	Resolved map[string][]netip.Addr
}

// ErrGroupExists says that a security group, or an IP set of the name that ours
// would get, is there already. It is never taken over.
var ErrGroupExists = fmt.Errorf("a firewall object of that name exists already")

// ErrGroupInUse says that guests, nodes or the datacenter refer to the group.
var ErrGroupInUse = fmt.Errorf("the security group is in use")

var groupNamePattern = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{1,17}$`)

// CheckGroup validates a group without any request but for the nodes' addresses.
// A group that would lock us out of the guests which use it is refused.
func (m *Manager) CheckGroup(ctx context.Context, spec GroupSpec) []Problem {
	var p problems
	if !groupNamePattern.MatchString(spec.Name) {
		p.add("name", fmt.Sprintf("%q is no security group's name", spec.Name), "It begins with a letter and has 2 to 18 letters, digits, - and _: Proxmox VE takes no other.")
	}
	if spec.Mode == "" {
		m.checkRules(ctx, &p, spec)
		return p
	}
	for _, found := range egress.Check(m.groupPolicy(ctx, spec, nil)) {
		p = append(p, Problem{Attribute: found.Attribute, Summary: found.Summary, Detail: found.Detail, Warning: found.Warning})
	}
	return p
}

// checkRules validates rules that the user wrote.
func (m *Manager) checkRules(ctx context.Context, p *problems, spec GroupSpec) {
	if len(spec.Allow) > 0 || len(spec.Deny) > 0 || len(spec.Resolvers) > 0 {
		p.add("rule", "allow, deny and resolvers belong to a mode", "With rule, the list says everything.")
	}
	for i, r := range spec.Rules {
		for _, found := range egress.CheckRule(r) {
			p.add(strings.TrimSuffix(fmt.Sprintf("rule[%d].%s", i, found.Attribute), "."), found.Summary, found.Detail)
		}
	}
	sources := m.groupManagement(ctx)
	if len(sources) == 0 {
		p.warn("rule", "Whether the list locks us out can't be told", "The address that the sandboxes see us come from isn't known: set the provider's management_cidrs.")
		return
	}
	filter := egress.Filter{Rules: spec.Rules}
	for _, s := range sources {
		c := egress.Connection{Direction: egress.In, From: s.Addr(), Proto: "tcp", Port: m.sshPort()}
		if m.settings.Addresses != nil {
			c.To = m.settings.Addresses.First
		}
		if ok, by := filter.Permits(c, egress.Drop); !ok {
			why := "no rule of the list accepts it"
			if by != (egress.Rule{}) {
				why = fmt.Sprintf("the rule %q stands in the way", by)
			}
			p.add("rule", "The list would lock us out", fmt.Sprintf("SSH to the sandboxes from %s must come in on TCP port %d, and %s. Add, as the first rule:\n"+
				"  { direction = \"in\", action = \"ACCEPT\", protocol = \"tcp\", ports = \"%d\", from = %q }", s, m.sshPort(), why, m.sshPort(), s))
			return
		}
	}
}

func (m *Manager) sshPort() int {
	if m.settings.Guest.Port != 0 {
		return m.settings.Guest.Port
	}
	return 22
}

// groupManagement are the networks that may log in to the guests of a group: the
// provider's, and where guests are reached directly our own address towards them.
func (m *Manager) groupManagement(ctx context.Context) []netip.Prefix {
	all := slices.Clone(m.settings.Management)
	if m.settings.Guest.ProxyJump != nil || m.settings.Addresses == nil {
		return all
	}
	if source, ok := sourceTowards(ctx, m.settings.Addresses.First); ok && !covered(all, source) {
		all = append(all, netip.PrefixFrom(source, source.BitLen()))
	}
	return all
}

func (m *Manager) groupPolicy(ctx context.Context, spec GroupSpec, resolved map[string][]netip.Addr) egress.Policy {
	return egress.Policy{
		Mode: spec.Mode, Management: m.groupManagement(ctx), SSHPort: m.settings.Guest.Port, Resolvers: spec.Resolvers,
		Allow: spec.Allow, Deny: spec.Deny, Nodes: m.surroundings.nodeAddresses(ctx), Resolved: resolved,
	}
}

// RenderGroup makes the rules and sets of a group, to show them in a plan and to
// write them. resolved holds the addresses of the spec's domains.
func (m *Manager) RenderGroup(ctx context.Context, spec GroupSpec, resolved map[string][]netip.Addr) (egress.Filter, error) {
	if spec.Mode == "" {
		f := egress.Filter{}
		for _, r := range spec.Rules {
			f.Rules = append(f.Rules, r.Normal())
		}
		return f, nil
	}
	f, err := egress.Render(m.groupPolicy(ctx, spec, resolved), egress.Naming{Scope: egress.DatacenterSets, Prefix: spec.Name})
	for i := range f.Sets {
		f.Sets[i].Comment = m.setMark() + f.Sets[i].Comment
	}
	return f, asProblems(err)
}

// setMark begins the comment of every IP set that is ours.
func (m *Manager) setMark() string { return "sandbox_firewall_group owner=" + m.settings.Owner + ": " }

// asProblems turns what a policy can't do into problems of a specification.
func asProblems(err error) error {
	policy, ok := err.(*egress.PolicyError) //nolint:errorlint // Render returns it as it is
	if !ok {
		return err
	}
	var p problems
	for _, found := range policy.Problems {
		p.add(found.Attribute, found.Summary, found.Detail)
	}
	return asError(p)
}

// ReadGroup reads a group and its sets: one request, and one per set. One that is
// gone is an error of the kind ErrGone.
func (m *Manager) ReadGroup(ctx context.Context, name string) (FirewallGroup, error) {
	list, err := egress.ReadRules(ctx, m.pve, pve.GroupFirewall(name))
	if err != nil {
		return FirewallGroup{}, groupError("read", name, "", err)
	}
	g := FirewallGroup{Name: name, Rules: list.Rules, Digest: list.Digest}
	for _, set := range ownSets(name, list.Rules) {
		s, err := egress.ReadSet(ctx, m.pve, pve.ClusterFirewall(), set)
		switch {
		case pve.Means(err, pve.NoSuchObject): // then the rule matches nothing
		case err != nil:
			return FirewallGroup{}, groupError("read", name, "read its IP set "+set, err)
		default:
			g.Sets = append(g.Sets, s)
		}
	}
	return g, nil
}

// ownSets are the sets that a group's rules name and that are the group's own, by
// their name.
func ownSets(group string, rules []egress.Rule) []string {
	var out []string
	for _, r := range rules {
		name, ok := strings.CutPrefix(r.Dest, "+"+string(egress.DatacenterSets)+"/")
		if ok && ofGroup(name, group) && !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// ofGroup says whether a set is called like one of the group's own.
func ofGroup(set, group string) bool {
	return strings.HasPrefix(set, group+"-allow") || strings.HasPrefix(set, group+"-inside")
}

func groupError(op, name, what string, err error) error {
	e := &Error{Op: op, What: fmt.Sprintf("%s security group %s", op, name), Err: err}
	if what != "" {
		e.What = fmt.Sprintf("security group %s: %s", name, what)
	}
	switch {
	case pve.Means(err, pve.NoSuchObject) && what == "":
		e.Kind = ErrGone
	case pve.Means(err, pve.Forbidden):
		e.Remedy = "groups and IP sets of the datacenter need Sys.Modify on / to write and Sys.Audit on / to read; without them, set network.mode on the containers, which writes the same rules to their own firewalls"
	}
	return e
}
