package server

import (
	"context"
	"maps"
	"slices"
	"strconv"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// fastOptions take effect at once on a running container: nothing in the guest has to follow.
var fastOptions = map[string]bool{
	"description": true, "onboot": true, "startup": true, "protection": true, "hostname": true,
	"hookscript": true, "cores": true, "tags": true, "lock": true,
}

// pendingSet is a container's pending section while it is being changed: a refusal must leave the old one.
type pendingSet struct {
	values  map[string]string
	deletes map[string]bool
}

func newPending(g *guest) pendingSet {
	p := pendingSet{values: map[string]string{}, deletes: map[string]bool{}}
	maps.Copy(p.values, g.Pending)
	maps.Copy(p.deletes, g.PendingDelete)
	return p
}

// remove marks an option for removal. One that isn't set is no error.
func (p pendingSet) remove(g *guest, key string) error {
	_, set := g.Config[key]
	if _, waiting := p.values[key]; !set && !waiting {
		return nil
	}
	kind, _ := splitNumbered(key)
	switch {
	case key == "memory" || key == "rootfs" || key == "ostype":
		return failf("unable to delete required option '%s'", key)
	case key == "unprivileged":
		return failf("unable to delete read-only option: '%s'", key)
	case kind == "mp" || kind == "unused":
		if err := g.checkProtection("can't remove CT " + strconv.Itoa(g.VMID) + " drive '" + key + "'"); err != nil {
			return err
		}
	}
	p.deletes[key] = true
	return nil
}

// tidyPending drops what changes nothing: values that are the present ones, removals of what isn't set.
func (g *guest) tidyPending() {
	for key, value := range g.Pending {
		if present, set := g.Config[key]; set && present == value {
			delete(g.Pending, key)
		}
	}
	for key := range g.PendingDelete {
		_, set := g.Config[key]
		if _, waiting := g.Pending[key]; !set && !waiting {
			delete(g.PendingDelete, key)
		}
	}
}

// setOption stores an applied value. An empty description is none.
func (g *guest) setOption(key, value string) {
	delete(g.Pending, key)
	if key == "description" && value == "" {
		delete(g.Config, key)
		return
	}
	g.Config[key] = value
}

func (g *guest) dropOption(key string) {
	delete(g.Config, key)
	delete(g.Pending, key)
	delete(g.PendingDelete, key)
}

// applyPending applies everything that waits, to a container that doesn't run: when it has stopped, when it is about
// to start, and at once when it is changed while stopped.
func (s *Server) applyPending(ctx context.Context, g *guest) error {
	g.tidyPending()
	for _, key := range sortedKeys(g.PendingDelete) {
		if err := s.deleteOption(ctx, g, key); err != nil {
			return err
		}
	}
	for _, key := range sortedKeys(g.Pending) {
		value, err := s.takeValue(ctx, g, key, g.Pending[key])
		if err != nil {
			return err
		}
		g.setOption(key, value)
	}
	s.dirty()
	return s.mountGuest(ctx, g)
}

// deleteOption removes an option of a stopped container. A mount point's volume stays, as unusedN; an unused volume is
// destroyed.
func (s *Server) deleteOption(ctx context.Context, g *guest, key string) error {
	kind, _ := splitNumbered(key)
	value := g.Config[key]
	g.dropOption(key)
	switch kind {
	case "mp":
		if m := parseMount(key, value); m.kind() == "volume" {
			addUnused(g.Config, m.volid())
		}
	case "unused":
		return s.dropVolume(ctx, g, value)
	}
	return nil
}

// dropVolume destroys a volume that the configuration no longer has, unless a snapshot needs it.
func (s *Server) dropVolume(ctx context.Context, g *guest, volid string) error {
	if volumeInUse(g.Config, volid) || g.volumeInSnapshots(volid) {
		return nil
	}
	if err := s.removeVolume(g.Node, volid); err != nil {
		return err
	}
	return s.destroyVolumeInEngine(ctx, volid)
}

// takeValue prepares a value for the configuration: interfaces get their address, mount points their volume.
func (s *Server) takeValue(ctx context.Context, g *guest, key, value string) (string, error) {
	kind, _ := splitNumbered(key)
	switch {
	case kind == "net":
		return s.completeNet(value), nil
	case key == "rootfs" || kind == "mp":
		return s.takeMount(ctx, g, key, value)
	}
	return value, nil
}

// takeMount makes the volume that a mount point asks for. The volume that was there before becomes unused; one that
// was unused no longer is.
func (s *Server) takeMount(ctx context.Context, g *guest, key, value string) (string, error) {
	mount := parseMount(key, value)
	if id, bytes, ok := mount.wanted(); ok {
		st, err := s.lxcStorage(g.Node, id)
		if err != nil {
			return "", err
		}
		v := s.addVolume(g.Node, st, g.VMID, bytes)
		mount.values["volume"], mount.values["size"] = v.VolID, formatSize(bytes)
		if key != "rootfs" {
			volid := v.VolID
			err = s.inEngine(ctx, func(ctx context.Context, e engine.Engine) error { return e.AllocVolume(ctx, volid, bytes) })
			if err != nil {
				return "", err
			}
		}
	} else if v := s.volumeOn(g.Node, mount.volid()); v != nil && mount.values["size"] == "" {
		mount.values["size"] = formatSize(v.Size)
	}
	old, had := g.Config[key]
	delete(g.Config, key)
	for _, unused := range optionsOf(g.Config, "unused") {
		if g.Config[unused] == mount.volid() {
			delete(g.Config, unused)
		}
	}
	if before := parseMount(key, old); had && before.kind() == "volume" && before.volid() != mount.volid() {
		addUnused(g.Config, before.volid())
	}
	return mount.String(), nil
}

// applyHot applies to a running container what can be changed hot; the rest stays pending.
func (s *Server) applyHot(ctx context.Context, g *guest, keys map[string]bool) error {
	refused := map[string]string{}
	for _, key := range sortedKeys(g.PendingDelete) {
		if !keys[key] || !hotDelete(key) {
			continue
		}
		value := g.Config[key]
		g.dropOption(key)
		if kind, _ := splitNumbered(key); kind == "unused" {
			if err := s.dropVolume(ctx, g, value); err != nil {
				refused[key] = "unable to hotplug " + key + ": " + err.Error()
			}
		}
	}
	for _, key := range sortedKeys(g.Pending) {
		if !keys[key] || g.PendingDelete[key] || !g.hotChange(key) {
			continue
		}
		value, err := s.takeValue(ctx, g, key, g.Pending[key])
		if err != nil {
			refused[key] = "unable to hotplug " + key + ": " + err.Error()
			continue
		}
		g.setOption(key, value)
	}
	s.dirty()
	if len(refused) > 0 {
		return paramErrors(refused)
	}
	if err := s.configureGuest(ctx, g); err != nil {
		return err
	}
	return s.mountGuest(ctx, g)
}

// hotDelete says that an option can be removed from a running container. A mount point can't: it stays in use.
func hotDelete(key string) bool {
	kind, _ := splitNumbered(key)
	return fastOptions[key] || slices.Contains([]string{"unused", "net", "dev"}, kind) ||
		slices.Contains([]string{"swap", "cpulimit", "cpuunits"}, key)
}

// hotChange says that an option can be set on a running container: what is fast, limits, interfaces, and mount points
// where there was none.
func (g *guest) hotChange(key string) bool {
	kind, _ := splitNumbered(key)
	switch {
	case fastOptions[key], kind == "net", kind == "dev":
		return true
	case kind == "mp":
		_, taken := g.Config[key]
		return !taken
	}
	return slices.Contains([]string{"memory", "swap", "cpulimit", "cpuunits"}, key)
}
