package sandbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/pve"
)

// A sandbox made from a backup is a create with other words: the archive brings
// the disk and its configuration, what the specification says goes on top. Its
// description holds the marker of the container that was saved, so ours goes in
// with the call, and is read back before anything is done to the container.
// While the task runs, the configuration shows a lock and nothing else.

// prepareRestore finds the archive and reads what is in it.
func (c *creation) prepareRestore(ctx context.Context, resources []pve.Resource) error {
	found, err := c.m.archive(ctx, resources, c.spec)
	if err != nil {
		return err
	}
	c.spec.Storage = found.storage
	if err := asError(found.problems(c.spec, resources)); err != nil {
		return err
	}
	found.warn(c.spec.Source.RestoreFrom, c.warnings)
	c.origin, c.base = found.node, found.config
	c.spec.NodeName = c.m.placement(resources, c.spec.NodeName, found.node)
	return nil
}

// restore sends the call. MAC addresses are made anew: the archive's belong to
// the container that was saved, which may still run. Authorised keys can't go
// in with it; the server gives them to template files only.
func (c *creation) restore(ctx context.Context, description string) (pve.UPID, error) {
	return c.m.pve.CreateLXC(ctx, c.origin, pve.CreateOptions{
		VMID: c.ref.VMID, OSTemplate: c.spec.Source.RestoreFrom, Pool: c.spec.PoolID,
		Set: map[string]string{
			"restore": "1", "unique": "1", "unprivileged": "1", "storage": c.spec.Storage,
			"hostname": c.spec.Hostname, "description": description,
		},
	})
}

// restored reads what has come to be, and proves that it is ours, before the
// first change: the archive's settings are what the change starts from.
func (c *creation) restored(ctx context.Context) error {
	cfg, err := c.m.pve.LXCConfig(ctx, c.ref.Node, c.ref.VMID)
	if err != nil {
		return fmt.Errorf("read what was restored: %w", err)
	}
	if _, err := c.m.prove("create", c.ref, cfg); err != nil {
		return err
	}
	if lines := rawLines(postureOf(cfg).Raw); len(lines) > 0 && !c.spec.allows(RuleRawConfig) {
		return &Error{Op: "create", Ref: c.ref, What: "the backup has brought raw lines that can switch off what keeps a container in: " + strings.Join(lines, ", "),
			Remedy: fmt.Sprintf(`use an API token, for which the server leaves them out, or say that it must be: allow_risks = [{ rule = %q, reason = "…" }]`, RuleRawConfig)}
	}
	c.base = cfg
	return nil
}

// restoreFailure says what to do about a restore that failed.
func (c *creation) restoreFailure(err error) error {
	if err == nil || !pve.Means(err, pve.NoSpace) {
		return err
	}
	return &Error{Op: "create", Ref: c.ref, Kind: ErrNoSpace, What: c.what(), Err: err,
		Remedy: fmt.Sprintf("free space on the storage %s, or choose another", c.spec.Storage)}
}

// dropNICs takes out what an archive has beside net0: a sandbox has one
// interface, the one that the specification is about.
func (c *change) dropNICs(cfg *pve.LXCConfig) {
	for _, key := range cfg.Keys() {
		if isNumbered(key, "net") && key != "net0" {
			c.del = append(c.del, key)
		}
	}
}

// archived is a backup that a sandbox is to be made from.
type archived struct {
	node    string // that reaches it
	storage string // for the volumes
	config  *pve.LXCConfig
}

// archive looks for the backup. Storages of one name may be different disks on
// different nodes, so the nodes that have such a storage are asked one after
// the other: the wanted one first, then those with the most free memory.
func (m *Manager) archive(ctx context.Context, resources []pve.Resource, spec Spec) (archived, error) {
	volid := spec.Source.RestoreFrom
	from := pve.StorageOf(volid)
	var candidates []pve.Resource
	for _, r := range resources {
		if r.Type == "node" && r.Status == "online" && storageIn(resources, r.Node, from) != nil {
			candidates = append(candidates, r)
		}
	}
	free := func(r pve.Resource) int64 {
		if r.Node == spec.NodeName {
			return 1 << 62
		}
		return r.MaxMem - r.Mem
	}
	slices.SortStableFunc(candidates, func(a, b pve.Resource) int { return cmp.Compare(free(b), free(a)) })
	var last error
	for _, r := range candidates {
		text, err := m.pve.BackupConfig(ctx, r.Node, volid)
		if err == nil {
			config := parseConfigText(text)
			return archived{node: r.Node, config: config, storage: cmp.Or(spec.Storage, config.RootFS().Storage())}, nil
		}
		var answer *pve.Error
		if !errors.As(err, &answer) || answer.Status != 500 {
			return archived{}, m.step("create", Ref{}, "look into the backup "+volid, err)
		}
		last = err
	}
	detail := fmt.Sprintf("No node that is up has the storage %q.", from)
	if last != nil {
		detail = fmt.Sprintf("No node's storage %q has it; the last that was asked said: %v.", from, last)
	}
	return archived{}, &ProblemsError{Problems: []Problem{{Attribute: "restore_from", Summary: fmt.Sprintf("There is no backup %q", volid), Detail: detail}}}
}

// problems is what keeps the archive from becoming this sandbox.
func (a archived) problems(spec Spec, resources []pve.Resource) []Problem {
	var p problems
	volid := spec.Source.RestoreFrom
	if a.config.Template() {
		p.add("restore_from", fmt.Sprintf("%q is the backup of a template", volid), "It would become a template again. Restore it by hand (pct restore) and name it in template_id.")
	}
	for i, mount := range a.config.Mounts() {
		if strings.HasPrefix(mount.Volume(), "/") {
			p.add("restore_from", fmt.Sprintf("%q has a mount point that only root@pam may restore", volid),
				fmt.Sprintf("mp%d is %s of the node, not a volume of a storage. Restore it by hand (pct restore), or back the container up without it.", i, mount.Volume()))
		}
	}
	if bytes, ok := a.config.RootFS().SizeBytes(); ok && spec.DiskGiB != nil && int64(*spec.DiskGiB)*gib < bytes {
		p.add("disk", fmt.Sprintf("%d GiB is less than the backup's %s", *spec.DiskGiB, a.config.RootFS().Text("size")),
			"Proxmox VE can't shrink a root disk. Leave disk out to keep the backup's size, or give a larger one.")
	}
	a.risks(&p, spec)
	switch s := storageIn(resources, a.node, a.storage); {
	case a.storage == "":
		p.add("storage", "No storage", "The backup doesn't say where its root disk was: set storage here or in the provider.")
	case s == nil:
		p.add("storage", fmt.Sprintf("Node %s has no storage %q", a.node, a.storage), "A backup is restored by a node that reaches it. Without storage and the provider's, the disk goes where it was when it was saved.")
	case s.Content != "" && !slices.Contains(sortedList(s.Content), "rootdir"):
		p.add("storage", fmt.Sprintf("The storage %q takes no container disks", a.storage), "Its content types lack \"rootdir\" (Container).")
	}
	return p
}

// risks is the policy for what the archive brings. Root inside an archive of a
// privileged container is restored as nobody; raw lines are left out by the
// server unless root@pam itself restores (see restored).
func (a archived) risks(p *problems, spec Spec) {
	refuse := func(rule, attribute, summary, detail string) {
		if !spec.allows(rule) {
			p.add(attribute, summary, detail+fmt.Sprintf(` If it must be, say so: allow_risks = [{ rule = %q, reason = "…" }].`, rule))
		}
	}
	posture := postureOf(a.config)
	if len(posture.Devices) > 0 {
		refuse(RuleDevice, "restore_from", "The backup passes devices of the node through", strings.Join(posture.Devices, ", ")+".")
	}
	if posture.Hookscript != "" {
		refuse(RuleRawConfig, "restore_from", "The backup has a hookscript", posture.Hookscript+" runs on the node, as root.")
	}
	if !a.config.Has("cores") && !a.config.Has("cpulimit") && spec.Cores == nil && (spec.CPULimit == nil || *spec.CPULimit == 0) {
		refuse(RuleNoLimits, "cores", "The sandbox could use all cores of its node", "Neither it nor its backup has a limit. Set cores or cpu_limit.")
	}
}

func (s Spec) allows(rule string) bool {
	return slices.ContainsFunc(s.AllowRisks, func(r Risk) bool { return r.Rule == rule })
}

// warn tells what of the archive isn't restored as it was.
func (a archived) warn(volid string, w *warnings) {
	if !a.config.Unprivileged() {
		w.add("The backup is of a privileged container", fmt.Sprintf("%s is restored as an unprivileged one: root inside it is nobody on the node.", volid))
	}
	if features := withoutNesting(postureOf(a.config).Features); len(features) > 0 {
		w.add("The backup has features that weaken isolation", fmt.Sprintf("%s has %s. What the server has restored of it stands in the attribute posture, and counts as meant.", volid, strings.Join(features, ", ")))
	}
}

// checkRestore is checkClone for a backup.
func (m *Manager) checkRestore(ctx context.Context, p *problems, spec Spec, resources []pve.Resource) error {
	found, err := m.archive(ctx, resources, spec)
	var missing *ProblemsError
	if errors.As(err, &missing) {
		*p = append(*p, missing.Problems...)
		return nil
	}
	if err != nil {
		return err
	}
	*p = append(*p, found.problems(spec, resources)...)
	m.checkBridgeExists(ctx, p, spec, cmp.Or(m.placement(resources, spec.NodeName, found.node), found.node))
	return nil
}

func checkRestoreSource(p *problems, spec Spec) {
	volid := spec.Source.RestoreFrom
	if _, _, err := ParseBackupID(volid); err != nil {
		p.add("restore_from", fmt.Sprintf("%q is no backup", volid), `A container's backup is a volume id such as "local:backup/vzdump-lxc-100012-2026_12_01-05_07_33.tar.zst".`)
	} else if !validMarkerValue(volid) {
		p.add("restore_from", fmt.Sprintf("%q can't be recorded", volid), "The ownership marker records the source, and takes only letters, digits and ._:/+- : rename the file.")
	}
	if spec.FullClone {
		p.add("full_clone", "Nothing is cloned", "full_clone goes with template_id; a restored container always has a disk of its own.")
	}
}

// parseConfigText reads a container's configuration file: that of its present
// state, which comes before those of its snapshots.
func parseConfigText(text string) *pve.LXCConfig {
	cfg := &pve.LXCConfig{Raw: map[string]string{}}
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if strings.HasPrefix(line, "[") {
			break
		}
		key, value, ok := strings.Cut(line, ": ")
		switch {
		case strings.HasPrefix(line, "#") || !ok:
		case strings.HasPrefix(key, "lxc."):
			cfg.RawLines = append(cfg.RawLines, pve.RawLine{Key: key, Value: value})
		default:
			cfg.Raw[key] = value
		}
	}
	return cfg
}
