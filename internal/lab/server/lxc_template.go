package server

import (
	"strconv"
	"strings"
)

// lxcTemplate converts a container. It answers null at once while a worker, whose name nobody is told, renames the
// volumes: a GET right after it still shows the old ones. The worker holds the lock file, so a clone waits for it.
func (s *Server) lxcTemplate(c *call) (any, error) {
	vmid := c.vmid()
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := s.canBeTemplate(g); err != nil { // what can't be is said without waiting for the lock
		return nil, err
	}
	release, err := s.lockGuest(c.ctx, vmid)
	if err != nil {
		return nil, err
	}
	if g, err = c.guest(); err == nil {
		err = s.canBeTemplate(g)
	}
	if err != nil {
		release()
		return nil, err
	}
	_, err = c.startTask("vztemplate", strconv.Itoa(vmid), func(t *task) error {
		defer release()
		if err := t.sleep(s.delays().Template); err != nil {
			return err
		}
		g, err := s.guestOn(t.Node, vmid)
		if err != nil {
			return err
		}
		s.makeBase(g)
		return nil
	})
	return nil, err
}

// canBeTemplate are the refusals, in the server's order.
func (s *Server) canBeTemplate(g *guest) error {
	if err := g.checkLock(); err != nil {
		return err
	}
	switch {
	case len(g.Snapshots) > 0:
		return failf("unable to create template, because CT contains snapshots")
	case g.isTemplate():
		return failf("you can't convert a template to a template")
	case g.active():
		return failf("you can't convert a CT to template if the CT is running")
	}
	for _, key := range mountKeys(g.Config) {
		if mount := parseMount(key, g.Config[key]); mount.kind() != "volume" {
			return failf("unable to convert mountpoint '%s' (type %s) to a base volume", key, mount.kind())
		}
	}
	return nil
}

// makeBase renames a container's volumes to base-… and marks it.
func (s *Server) makeBase(g *guest) {
	for _, key := range mountKeys(g.Config) {
		mount := parseMount(key, g.Config[key])
		base := baseName(mount.volid())
		if v := s.volumeOn(g.Node, mount.volid()); v != nil {
			s.renameVolume(v, g.Node, base, g.VMID)
		}
		mount.values["volume"] = base
		g.Config[key] = mount.String()
	}
	g.Config["template"] = "1"
	s.dirty()
}

// baseName is a template's name for a volume.
func baseName(volid string) string {
	volid = strings.Replace(volid, "vm-", "base-", 1)
	return strings.Replace(volid, "subvol-", "basevol-", 1)
}
