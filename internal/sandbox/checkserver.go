package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// CheckServer validates a specification against what the server holds now, for
// use at plan. prior is what Read said, nil for a creation. It only reads: the
// list that all readers share and, only where that leaves a question open, the
// template's configuration or the node's bridges (once a run). The error is a
// failure to ask, not a finding.
func (m *Manager) CheckServer(ctx context.Context, spec Spec, prior *Sandbox) ([]Problem, error) {
	if prior == nil {
		spec = m.resolveNew(spec)
	} else {
		spec = m.resolve(spec)
	}
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, m.step("check", Ref{}, "list the cluster's resources", err)
	}
	var p problems
	m.checkNode(&p, spec, resources)
	if err := m.checkWorkspaces(ctx, &p, spec, prior, resources); err != nil {
		return nil, err
	}
	if problem, err := m.checkDatacenter(ctx, spec); err != nil {
		return nil, err
	} else if problem != nil {
		if m.surroundings.firewallExpected() && problem.Summary == firewallOff.Summary {
			problem.Warning = true
			problem.Detail = "This plan turns it on: sandbox_datacenter_firewall. The apply makes no sandbox before it is on."
		}
		p = append(p, *problem)
	}
	if prior != nil {
		if spec.DiskGiB != nil && prior.DiskGiB > 0 && float64(*spec.DiskGiB) < prior.DiskGiB {
			p = append(p, shrinkProblem(*spec.DiskGiB, prior.DiskGiB))
		}
		if spec.SnapshotBeforeUpdate {
			unable, err := m.checkSnapshotBefore(ctx, prior.Ref)
			if err != nil {
				return nil, err
			}
			p = append(p, unable...)
		}
		if spec.Network.Bridge != prior.Network.Bridge {
			m.checkBridgeExists(ctx, &p, spec, cmp.Or(spec.NodeName, prior.Node))
		}
		return p, nil
	}
	if spec.VMID != 0 {
		if err := m.checkTaken(ctx, &p, spec, resources); err != nil {
			return nil, err
		}
	}
	if spec.Source.IsClone() {
		err := m.checkClone(ctx, &p, spec, resources)
		return p, err
	}
	if spec.Source.RestoreFrom != "" {
		err := m.checkRestore(ctx, &p, spec, resources)
		return p, err
	}
	p = append(p, policy(spec, emptyConfig())...)
	node, err := m.nodeForFile(resources, spec)
	m.checkBridgeExists(ctx, &p, spec, node)
	if err != nil {
		found, ok := err.(*ProblemsError) //nolint:errorlint // nodeForFile returns it unwrapped
		if !ok {
			return nil, err
		}
		p = append(p, found.Problems...)
	}
	return p, nil
}

func (m *Manager) checkNode(p *problems, spec Spec, resources []pve.Resource) {
	if spec.NodeName == "" {
		return
	}
	node := nodeIn(resources, spec.NodeName)
	switch {
	case node == nil:
		p.add("node_name", fmt.Sprintf("There is no node %q", spec.NodeName), "The cluster's nodes are "+strings.Join(nodeNames(resources), ", ")+".")
	case node.Status == "offline":
		p.warn("node_name", fmt.Sprintf("Node %q is offline", spec.NodeName), "The apply will fail unless it is back by then.")
	}
}

func nodeNames(resources []pve.Resource) []string {
	var names []string
	for _, r := range resources {
		if r.Type == "node" {
			names = append(names, r.Node)
		}
	}
	slices.Sort(names)
	return names
}

// checkTaken says who has the wanted id, unless it is a leftover that Create
// removes.
func (m *Manager) checkTaken(ctx context.Context, p *problems, spec Spec, resources []pve.Resource) error {
	r := guestIn(resources, spec.VMID)
	if r == nil {
		return nil
	}
	if r.Type == "lxc" {
		ref, err := m.abandoned(ctx, r, spec.Hostname)
		if err != nil {
			return m.step("check", Ref{VMID: r.VMID}, "look at who has the id", err)
		}
		if ref != nil {
			return nil
		}
	}
	kind := "container"
	if r.Type == "qemu" {
		kind = "virtual machine"
	}
	p.add("vmid", fmt.Sprintf("%d is taken", spec.VMID), fmt.Sprintf("The %s %q on node %s has it. Choose another id, leave vmid out, or import the container if it is yours.", kind, r.Name, r.Node))
	return nil
}

func (m *Manager) checkClone(ctx context.Context, p *problems, spec Spec, resources []pve.Resource) error {
	id := spec.Source.TemplateID
	entry := guestIn(resources, id)
	if entry == nil || !entry.Template {
		// What the list says of a template that was made just now may be 10 s old.
		problem, _, err := m.template(ctx, entry, id)
		if err != nil {
			return m.step("check", Ref{VMID: id}, "read the template", err)
		}
		if problem != nil {
			*p = append(*p, *problem)
			return nil
		}
	}
	if template, err := m.templates.config(ctx, entry.Node, id); err == nil {
		*p = append(*p, policy(spec, template)...)
	} else if !pve.Means(err, pve.NoSuchGuest, pve.Forbidden) {
		return m.step("check", Ref{VMID: id}, "read the template", err)
	}
	if spec.DiskGiB != nil && int64(*spec.DiskGiB)*gib < entry.MaxDisk {
		*p = append(*p, smallerThanTemplate(*spec.DiskGiB, fmt.Sprintf("%gG", float64(entry.MaxDisk)/gib)))
	}
	if spec.Storage != "" {
		if s := storageIn(resources, entry.Node, spec.Storage); s == nil {
			p.add("storage", fmt.Sprintf("Node %s has no storage %q", entry.Node, spec.Storage), "A clone is made on its template's node.")
		} else if s.Content != "" && !slices.Contains(sortedList(s.Content), "rootdir") {
			p.add("storage", fmt.Sprintf("The storage %q takes no container disks", spec.Storage), "Its content types lack \"rootdir\" (Container).")
		}
	}
	m.checkBridgeExists(ctx, p, spec, cmp.Or(m.placement(resources, spec.NodeName, entry.Node), entry.Node))
	if spec.NodeName == "" || spec.NodeName == entry.Node {
		return nil
	}
	storage := spec.Storage
	if storage == "" {
		template, err := m.templates.config(ctx, entry.Node, id)
		if err != nil {
			return m.step("check", Ref{VMID: id}, "read the template", err)
		}
		storage = template.RootFS().Storage()
	}
	if s := storageIn(resources, spec.NodeName, storage); s == nil {
		p.add("node_name", fmt.Sprintf("Template %d is on node %s, and node %s has no storage %q", spec.Source.TemplateID, entry.Node, spec.NodeName, storage),
			"The clone's disk would have nowhere to go. Use a template on the wanted node, or a storage that both nodes have.")
	} else if !s.Shared {
		p.warn("node_name", fmt.Sprintf("Template %d is on node %s's local storage", spec.Source.TemplateID, entry.Node),
			fmt.Sprintf("The container is cloned there and then migrated to %s, which copies its disk. A template on each node is faster.", spec.NodeName))
	}
	return nil
}
