package sandbox

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/placement"
)

// noQuorum is what Proxmox VE says to every write while the cluster has no quorum.
const noQuorum = "cluster not ready - no quorum?"

// CheckPoolServer validates a specification against what the server holds now, for
// use at plan. held is how many members there are, and clones says that members are to be
// made for another reason than that some are missing: a template that is gone is no
// reason to refuse what needs none. It only reads. What a change would exceed is a problem only where it asks for
// more: what is there already stays. The error is a failure to ask.
func (m *Manager) CheckPoolServer(ctx context.Context, spec PoolSpec, held int, clones bool) ([]Problem, error) {
	member := m.memberSpec(spec)
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, poolError("check", spec.Name, "list the cluster's resources", err)
	}
	entry := guestIn(resources, member.Source.TemplateID)
	problem, template, err := m.template(ctx, entry, member.Source.TemplateID)
	if err != nil {
		return nil, poolError("check", spec.Name, "read the template", err)
	}
	missing := spec.Size - held
	if problem != nil {
		problem.Warning = missing <= 0 && !clones
		return asMembers([]Problem{*problem}), nil
	}
	probe := member
	probe.Hostname = "member"
	found, err := m.CheckServer(ctx, probe, nil)
	if err != nil {
		return nil, poolError("check", spec.Name, "check the members' shape", err)
	}
	p := problems(asMembers(found))
	p = append(p, m.checkLimits(spec, shapeOf(member, template))...)
	if missing <= 0 {
		return p, nil
	}
	if quorum, err := m.checkQuorum(ctx); err != nil {
		return nil, err
	} else if quorum != nil {
		return append(p, *quorum), nil
	}
	nodes := m.placementNodes(resources, spec, member, entry.Node, template)
	short := placement.Place(nodes, shapeOf(member, template), missing, spec.Strategy, spec.ratios())
	return append(p, shortfallProblems(nodes, short, missing)...), nil
}

// checkLimits refuses a size that the limits can't hold even if nothing is claimed.
func (m *Manager) checkLimits(spec PoolSpec, each placement.Shape) []Problem {
	var use placement.Use
	for range spec.Size {
		use = use.Add(each)
	}
	var p problems
	for _, e := range spec.Limits.Exceeded(use) {
		p.add("limits."+e.Limit, fmt.Sprintf("%d members are more than the limit allows", spec.Size), sentenceCase(e.String())+". Lower size or the members' shape, or raise the limit.")
	}
	return p
}

func sentenceCase(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// checkQuorum refuses what a cluster without quorum would refuse. A token that may
// not see that (Sys.Audit on /) learns it from the server's own refusal.
func (m *Manager) checkQuorum(ctx context.Context) (*Problem, error) {
	status, err := m.pve.ClusterStatus(ctx)
	if pve.Means(err, pve.Forbidden) {
		return nil, nil //nolint:nilnil // nil is no problem
	}
	if err != nil {
		return nil, poolError("check", "", "read the cluster's status", err)
	}
	if status.Quorate {
		return nil, nil //nolint:nilnil // as above
	}
	online := 0
	for _, n := range status.Nodes {
		if n.Online {
			online++
		}
	}
	return &Problem{Attribute: "size", Summary: "The cluster has no quorum",
		Detail: fmt.Sprintf("%d of the %d nodes of cluster %q are up, and its answer to every change is %q. Bring nodes back (pvecm status); what runs, runs on.", online, len(status.Nodes), status.Name, noQuorum)}, nil
}

// placementNodes says what a placement needs to know of each node. A clone is made
// where its template's disk is: on the template's node, or on every node that has
// the storage if that is shared.
func (m *Manager) placementNodes(resources []pve.Resource, spec PoolSpec, member Spec, home string, template *pve.LXCConfig) []placement.Node {
	storage := member.Storage
	if storage == "" {
		storage = template.RootFS().Storage()
	}
	source := template.RootFS().Storage()
	allowed := spec.Nodes
	if len(allowed) == 0 {
		allowed = m.settings.Nodes
	}
	var nodes []placement.Node
	for _, r := range resources {
		if r.Type != "node" {
			continue
		}
		n := placement.Node{
			Name: r.Node, Cores: r.MaxCPU, MemoryMiB: r.MaxMem >> 20, FreeMemoryMiB: (r.MaxMem - r.Mem) >> 20,
			Storage: storage, StorageFreeGiB: -1,
		}
		has := storageIn(resources, r.Node, storage)
		if has != nil {
			n.Shared = has.Shared
			if has.MaxDisk > 0 {
				n.StorageFreeGiB = float64(has.MaxDisk-has.Disk) / gib
			}
		}
		on := storageIn(resources, r.Node, source)
		switch {
		case r.Status != "online":
			n.Unusable = "it is " + r.Status
		case len(allowed) > 0 && !slices.Contains(allowed, r.Node):
			n.Unusable = "nodes doesn't name it"
		case r.Node != home && (on == nil || !on.Shared):
			n.Unusable = fmt.Sprintf("it can't reach template %d, which is on node %s's storage %q", member.Source.TemplateID, home, source)
		case r.Node != home && (has == nil || !has.Shared):
			n.Unusable = fmt.Sprintf("it doesn't share the storage %q with node %s", storage, home)
		}
		nodes = append(nodes, n)
	}
	m.promised(nodes, resources, spec.Name)
	return nodes
}

// promised adds up what the guests of each node may use. A guest that was made a
// moment ago is listed without its size; what this process made is known.
func (m *Manager) promised(nodes []placement.Node, resources []pve.Resource, pool string) {
	at := map[string]*placement.Node{}
	for i := range nodes {
		at[nodes[i].Name] = &nodes[i]
	}
	for _, r := range resources {
		n := at[r.Node]
		if n == nil || !r.IsGuest() || r.Template {
			continue
		}
		if r.Pool == pool && r.Type == "lxc" {
			n.Members++
		}
		if r.Status == string(StatusStopped) {
			continue
		}
		shape := placement.Shape{Cores: r.MaxCPU, MemoryMiB: r.MaxMem >> 20}
		if r.MaxMem == 0 {
			if known, ok := m.shapes.Load(r.VMID); ok {
				shape, _ = known.(placement.Shape)
			}
		}
		n.Promised.Cores += shape.Cores
		n.Promised.MemoryMiB += shape.MemoryMiB
	}
}

// shortfallProblems says which members find no place and why.
func shortfallProblems(nodes []placement.Node, placed placement.Placement, wanted int) []Problem {
	if placed.Missed == 0 {
		return nil
	}
	var p problems
	if len(placement.Usable(nodes)) == 0 {
		p.add("nodes", "No node can take the members", "- "+strings.Join(unusable(nodes), "\n- ")+"\nA template on shared storage can be cloned on every node; else each node needs a template and a pool of its own.")
		return p
	}
	var lines []string
	for _, s := range placed.Short {
		switch s.Resource {
		case placement.Cores:
			lines = append(lines, fmt.Sprintf("node %s: %g cores are needed, %g more than may still be promised (overcommit.cores = %g)", s.Node, s.Need, s.Over(), s.Ratio))
		case placement.Memory:
			lines = append(lines, fmt.Sprintf("node %s: %.0f MiB of memory are needed, %.0f MiB more than may still be promised (overcommit.memory = %g)", s.Node, s.Need, s.Over(), s.Ratio))
		case placement.Disk:
			lines = append(lines, fmt.Sprintf("node %s, storage %q: %.1f GiB are needed, %.1f GiB more than may still be promised (overcommit.disk = %g)", s.Node, s.Storage, s.Need, s.Over(), s.Ratio))
		}
	}
	lines = append(lines, unusable(nodes)...)
	p.add("size", fmt.Sprintf("%d of %d new members find no place", placed.Missed, wanted),
		"For these, each node by itself:\n- "+strings.Join(lines, "\n- ")+"\nLower size or the members' shape, free something, or promise more in overcommit.")
	return p
}

func unusable(nodes []placement.Node) []string {
	var lines []string
	for _, n := range nodes {
		if n.Unusable != "" {
			lines = append(lines, fmt.Sprintf("node %s: %s", n.Name, n.Unusable))
		}
	}
	return lines
}
