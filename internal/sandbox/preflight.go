package sandbox

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
)

// PreflightSpec is what a preflight looks at. Empty fields are the provider block's, or found out.
type PreflightSpec struct {
	Features      []preflight.Feature // empty: preflight.DefaultFeatures
	PoolID        string
	TemplateID    int
	Storage       string // for root disks
	BackupStorage string // empty: every storage that takes backups
	FileStorage   string // for template files; empty: every storage that takes them
	Bridge        string
	RolePrefix    string // of the roles that the commands make
}

// Preflight is what a server looks like to the provider's identity.
type Preflight struct {
	Version string // of Proxmox VE, "9.2.11"
	Release string // "9.2"
	// Quorate is nil where the identity may not see it.
	Quorate *bool
	Nodes   []PreflightNode
	// ServerAhead is by how much the clock of the node that answered is ahead, give or take ServerAheadWithin.
	ServerAhead, ServerAheadWithin time.Duration
	Identity                       PreflightIdentity
	Firewall                       PreflightFirewall
	Privileges                     []preflight.Privilege
	Plan                           preflight.Plan
	// Commands make the plan's roles and give them to the identity, as root on a node.
	Commands []string
	Findings []PreflightFinding
}

// OK says that nothing was found that keeps the features from working.
func (p Preflight) OK() bool {
	return !slices.ContainsFunc(p.Findings, func(f PreflightFinding) bool { return f.Severity == SeverityError })
}

// PreflightNode is a node and what it has for sandboxes.
type PreflightNode struct {
	Name   string
	Online bool
	// Used says that the provider may place containers there.
	Used bool
	// Bridges are those that the identity may use or audit; nil for a node that couldn't be asked.
	Bridges  []string
	Storages []PreflightStorage
}

// PreflightStorage is a storage as a node sees it.
type PreflightStorage struct {
	StorageState
	preflight.Ability
}

// PreflightIdentity is who the provider is on the server.
type PreflightIdentity struct {
	User  string // name@realm
	Token string // empty for a login by password
	// Root says that it is root@pam.
	Root bool
	// PrivilegeSeparation is nil for a login, and where the identity may not see it: a narrow token may not.
	PrivilegeSeparation *bool
	// Expires is when the token ends; zero for never or unknown.
	Expires time.Time
	// MayGrant says that it can give rights, and so itself every right.
	MayGrant bool
}

// PreflightFirewall is the datacenter's firewall.
type PreflightFirewall struct {
	// Enabled is nil where the identity may not see it (Sys.Audit on /).
	Enabled             *bool
	PolicyIn, PolicyOut string
	// WouldFilter are the guests whose traffic is filtered once the firewall is turned on, those that the identity
	// may see: they have it on themselves and on an interface. Only looked for while it is off.
	WouldFilter []int
}

// Severity is how bad a finding is.
type Severity string

// The severities: an error keeps a feature from working, a warning doesn't.
const (
	SeverityError   Severity = "error"
	SeverityWarning Severity = "warning"
)

// PreflightFinding is something that should be seen to.
type PreflightFinding struct {
	Severity Severity
	Summary  string // one line
	Remedy   string
}

// Preflight looks at the server and at the identity's rights. It only reads, and it reports what it may not see instead
// of failing: the error is a server that doesn't answer.
func (m *Manager) Preflight(ctx context.Context, spec PreflightSpec) (Preflight, error) {
	var out Preflight
	version, err := m.pve.Version(ctx)
	if err != nil {
		return out, m.step("preflight", Ref{}, "read the server's version", err)
	}
	out.Version, out.Release = version.Version, version.Release
	// Not the shared list: rights may have been given a moment ago, which no write of this client shows.
	resources, err := m.pve.ClusterResources(ctx, "")
	if err != nil {
		return out, m.step("preflight", Ref{}, "list the cluster's resources", err)
	}
	if status, err := m.pve.ClusterStatus(ctx); err == nil {
		out.Quorate = &status.Quorate
	} else if !pve.Means(err, pve.Forbidden) {
		return out, m.step("preflight", Ref{}, "read the cluster's status", err)
	}
	out.ServerAhead, out.ServerAheadWithin, _ = m.pve.ClockDifference()
	if len(spec.Features) == 0 {
		spec.Features = preflight.DefaultFeatures()
	}
	out.Nodes = m.preflightNodes(ctx, resources)
	if out.Firewall, err = m.preflightFirewall(ctx, resources); err != nil {
		return out, err
	}
	if err := m.preflightRights(ctx, &out, spec, m.preflightTarget(ctx, spec, resources)); err != nil {
		return out, err
	}
	out.Findings = m.preflightFindings(out, spec)
	return out, nil
}

// preflightNodes describes the nodes; bridges are asked for side by side.
func (m *Manager) preflightNodes(ctx context.Context, resources []pve.Resource) []PreflightNode {
	var nodes []PreflightNode
	for _, name := range nodeNames(resources) {
		n := PreflightNode{
			Name: name, Online: nodeIn(resources, name).Status != "offline",
			Used: len(m.settings.Nodes) == 0 || slices.Contains(m.settings.Nodes, name),
		}
		for _, r := range resources {
			if r.Type != "storage" || r.Node != name {
				continue
			}
			content := sortedList(r.Content)
			n.Storages = append(n.Storages, PreflightStorage{
				StorageState: StorageState{
					Name: r.Storage, Type: r.PluginType, Shared: r.Shared, Active: r.Status == "available",
					Content: content, TotalGiB: float64(r.MaxDisk) / gib, UsedGiB: float64(r.Disk) / gib,
				},
				Ability: preflight.AbilityOf(r.PluginType, content),
			})
		}
		slices.SortFunc(n.Storages, func(a, b PreflightStorage) int { return cmp.Compare(a.Name, b.Name) })
		nodes = append(nodes, n)
	}
	var wg sync.WaitGroup
	for i := range nodes {
		if nodes[i].Online {
			wg.Go(func() {
				if bridges, err := m.pve.Bridges(ctx, nodes[i].Name); err == nil {
					nodes[i].Bridges = bridges
				}
			})
		}
	}
	wg.Wait()
	return nodes
}

// preflightTarget says on what the privileges are needed.
func (m *Manager) preflightTarget(ctx context.Context, spec PreflightSpec, resources []pve.Resource) preflight.Target {
	t := preflight.Target{
		PoolID:     cmp.Or(spec.PoolID, m.settings.PoolID),
		TemplateID: cmp.Or(spec.TemplateID, m.settings.TemplateID),
		Nodes:      m.settings.Nodes,
	}
	add := func(list *[]string, name string) {
		if name != "" && !slices.Contains(*list, name) {
			*list = append(*list, name)
		}
	}
	add(&t.Bridges, cmp.Or(spec.Bridge, m.settings.Bridge))
	if entry := guestIn(resources, t.TemplateID); entry != nil && entry.Type == "lxc" {
		// A linked clone's disk is where the template's is, and it begins on the template's bridge.
		if cfg, err := m.templates.config(ctx, entry.Node, t.TemplateID); err == nil {
			add(&t.Storages, cfg.RootFS().Storage())
			for _, n := range cfg.Nets() {
				add(&t.Bridges, n.Bridge())
			}
		}
	}
	add(&t.Storages, cmp.Or(spec.Storage, m.settings.Storage))
	add(&t.BackupStorages, spec.BackupStorage)
	add(&t.FileStorages, spec.FileStorage)
	for _, r := range resources {
		if r.Type != "storage" {
			continue
		}
		content := sortedList(r.Content)
		if spec.BackupStorage == "" && slices.Contains(content, "backup") {
			add(&t.BackupStorages, r.Storage)
		}
		if spec.FileStorage == "" && slices.Contains(content, "vztmpl") {
			add(&t.FileStorages, r.Storage)
		}
	}
	slices.Sort(t.BackupStorages)
	slices.Sort(t.FileStorages)
	return t
}

// preflightFirewall reads the datacenter's switch and, while it is off, who would be filtered.
func (m *Manager) preflightFirewall(ctx context.Context, resources []pve.Resource) (PreflightFirewall, error) {
	options, err := m.pve.FirewallOptions(ctx, pve.ClusterFirewall())
	if pve.Means(err, pve.Forbidden) {
		return PreflightFirewall{}, nil
	}
	if err != nil {
		return PreflightFirewall{}, m.step("preflight", Ref{}, "read the datacenter's firewall", err)
	}
	// Without a value of its own the datacenter drops what comes in and lets out what goes out.
	out := PreflightFirewall{Enabled: ptr(options.Enable != nil && *options.Enable), PolicyIn: "DROP", PolicyOut: "ACCEPT"}
	if options.PolicyIn != nil {
		out.PolicyIn = *options.PolicyIn
	}
	if options.PolicyOut != nil {
		out.PolicyOut = *options.PolicyOut
	}
	if *out.Enabled {
		return out, nil
	}
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		gate = make(chan struct{}, listParallel)
	)
	for _, r := range resources {
		if r.Type != "lxc" || r.Template {
			continue
		}
		wg.Go(func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if m.hasFirewall(ctx, r.Node, r.VMID) {
				mu.Lock()
				defer mu.Unlock()
				out.WouldFilter = append(out.WouldFilter, r.VMID)
			}
		})
	}
	wg.Wait()
	slices.Sort(out.WouldFilter)
	return out, nil
}

// hasFirewall says whether a container's own firewall is on, on an interface and as a whole.
func (m *Manager) hasFirewall(ctx context.Context, node string, vmid int) bool {
	cfg, err := m.pve.LXCConfig(ctx, node, vmid)
	if err != nil {
		return false
	}
	for _, n := range cfg.Nets() {
		if n.Firewall() {
			options, err := m.pve.FirewallOptions(ctx, pve.LXCFirewall(node, vmid))
			return err == nil && options.Enable != nil && *options.Enable
		}
	}
	return false
}

// preflightRights fills in who the identity is and what it may do.
func (m *Manager) preflightRights(ctx context.Context, out *Preflight, spec PreflightSpec, target preflight.Target) error {
	id := &out.Identity
	id.User, id.Token = m.pve.User()
	id.Root = id.User == "root@pam"
	if id.Token != "" {
		info, err := m.pve.TokenInfo(ctx, id.User, id.Token)
		switch {
		case err == nil:
			id.PrivilegeSeparation, id.Expires = &info.PrivilegeSeparation, info.Expires()
		case !pve.Means(err, pve.Forbidden):
			return m.step("preflight", Ref{}, "read what the token is", err)
		}
	}
	top, err := m.pve.Permissions(ctx, "/")
	if err != nil {
		return m.step("preflight", Ref{}, "read the identity's privileges", err)
	}
	id.MayGrant = top.Has("/", "Permissions.Modify")
	out.Privileges, err = preflight.Check(ctx, m.pve.Permissions, target, spec.Features)
	if err != nil {
		return m.step("preflight", Ref{}, "read the identity's privileges", err)
	}
	out.Plan = preflight.Least(target, spec.Features, spec.RolePrefix)
	out.Commands, err = m.preflightCommands(ctx, *id, out.Plan)
	return err
}

// The account that the commands are for when the identity is root or has no token: one of its own.
const (
	proposedUser  = "sandbox@pve"
	proposedToken = "terraform"
)

func (m *Manager) preflightCommands(ctx context.Context, id PreflightIdentity, plan preflight.Plan) ([]string, error) {
	list, err := m.pve.Roles(ctx)
	if err != nil {
		return nil, m.step("preflight", Ref{}, "list the server's roles", err)
	}
	roles := map[string][]string{}
	for _, r := range list {
		roles[r.ID] = strings.FieldsFunc(r.Privileges, func(c rune) bool { return c == ',' || c == ' ' })
	}
	user, token := id.User, id.Token
	var account []string
	if id.Root || token == "" || id.MayGrant {
		user, token = proposedUser, proposedToken
		account = []string{"pveum user add " + user, "pveum user token add " + user + " " + token + " --privsep 1"}
	} else if id.PrivilegeSeparation != nil && !*id.PrivilegeSeparation {
		account = []string{"pveum user token modify " + user + " " + token + " --privsep 1"}
	}
	return append(account, plan.Commands(user, token, roles)...), nil
}

// preflightMajor is the oldest major release that the provider is made for.
const preflightMajor = 8

func majorOf(release string) int {
	major, _, _ := strings.Cut(release, ".")
	n, err := strconv.Atoi(major)
	if err != nil {
		return 0
	}
	return n
}
