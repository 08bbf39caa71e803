package sandbox

import (
	"context"
	"errors"
	"fmt"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// find reads the configuration of the guest with an id, wherever it is. hint
// is the node where it was last; it is asked first. ErrGone is returned only
// when every node that could have it said directly that it doesn't: a list may
// hide what the token can't see, be stale, or be half a list.
func (m *Manager) find(ctx context.Context, vmid int, hint string) (node string, cfg *pve.LXCConfig, err error) {
	asked := map[string]bool{}
	ask := func(node string) (*pve.LXCConfig, error) {
		asked[node] = true
		return m.pve.LXCConfig(ctx, node, vmid)
	}
	var hintErr error
	if hint != "" {
		cfg, hintErr = ask(hint)
		if hintErr == nil {
			return hint, cfg, nil
		}
		if !pve.Means(hintErr, pve.NoSuchGuest, pve.NoSuchNode, pve.NodeUnreachable) {
			return hint, nil, m.unseen(ctx, vmid, hint, hintErr)
		}
	}
	for attempt := 0; ; attempt++ {
		resources, err := m.pve.Lists().Resources(ctx)
		if err != nil {
			return "", nil, errors.Join(hintErr, err)
		}
		entry := guestIn(resources, vmid)
		if entry == nil {
			return "", nil, m.unseen(ctx, vmid, hint, m.proveAbsence(vmid, hint, hintErr, resources, asked, ask))
		}
		if entry.Type != "lxc" {
			return entry.Node, nil, &Error{Op: "find", Ref: Ref{VMID: vmid, Node: entry.Node}, Kind: ErrForeign,
				What: fmt.Sprintf("the id belongs to the virtual machine %q on node %s", entry.Name, entry.Node)}
		}
		cfg, err := ask(entry.Node)
		if err == nil {
			return entry.Node, cfg, nil
		}
		if !pve.Means(err, pve.NoSuchGuest) || attempt == 2 {
			return entry.Node, nil, err
		}
		// It was moved or destroyed after the list was made.
		m.pve.Lists().Drop()
	}
}

// proveAbsence asks every node that is up.
func (m *Manager) proveAbsence(vmid int, hint string, hintErr error, resources []pve.Resource, asked map[string]bool, ask func(string) (*pve.LXCConfig, error)) error {
	if hintErr != nil && pve.Means(hintErr, pve.NodeUnreachable) {
		return hintErr // it may well be there
	}
	proofs := 0
	for _, node := range resources {
		if node.Type != "node" || node.Status == "offline" {
			continue
		}
		if asked[node.Node] {
			proofs++
			continue
		}
		_, err := ask(node.Node)
		switch {
		case err == nil:
			return fmt.Errorf("container %d is on node %s although the cluster's list doesn't have it: the token can't see it (it needs VM.Audit on /vms/%d)", vmid, node.Node, vmid)
		case !pve.Means(err, pve.NoSuchGuest):
			return err
		}
		proofs++
	}
	if proofs == 0 {
		return fmt.Errorf("no node is up that could say whether container %d exists", vmid)
	}
	return &Error{Op: "find", Ref: Ref{VMID: vmid, Node: hint}, Kind: ErrGone}
}

// unseen turns a refusal to show a guest into ErrGone where the server says that
// no guest has the id: who has rights by a Proxmox pool alone loses them when the
// guest goes, and is then refused what isn't there.
func (m *Manager) unseen(ctx context.Context, vmid int, hint string, refusal error) error {
	if !pve.Means(refusal, pve.Forbidden) {
		return refusal
	}
	free, err := m.pve.IDFree(ctx, vmid)
	switch {
	case err != nil:
		return errors.Join(refusal, err)
	case free:
		return &Error{Op: "find", Ref: Ref{VMID: vmid, Node: hint}, Kind: ErrGone}
	}
	return refusal
}

// guestIn finds a guest in the cluster's list; nil if it isn't there.
func guestIn(resources []pve.Resource, vmid int) *pve.Resource {
	for i, r := range resources {
		if r.IsGuest() && r.VMID == vmid {
			return &resources[i]
		}
	}
	return nil
}

// nodeIn finds a node in the cluster's list; nil if it isn't there.
func nodeIn(resources []pve.Resource, name string) *pve.Resource {
	for i, r := range resources {
		if r.Type == "node" && r.Node == name {
			return &resources[i]
		}
	}
	return nil
}

// storageIn finds a storage as a node has it; nil if it isn't there.
func storageIn(resources []pve.Resource, node, storage string) *pve.Resource {
	for i, r := range resources {
		if r.Type == "storage" && r.Node == node && r.Storage == storage {
			return &resources[i]
		}
	}
	return nil
}
