package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// lxcClone copies a container. All that can be refused is refused here, with the source locked from here on until the
// task has ended: a second clone of the same source is "CT is locked (disk)", also of a template.
func (s *Server) lxcClone(c *call) (any, error) {
	newid, pool := c.params.num("newid"), c.params.str("pool")
	if err := c.checkPoolExists(pool); err != nil {
		return nil, err
	}
	if _, err := c.guest(); err != nil {
		return nil, err
	}
	target, err := c.cloneTarget()
	if err != nil {
		return nil, err
	}
	if id := c.params.str("storage"); id != "" {
		if _, err := s.lxcStorage(c.node.Name, id); err != nil {
			return nil, err
		}
	}
	if err := s.checkVMIDUnused(newid); err != nil {
		return nil, err
	}
	release, err := s.lockGuest(c.ctx, c.vmid())
	if err != nil {
		return nil, err
	}
	defer release()
	src, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := src.checkLock(); err != nil {
		return nil, err
	}
	if err := s.checkVMIDUnused(newid); err != nil {
		return nil, err
	}
	job, err := c.planClone(src, newid, target)
	if err != nil {
		return nil, err
	}
	job.begin(pool)
	return c.startTask("vzclone", strconv.Itoa(src.VMID), func(t *task) error {
		job.t = t
		if err := job.run(); err != nil {
			job.undo()
			return failf("clone failed: %v", err)
		}
		return nil
	})
}

// cloneTarget is the node that the copy shall be on.
func (c *call) cloneTarget() (string, error) {
	name := c.params.str("target")
	if name == "" || name == c.node.Name {
		return c.node.Name, nil
	}
	if c.s.findNode(name) == nil {
		return "", failf("no such cluster node '%s'", name)
	}
	return name, nil
}

// cloneJob is a clone: what is copied and how.
type cloneJob struct {
	s        *Server
	t        *task
	src, dst *guest
	snapshot string
	full     bool
	storage  string // other storage for the copies
	config   map[string]string
	mounts   map[string]mountPoint // of the source
	made     []*volume
	rooted   bool
}

// planClone checks the request against the source, and makes the copy's configuration.
func (c *call) planClone(src *guest, newid int, target string) (*cloneJob, error) {
	job := &cloneJob{
		s: c.s, src: src, snapshot: c.params.str("snapname"), storage: c.params.str("storage"),
		full: !src.isTemplate(), config: map[string]string{}, mounts: map[string]mountPoint{},
	}
	if job.snapshot == "current" {
		job.snapshot = ""
	}
	if c.params.has("full") {
		job.full = c.params.flag("full")
	}
	from, raw := src.Config, src.Raw
	if job.storage != "" && !job.full {
		return nil, failf("parameter 'storage' not allowed for linked clones")
	}
	if job.snapshot != "" {
		snap, err := src.snapshotNamed(job.snapshot)
		if err != nil {
			return nil, err
		}
		from, raw = snap.Config, snap.Raw
	}
	if err := job.copyOptions(c, from, target); err != nil {
		return nil, err
	}
	if c.params.has("hostname") {
		job.config["hostname"] = c.params.str("hostname")
	}
	if c.params.has("description") {
		job.config["description"] = descriptionText(c.params.str("description"))
	}
	if job.config["description"] == "" {
		delete(job.config, "description")
	}
	job.config["lock"] = "create"
	job.dst = &guest{
		VMID: newid, Node: target, Config: job.config, Raw: slices.Clone(raw), Created: c.s.now(), Firewall: src.Firewall.clone(),
		Systemd: src.Systemd,
	}
	return job, nil
}

// notCloned are the options that a copy doesn't get.
var notCloned = map[string]bool{"lock": true, "template": true, "parent": true, "snaptime": true}

// copyOptions copies everything: tags, protection, start-up, hook script, description. Interfaces get new addresses;
// volumes follow in the task; unused ones stay behind.
func (job *cloneJob) copyOptions(c *call, from map[string]string, target string) error {
	local := false
	for _, key := range sortedKeys(from) {
		value := from[key]
		switch kind, _ := splitNumbered(key); {
		case notCloned[key] || kind == "unused":
		case key == "rootfs" || kind == "mp":
			shared, err := job.checkVolume(c, parseMount(key, value))
			if err != nil {
				return err
			}
			local = local || !shared
		case kind == "net":
			if err := c.checkBridgeAccess(value); err != nil {
				return err
			}
			job.config[key] = c.s.freshNet(value)
		default:
			job.config[key] = value
		}
	}
	if local && target != c.node.Name {
		return failf("can't clone CT to node '%s' (CT uses local storage)", target)
	}
	return nil
}

// checkVolume says whether a volume can be copied as asked, and whether it is on shared storage.
func (job *cloneJob) checkVolume(c *call, mount mountPoint) (shared bool, err error) {
	if mount.kind() != "volume" {
		return false, failf("unable to clone mountpoint '%s' (type %s)", mount.key, mount.kind())
	}
	id := storageOf(mount.volid())
	if job.storage != "" {
		id = job.storage
	}
	if err := c.check("/storage/"+id, "Datastore.AllocateSpace"); err != nil {
		return false, err
	}
	source := job.s.st.Storages[storageOf(mount.volid())]
	if job.full {
		if job.src.active() && job.snapshot == "" {
			return false, failf("Full clone of a running container is only possible from a snapshot")
		}
	} else if !canLink(source) {
		return false, failf("Linked clone feature for '%s' is not available", mount.volid())
	}
	job.mounts[mount.key] = mount
	st := job.s.st.Storages[id]
	return st != nil && st.Shared && source != nil && source.Shared, nil
}

// begin locks the source and enters the copy: its marker can be read from now on, beside lock=create.
func (job *cloneJob) begin(pool string) {
	job.src.Config["lock"] = "disk"
	job.s.st.Guests[job.dst.VMID] = job.dst
	if pool != "" {
		job.s.joinPool(pool, job.dst.VMID)
	}
	job.s.dirty()
}

func (job *cloneJob) run() error {
	t, s := job.t, job.s
	t.logf("creating a clone of container %d with ID %d", job.src.VMID, job.dst.VMID)
	keys := mountKeys(mountTexts(job.mounts))
	slices.Reverse(keys) // the root comes last
	for _, key := range keys {
		if err := job.copyVolume(key, len(keys)); err != nil {
			return err
		}
	}
	spec := engine.CloneSpec{From: job.src.VMID, Snapshot: job.snapshot, To: job.dst.VMID, Linked: !job.full}
	if err := s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.Clone(ctx, spec) }); err != nil {
		return err
	}
	job.rooted = s.engine != nil
	delete(job.dst.Config, "lock")
	job.unlockSource()
	if job.snapshot != "" {
		snap := job.src.Snapshots[job.snapshot]
		job.dst.Dirty = snap != nil && snap.WasRunning && !job.full
	}
	s.dirty()
	return s.mountGuest(t.ctx, job.dst)
}

func mountTexts(mounts map[string]mountPoint) map[string]string {
	out := map[string]string{}
	for key, mount := range mounts {
		out[key] = mount.String()
	}
	return out
}

// copyVolume links or copies one volume; the times of several add up to the clone's.
func (job *cloneJob) copyVolume(key string, of int) error {
	t, s, mount := job.t, job.s, job.mounts[key]
	source := s.volumeOn(job.src.Node, mount.volid())
	if source == nil {
		return failf("volume '%s' does not exist", mount.volid())
	}
	id := storageOf(mount.volid())
	if job.storage != "" {
		id = job.storage
	}
	st, err := s.lxcStorage(job.dst.Node, id)
	if err != nil {
		return err
	}
	took := s.delays().CloneLinked / duration(of)
	if job.full {
		took = s.delays().CloneFull / duration(of)
		t.logf("create full clone of mountpoint %s (%s)", key, mount.volid())
	} else {
		t.logf("create linked clone of mount point %s (%s)", key, mount.volid())
	}
	v := s.addVolume(job.dst.Node, st, job.dst.VMID, source.Size)
	job.made = append(job.made, v)
	if !job.full && linksNeedBase(st) {
		v.Parent = source.VolID
	}
	if job.full { // making the file system isn't interrupted, copying is
		format := min(took/4, 600*time.Millisecond)
		t.sleepAnyway(format)
		t.logFormat(st, v)
		took -= format
	}
	if err := t.sleep(took); err != nil {
		return job.interrupted(err)
	}
	if key != "rootfs" {
		from, to := mount.volid(), v.VolID
		if err := s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.CopyVolume(ctx, from, to) }); err != nil {
			return err
		}
	}
	if job.full {
		t.logCopy(key, source.Used)
	}
	copied := mountPoint{key: key, values: maps.Clone(mount.values)}
	copied.values["volume"], copied.values["size"] = v.VolID, formatSize(v.Size)
	job.dst.Config[key] = copied.String()
	return nil
}

// interrupted names the program that a stopped task was waiting for.
func (job *cloneJob) interrupted(err error) error {
	if !job.full || !errors.Is(err, errInterrupted) {
		return err
	}
	return fmt.Errorf("command 'rsync --stats -X -A --numeric-ids -aH --whole-file --sparse --one-file-system '--bwlimit=0' "+
		"/var/lib/lxc/%[1]d/.copy-volume-2/ /var/lib/lxc/%[1]d/.copy-volume-1' failed: %[2]w", job.dst.VMID, err)
}

func (job *cloneJob) unlockSource() {
	if job.src.Config["lock"] == "disk" {
		delete(job.src.Config, "lock")
	}
}

// undo removes what a failed clone has made, and unlocks its source.
func (job *cloneJob) undo() {
	s := job.s
	job.unlockSource()
	for _, v := range job.made {
		delete(s.st.Volumes, volumeKey(v.Node, v.VolID))
		if err := s.destroyVolumeInEngine(s.ctx, v.VolID); err != nil {
			job.t.logf("%v", err)
		}
	}
	if job.rooted {
		vmid := job.dst.VMID
		if err := s.inEngine(s.ctx, func(ctx context.Context, e engine.Engine) error { return e.Destroy(ctx, vmid) }); err != nil {
			job.t.logf("%v", err)
		}
	}
	if s.st.Guests[job.dst.VMID] == job.dst {
		delete(s.st.Guests, job.dst.VMID)
		s.leavePools(job.dst.VMID)
	}
	s.dirty()
}

// leavePools takes a container out of its pool.
func (s *Server) leavePools(vmid int) {
	for _, p := range s.st.Pools {
		delete(p.Guests, vmid)
	}
}

// clone is a copy of a guest's firewall file; of none, none.
func (f *guestFirewall) clone() *guestFirewall {
	if f == nil {
		return nil
	}
	raw, err := json.Marshal(f)
	if err != nil {
		panic("lab: firewall: " + err.Error()) // plain data
	}
	copied := &guestFirewall{}
	if err := json.NewDecoder(strings.NewReader(string(raw))).Decode(copied); err != nil {
		panic("lab: firewall: " + err.Error())
	}
	return copied
}
