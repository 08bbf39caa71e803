package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// ReadPool says what the server says of a pool now: the lists that all readers
// share, the Proxmox pool, the template, and the configuration of each member that
// is to be attested. It never waits. spec is what the pool was last applied with;
// nil (after an import) leaves out what only it can tell. ErrGone says that the
// Proxmox pool is gone.
func (m *Manager) ReadPool(ctx context.Context, prior PoolPrior, spec *PoolSpec) (Pool, error) {
	w, err := m.watch(ctx, prior, spec, false)
	if err != nil {
		return Pool{}, err
	}
	return w.pool, nil
}

func (m *Manager) importedPool(ctx context.Context, name, claim string) (Pool, error) {
	return m.ReadPool(ctx, PoolPrior{Name: name, Claim: claim}, nil)
}

// watched is a pool as it was seen, with what an apply needs beyond.
type watched struct {
	m      *Manager
	spec   *PoolSpec // nil after an import
	member Spec      // resolved; only with spec
	fleet  pve.Fleet
	// template is the members' present template; nil where it can't be seen.
	template *pve.LXCConfig
	pool     Pool
	// abandoned are claims that a run which is over has left half-made.
	abandoned []Ref

	mu sync.Mutex // of pool and abandoned while members are read
}

// watch looks at a pool; closely reads every guest in it, whatever attest says.
func (m *Manager) watch(ctx context.Context, prior PoolPrior, spec *PoolSpec, closely bool) (*watched, error) {
	w := &watched{m: m, spec: spec, pool: Pool{Name: prior.Name, Headroom: -1}}
	found, claim, err := m.provePool(ctx, "read", prior.Name, prior.Claim)
	if err != nil {
		return nil, err
	}
	w.pool.Comment, _, _ = splitPoolComment(found.Comment)
	w.pool.Claim = claim
	if w.fleet, err = m.pve.Lists().Fleet(ctx); err != nil {
		return nil, poolError("read", prior.Name, "list the cluster's guests", err)
	}
	if spec != nil {
		w.member = m.memberSpec(*spec)
		if w.template, err = w.seeTemplate(ctx); err != nil {
			return nil, poolError("read", prior.Name, "read the members' template", err)
		}
	}
	if err := w.look(ctx, found, prior.Members, closely); err != nil {
		return nil, poolError("read", prior.Name, "read its members", err)
	}
	slices.SortFunc(w.pool.Members, func(a, b Member) int { return cmp.Or(cmp.Compare(a.Hostname, b.Hostname), cmp.Compare(a.VMID, b.VMID)) })
	slices.SortFunc(w.pool.Claimed, func(a, b Claimed) int { return cmp.Compare(a.VMID, b.VMID) })
	slices.Sort(w.pool.Strangers)
	if spec != nil && !spec.Limits.Empty() {
		w.pool.Headroom = spec.Limits.Headroom(w.use(), w.shape())
	}
	return w, nil
}

// seeTemplate reads the members' template. One that is gone is nil: what was made
// from it stays as good as it was.
func (w *watched) seeTemplate(ctx context.Context) (*pve.LXCConfig, error) {
	entry, listed := w.fleet.Guests[w.member.Source.TemplateID]
	if !listed || entry.Resource != nil && entry.Resource.Type != "lxc" {
		return nil, nil //nolint:nilnil // nil is a template that can't be seen
	}
	cfg, err := w.m.templates.config(ctx, entry.Node, entry.VMID)
	if pve.Means(err, pve.NoSuchGuest, pve.Forbidden, pve.NodeUnreachable, pve.NoSuchNode) || err == nil && !cfg.Template() {
		return nil, nil //nolint:nilnil // as above
	}
	return cfg, err
}

// look goes through the Proxmox pool's guests and through those that the caller
// remembers.
func (w *watched) look(ctx context.Context, found pve.Pool, known []Member, closely bool) error {
	remembered := make(map[int]Member, len(known))
	for _, k := range known {
		k.was = true
		remembered[k.VMID] = k
	}
	read, wctx := errgroup.WithContext(ctx)
	read.SetLimit(listParallel)
	sample := w.sample(len(known))
	seen := make(map[int]bool, len(found.Members))
	n := 0
	for _, member := range found.Members {
		if member.Type == "storage" {
			w.stranger("storage %s", member.Storage)
			continue
		}
		seen[member.VMID] = true
		if member.Type != "lxc" {
			w.stranger("virtual machine %d", member.VMID)
			continue
		}
		n++
		was, isKnown := remembered[member.VMID]
		g, listed := w.fleet.Guests[member.VMID]
		if !listed {
			g = pve.FleetGuest{VMID: member.VMID, Node: member.Node}
		}
		switch {
		case w.away(g.Node):
			w.unreached(g, was, isKnown)
		case !closely && w.claimedByList(g):
			w.claim(g, false)
		case !closely && isKnown && !w.attests(sample, n) && w.quietByList(g) && was.Status == MemberReady:
			w.add(was)
		default:
			read.Go(func() error { return w.readMember(wctx, g) })
		}
	}
	// Members that aren't in the Proxmox pool any more.
	for _, k := range known {
		if seen[k.VMID] {
			continue
		}
		g, listed := w.fleet.Guests[k.VMID]
		node := k.Node
		if listed {
			node = g.Node
		} else {
			g = pve.FleetGuest{VMID: k.VMID, Node: k.Node}
		}
		if w.away(node) {
			w.unreached(g, k, true)
			continue
		}
		read.Go(func() error { return w.readMissing(wctx, k) })
	}
	return read.Wait()
}

// away says whether nothing can be known of what is on a node.
func (w *watched) away(node string) bool {
	_, unreached := w.fleet.Unreached[node]
	return unreached
}

// unreached keeps what is known of a guest on a node that is away.
func (w *watched) unreached(g pve.FleetGuest, was Member, known bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !known {
		w.pool.Claimed = append(w.pool.Claimed, Claimed{Ref: Ref{VMID: g.VMID, Node: g.Node}})
		return
	}
	was.Status, was.Why = MemberUnknown, fmt.Sprintf("node %s is away: %v", g.Node, w.fleet.Unreached[g.Node])
	w.pool.Members = append(w.pool.Members, was)
}

// sample is the stride and offset of the members that are attested: another
// offset at each look, so that each comes up.
func (w *watched) sample(n int) (s struct{ stride, offset int }) {
	s.stride = 1
	if w.spec == nil || w.spec.Attest != AttestSample || n == 0 {
		return s
	}
	size := min(n, 50, max(20, (n+19)/20))
	s.stride = (n + size - 1) / size
	s.offset = int(w.m.jitter() * float64(s.stride))
	return s
}

func (w *watched) attests(s struct{ stride, offset int }, n int) bool {
	return n%s.stride == s.offset%s.stride
}

// tagsOf are the tags as the freshest list has them.
func tagsOf(g pve.FleetGuest) []string {
	switch {
	case g.LXC != nil:
		return splitTags(g.LXC.Tags)
	case g.Resource != nil:
		return splitTags(g.Resource.Tags)
	}
	return nil
}

// claimedByList says whether the lists show a member that was claimed: it has our
// owner's tag, and no longer that of a member.
func (w *watched) claimedByList(g pve.FleetGuest) bool {
	tags := tagsOf(g)
	return slices.Contains(tags, OwnerTag(w.m.settings.Owner)) && !slices.Contains(tags, MemberTag)
}

// quietByList says whether the lists show a member as it should be.
func (w *watched) quietByList(g pve.FleetGuest) bool {
	return g.LXC != nil && g.LXC.Status == string(StatusRunning) && g.LXC.Lock == "" && slices.Contains(tagsOf(g), MemberTag)
}

func (w *watched) claim(g pve.FleetGuest, other bool) {
	c := Claimed{Ref: Ref{VMID: g.VMID, Node: g.Node}, other: other}
	if g.LXC != nil {
		c.Hostname = g.LXC.Name
	}
	if r := g.Resource; r != nil && r.MaxMem > 0 {
		c.known = true
		c.shape = placement.Shape{Cores: r.MaxCPU, MemoryMiB: r.MaxMem >> 20, DiskGiB: float64(r.MaxDisk) / gib}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.Claimed = append(w.pool.Claimed, c)
}

func (w *watched) add(member Member) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.Members = append(w.pool.Members, member)
}

func (w *watched) warn(summary, detail string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.Warnings = append(w.pool.Warnings, Warning{Summary: summary, Detail: detail})
}

func (w *watched) stranger(format string, args ...any) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pool.Strangers = append(w.pool.Strangers, fmt.Sprintf(format, args...))
}

// readMember reads what is in the Proxmox pool and says what it is.
func (w *watched) readMember(ctx context.Context, g pve.FleetGuest) error {
	cfg, err := w.m.pve.LXCConfig(ctx, g.Node, g.VMID)
	switch {
	case pve.Means(err, pve.NoSuchGuest):
		return nil // destroyed or moved since the lists were made: the next look tells
	case pve.Means(err, pve.NodeUnreachable):
		w.unreached(g, Member{}, false)
		return nil
	case err != nil:
		return err
	}
	_, marker := SplitDescription(cfg.Text("description"))
	switch {
	case marker == nil && cfg.Lock() == "create":
		return nil // being made; whose it is shows when its marker does
	case marker == nil || marker.Owner != w.m.settings.Owner || marker.VMID != g.VMID:
		w.stranger("container %d (%s)", g.VMID, cfg.Hostname())
		return nil
	case marker.Kind != KindMember || marker.Pool != w.pool.Name:
		w.note(g, cfg, marker)
		return nil
	}
	member := w.memberOf(g, cfg, marker)
	if err := w.attest(ctx, &member, g, cfg); err != nil {
		return err
	}
	w.add(member)
	return nil
}

// note counts what was claimed, and remembers claims that were cut.
func (w *watched) note(g pve.FleetGuest, cfg *pve.LXCConfig, marker *Marker) {
	w.claim(g, marker.Pool != w.pool.Name)
	_, held := w.m.known.Load(marker.Claim)
	if marker.Pool == w.pool.Name && marker.Phase == PhaseCreating && !held && !marker.Until.IsZero() && w.m.clock.Now().After(marker.Until) && !cfg.Template() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.abandoned = append(w.abandoned, Ref{VMID: g.VMID, Node: g.Node, Claim: marker.Claim, Owner: marker.Owner})
	}
}

func (w *watched) memberOf(g pve.FleetGuest, cfg *pve.LXCConfig, marker *Marker) Member {
	s := w.m.fromConfig(g.Node, g.VMID, cfg)
	if g.LXC != nil {
		s.fillStatus(g.LXC.Status, g.LXC.Uptime)
	}
	return Member{
		Ref:      Ref{VMID: g.VMID, Node: g.Node, Claim: marker.Claim, Owner: marker.Owner},
		Hostname: s.Hostname, IPv4: s.IPv4, Status: MemberReady, Generation: marker.Generation, marker: marker,
	}
}

// readMissing looks for a member that the Proxmox pool no longer has.
func (w *watched) readMissing(ctx context.Context, k Member) error {
	node, cfg, err := w.m.find(ctx, k.VMID, k.Node)
	switch {
	case isGone(err):
		w.warn("Member "+k.Hostname+" is gone", fmt.Sprintf("Container %d of the pool %q no longer exists. The next apply makes another.", k.VMID, w.pool.Name))
		return nil
	case pve.Means(err, pve.NodeUnreachable):
		w.unreached(pve.FleetGuest{VMID: k.VMID, Node: k.Node}, k, true)
		return nil
	case isForeign(err):
		cfg = nil
	case err != nil:
		return err
	}
	var marker *Marker
	if cfg != nil {
		_, marker = SplitDescription(cfg.Text("description"))
	}
	if marker.Matches(w.m.settings.Owner, k.Claim, k.VMID) && marker.Kind == KindMember {
		k = w.memberOf(pve.FleetGuest{VMID: k.VMID, Node: node}, cfg, marker)
		k.Status, k.Why = MemberDrifted, "it was taken out of the Proxmox pool"
		w.add(k)
		return nil
	}
	w.warn("Member "+k.Hostname+" is gone", fmt.Sprintf("The id %d belongs to another guest now, which is left alone. The next apply makes another member for the pool %q.", k.VMID, w.pool.Name))
	return nil
}

// shape is what one member may use; what neither the specification nor the template
// says is unknown, and 0.
func (w *watched) shape() placement.Shape { return shapeOf(w.member, w.template) }

func shapeOf(spec Spec, template *pve.LXCConfig) placement.Shape {
	if template == nil {
		template = emptyConfig()
	}
	s := placement.Shape{MemoryMiB: int64(intOr(template, "memory", 512))}
	if spec.MemoryMiB != nil {
		s.MemoryMiB = int64(*spec.MemoryMiB)
	}
	cores, _ := template.Int("cores")
	s.Cores = float64(cores)
	if spec.Cores != nil {
		s.Cores = float64(*spec.Cores)
	}
	limit, limited := template.Float("cpulimit")
	if spec.CPULimit != nil {
		limit, limited = *spec.CPULimit, *spec.CPULimit > 0
	}
	if limited && limit > 0 && (s.Cores == 0 || limit < s.Cores) {
		s.Cores = limit
	}
	if bytes, ok := template.RootFS().SizeBytes(); ok {
		s.DiskGiB = float64(bytes) / gib
	}
	if spec.DiskGiB != nil {
		s.DiskGiB = float64(*spec.DiskGiB)
	}
	return s
}

// use is what the pool's guests may use, claimed ones included.
func (w *watched) use() placement.Use {
	var u placement.Use
	each := w.shape()
	for range w.pool.Members {
		u = u.Add(each)
	}
	for _, c := range w.pool.Claimed {
		if c.known {
			u = u.Add(c.shape)
		} else {
			u = u.Add(each)
		}
	}
	return u
}
