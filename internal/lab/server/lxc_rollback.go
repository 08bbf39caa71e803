package server

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// lxcRollback puts a container back to a snapshot: it is stopped and stays down, unless start=1 starts it in a task of
// its own. That task inherits the migration lock, so that every further one waits for it.
func (s *Server) lxcRollback(c *call) (any, error) {
	vmid, name, start := c.vmid(), c.params.str("snapname"), c.params.flag("start")
	return c.startTask("vzrollback", strconv.Itoa(vmid), func(t *task) error {
		release, err := t.lockMigration(vmid)
		if err != nil {
			return err
		}
		if err := t.rollback(vmid, name); err != nil || !start {
			release()
			return err
		}
		s.startTask(t.Node, "vzstart", t.ID, t.User, func(t *task) error {
			defer release()
			return t.startGuest(vmid)
		})
		return nil
	})
}

func (t *task) rollback(vmid int, name string) error {
	s := t.s
	return t.withGuest(vmid, func(g *guest) error {
		if g.isTemplate() {
			return failf("you can't rollback if vm is a template")
		}
		snap, err := g.snapshotNamed(name)
		if err != nil {
			return err
		}
		if err := s.checkNewest(g, snap); err != nil {
			return err
		}
		if err := g.checkLock(); err != nil {
			return err
		}
		if g.active() {
			if err := t.kill(g); err != nil {
				return err
			}
		}
		g.Config["lock"] = "rollback"
		defer func() { delete(g.Config, "lock"); s.dirty() }()
		if err := t.sleep(s.delays().Rollback); err != nil {
			return err
		}
		err = s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.Rollback(ctx, vmid, name) })
		if err != nil {
			return err
		}
		s.restoreConfig(g, snap)
		return s.mountGuest(t.ctx, g)
	})
}

// checkNewest refuses on ZFS what isn't the latest snapshot: a rollback there would lose those after it.
func (s *Server) checkNewest(g *guest, snap *snapshot) error {
	newest := true
	for _, other := range g.Snapshots {
		newest = newest && other.Parent != snap.Name && other.Time <= snap.Time
	}
	for _, key := range mountKeys(snap.Config) {
		volid := parseMount(key, snap.Config[key]).volid()
		if st := s.st.Storages[storageOf(volid)]; !newest && st != nil && st.Type == "zfspool" {
			return failf("can't rollback, '%s' is not most recent snapshot on '%s'", snap.Name, volid)
		}
	}
	return nil
}

// restoreConfig puts a snapshot's configuration back. The description, the firewall file and the pool stay as they
// are; volumes that the snapshot doesn't have become unused ones.
func (s *Server) restoreConfig(g *guest, snap *snapshot) {
	before := g.Config
	config := maps.Clone(snap.Config)
	if text := before["description"]; text != "" {
		config["description"] = text
	}
	config["parent"] = snap.Name
	for _, key := range optionsOf(before, "unused") {
		addUnused(config, before[key])
	}
	for _, key := range mountKeys(before) {
		if mount := parseMount(key, before[key]); mount.kind() == "volume" {
			addUnused(config, mount.volid())
		}
	}
	g.Config, g.Raw = config, slices.Clone(snap.Raw)
	g.Pending, g.PendingDelete = nil, nil
	g.Dirty = snap.WasRunning
	for _, key := range mountKeys(config) {
		mount := parseMount(key, config[key])
		if v := s.volumeOn(g.Node, mount.volid()); v != nil {
			if size := sizeBytes(mount.values["size"]); size > 0 {
				v.Size = size
			}
		}
	}
	s.dirty()
}
