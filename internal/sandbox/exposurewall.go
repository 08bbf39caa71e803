package sandbox

import (
	"context"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/egress"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/exposure"
)

// letNodeIn opens the wall of a container with a managed network mode for its
// node, towards one port. The rule bites when the server's firewall service has
// compiled it, within some ten seconds.
func (m *Manager) letNodeIn(ctx context.Context, s Sandbox, port int, target netip.Addr) error {
	if !s.Network.Mode.Managed() {
		return nil
	}
	said, err := m.askNode(ctx, "expose", s.Ref, s.Node, "source "+target.String())
	if err != nil {
		return err
	}
	source, err := netip.ParseAddr(strings.TrimSpace(said))
	if err != nil {
		return &Error{Op: "expose", Ref: s.Ref, What: "find the address from which node " + s.Node + " reaches it", Kind: ErrNodeSSH, Err: fmt.Errorf("it says %q", said)}
	}
	rule := egress.ExposedRule(exposure.Name(s.VMID, port), source, port)
	_, err = egress.SyncPart(ctx, m.pve, pve.LXCFirewall(s.Node, s.VMID), nil, func(have []egress.Rule) []egress.Rule {
		return egress.Expose(have, rule)
	})
	return m.step("expose", s.Ref, "let its node in by a firewall rule", err)
}

// nodeIsLetIn says whether the rule of letNodeIn is there.
func (m *Manager) nodeIsLetIn(ctx context.Context, s Sandbox, e exposure.Entry) (bool, error) {
	list, err := egress.ReadRules(ctx, m.pve, pve.LXCFirewall(s.Node, s.VMID))
	if err != nil {
		return false, m.step("read", s.Ref, "read its firewall rules", err)
	}
	_, exposed := egress.SplitExposed(list.Rules, s.VMID)
	return slices.ContainsFunc(exposed, func(r egress.Rule) bool { return r.DPort == fmt.Sprint(e.Port) }), nil
}

// shutNodeOut closes what letNodeIn opened, in the container that it was opened
// in. That it can't be done is no failure: the rule lets in the node alone, and
// it goes with the container.
func (m *Manager) shutNodeOut(ctx context.Context, ref Ref, port int) {
	s, err := m.read(ctx, Prior{Ref: Ref{VMID: ref.VMID, Owner: ref.Owner, Claim: ref.Claim}}, false)
	if err != nil {
		return
	}
	if err := m.letIn(ctx, s, "", "remove", port); err != nil {
		m.log.WarnContext(ctx, "the port of a removed exposure stays open in the filter inside", "exposure", exposure.Name(ref.VMID, port), "cause", err)
	}
	if !s.Network.Mode.Managed() {
		return
	}
	_, err = egress.SyncPart(ctx, m.pve, pve.LXCFirewall(s.Node, s.VMID), nil, func(have []egress.Rule) []egress.Rule {
		return egress.Unexpose(have, exposure.Name(ref.VMID, port))
	})
	if err != nil {
		m.log.WarnContext(ctx, "the rule of a removed exposure is left", "exposure", exposure.Name(ref.VMID, port), "cause", err)
	}
}
