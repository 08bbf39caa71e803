package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// CheckWorkspace validates a specification without any request.
func (m *Manager) CheckWorkspace(spec WorkspaceSpec) []Problem {
	var p problems
	if why := problemWithHostname(spec.Name); why != "" || strings.Contains(spec.Name, ".") {
		p.add("name", fmt.Sprintf("%q is no workspace's name", spec.Name),
			"A name is one DNS label, because it is the holder's hostname: letters, digits and dashes, at most 63. The function repo_slug makes one from a repository's URL.")
	}
	switch {
	case spec.SizeGiB < 0, spec.SizeGiB == 0 && spec.ForkOf == 0:
		p.add("size", "A workspace needs a size", "Give a whole number of GiB, at least 1. Only a fork can leave it out: it has its source's.")
	}
	if spec.Storage != "" && !validID(spec.Storage) {
		p.add("storage", fmt.Sprintf("%q is no storage's name", spec.Storage), "A storage's name begins with a letter and holds letters, digits and -_. only.")
	}
	m.checkPlacement(&p, Spec{NodeName: spec.NodeName})
	return p
}

// CheckWorkspaceServer validates a specification against what the server holds
// now, for use at plan. prior is what ReadWorkspace said, nil for a creation.
func (m *Manager) CheckWorkspaceServer(ctx context.Context, spec WorkspaceSpec, prior *Workspace) ([]Problem, error) {
	if prior != nil {
		if spec.SizeGiB != 0 && prior.SizeGiB > 0 && float64(spec.SizeGiB) < prior.SizeGiB {
			return []Problem{shrunkWorkspace(spec.SizeGiB, prior.SizeGiB)}, nil
		}
		return nil, nil
	}
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, m.step("check", Ref{}, "list the cluster's resources", err)
	}
	var p problems
	m.checkNode(&p, Spec{NodeName: spec.NodeName}, resources)
	if spec.ForkOf != 0 {
		return p, nil
	}
	id, err := m.holderTemplate(resources, spec.NodeName)
	if err != nil {
		var found *ProblemsError
		if errors.As(err, &found) {
			return append(p, found.Problems...), nil
		}
		return nil, err
	}
	template := guestIn(resources, id)
	if storage := cmp.Or(spec.Storage, m.settings.Storage); storage != "" && template != nil {
		if problem := checkVolumeStorage(resources, cmp.Or(spec.NodeName, template.Node), storage); problem != nil {
			p = append(p, *problem)
		}
	}
	return p, nil
}

// systemPaths are where a volume would hide what the guest needs.
var systemPaths = []string{"/bin", "/boot", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr", "/var"}

// checkAttachments validates what a sandbox is to have.
func checkAttachments(p *problems, list []Attachment) {
	if len(list) > MaxWorkspaces {
		p.add("workspace", fmt.Sprintf("%d workspaces are too many", len(list)), fmt.Sprintf("A sandbox can have %d: each takes room in its ownership marker.", MaxWorkspaces))
	}
	for i, a := range list {
		at := fmt.Sprintf("workspace[%d].", i)
		switch {
		case !strings.HasPrefix(a.Path, "/") || path.Clean(a.Path) != a.Path || a.Path == "/":
			p.add(at+"path", fmt.Sprintf("%q is no path to mount at", a.Path), `Give an absolute path below "/" without "..", "//" or a slash at its end, such as "/workspace".`)
		case strings.ContainsAny(a.Path, ",\n\r\x00 \t"):
			p.add(at+"path", fmt.Sprintf("%q can't be mounted at", a.Path), "Proxmox VE's configuration takes no commas or blanks in a path.")
		case slices.Contains(systemPaths, a.Path):
			p.add(at+"path", fmt.Sprintf("%q is the guest's own", a.Path), "A volume there would hide what the guest needs to run. Mount it at a path of its own, such as /workspace.")
		}
		for j, other := range list[:i] {
			switch {
			case other.Workspace == a.Workspace && a.Workspace != 0:
				p.add(at+"id", fmt.Sprintf("Workspace %d is named twice", a.Workspace), fmt.Sprintf("workspace[%d] has it already, and a volume can be in one place only.", j))
			case within(a.Path, other.Path) || within(other.Path, a.Path):
				p.add(at+"path", fmt.Sprintf("%s and %s overlap", other.Path, a.Path), "One would hide the other, depending on the order of mounting. Use paths side by side.")
			}
		}
	}
}

func within(inner, outer string) bool {
	return inner == outer || strings.HasPrefix(inner, strings.TrimSuffix(outer, "/")+"/")
}

// checkWorkspaces validates attachments against the server: that the workspaces
// are there, and on the sandbox's node. Only those that it hasn't yet cost a
// request each.
func (m *Manager) checkWorkspaces(ctx context.Context, p *problems, spec Spec, prior *Sandbox, resources []pve.Resource) error {
	if len(spec.Workspaces) == 0 {
		return nil
	}
	node := spec.NodeName
	if node == "" && prior != nil {
		node = prior.Node
	}
	if node == "" {
		if t := guestIn(resources, spec.Source.TemplateID); t != nil {
			node = cmp.Or(m.placement(resources, "", t.Node), t.Node)
		}
	}
	for i, a := range spec.Workspaces {
		has := prior != nil && slices.ContainsFunc(prior.Workspaces, func(w Attached) bool { return w.Workspace == a.Workspace })
		r := guestIn(resources, a.Workspace)
		at := fmt.Sprintf("workspace[%d].", i)
		if r != nil && node != "" && r.Node != node {
			detail := fmt.Sprintf("Set node_name = %q on the sandbox, or make a workspace on node %s.", r.Node, node)
			if has {
				detail = fmt.Sprintf("A sandbox can't leave its workspaces' node. Keep node_name = %q, or take the workspace out in an apply before.", r.Node)
			}
			p.add(at+"id", fmt.Sprintf("Workspace %d is on node %s, the sandbox on node %s", a.Workspace, r.Node, node), "A volume can't be handed from node to node. "+detail)
			continue
		}
		if has {
			continue
		}
		if err := m.checkFree(ctx, p, at+"id", a, prior); err != nil {
			return err
		}
	}
	return nil
}

// checkFree looks at one workspace that is to be attached. That somebody else
// has it is only a warning: they may let go in the same apply.
func (m *Manager) checkFree(ctx context.Context, p *problems, attribute string, a Attachment, prior *Sandbox) error {
	h, err := m.holder(ctx, "check", a.Workspace, "", "")
	switch {
	case errors.Is(err, ErrGone):
		p.add(attribute, fmt.Sprintf("There is no workspace %d", a.Workspace), "Give the id of a sandbox_workspace; the token needs VM.Audit on it.")
		return nil
	case errors.Is(err, ErrForeign):
		p.add(attribute, fmt.Sprintf("%d is no workspace of this owner", a.Workspace), "Give the id of a sandbox_workspace that this provider's owner has made.")
		return nil
	case err != nil:
		return err
	}
	if _, _, home := h.home(); home || h.marker.At == nil || prior != nil && h.marker.At.VMID == prior.VMID {
		return nil
	}
	u := m.userOf(ctx, h.marker.At.VMID)
	p.warn(attribute, fmt.Sprintf("Workspace %d (%s) is held by container %d (%s)", h.ref.VMID, h.name(), u.VMID, u.Hostname),
		fmt.Sprintf("The apply waits %s for it to let go, and fails if it doesn't.", a.wait()))
	return nil
}
