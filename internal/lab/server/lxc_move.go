package server

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// lxcMoveVolume moves a volume to another storage (storage), or hands it to another container (target-vmid).
func (s *Server) lxcMoveVolume(c *call) (any, error) {
	toStorage, toGuest := c.params.has("storage"), c.params.has("target-vmid")
	switch {
	case toStorage && toGuest:
		return nil, paramError("storage", "Storage and target-vmid are mutually exclusive")
	case toGuest:
		return s.handVolume(c)
	case toStorage:
		return s.moveToStorage(c)
	}
	return nil, failf("Provide either a 'storage' to move the mount point to a different storage or 'target-vmid' and " +
		"'target-mp' to move the mount point to another container")
}

// handover is a volume on its way from one container to another.
type handover struct {
	from, to       int
	fromKey, toKey string
}

// handVolume hands a volume over: its options and path stay, its name becomes the new owner's.
func (s *Server) handVolume(c *call) (any, error) {
	h := handover{from: c.vmid(), to: c.params.num("target-vmid"), fromKey: c.params.str("volume"), toKey: c.params.str("target-volume")}
	if h.toKey == "" {
		h.toKey = h.fromKey
	}
	if err := c.check(fmt.Sprintf("/vms/%d", h.to), "VM.Config.Disk"); err != nil {
		return nil, err
	}
	if h.from == h.to {
		return nil, paramError("target-vmid", "must be different than source VMID to move disk to another container")
	}
	if err := s.checkHandover(c, h); err != nil {
		return nil, err
	}
	id := fmt.Sprintf("%d-%s>%d-%s", h.from, h.fromKey, h.to, h.toKey)
	return c.startTask("move_volume", id, func(t *task) error {
		return t.withGuest(h.from, func(*guest) error {
			return t.withGuest(h.to, func(*guest) error {
				if err := s.checkHandover(c, h); err != nil {
					return err
				}
				return t.handOver(h)
			})
		})
	})
}

// checkHandover are the refusals, in the server's order.
func (s *Server) checkHandover(c *call, h handover) error {
	if h.fromKey == "rootfs" || h.toKey == "rootfs" {
		return failf("Cannot move to/from 'rootfs'")
	}
	if strings.HasPrefix(h.fromKey, "unused") && !strings.HasPrefix(h.toKey, "unused") {
		return failf("Moving an unused volume to a used one is not possible")
	}
	src, dst := s.st.Guests[h.from], s.st.Guests[h.to]
	for vmid, g := range map[int]*guest{h.from: src, h.to: dst} {
		if g == nil {
			return failf("could not find CT %d", vmid)
		}
	}
	if src.Node != dst.Node {
		return failf("Both containers need to be on the same node (%s != %s)", src.Node, dst.Node)
	}
	for _, g := range []*guest{src, dst} {
		if err := g.checkLock(); err != nil {
			return err
		}
	}
	if src.isTemplate() || dst.isTemplate() {
		return failf("Can't move volumes from or to template CT")
	}
	for _, pair := range []struct {
		g     *guest
		given string
	}{{src, c.params.str("digest")}, {dst, c.params.str("target-digest")}} {
		if err := checkDigest(pair.given, pair.g.digest()); err != nil {
			return failf("Container %d: %v", pair.g.VMID, err)
		}
	}
	return s.checkHandedVolume(src, dst, h)
}

func (s *Server) checkHandedVolume(src, dst *guest, h handover) error {
	value, ok := src.Config[h.fromKey]
	if !ok {
		return failf("volume '%s' for container '%d' does not exist", h.fromKey, h.from)
	}
	if _, taken := dst.Config[h.toKey]; taken {
		return failf("Target volume key '%s' is already in use for container '%d'", h.toKey, h.to)
	}
	mount := parseMount(h.fromKey, value)
	switch {
	case mount.kind() != "volume":
		return failf("Cannot move a bindmount or device mount to another container")
	case src.volumeInSnapshots(mount.volid()):
		return failf("Cannot move volume used by a snapshot to another container")
	case src.active() && !strings.HasPrefix(h.fromKey, "unused"):
		return failf("Cannot move in-use volume while the source CT is running - detach or shutdown first")
	case s.volumeOn(src.Node, mount.volid()) == nil:
		return failf("volume '%s' does not exist", mount.volid())
	}
	return nil
}

// handOver renames the volume and moves its line. A running target has it mounted at once.
func (t *task) handOver(h handover) error {
	s := t.s
	src, dst := s.st.Guests[h.from], s.st.Guests[h.to]
	t.logf("moving volume '%s' from container '%d' to '%d'", h.fromKey, h.from, h.to)
	if err := t.sleep(s.delays().Snapshot); err != nil {
		return err
	}
	mount := parseMount(h.fromKey, src.Config[h.fromKey])
	v := s.volumeOn(src.Node, mount.volid())
	old, name := mount.volid(), s.freeName(dst.Node, v, h.to)
	t.logf("removing volume '%s' from container '%d' config", h.fromKey, h.from)
	src.dropOption(h.fromKey)
	s.renameVolume(v, v.Node, name, h.to)
	if err := s.mountGuest(t.ctx, src); err != nil {
		return err
	}
	err := s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error {
		if err := e.RenameVolume(ctx, old, name); err != nil && !errors.Is(err, engine.ErrNotFound) {
			return err
		}
		return nil
	})
	if err != nil {
		return err
	}
	mount.values["volume"] = name
	dst.Config[h.toKey] = mount.String()
	if strings.HasPrefix(h.toKey, "unused") {
		dst.Config[h.toKey] = name
	}
	s.dirty()
	if err := s.mountGuest(t.ctx, dst); err != nil {
		return err
	}
	t.logf("target container '%d' updated with '%s'", h.to, h.toKey)
	return nil
}

// freeName is a free name for a volume that a container gets.
func (s *Server) freeName(node string, v *volume, vmid int) string {
	st := s.st.Storages[storageOf(v.VolID)]
	for n := 0; ; n++ {
		if !s.diskNumberTaken(node, st, vmid, n) {
			return diskName(st, "vm", vmid, n, v.Format)
		}
	}
}

// moveToStorage copies a volume to another storage. The old one stays as unusedN, or goes with delete=1.
func (s *Server) moveToStorage(c *call) (any, error) {
	vmid, key, id, remove := c.vmid(), c.params.str("volume"), c.params.str("storage"), c.params.flag("delete")
	if err := c.check("/storage/"+id, "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	if _, err := s.lxcStorage(c.node.Name, id); err != nil {
		return nil, err
	}
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	if err := s.checkStorageMove(c, g, key, id); err != nil {
		return nil, err
	}
	return c.startTask("move_volume", strconv.Itoa(vmid), func(t *task) error {
		return t.withGuest(vmid, func(g *guest) error {
			if err := s.checkStorageMove(c, g, key, id); err != nil {
				return err
			}
			g.Config["lock"] = "disk"
			defer func() { delete(g.Config, "lock"); s.dirty() }()
			return t.moveVolume(g, key, id, remove)
		})
	})
}

func (s *Server) checkStorageMove(c *call, g *guest, key, id string) error {
	if err := g.checkLock(); err != nil {
		return err
	}
	if err := checkDigest(c.params.str("digest"), g.digest()); err != nil {
		return err
	}
	if g.active() {
		return failf("cannot move volumes of a running container")
	}
	value, ok := g.Config[key]
	mount := parseMount(key, value)
	switch {
	case !ok || strings.HasPrefix(key, "unused"):
		return failf("mount point '%s' does not exist", key)
	case mount.kind() != "volume":
		return failf("cannot move '%s' - type %s", key, mount.kind())
	case storageOf(mount.volid()) == id:
		return failf("you can't move a volume with the same storage")
	case g.volumeInSnapshots(mount.volid()):
		return failf("you can't move a volume that is used by a snapshot to another storage")
	}
	return nil
}

func (t *task) moveVolume(g *guest, key, id string, remove bool) error {
	s, st := t.s, t.s.st.Storages[id]
	mount := parseMount(key, g.Config[key])
	old := s.volumeOn(g.Node, mount.volid())
	if old == nil {
		return failf("volume '%s' does not exist", mount.volid())
	}
	v := s.addVolume(g.Node, st, g.VMID, old.Size)
	t.logFormat(st, v)
	if err := t.sleep(s.delays().MoveVolume); err != nil {
		delete(s.st.Volumes, volumeKey(v.Node, v.VolID))
		return err
	}
	t.logCopy(key, old.Used)
	mount.values["volume"] = v.VolID
	g.Config[key] = mount.String()
	if key != "rootfs" {
		from, to := old.VolID, v.VolID
		err := s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error { return e.CopyVolume(ctx, from, to) })
		if err == nil {
			err = s.mountGuest(t.ctx, g)
		}
		if err != nil {
			return err
		}
	}
	if !remove {
		addUnused(g.Config, old.VolID)
		return nil
	}
	return s.dropVolume(t.ctx, g, old.VolID)
}
