package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// lxcDestroy removes a container with all its volumes, unused ones and those of snapshots too. Protection, locks and a
// running container are refused before anything is stopped, with force as without; force only adds the stop.
func (s *Server) lxcDestroy(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	vmid, force, purge := g.VMID, c.params.flag("force"), c.params.flag("purge")
	unreferenced := c.params.flag("destroy-unreferenced-disks")
	if err := s.canDestroy(g, purge); err != nil {
		return nil, err
	}
	if g.active() && !force {
		return nil, failf("unable to destroy CT %d - container is running", vmid)
	}
	return c.startTask("vzdestroy", strconv.Itoa(vmid), func(t *task) error {
		return t.withGuest(vmid, func(g *guest) error {
			if err := s.canDestroy(g, purge); err != nil {
				return err
			}
			if g.active() {
				if !force {
					return failf("unable to destroy CT %d - container is running", vmid)
				}
				t.logf("forced to stop CT %d before destroying!", vmid)
				if err := t.kill(g); err != nil {
					return err
				}
			}
			return t.destroy(g, purge, unreferenced)
		})
	})
}

// canDestroy are the refusals that force doesn't overrule.
func (s *Server) canDestroy(g *guest, purge bool) error {
	if err := g.checkProtection(fmt.Sprintf("can't remove CT %d", g.VMID)); err != nil {
		return err
	}
	if err := g.checkLock(); err != nil {
		return err
	}
	if !purge && s.st.HA[fmt.Sprintf("ct:%d", g.VMID)] != nil {
		return failf("unable to remove CT %d - used in HA resources and purge parameter not set.", g.VMID)
	}
	return nil
}

// destroy removes a stopped container. The firewall file and the pool membership go with it; high availability and
// backup jobs only with purge.
func (t *task) destroy(g *guest, purge, unreferenced bool) error {
	s := t.s
	if purge {
		t.logf("purging CT %d from related configurations..", g.VMID)
	}
	if err := t.sleep(s.delays().Destroy); err != nil {
		return err
	}
	if err := s.removeGuestVolumes(g); err != nil {
		return err
	}
	if unreferenced {
		s.removeUnreferenced(g)
	}
	delete(s.st.Guests, g.VMID)
	s.leavePools(g.VMID)
	s.dropGuestFirewall(g.VMID)
	s.leaveACL(fmt.Sprintf("/vms/%d", g.VMID))
	if purge {
		delete(s.st.HA, fmt.Sprintf("ct:%d", g.VMID))
	}
	s.dirty()
	return nil
}

// removeGuestVolumes destroys a container's root and volumes, here and in the engine.
func (s *Server) removeGuestVolumes(g *guest) error {
	for _, volid := range g.allVolumes() {
		if err := s.removeVolume(g.Node, volid); err != nil {
			return err
		}
	}
	vmid, volids := g.VMID, g.allVolumes()
	return s.inEngine(s.ctx, func(ctx context.Context, e engine.Engine) error {
		if err := e.Destroy(ctx, vmid); err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		for _, volid := range volids {
			if err := e.DestroyVolume(ctx, volid); err != nil && !errors.Is(err, engine.ErrNotFound) {
				return err
			}
		}
		return nil
	})
}

// allVolumes are those of the configuration, pending changes, and the snapshots, each once.
func (g *guest) allVolumes() []string {
	seen := map[string]bool{}
	add := func(config map[string]string) {
		for _, key := range mountKeys(config) {
			if mount := parseMount(key, config[key]); mount.kind() == "volume" {
				seen[mount.volid()] = true
			}
		}
		for _, key := range optionsOf(config, "unused") {
			seen[config[key]] = true
		}
	}
	add(g.Config)
	for _, snap := range g.Snapshots {
		add(snap.Config)
	}
	return sortedKeys(seen)
}

// removeUnreferenced removes volumes that bear the container's number without being in its configuration.
func (s *Server) removeUnreferenced(g *guest) {
	for key, v := range s.st.Volumes {
		if v.VMID == g.VMID && v.Content == "rootdir" && (v.Node == g.Node || v.Node == "") {
			delete(s.st.Volumes, key)
		}
	}
}

// leaveACL removes the access entries of a container's path.
func (s *Server) leaveACL(path string) {
	kept := s.st.ACL[:0]
	for _, entry := range s.st.ACL {
		if entry.Path != path {
			kept = append(kept, entry)
		}
	}
	s.st.ACL = kept
}
