package sandbox

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
)

const (
	// clockTolerance is how far clocks may differ before leases and logs of two machines don't fit together.
	clockTolerance = 30 * time.Second
	// expirySoon is how long before a token ends that is said.
	expirySoon = 14 * 24 * time.Hour
)

type findings []PreflightFinding

func (f *findings) err(summary, remedy string) {
	*f = append(*f, PreflightFinding{Severity: SeverityError, Summary: summary, Remedy: remedy})
}

func (f *findings) warn(summary, remedy string) {
	*f = append(*f, PreflightFinding{Severity: SeverityWarning, Summary: summary, Remedy: remedy})
}

// preflightFindings judges what was seen.
func (m *Manager) preflightFindings(p Preflight, spec PreflightSpec) []PreflightFinding {
	var f findings
	if majorOf(p.Release) < preflightMajor {
		f.err(fmt.Sprintf("Proxmox VE %s is older than %d", p.Version, preflightMajor), "Upgrade the server: privileges and calls that the provider needs are not there before.")
	}
	if p.Quorate != nil && !*p.Quorate {
		f.err("The cluster has no quorum", "Nothing can be changed until enough nodes are up again (pvecm status).")
	}
	if d := p.ServerAhead.Abs(); d > clockTolerance+p.ServerAheadWithin {
		f.warn(fmt.Sprintf("The server's clock differs from this machine's by %s", d.Round(time.Second)), "Set up time synchronisation (chrony) on both: leases and expiry dates are compared across machines.")
	}
	m.nodeFindings(&f, p, spec)
	identityFindings(&f, p.Identity, m.clock.Now())
	privilegeFindings(&f, p)
	firewallFindings(&f, p)
	return f
}

// nodeFindings looks at the nodes that containers may be placed on.
func (m *Manager) nodeFindings(f *findings, p Preflight, spec PreflightSpec) {
	for _, name := range m.settings.Nodes {
		if !slices.ContainsFunc(p.Nodes, func(n PreflightNode) bool { return n.Name == name }) {
			f.err(fmt.Sprintf("There is no node %q", name), "It stands in nodes of the provider block.")
		}
	}
	bridge, storage := cmp.Or(spec.Bridge, m.settings.Bridge), cmp.Or(spec.Storage, m.settings.Storage)
	for _, n := range p.Nodes {
		if !n.Used {
			continue
		}
		if !n.Online {
			f.warn(fmt.Sprintf("Node %s is offline", n.Name), "Nothing is placed there until it is back.")
			continue
		}
		if bridge != "" && !slices.Contains(n.Bridges, bridge) {
			f.err(fmt.Sprintf("Node %s has no bridge %q that may be used", n.Name, bridge),
				fmt.Sprintf("Make it (examples/bootstrap does), or give the identity SDN.Use on /sdn/zones/localnetwork/%s: a bridge that it may not use is hidden. It sees %s.", bridge, orNone(n.Bridges)))
		}
		if storage != "" {
			storageFindings(f, n, storage)
		}
	}
}

func storageFindings(f *findings, n PreflightNode, name string) {
	i := slices.IndexFunc(n.Storages, func(s PreflightStorage) bool { return s.Name == name })
	if i < 0 {
		f.err(fmt.Sprintf("Node %s has no storage %q that may be seen", n.Name, name), fmt.Sprintf("Check the name, and that the identity has Datastore.Audit on /storage/%s.", name))
		return
	}
	switch s := n.Storages[i]; {
	case !s.Active:
		f.err(fmt.Sprintf("Storage %q of node %s can't be used now", name, n.Name), "It is disabled or not mounted (pvesm status).")
	case !s.Containers:
		f.err(fmt.Sprintf("Storage %q takes no container disks", name), fmt.Sprintf("Its type is %s and its content %s; container disks need the content type \"rootdir\" (Container).", s.Type, orNone(s.Content)))
	case s.Known && !s.LinkedClones:
		f.warn(fmt.Sprintf("Storage %q makes no linked clones and no snapshots of containers", name),
			fmt.Sprintf("A storage of type %s copies the whole template for each sandbox. btrfs, ZFS, LVM-thin and Ceph RBD don't.", s.Type))
	}
}

func identityFindings(f *findings, id PreflightIdentity, now time.Time) {
	const account = "Make an account for the provider: the commands below do, and examples/bootstrap does all of it."
	switch {
	case id.Root && id.Token != "":
		f.warn("The token belongs to root@pam", "Whoever gets it owns the server, and it still can't do what only root's password may (features, bind mounts, devices). "+account)
	case id.Root:
		f.warn("The login is root@pam's", "Whoever gets the password owns the server. "+account)
	case id.MayGrant:
		f.warn(fmt.Sprintf("%s may give itself every privilege", identityName(id)), "It has Permissions.Modify on /. "+account)
	case id.Token == "":
		f.warn("The provider logs in by password", "A token with privilege separation can be narrower than its user and be taken away alone. "+account)
	}
	if id.PrivilegeSeparation != nil && !*id.PrivilegeSeparation && !id.Root {
		f.warn("The token has no privilege separation", fmt.Sprintf("It may do all that %s may. Turn it on (pveum user token modify %s %s --privsep 1) and give the token what it needs.", id.User, id.User, id.Token))
	}
	if left := id.Expires.Sub(now); !id.Expires.IsZero() && left < expirySoon {
		f.warn(fmt.Sprintf("The token expires on %s", id.Expires.Format(time.DateOnly)), fmt.Sprintf("Make it last longer: pveum user token modify %s %s --expire 0", id.User, id.Token))
	}
}

func identityName(id PreflightIdentity) string {
	if id.Token == "" {
		return id.User
	}
	return id.User + "!" + id.Token
}

func privilegeFindings(f *findings, p Preflight) {
	missing := preflight.Missing(p.Privileges)
	if len(missing) == 0 {
		return
	}
	lines := make([]string, 0, len(missing))
	for _, r := range missing {
		line := fmt.Sprintf("%s on %s (%s: %s)", r.Privilege, r.Path, r.Feature, r.For)
		if !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	remedy := "Missing are:\n  " + strings.Join(lines, "\n  ") + "\nAs root on a node:\n  " + strings.Join(p.Commands, "\n  ")
	f.err(fmt.Sprintf("%s lacks %d privileges", identityName(p.Identity), len(missing)), remedy)
}

func firewallFindings(f *findings, p Preflight) {
	fw := p.Firewall
	if fw.Enabled == nil || *fw.Enabled {
		return
	}
	change := "No container that can be seen has a firewall of its own on, so none would be filtered anew."
	if len(fw.WouldFilter) > 0 {
		change = fmt.Sprintf("It would also begin to filter these, whose own firewall is on: %s.", joinIDs(fw.WouldFilter))
	}
	f.warn("The datacenter's firewall is off, so no guest is filtered",
		fmt.Sprintf("Rules of guests are written and have no effect. Turning it on also filters what reaches the nodes (input policy %s): "+
			"first put the addresses that you administer from into the IP set \"management\". %s "+
			"sandbox_datacenter_firewall does it with checks; by hand: pvesh set /cluster/firewall/options --enable 1", fw.PolicyIn, change))
}

func joinIDs(ids []int) string {
	parts := make([]string, len(ids))
	for i, id := range ids {
		parts[i] = fmt.Sprint(id)
	}
	return strings.Join(parts, ", ")
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
