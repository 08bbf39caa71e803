package server

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// snapshotNamed finds a snapshot; the error is the server's.
func (g *guest) snapshotNamed(name string) (*snapshot, error) {
	if snap := g.Snapshots[name]; snap != nil {
		return snap, nil
	}
	return nil, failf("snapshot '%s' does not exist", name)
}

// options are a snapshot's configuration as an answer has it.
func (snap *snapshot) options() map[string]string {
	config := maps.Clone(snap.Config)
	config["snaptime"] = strconv.FormatInt(snap.Time, 10)
	if snap.Parent != "" {
		config["parent"] = snap.Parent
	}
	if snap.Description != "" {
		config["description"] = snap.Description
	}
	return config
}

// lxcSnapshots lists the snapshots, and the present state as "current".
func (s *Server) lxcSnapshots(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	names := sortedKeys(g.Snapshots)
	sort.SliceStable(names, func(i, j int) bool { return g.Snapshots[names[i]].Time < g.Snapshots[names[j]].Time })
	out := []map[string]any{}
	for _, name := range names {
		snap := g.Snapshots[name]
		entry := map[string]any{"name": name, "description": snap.Description, "snaptime": snap.Time}
		if snap.Parent != "" {
			entry["parent"] = snap.Parent
		}
		out = append(out, entry)
	}
	running := 0
	if g.active() {
		running = 1
	}
	current := map[string]any{"name": "current", "description": "You are here!", "digest": g.digest(), "running": running}
	if parent := g.Config["parent"]; parent != "" {
		current["parent"] = parent
	}
	return append(out, current), nil
}

// lxcSnapshotIndex answers for every name.
func (s *Server) lxcSnapshotIndex(*call) (any, error) {
	return []map[string]any{{"cmd": "rollback"}, {"cmd": "config"}}, nil
}

func (s *Server) lxcSnapshotConfig(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	snap, err := g.snapshotNamed(c.params.str("snapname"))
	if err != nil {
		return nil, err
	}
	return lxcAnswer(snap.options(), snap.Raw), nil
}

func (s *Server) lxcSnapshotUpdate(c *call) (any, error) {
	release, err := s.lockGuest(c.ctx, c.vmid())
	if err != nil {
		return nil, err
	}
	defer release()
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	snap, err := g.snapshotNamed(c.params.str("snapname"))
	if err != nil {
		return nil, err
	}
	if c.params.has("description") {
		snap.Description = descriptionText(c.params.str("description"))
		s.dirty()
	}
	return nil, nil
}

// lxcSnapshotCreate refuses only reserved names; a name that exists, a template, a storage without snapshots show in
// the task.
func (s *Server) lxcSnapshotCreate(c *call) (any, error) {
	name, description := c.params.str("snapname"), descriptionText(c.params.str("description"))
	if name == "current" || name == "vzdump" {
		return nil, failf("unable to use snapshot name '%s' (reserved name)", name)
	}
	vmid := c.vmid()
	return c.startTask("vzsnapshot", strconv.Itoa(vmid), func(t *task) error { return t.snapshot(vmid, name, description) })
}

// snapshot takes one: prepared and completed under the container's lock file, with lock=snapshot in between.
func (t *task) snapshot(vmid int, name, description string) error {
	s := t.s
	if err := t.sleep(s.delays().Snapshot / 2); err != nil { // the worker comes up
		return err
	}
	var snap *snapshot
	err := t.withGuest(vmid, func(g *guest) error {
		if err := s.canSnapshotNow(g, name); err != nil {
			return err
		}
		snap = &snapshot{
			Name: name, Parent: g.Config["parent"], Time: s.now().Unix(), Description: description,
			Config: g.snapshotConfig(), Raw: slices.Clone(g.Raw), WasRunning: g.active(), Blob: name,
		}
		g.Config["lock"] = "snapshot"
		s.dirty()
		return nil
	})
	if err != nil {
		return err
	}
	volids := sortedKeys(mountsOf(snap.Config))
	err = t.sleep(s.delays().Snapshot / 2)
	if err == nil {
		err = s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.Snapshot(ctx, vmid, name, volids...) })
	}
	g, gone := s.guestOn(t.Node, vmid)
	if gone != nil {
		return gone
	}
	delete(g.Config, "lock")
	s.dirty()
	if err != nil {
		return err
	}
	if g.Snapshots == nil {
		g.Snapshots = map[string]*snapshot{}
	}
	g.Snapshots[name] = snap
	g.Config["parent"] = name
	return nil
}

// snapshotConfig is the part of the configuration that a snapshot keeps.
func (g *guest) snapshotConfig() map[string]string {
	config := maps.Clone(g.Config)
	for _, key := range append(optionsOf(config, "unused"), "parent", "description", "lock") {
		delete(config, key)
	}
	return config
}

// canSnapshotNow are the refusals, in the server's order.
func (s *Server) canSnapshotNow(g *guest, name string) error {
	if g.isTemplate() {
		return failf("you can't take a snapshot if it's a template")
	}
	if err := g.checkLock(); err != nil {
		return err
	}
	if g.Snapshots[name] != nil {
		return failf("snapshot name '%s' already used", name)
	}
	if !s.hasSnapshotFeature(g.Config) {
		return failf("snapshot feature is not available")
	}
	return nil
}

// hasSnapshotFeature says that every volume can be snapshotted; folders of the node and devices can't.
func (s *Server) hasSnapshotFeature(config map[string]string) bool {
	for _, key := range mountKeys(config) {
		mount := parseMount(key, config[key])
		if mount.kind() != "volume" || !canSnapshot(s.st.Storages[storageOf(mount.volid())]) {
			return false
		}
	}
	return true
}

// lxcSnapshotDelete always starts a task; what is wrong shows in it.
func (s *Server) lxcSnapshotDelete(c *call) (any, error) {
	vmid, name := c.vmid(), c.params.str("snapname")
	return c.startTask("vzdelsnapshot", strconv.Itoa(vmid), func(t *task) error {
		release, err := t.lockMigration(vmid)
		if err != nil {
			return failf("Failed to obtain guest migration lock - replication running?")
		}
		defer release()
		return t.deleteSnapshot(vmid, name)
	})
}

func (t *task) deleteSnapshot(vmid int, name string) error {
	s := t.s
	return t.withGuest(vmid, func(g *guest) error {
		snap, err := g.snapshotNamed(name)
		if err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		g.Config["lock"] = "snapshot-delete"
		defer func() { delete(g.Config, "lock"); s.dirty() }()
		if err := t.sleep(s.delays().DelSnapshot); err != nil {
			return err
		}
		err = s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.DeleteSnapshot(ctx, vmid, name) })
		if err != nil {
			return err
		}
		g.forgetSnapshot(snap)
		return s.dropOrphans(t.ctx, g, snap)
	})
}

// forgetSnapshot removes one; its children and the present state get its parent.
func (g *guest) forgetSnapshot(snap *snapshot) {
	delete(g.Snapshots, snap.Name)
	for _, other := range g.Snapshots {
		if other.Parent == snap.Name {
			other.Parent = snap.Parent
		}
	}
	if g.Config["parent"] == snap.Name {
		if snap.Parent == "" {
			delete(g.Config, "parent")
		} else {
			g.Config["parent"] = snap.Parent
		}
	}
}

// dropOrphans destroys the volumes that only the snapshot still had.
func (s *Server) dropOrphans(ctx context.Context, g *guest, snap *snapshot) error {
	for _, volid := range sortedKeys(mountsOf(snap.Config)) {
		if err := s.dropVolume(ctx, g, volid); err != nil {
			return err
		}
	}
	return nil
}
