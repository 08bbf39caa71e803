package server

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// What only the superuser may change. A token of root@pam is not root.
const (
	onlyRootDevice     = "configuring device passthrough is only allowed for root@pam"
	onlyRootHookscript = "changing the hookscript is only allowed for root@pam"
	onlyRootFeatures   = "changing feature flags (except nesting) is only allowed for root@pam"
	onlyRootPrivileged = "changing feature flags for privileged container is only allowed for root@pam"
)

// optionPrivileges name the privilege for a change of an option; everything else needs VM.Config.Options.
var optionPrivileges = map[string]string{
	"cores": "VM.Config.CPU", "cpuunits": "VM.Config.CPU", "cpulimit": "VM.Config.CPU",
	"memory": "VM.Config.Memory", "swap": "VM.Config.Memory",
	"nameserver": "VM.Config.Network", "searchdomain": "VM.Config.Network", "hostname": "VM.Config.Network",
}

// configRights checks the right to set and delete options of a container, also of one that is being created.
type configRights struct {
	c            *call
	vmid         int
	pool         string // of a container being created
	old          map[string]string
	unprivileged bool
}

// checkConfigChange checks a change of an existing container's configuration.
func (c *call) checkConfigChange(g *guest, change configChange) error {
	rights := configRights{c: c, vmid: g.VMID, old: g.Config, unprivileged: g.Config["unprivileged"] == "1"}
	return rights.check(change.set, change.delete)
}

func (r configRights) check(set map[string]string, deletes []string) error {
	if r.c.root() {
		return nil
	}
	for _, key := range slices.Sorted(slices.Values(deletes)) {
		if err := r.checkOption(key, "", true); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(set) {
		if err := r.checkOption(key, set[key], false); err != nil {
			return err
		}
	}
	return nil
}

func (r configRights) checkOption(key, value string, deleted bool) error {
	kind, _ := splitNumbered(key)
	switch {
	case key == "rootfs" || kind == "mp":
		return r.checkMount(key, value, deleted)
	case kind == "net":
		if err := r.privilege("VM.Config.Network"); err != nil || deleted {
			return err
		}
		return r.c.checkBridgeAccess(value)
	case kind == "dev":
		return forbidden(onlyRootDevice)
	case key == "hookscript":
		return forbidden(onlyRootHookscript)
	case key == "features":
		return r.checkFeatures(value, deleted)
	}
	if privilege, ok := optionPrivileges[key]; ok {
		return r.privilege(privilege)
	}
	return r.privilege("VM.Config.Options")
}

// privilege demands one on the container, or on the pool that it is created in.
func (r configRights) privilege(privilege string) error {
	if r.pool != "" && r.c.may("/pool/"+r.pool, privilege) {
		return nil
	}
	return r.c.checkGuest(r.vmid, privilege)
}

// checkMount: a volume of one's own or a new one with space on its storage. Folders and devices are root's; taking
// them away is allowed.
func (r configRights) checkMount(key, value string, deleted bool) error {
	if err := r.privilege("VM.Config.Disk"); err != nil || deleted {
		return err
	}
	mount := parseMount(key, value)
	if mount.kind() != "volume" {
		return forbidden("mount point type " + mount.kind() + " is only allowed for root@pam")
	}
	if id, _, ok := mount.wanted(); ok {
		return r.c.check("/storage/"+id, "Datastore.AllocateSpace")
	}
	return r.c.checkVolumeAccess(r.vmid, mount.volid())
}

// checkFeatures: nesting may be set on an unprivileged container by who may allocate it, all else is root's.
func (r configRights) checkFeatures(value string, deleted bool) error {
	if !r.unprivileged {
		return forbidden(onlyRootPrivileged)
	}
	before, after := parseFeatures(r.old["features"]), parseFeatures(value)
	if deleted {
		after = map[string]string{}
	}
	nesting := false
	for _, key := range slices.Sorted(maps.Keys(mergeKeys(before, after))) {
		if featureValue(before[key]) == featureValue(after[key]) {
			continue
		}
		if key != "nesting" {
			return forbidden(onlyRootFeatures)
		}
		nesting = true
	}
	if nesting {
		return r.privilege("VM.Allocate")
	}
	return nil
}

func parseFeatures(value string) map[string]string {
	features := map[string]string{}
	for _, part := range strings.Split(value, ",") {
		if key, val, ok := strings.Cut(part, "="); ok {
			features[key] = val
		}
	}
	return features
}

// featureValue makes an unset flag and one that is off the same.
func featureValue(value string) string {
	if value == "0" {
		return ""
	}
	return value
}

func mergeKeys(a, b map[string]string) map[string]string {
	merged := maps.Clone(a)
	maps.Copy(merged, b)
	return merged
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

// checkVolumeAccess demands the right to use a volume that exists: one's own container's, or Datastore.Allocate. What
// isn't a volume's name is a path, which is root's.
func (c *call) checkVolumeAccess(vmid int, volid string) error {
	id, name, ok := strings.Cut(volid, ":")
	if !ok || name == "" {
		if c.root() {
			return nil
		}
		return failf("Only root can pass arbitrary filesystem paths. at /usr/share/perl5/PVE/Storage.pm line 651.")
	}
	if _, err := c.s.lxcStorage(c.node.Name, id); err != nil {
		return err
	}
	switch kind, _, _ := strings.Cut(name, "/"); kind {
	case "vztmpl", "iso", "snippets":
		return c.checkAny("/storage/"+id, "Datastore.AllocateSpace", "Datastore.Audit")
	case "backup":
		return c.checkBackupAccess(id, volid)
	}
	if v := c.s.volumeOn(c.node.Name, volid); v != nil && v.VMID == vmid {
		return nil
	}
	return c.check("/storage/"+id, "Datastore.Allocate")
}

// checkBackupAccess: who may restore from a backup. The owner of the container may, with space on the storage.
func (c *call) checkBackupAccess(storageID, volid string) error {
	if c.may("/storage/"+storageID, "Datastore.Allocate") {
		return nil
	}
	if err := c.check("/storage/"+storageID, "Datastore.AllocateSpace"); err != nil {
		return err
	}
	if v := c.s.volumeOn(c.node.Name, volid); v != nil {
		return c.check("/vms/"+strconv.Itoa(v.VMID), "VM.Backup")
	}
	return nil
}
