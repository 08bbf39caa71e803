package server

import (
	"context"
	"strconv"
	"strings"

	"github.com/agentsandbox/terraform-provider-sandbox/internal/lab/engine"
)

// resizePlan is a checked request to grow a volume.
type resizePlan struct {
	key    string
	mount  mountPoint
	volume *volume
	bytes  int64
}

// lxcResize grows a volume; it never shrinks one. The task of a stopped container takes long, for the file system is
// checked and its multi-mount protection waited for; all the while the lock file is held.
func (s *Server) lxcResize(c *call) (any, error) {
	g, err := c.guest()
	if err != nil {
		return nil, err
	}
	plan, err := c.planResize(g)
	if err != nil {
		return nil, err
	}
	vmid := g.VMID
	return c.startTask("resize", strconv.Itoa(vmid), func(t *task) error {
		return t.withGuest(vmid, func(g *guest) error {
			again, err := s.resizeOf(g, plan.key, plan.bytes)
			if err != nil {
				return err
			}
			return t.resize(g, again)
		})
	})
}

// planResize checks in the server's order. A template conversion that is under way has the last word: the volume may
// have another name when the lock is free.
func (c *call) planResize(g *guest) (*resizePlan, error) {
	key, text := c.params.str("disk"), c.params.str("size")
	if err := g.checkLock(); err != nil {
		return nil, err
	}
	if err := checkDigest(c.params.str("digest"), g.digest()); err != nil {
		return nil, err
	}
	value, set := g.Config[key]
	if !set {
		return nil, &apiError{status: 500, message: "format error", errors: map[string]string{
			"mp": "property is missing and it is not optional", "volume": "property is missing and it is not optional",
		}}
	}
	volid := parseMount(key, value).volid()
	if err := c.check("/storage/"+storageOf(volid), "Datastore.AllocateSpace"); err != nil {
		return nil, err
	}
	release, err := c.s.lockGuest(c.ctx, g.VMID)
	if err != nil {
		return nil, err
	}
	defer release()
	v := c.s.volumeOn(g.Node, volid)
	if v == nil {
		return nil, failf("volume '%s' does not exist", volid)
	}
	bytes := sizeBytes(strings.TrimPrefix(text, "+"))
	if strings.HasPrefix(text, "+") {
		bytes += v.Size
	}
	return c.s.resizeOf(g, key, bytes)
}

// resizeOf checks a wanted size against the present one.
func (s *Server) resizeOf(g *guest, key string, bytes int64) (*resizePlan, error) {
	mount := parseMount(key, g.Config[key])
	v := s.volumeOn(g.Node, mount.volid())
	switch {
	case v == nil:
		return nil, failf("volume '%s' does not exist", mount.volid())
	case bytes < v.Size:
		return nil, failf("unable to shrink disk size")
	case bytes == v.Size:
		return nil, failf("disk is already at specified size")
	}
	return &resizePlan{key: key, mount: mount, volume: v, bytes: bytes}, nil
}

func (t *task) resize(g *guest, plan *resizePlan) error {
	s, before, running := t.s, plan.volume.Size, g.active()
	took := s.delays().ResizeStopped
	if running {
		took = s.delays().Resize
	}
	plan.volume.Size = plan.bytes
	plan.mount.values["size"] = formatSize(plan.bytes)
	g.Config[plan.key] = plan.mount.String()
	s.dirty()
	if err := t.sleep(took); err != nil {
		return err
	}
	vmid, volid, bytes := g.VMID, plan.volume.VolID, plan.bytes
	err := s.inEngine(t.ctx, func(ctx context.Context, e engine.Engine) error {
		if plan.key == "rootfs" {
			return e.ResizeRoot(ctx, vmid, bytes)
		}
		return e.ResizeVolume(ctx, volid, bytes)
	})
	t.logResize(volumePathOf(s.st.Storages[storageOf(volid)], volid), before, bytes, plan.key == "rootfs", running)
	return err
}
