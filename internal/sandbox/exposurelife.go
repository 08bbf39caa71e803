package sandbox

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

// undoTime bounds what is tidied up after the caller's own time ran out.
const undoTime = 10 * time.Second

// names is a set that many may use.
type names struct{ m sync.Map }

func (n *names) has(name string) bool { _, ok := n.m.Load(name); return ok }
func (n *names) add(name string)      { n.m.Store(name, true) }
func (n *names) drop(name string)     { n.m.Delete(name) }

// ReadExposure looks at an exposure: ref is the container with its claim and the
// node that the exposure is on. One request over SSH, in which the node tries the
// sandbox's port. ErrNoExposure says that the node has none of it. An exposure
// whose container is gone, or has moved, says so in its State.
func (m *Manager) ReadExposure(ctx context.Context, ref Ref, port int) (Exposure, error) {
	said, err := m.askNode(ctx, "read", ref, ref.Node, fmt.Sprintf("show %d %d", ref.VMID, port))
	if err != nil {
		return Exposure{}, err
	}
	entry, err := exposure.ParseEntry(strings.TrimSpace(said))
	if err != nil {
		return Exposure{}, &Error{Op: "read", Ref: ref, What: "understand node " + ref.Node, Kind: ErrNodeSSH, Err: err}
	}
	if ref.Claim != "" && entry.Claim != ref.Claim {
		return Exposure{}, &Error{Op: "read", Ref: ref, Kind: ErrNoExposure, What: fmt.Sprintf("%s is that of another container that had the id", entry.Name)}
	}
	out := Exposure{Entry: entry, Container: ref, Host: entry.Listen.Addr().String()}
	if entry.Tailscale {
		if out.Host, err = m.tailnetName(ctx, ref); errors.Is(err, ErrNodeSSH) {
			out.State = exposure.StateUnpublished
		} else if err != nil {
			return Exposure{}, err
		}
	}
	s, err := m.read(ctx, Prior{Ref: Ref{VMID: ref.VMID, Owner: ref.Owner, Claim: ref.Claim}}, ref.Claim == "")
	switch {
	case errors.Is(err, ErrGone), errors.Is(err, ErrForeign):
		out.State = exposure.StateOrphaned
	case err != nil:
		return Exposure{}, err
	case s.Node != ref.Node, s.IPv4.IsValid() && entry.Target.Addr() != s.IPv4:
		out.State = exposure.StateStale
	case out.State != exposure.StateOpen && s.Network.Mode.Managed():
		let, err := m.nodeIsLetIn(ctx, s, entry)
		if err != nil {
			return Exposure{}, err
		}
		if !let {
			out.State = exposure.StateStale
		}
	}
	if err == nil {
		out.Container.Owner, out.Container.Claim = s.Owner, s.Claim
	}
	return out, nil
}

// ImportExposure is ReadExposure for a caller that holds no claim: the container
// must be ours, and the exposure made for it.
func (m *Manager) ImportExposure(ctx context.Context, ref Ref, port int) (Exposure, error) {
	s, err := m.read(ctx, Prior{Ref: ref}, true)
	if err != nil {
		return Exposure{}, err
	}
	return m.ReadExposure(ctx, s.Ref, port)
}

// Unexpose removes an exposure of the container with this claim; one that is
// gone already is a success.
func (m *Manager) Unexpose(ctx context.Context, ref Ref, port int) error {
	if err := m.requireOwner("unexpose"); err != nil {
		return err
	}
	unlock, err := m.exposing.lock(ctx, ref.Node)
	if err != nil {
		return err
	}
	defer unlock()
	if _, err := m.askNode(ctx, "unexpose", ref, ref.Node, unexposeRequest(ref, port)); err != nil {
		return err
	}
	m.exposed.drop(exposure.Name(ref.VMID, port))
	m.shutNodeOut(ctx, ref, port)
	m.log.InfoContext(ctx, "an exposure was removed", "exposure", exposure.Name(ref.VMID, port), "node", ref.Node)
	return nil
}

// dropExposures removes what leads to a container that was destroyed just now: its address may soon be another's.
func (m *Manager) dropExposures(ctx context.Context, ref Ref, w *warnings) {
	if node, ok := m.nodes.Load(ref.VMID); ok {
		ref.Node = node.(string) //nolint:forcetypeassert // nothing else is stored
	}
	if m.node == nil || ref.Node == "" || ref.Claim == "" {
		return
	}
	listed, err := m.askNode(ctx, "destroy", ref, ref.Node, "list")
	if err != nil {
		w.add(fmt.Sprintf("Exposures of container %d may be left on node %s", ref.VMID, ref.Node),
			fmt.Sprintf("The node could not be asked for them: %v. They lead to an address that another container may get. data.sandbox_port_exposures shows them as orphaned.", err))
		return
	}
	entries, _ := exposure.ParseList(listed)
	for _, e := range entries {
		if e.VMID != ref.VMID || e.Claim != ref.Claim {
			continue
		}
		if err := m.Unexpose(ctx, ref, e.Port); err != nil {
			w.add(fmt.Sprintf("Left behind on node %s: %s", ref.Node, e.Name),
				fmt.Sprintf("The container is destroyed, its exposure on %s isn't: %v. It leads to an address that another container may get.", e.Listen, err))
		}
	}
}

// Exposures lists what a node exposes, of all owners. Units that only look like
// exposures come back as warnings. An exposure whose container doesn't exist, or
// is another than it was made for, is orphaned: the server said so when it was
// asked for that container.
func (m *Manager) Exposures(ctx context.Context, node string) ([]Exposure, []Warning, error) {
	listed, err := m.askNode(ctx, "list", Ref{}, node, "list")
	if err != nil {
		return nil, nil, err
	}
	entries, strange := exposure.ParseList(listed)
	var w warnings
	for _, err := range strange {
		w.add("A unit on node "+node+" that is no exposure", fmt.Sprintf("%v. Somebody made it by hand; it was left alone.", err))
	}
	tailnet := ""
	if slices.ContainsFunc(entries, func(e exposure.Entry) bool { return e.Tailscale }) {
		if tailnet, err = m.tailnetName(ctx, Ref{Node: node}); err != nil && !errors.Is(err, ErrNodeSSH) {
			return nil, nil, err
		}
	}
	out := make([]Exposure, 0, len(entries))
	for _, e := range entries {
		x := Exposure{Entry: e, Container: Ref{VMID: e.VMID, Node: node}, Host: e.Listen.Addr().String()}
		if e.Tailscale {
			x.Host = tailnet
		}
		at, cfg, err := m.find(ctx, e.VMID, "")
		switch {
		case errors.Is(err, ErrGone), errors.Is(err, ErrForeign):
			x.State = exposure.StateOrphaned
		case pve.Means(err, pve.Forbidden): // somebody else's, whom we may not see
		case err != nil:
			return nil, nil, m.step("list", x.Container, "look for its container", err)
		default:
			_, marker := SplitDescription(cfg.Text("description"))
			switch {
			case marker == nil || marker.Claim != e.Claim:
				x.State = exposure.StateOrphaned
			case at != node:
				x.State = exposure.StateStale
			}
			if marker != nil {
				x.Container.Owner = marker.Owner
			}
		}
		out = append(out, x)
	}
	return out, w.take(), nil
}

// NodeNames are the nodes that sandboxes may be placed on and that are online, sorted.
func (m *Manager) NodeNames(ctx context.Context) ([]string, error) {
	fleet, err := m.pve.Lists().Fleet(ctx)
	if err != nil {
		return nil, m.step("list", Ref{}, "list the cluster's nodes", err)
	}
	var out []string
	for name, n := range fleet.Nodes {
		if n.Status == "online" && (len(m.settings.Nodes) == 0 || slices.Contains(m.settings.Nodes, name)) {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out, nil
}
