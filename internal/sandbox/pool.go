package sandbox

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// A pool keeps sandboxes of one shape ready to be claimed. It is a Proxmox pool,
// whose members are the guests in it with our marker: those that nobody has
// claimed (kind=member) are the stock, those that were (kind=container) stay in
// the Proxmox pool, because rights may hang on it, and count against the limits.

// The kinds of failure of pools.
var (
	// ErrPoolExists says that the Proxmox pool exists and was made by somebody else.
	ErrPoolExists = errors.New("the pool exists")
	// ErrPoolInUse says that something in the pool is still needed.
	ErrPoolInUse = errors.New("the pool is in use")
	// ErrPoolEmpty says that the pool has no member that could be claimed.
	ErrPoolEmpty = errors.New("the pool has no member that is ready")
	// ErrPoolShort says that fewer members are ready than asked for.
	ErrPoolShort = errors.New("the pool is not full")
)

// Attest says which members a refresh looks at closely.
type Attest string

// What a refresh can look at.
const (
	AttestAll    Attest = "all"    // every member's configuration, and firewall where it is managed
	AttestSample Attest = "sample" // those of one in twenty; lists say what they can of the others
)

// PoolSpec is what a user wants of a pool.
type PoolSpec struct {
	Name    string // of the Proxmox pool; with slashes, of a nested one
	Comment string
	// Member is the shape of the members. Hostname, VMID, NodeName and PoolID are
	// the pool's business.
	Member Spec
	// Size is how many members are kept ready.
	Size int
	// Limits bound the pool, claimed members included.
	Limits placement.Limits
	// Ratios say how much may be promised of a node; nil means DefaultRatios.
	Ratios *placement.Ratios
	// MaxUnavailable and MaxSurge bound a roll: how many fewer than Size may be
	// ready meanwhile, and how many more may exist.
	MaxUnavailable, MaxSurge int
	Strategy                 placement.Strategy // empty means Spread
	// Nodes limits where members go; empty means the provider's nodes, else all.
	Nodes  []string
	Attest Attest // empty means AttestAll
}

func (s PoolSpec) ratios() placement.Ratios {
	if s.Ratios == nil {
		return placement.DefaultRatios
	}
	return *s.Ratios
}

// MemberStatus says what there is to say about a member that nobody has claimed.
type MemberStatus string

// The statuses of a member. All but ready and unknown are mended by the next
// apply.
const (
	MemberReady      MemberStatus = "ready"
	MemberUnknown    MemberStatus = "unknown"    // its node is away
	MemberStopped    MemberStatus = "stopped"    // it should run
	MemberDrifted    MemberStatus = "drifted"    // somebody has changed it
	MemberOutdated   MemberStatus = "outdated"   // the template or the settings have changed since
	MemberUnfinished MemberStatus = "unfinished" // a run was cut while it made, changed or removed it
)

// Member is a member that nobody has claimed.
type Member struct {
	Ref
	Hostname   string
	IPv4       netip.Addr
	Status     MemberStatus
	Why        string // of a status other than ready
	Generation string // of the pool's settings that it was made with

	marker *Marker
	was    bool // only known from the caller's memory
}

// Claimed is a member that somebody has claimed.
type Claimed struct {
	Ref
	Hostname string
	shape    placement.Shape
	known    bool // whether the list said the shape
	// other says that it is in the Proxmox pool without having been a member: by a
	// pool_id of its own.
	other bool
}

// Pool is what the server says of a pool.
type Pool struct {
	Name    string
	Comment string
	// Claim is in the Proxmox pool's comment: what tells it from one of the same
	// name that somebody else has made since.
	Claim   string
	Members []Member // by hostname
	Claimed []Claimed
	// Strangers are guests and storages in the Proxmox pool that aren't ours.
	Strangers []string
	// Headroom is how many members more the limits allow; -1 without limits.
	Headroom int
	Warnings []Warning
}

// Ready is how many members can be claimed.
func (p Pool) Ready() int { return p.count(func(s MemberStatus) bool { return s == MemberReady }) }

func (p Pool) count(is func(MemberStatus) bool) int {
	n := 0
	for _, m := range p.Members {
		if is(m.Status) {
			n++
		}
	}
	return n
}

// PoolPrior is what a caller remembers of a pool.
type PoolPrior struct {
	Name    string
	Claim   string
	Members []Member
}

// poolName is the server's rule for the id of a pool: up to three levels.
var poolName = regexp.MustCompile(`^[A-Za-z0-9_.-]+(/[A-Za-z0-9_.-]+){0,2}$`)

// CheckPool validates a specification without any request.
func (m *Manager) CheckPool(spec PoolSpec) []Problem {
	var p problems
	switch {
	case !poolName.MatchString(spec.Name):
		p.add("name", fmt.Sprintf("%q is no pool's name", spec.Name), "A Proxmox pool's name holds letters, digits and -_. only, and at most two slashes for a nested pool.")
	case !validMarkerValue(spec.Name):
		p.add("name", fmt.Sprintf("%q can't be recorded", spec.Name), "The members' ownership markers record the pool's name, and can't hold two dashes in a row.")
	}
	if strings.ContainsAny(spec.Comment, "\r\n") {
		p.add("comment", "The comment has more than one line", "Proxmox VE shows a pool's comment in one line of a list.")
	}
	if strings.Contains(spec.Comment, poolMarkOpen) {
		p.add("comment", "The comment looks like the provider's own mark", fmt.Sprintf("%q is what the provider writes after the comment.", poolMarkOpen))
	}
	if spec.Size < 0 {
		p.add("size", "The size is negative", "Give the number of members that are kept ready, 0 for none.")
	}
	if spec.MaxUnavailable < 0 || spec.MaxSurge < 0 || spec.MaxUnavailable+spec.MaxSurge == 0 {
		p.add("update", "Nothing could ever be replaced", "max_unavailable and max_surge can't both be 0: one of them has to leave room for a roll.")
	}
	if spec.Strategy != "" && !slices.Contains(placement.Strategies(), string(spec.Strategy)) {
		p.add("placement", fmt.Sprintf("%q is no placement", spec.Strategy), `Use "spread" or "pack".`)
	}
	if !slices.Contains([]Attest{"", AttestAll, AttestSample}, spec.Attest) {
		p.add("attest", fmt.Sprintf("%q is nothing to attest", spec.Attest), `Use "all" or "sample".`)
	}
	if r := spec.ratios(); r.Cores < 0 || r.Memory < 0 || r.Disk < 0 {
		p.add("overcommit", "A ratio is negative", "A ratio says how often what a node has may be promised; 0 leaves it unchecked.")
	}
	m.checkMember(&p, spec)
	return p
}

// checkMember checks the shape as one of a sandbox, and what a pool asks beyond.
func (m *Manager) checkMember(p *problems, spec PoolSpec) {
	s := spec.Member
	if !m.source(s).IsClone() {
		p.add("member.template_id", "Members are clones", "A pool makes its members by cloning a template: set template_id here or in the provider.")
		return
	}
	s.Hostname, s.Started = "member", true
	for _, found := range m.Check(s) {
		found.Attribute = memberAttribute(found.Attribute)
		*p = append(*p, found)
	}
	if s.Network.IPv4 != "" && strings.Contains(s.Network.IPv4, "/") || strings.Contains(s.Network.IPv6, "/") {
		p.add("member.network", "All members would have one address", `A pool has many members: use "auto" or "dhcp".`)
	}
	if s.Protection {
		p.add("member.protection", "Members can't be protected", "The pool replaces its members. Set protection on the container that claims one.")
	}
}

// memberAttribute is where a sandbox's setting stands in a pool's.
func memberAttribute(attribute string) string {
	if strings.HasPrefix(attribute, "provider.") {
		return attribute
	}
	return "member." + attribute
}

func asMembers(problems []Problem) []Problem {
	out := slices.Clone(problems)
	for i := range out {
		out[i].Attribute = memberAttribute(out[i].Attribute)
	}
	return out
}
