package sandbox

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
	"github.com/agentsandbox/terraform-provider-sandbox/internal/sandbox/preflight"
)

// PlanTemplate looks at the server before anything is made: its version, the privileges, storages, bridges, the source,
// and what -force and keep would remove. Everything that is wrong is reported at once. Leftovers of a build of the same
// name that was killed are removed.
func (m *Manager) PlanTemplate(ctx context.Context, spec TemplateSpec) (*TemplateBuild, error) {
	if err := m.requireOwner("build"); err != nil {
		return nil, err
	}
	if err := asError(CheckTemplate(spec)); err != nil {
		return nil, err
	}
	b := &TemplateBuild{m: m, spec: spec, warnings: &warnings{}, taken: map[int]bool{}, buildID: NewBuildID(m.clock.Now())}
	version, err := m.pve.Version(ctx)
	if err != nil {
		return nil, m.step("preflight", Ref{}, "read the server's version", err)
	}
	resources, err := m.pve.Lists().Resources(ctx)
	if err != nil {
		return nil, m.step("preflight", Ref{}, "list the cluster's resources", err)
	}
	var p problems
	if majorOf(version.Release) < preflightMajor {
		p.add("proxmox_url", fmt.Sprintf("Proxmox VE %s is older than %d", version.Version, preflightMajor), "Upgrade the server.")
	}
	if spec.Source.Image != "" && !atLeast(version.Release, 9, 1) {
		p.add("oci_image", fmt.Sprintf("Proxmox VE %s can't make containers from OCI images", version.Version), "9.1 and later can. Use os_template or template_url.")
	}
	if err := b.clearLeftovers(ctx, resources); err != nil {
		return nil, err
	}
	for _, r := range resources {
		if r.IsGuest() {
			b.taken[r.VMID] = true
		}
	}
	if err := b.planSource(ctx, &p, resources); err != nil {
		return nil, err
	}
	if b.node != "" {
		b.planStorages(&p, resources)
		if err := b.planBridges(ctx, &p); err != nil {
			return nil, err
		}
	}
	b.planFeatures(&p)
	if err := b.planRights(ctx, &p); err != nil {
		return nil, err
	}
	if err := b.planReplacement(ctx, &p, resources); err != nil {
		return nil, err
	}
	for _, found := range p {
		if found.Warning {
			b.warnings.add(found.Summary, found.Detail)
		}
	}
	if err := asError(p); err != nil {
		return nil, err
	}
	return b, nil
}

func atLeast(release string, major, minor int) bool {
	var a, b int
	_, _ = fmt.Sscanf(release, "%d.%d", &a, &b)
	return a > major || a == major && b >= minor
}

// planSource finds what it is made of and where.
func (b *TemplateBuild) planSource(ctx context.Context, p *problems, resources []pve.Resource) error {
	s := b.spec.Source
	if !s.IsClone() {
		node := b.spec.Node
		if node == "" {
			node = b.m.roomiestNode(resources, cmp.Or(s.FileStorage, pve.StorageOf(s.File)), b.spec.Storage)
		}
		n := nodeIn(resources, node)
		switch {
		case n == nil:
			p.add("node", fmt.Sprintf("There is no node %q that could build it", node), "The cluster has "+orNone(nodeNames(resources))+", as far as the identity may see.")
		case n.Status == "offline":
			p.add("node", fmt.Sprintf("Node %s is offline", node), "Bring it up, or name another.")
		default:
			b.node = node
		}
		b.file = s.File
		return nil
	}
	var found []*pve.Resource
	for i, r := range resources {
		if r.Type == "lxc" && (r.VMID == s.CloneID || s.CloneID == 0 && r.Name == s.CloneName) {
			found = append(found, &resources[i])
		}
	}
	switch {
	case len(found) == 0:
		p.add(cloneAttribute(s), "There is no container "+s.Reference(), "The cluster has none, or the identity can't see it (it needs VM.Audit and VM.Clone).")
		return nil
	case len(found) > 1:
		var ids []string
		for _, r := range found {
			ids = append(ids, fmt.Sprint(r.VMID))
		}
		p.add("clone_vm", fmt.Sprintf("%d containers are called %q: %s", len(found), s.CloneName, strings.Join(ids, ", ")), "Name one by clone_vm_id.")
		return nil
	}
	b.sourceAt, b.node = found[0], found[0].Node
	if b.spec.Node != "" && b.spec.Node != b.node {
		p.add("node", fmt.Sprintf("The source is on node %s, not on %s", b.node, b.spec.Node), "A clone is made on its source's node. Leave node out.")
	}
	cfg, err := b.m.templates.config(ctx, b.node, b.sourceAt.VMID)
	if err != nil {
		return b.m.step("preflight", Ref{VMID: b.sourceAt.VMID, Node: b.node}, "read the source's configuration", err)
	}
	b.source = cfg
	if b.spec.Storage != "" && cfg.Template() && !s.Full {
		p.add("rootfs.storage_pool", "A linked clone is where its source is", "Leave it out, or set full_clone = true.")
	}
	if bytes, ok := cfg.RootFS().SizeBytes(); ok && b.spec.DiskGiB != 0 && int64(b.spec.DiskGiB)*gib < bytes {
		p.add("rootfs.disk_size", fmt.Sprintf("%d GiB is less than the source's %s", b.spec.DiskGiB, cfg.RootFS().Text("size")), "Proxmox VE can't shrink a root disk.")
	}
	if !cfg.Unprivileged() && !b.spec.Privileged {
		p.add("unprivileged", "The source is privileged", "A clone stays privileged: root inside it is root of the node. Build from a template file, or say unprivileged = false.")
	}
	if !cfg.Template() && b.sourceAt.Status == "running" {
		p.add(cloneAttribute(s), fmt.Sprintf("Container %d is running", b.sourceAt.VMID), "Only a template or a stopped container can be cloned. Shut it down first.")
	}
	return nil
}

func cloneAttribute(s TemplateSource) string {
	if s.CloneID != 0 {
		return "clone_vm_id"
	}
	return "clone_vm"
}

// roomiestNode is the online node with the most free memory among those that have the storages; empty if none has.
func (m *Manager) roomiestNode(resources []pve.Resource, storages ...string) string {
	best, free := "", int64(-1)
	for _, r := range resources {
		if r.Type != "node" || r.Status != "online" || len(m.settings.Nodes) > 0 && !slices.Contains(m.settings.Nodes, r.Node) {
			continue
		}
		has := !slices.ContainsFunc(storages, func(s string) bool { return s != "" && storageIn(resources, r.Node, s) == nil })
		if has && r.MaxMem-r.Mem > free {
			best, free = r.Node, r.MaxMem-r.Mem
		}
	}
	return best
}

// planStorages checks what the storages may hold.
func (b *TemplateBuild) planStorages(p *problems, resources []pve.Resource) {
	check := func(attribute, name, content, forWhat string) {
		s := storageIn(resources, b.node, name)
		switch {
		case s == nil:
			p.add(attribute, fmt.Sprintf("Node %s has no storage %q", b.node, name), "Check the name, and that the identity has Datastore.Audit on /storage/"+name+".")
		case !slices.Contains(sortedList(s.Content), content):
			p.add(attribute, fmt.Sprintf("Storage %q takes no %s", name, forWhat),
				fmt.Sprintf("Its content types are %s; add %q (Datacenter, Storage, or pvesm set %s --content %s,%s), or name another storage.", orNone(sortedList(s.Content)), content, name, strings.Join(sortedList(s.Content), ","), content))
		}
	}
	if !b.spec.Source.IsClone() {
		if b.spec.Storage == "" {
			p.add("rootfs.storage_pool", "No storage", "A container made from a template file needs a storage for its root disk.")
		} else {
			check("rootfs.storage_pool", b.spec.Storage, "rootdir", "container disks")
		}
	} else if b.spec.Storage != "" {
		check("rootfs.storage_pool", b.spec.Storage, "rootdir", "container disks")
	}
	if b.spec.Source.URL == "" && b.spec.Source.Image == "" {
		return
	}
	if b.spec.Source.FileStorage == "" {
		for _, r := range resources {
			if r.Type == "storage" && r.Node == b.node && slices.Contains(sortedList(r.Content), "vztmpl") {
				b.spec.Source.FileStorage = r.Storage
				break
			}
		}
	}
	if b.spec.Source.FileStorage == "" {
		p.add("template_storage_pool", fmt.Sprintf("No storage of node %s takes template files", b.node), `Add the content type "vztmpl" (Container template) to one.`)
		return
	}
	check("template_storage_pool", b.spec.Source.FileStorage, "vztmpl", "template files")
}

// planBridges checks that the node has the bridges.
func (b *TemplateBuild) planBridges(ctx context.Context, p *problems) error {
	var wanted []string
	for _, key := range sortedTexts(b.spec.Config) {
		if strings.HasPrefix(key, "net") {
			wanted = append(wanted, pve.ParseNet(b.spec.Config[key]).Bridge())
		}
	}
	if len(wanted) == 0 {
		return nil
	}
	names, err := b.m.bridges.on(ctx, b.node)
	if pve.Means(err, pve.Forbidden) {
		return nil
	}
	if err != nil {
		return b.m.step("preflight", Ref{}, "list the bridges of node "+b.node, err)
	}
	for _, bridge := range slices.Compact(wanted) {
		if !slices.Contains(names, bridge) {
			p.add("network_adapters.bridge", fmt.Sprintf("Node %s has no bridge %q that may be used", b.node, bridge),
				"It has "+orNone(names)+", as far as the identity may see (SDN.Use on /sdn/zones/localnetwork/"+bridge+").")
		}
	}
	return nil
}

// planFeatures says at once what only root may set, in place of a refusal after the template file was fetched.
func (b *TemplateBuild) planFeatures(p *problems) {
	user, token := b.m.pve.User()
	if user == "root@pam" && token == "" {
		return
	}
	features := pve.ParseProperties(b.spec.Config["features"])
	const remedy = "No token may, not even one of root@pam: keep nesting = true alone, log in with username = \"root@pam\" and password, or set what is needed by lxc_raw over the node's SSH."
	for _, f := range features.Keys() {
		if f != "nesting" && features.Text(f) != "0" {
			p.add("features."+f, fmt.Sprintf("Only root@pam may set the feature %s", f), remedy)
		}
	}
	if b.spec.Privileged && !features.Empty() {
		p.add("features", "Only root@pam may set features of a privileged container", remedy)
	}
	if b.spec.Config["hookscript"] != "" {
		p.add("hookscript", "Only root@pam may set a hook script", "No token may. Log in with username = \"root@pam\" and password.")
	}
}

// planRights names every privilege that is missing. One request: what the identity may do is asked for as a whole, and
// what comes from above is worked out here as the server does.
func (b *TemplateBuild) planRights(ctx context.Context, p *problems) error {
	all, err := b.m.pve.Permissions(ctx, "")
	if err != nil {
		return b.m.step("preflight", Ref{}, "read the identity's privileges", err)
	}
	target := preflight.Target{PoolID: b.spec.PoolID, Nodes: []string{b.node}}
	if b.node == "" {
		target.Nodes = nil
	}
	if b.spec.Storage != "" {
		target.Storages = []string{b.spec.Storage}
	}
	features := []preflight.Feature{preflight.Containers}
	if b.sourceAt != nil {
		target.TemplateID = b.sourceAt.VMID
	}
	if b.spec.Source.URL != "" || b.spec.Source.Image != "" {
		features = append(features, preflight.Templates)
		target.FileStorages = []string{b.spec.Source.FileStorage}
	} else if storage := pve.StorageOf(b.spec.Source.File); storage != "" {
		features = append(features, preflight.TemplateFiles)
		target.FileStorages = []string{storage}
	}
	for _, key := range sortedTexts(b.spec.Config) {
		if strings.HasPrefix(key, "net") {
			target.Bridges = append(target.Bridges, pve.ParseNet(b.spec.Config[key]).Bridge())
		}
	}
	rows, err := preflight.Check(ctx, func(_ context.Context, path string) (pve.Permissions, error) {
		return pve.Permissions{path: inherited(all, path)}, nil
	}, target, features)
	if err != nil {
		return b.m.step("preflight", Ref{}, "read the identity's privileges", err)
	}
	for _, row := range preflight.Missing(rows) {
		if row.Feature == preflight.Templates && row.Privilege == "Sys.AccessNetwork" && (inherited(all, "/")["Sys.Modify"] && inherited(all, "/")["Sys.Audit"]) {
			continue // the older pair that does as well
		}
		p.add("token", fmt.Sprintf("%s is missing on %s", row.Privilege, row.Path), fmt.Sprintf("It is needed to: %s. Grant it: pveum acl modify %s --roles <role with it> --users/--tokens …; a token with privilege separation needs it itself, besides its user.", row.For, row.Path))
	}
	return nil
}

// inherited are the privileges on a path, of the entry that is nearest above it.
func inherited(all pve.Permissions, path string) map[string]bool {
	if here, ok := all[path]; ok {
		out := map[string]bool{}
		for name := range here {
			out[name] = true
		}
		return out
	}
	for at := path; at != "/" && at != ""; {
		at = at[:strings.LastIndexByte(at, '/')]
		above, ok := all[cmp.Or(at, "/")]
		if !ok {
			continue
		}
		out := map[string]bool{}
		for name, propagates := range above {
			if propagates {
				out[name] = true
			}
		}
		return out
	}
	return nil
}

func sortedTexts(m map[string]string) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}
