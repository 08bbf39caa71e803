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

// Proof says how sure one wants to be of a wall before a sandbox counts as ready.
type Proof string

// What a wall can be proved by.
const (
	// ProofGuarded holds the link down until the rules surely bite, then probes
	// from inside where there is a canary.
	ProofGuarded Proof = "guarded"
	// ProofProbed raises the link at once and probes before the sandbox counts as
	// ready: for templates whose boot runs nothing foreign.
	ProofProbed Proof = "probed"
	// ProofNone neither waits nor probes.
	ProofNone Proof = "none"
)

// groupName is Proxmox VE's form of a security group's name.
var groupName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9_-]{1,17}$`)

// checkWall checks what network says about the firewall.
func (m *Manager) checkWall(p *problems, spec Spec) {
	n := spec.Network
	mode := n.Mode
	if mode == "" {
		mode = DefaultMode
	}
	if mode == ModeUnmanaged {
		for attribute, set := range map[string]bool{
			"firewall_group": n.FirewallGroup != "", "allow": len(n.Allow) > 0, "canaries": len(n.Canaries) > 0, "proof": n.Proof != "" && n.Proof != ProofGuarded,
		} {
			if set {
				p.add("network."+attribute, "There is no firewall to go with it", `mode = "unmanaged" leaves the firewall alone. Choose off, web, nat or allowlist, or take `+attribute+" out.")
			}
		}
		return
	}
	if !mode.Managed() {
		p.add("network.mode", fmt.Sprintf("%q is no mode", mode), `Use "nat", "off", "web", "allowlist" or "unmanaged".`)
		return
	}
	m.checkPolicy(p, spec, mode)
	checkGroup(p, n)
	checkProof(p, spec)
}

func (m *Manager) checkPolicy(p *problems, spec Spec, mode NetworkMode) {
	policy := egress.Policy{Mode: mode, Management: m.settings.Management, Allow: spec.Network.Allow}
	if len(policy.Management) == 0 {
		if m.settings.Guest.ProxyJump == nil && (spec.Network.IPv4 == AddressAuto || !isNamed(spec.Network.IPv4) || !isNamed(spec.Network.IPv6)) {
			policy.Management = []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")} // ours, found out when the address is known
		} else {
			p.add("network.mode", "Nobody could log in", fmt.Sprintf("Mode %q lets SSH in from the management networks only, and the address that the sandbox will see us come from isn't known. "+
				"Set the provider's management_cidrs; with a proxy_jump it is the jump host's address on the containers' bridge, such as [\"10.10.0.1/32\"].", mode))
			return
		}
	}
	for _, found := range egress.Check(policy) {
		if strings.HasPrefix(found.Attribute, "resolvers") || spec.Network.FirewallGroup != "" && strings.HasPrefix(found.Attribute, "allow") {
			continue // known when it is rendered; the group's own business
		}
		*p = append(*p, Problem{Attribute: "network." + found.Attribute, Summary: found.Summary, Detail: found.Detail, Warning: found.Warning})
	}
}

func checkGroup(p *problems, n Network) {
	switch {
	case n.FirewallGroup == "":
	case !groupName.MatchString(n.FirewallGroup):
		p.add("network.firewall_group", fmt.Sprintf("%q is no security group's name", n.FirewallGroup), "It begins with a letter and has 2 to 18 letters, digits, - and _.")
	case len(n.Allow) > 0:
		p.add("network.allow", "The rules are the group's", "With firewall_group, what is allowed stands in the group: set allow there.")
	}
}

func checkProof(p *problems, spec Spec) {
	n := spec.Network
	if !slices.Contains([]Proof{"", ProofGuarded, ProofProbed, ProofNone}, n.Proof) {
		p.add("network.proof", fmt.Sprintf("%q is no proof", n.Proof), `Use "guarded", "probed" or "none".`)
	}
	for i, text := range n.Canaries {
		if _, _, err := parseCanary(text); err != nil {
			p.add(fmt.Sprintf("network.canaries[%d]", i), fmt.Sprintf("%q is no address with a port", text), `Give a listener off the node that the mode forbids, such as "192.168.1.1:443", "[fd00::1]:443" or "udp://192.168.1.1:53".`)
		}
	}
	switch {
	case n.Proof == ProofProbed && len(n.Canaries) == 0:
		p.add("network.canaries", "There is nothing to probe", `proof = "probed" raises the link at once and trusts what is seen from inside, so it needs canaries: listeners that the mode forbids.`)
	case len(n.Canaries) > 0 && spec.WaitFor != "" && spec.WaitFor != WaitForSSH:
		p.add("network.canaries", "Nobody would look", `Canaries are tried from inside over SSH: they go with wait_for = "ssh".`)
	case len(n.Canaries) > 0 && n.Proof == ProofNone:
		p.add("network.canaries", "Nobody would look", `proof = "none" proves nothing: take canaries out, or proof.`)
	}
}

// firewallOff is the refusal of a managed mode while the datacenter's switch is
// off. It is never flipped silently: what else would happen concerns others.
var firewallOff = Problem{
	Attribute: "network.mode", Summary: "The datacenter's firewall is off",
	Detail: "No rule of a container counts while it is off, so the sandbox would be open. Turn it on when you have made sure that nobody is locked out: " +
		"the resource sandbox_datacenter_firewall checks that and does it, or on a node:\n" +
		"  pvesh create /cluster/firewall/ipset/management/ --cidr YOUR-ADDRESS   (if the set is there)\n" +
		"  pvesh set /cluster/firewall/options --enable 1\n" +
		"Where that resource is in this configuration, let the sandbox wait for it: depends_on = [sandbox_datacenter_firewall.NAME].\n" +
		`With mode = "unmanaged" the sandbox is made without a filter.`,
}

// checkDatacenter refuses a managed mode where no rule would count. That it
// can't be found out is a refusal too.
func (m *Manager) checkDatacenter(ctx context.Context, spec Spec) (*Problem, error) {
	if !spec.Network.Mode.Managed() {
		return nil, nil
	}
	on, err := m.surroundings.datacenterFirewall(ctx)
	switch {
	case pve.Means(err, pve.Forbidden):
		p := firewallOff
		p.Summary = "Whether the datacenter's firewall is on can't be seen"
		p.Detail = "The token needs Sys.Audit on / to read /cluster/firewall/options: without that nobody knows whether the sandbox's rules count. " + err.Error() + `. With mode = "unmanaged" the sandbox is made without a filter.`
		return &p, nil
	case err != nil:
		return nil, m.step("check", Ref{}, "read the datacenter's firewall options", err)
	case !on:
		p := firewallOff
		return &p, nil
	}
	return nil, nil
}

// DatacenterFirewall says whether the datacenter's firewall is on, for a look at
// sandboxes that are there already. It is asked once a run.
func (m *Manager) DatacenterFirewall(ctx context.Context) (bool, error) {
	return m.surroundings.datacenterFirewall(ctx)
}

// checkGroupExists refuses a group that isn't there: the server takes a dangling
// reference without a word.
func (m *Manager) checkGroupExists(ctx context.Context, spec Spec) error {
	group := spec.Network.FirewallGroup
	if group == "" || !spec.Network.Mode.Managed() {
		return nil
	}
	if _, err := m.pve.FirewallRules(ctx, pve.GroupFirewall(group)); err != nil {
		if pve.Means(err, pve.Forbidden) {
			return nil // whether it is there can't be seen; without it, both policies drop
		}
		return &ProblemsError{Problems: []Problem{{Attribute: "network.firewall_group", Summary: fmt.Sprintf("Security group %q can't be read", group), Detail: err.Error()}}}
	}
	return nil
}
